/* The gate; see gate.h. Decides by the mount's access alone: it looks at no file, so there is nothing
 * that could change between its answer and the operation. */
#include "fsgate/gate.h"

#include "fsgate/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <unistd.h>

typedef enum {
	NEEDS_NOTHING, /* no row: refused */
	NEEDS_READ,
	NEEDS_WRITE,
	NEEDS_FLAGS,
} FsgNeeds;

static const struct {
	const char *name;
	FsgNeeds needs;
} gate_rows[_FSG_OP_N] = {
#define FSG_OP_ROW(id, text, needs_what) [FSG_OP_##id] = { text, NEEDS_##needs_what },
	FSG_OPS(FSG_OP_ROW)
#undef FSG_OP_ROW
};

const char *fsg_op_name(FsgOp op)
{
	g_return_val_if_fail(op < _FSG_OP_N, "unknown");
	return gate_rows[op].name;
}

bool fsg_op_changes(FsgOp op)
{
	return op == FSG_OP_CREATE || (op < _FSG_OP_N && gate_rows[op].needs == NEEDS_WRITE);
}

static int check_writable(const FsgInode *inode)
{
	return fsg_inode_is_writable(inode) ? 0 : fsg_refuse_change(inode, -EROFS);
}

int fsg_gate(FsgOp op, const FsgInode *inode)
{
	switch (op < _FSG_OP_N ? gate_rows[op].needs : NEEDS_NOTHING) {
	case NEEDS_READ:
		return 0;
	case NEEDS_WRITE:
		return check_writable(inode);
	case NEEDS_FLAGS: /* its own function decides; asking here is a mistake: refused */
	case NEEDS_NOTHING:
		break;
	}
	return -EROFS;
}

int fsg_gate_open(const FsgInode *inode, int flags)
{
	int mode = flags & O_ACCMODE;

	if (mode == O_ACCMODE)
		return -EINVAL;
	if (mode == O_RDONLY && !(flags & O_TRUNC))
		return 0;
	return check_writable(inode);
}

int fsg_gate_access(const FsgInode *inode, int mask)
{
	return mask & W_OK ? check_writable(inode) : 0;
}

int fsg_gate_create(const FsgInode *dir)
{
	return check_writable(dir);
}
