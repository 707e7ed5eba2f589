/* The raw request that the calling thread works on; see request.h. */
#include "fsgate/request.h"

#include <linux/fuse.h>

/* Of the protocol since 7.37. */
#define OPCODE_TMPFILE 51

static __thread bool is_tmpfile;
static __thread int32_t backing_id;

void fsg_request_enter(void *request)
{
	struct fuse_in_header *header = request;

	is_tmpfile = header->opcode == OPCODE_TMPFILE;
	if (is_tmpfile)
		header->opcode = FUSE_CREATE;
}

void fsg_request_leave(void)
{
	is_tmpfile = false;
}

bool fsg_request_is_tmpfile(void)
{
	return is_tmpfile;
}

void fsg_request_set_backing_id(int32_t id)
{
	backing_id = id;
}

int32_t fsg_request_backing_id(void)
{
	return backing_id;
}
