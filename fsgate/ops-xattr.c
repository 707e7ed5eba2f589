/* Extended attributes: those of the user namespace, and POSIX ACLs. Capabilities have no effect in a view, so
 * security.capability reads as absent and cannot be set; trusted.* belongs to the host's administrator. ACLs name
 * ids of the host, so a sandbox, in which one id has a mapping, has none. Never ENOSYS, which would switch
 * all of them off for good. */
#include "fsgate/change.h"
#include "fsgate/lookup.h"
#include "fsgate/ops.h"
#include "fsgate/refusal.h"

#include "common/fd-util.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/xattr.h>

#define VALUE_BYTES_MOST 65536 /* XATTR_SIZE_MAX */

static bool is_user_name(const char *name)
{
	return g_str_has_prefix(name, "user.");
}

static bool is_acl_name(const char *name)
{
	return strcmp(name, "system.posix_acl_access") == 0 ||
	       strcmp(name, "system.posix_acl_default") == 0;
}

static int refuse_name(const FsgView *view, const char *name, bool change)
{
	bool absent =
		strcmp(name, "security.capability") == 0 || g_str_has_prefix(name, "trusted.");

	if (is_user_name(name) || (is_acl_name(name) && !view->maps_one_id))
		return 0;
	/* Reading them is what programs do with every file, and is no denial. */
	if (!change)
		return absent ? -ENODATA : -EOPNOTSUPP;
	return fsg_refuse(DENIAL_XATTR_NAMESPACE, absent ? -EPERM : -EOPNOTSUPP);
}

/* The inode's fd as a path that leads to the object itself; a user of the fd. */
static int begin(FsgView *view, FsgInode *inode, char path[static FD_PROC_PATH_SIZE])
{
	int fd;

	if (inode->kind != FSG_INODE_HOST)
		return -EOPNOTSUPP;
	if ((fd = fsg_get_object_fd(view, inode, true)) < 0)
		return fd;
	fd_proc_path(fd, path);
	return 0;
}

static void note_change(FsgView *view, FsgInode *inode, const char *path)
{
	struct stat st;

	fsg_change_modified(view, inode, stat(path, &st) == 0 ? st.st_nlink : 1);
}

static void reply_value(fuse_req_t req, FsgOp op, ssize_t got, const char *value, size_t size)
{
	if (got < 0)
		fsg_reply_result(req, op, (int)got);
	else if (size == 0)
		fsg_reply_xattr_size(req, (size_t)got);
	else
		fsg_reply_bytes(req, value, (size_t)got);
}

void fsg_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	char path[FD_PROC_PATH_SIZE];
	g_autofree char *value = g_malloc(MIN(size, VALUE_BYTES_MOST) + 1);
	ssize_t r = fsg_gate(FSG_OP_GETXATTR, inode);

	if (r == 0)
		r = refuse_name(view, name, false);
	if (r == 0 && (r = begin(view, inode, path)) == 0) {
		r = getxattr(path, name, value, MIN(size, VALUE_BYTES_MOST));
		r = r < 0 ? -errno : r;
		fsg_inode_put_fd(view->inodes, inode);
	}
	/* The kernel asks to judge an access, and would take this for a refusal of it. */
	if (r == -EOPNOTSUPP && view->kernel_decides && is_acl_name(name))
		r = -ENODATA;
	reply_value(req, FSG_OP_GETXATTR, r, value, size);
}

/* Keeps the names that can be read, in place. */
static size_t keep_names(const FsgView *view, char *names, size_t size)
{
	size_t kept = 0;

	for (size_t at = 0; at < size;) {
		size_t length = strlen(names + at) + 1;

		if (refuse_name(view, names + at, false) == 0) {
			memmove(names + kept, names + at, length);
			kept += length;
		}
		at += length;
	}
	return kept;
}

void fsg_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	char path[FD_PROC_PATH_SIZE];
	g_autofree char *names = g_malloc0(VALUE_BYTES_MOST + 1);
	ssize_t r = fsg_gate(FSG_OP_LISTXATTR, inode);

	if (r == 0 && inode->kind == FSG_INODE_HOST && (r = begin(view, inode, path)) == 0) {
		r = listxattr(path, names, VALUE_BYTES_MOST);
		r = r < 0 ? -errno : (ssize_t)keep_names(view, names, (size_t)r);
		fsg_inode_put_fd(view->inodes, inode);
	}
	if (r >= 0 && size > 0 && (size_t)r > size)
		r = -ERANGE;
	reply_value(req, FSG_OP_LISTXATTR, r, names, size);
}

void fsg_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		     size_t size, int flags)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	char path[FD_PROC_PATH_SIZE];
	int r = fsg_gate(FSG_OP_SETXATTR, inode);

	if (r == 0)
		r = refuse_name(view, name, true);
	if (r == 0 && (r = begin(view, inode, path)) == 0) {
		if (is_acl_name(name)) /* whether a set-group-ID bit stays turns on them */
			r = fsg_identity_add_groups(inode->anchor, view->proc_fd);
		if (r == 0)
			r = setxattr(path, name, value, size, flags) == 0 ? 0 : -errno;
		if (r == 0)
			note_change(view, inode, path);
		fsg_inode_put_fd(view->inodes, inode);
	}
	fsg_reply_result(req, FSG_OP_SETXATTR, r);
}

void fsg_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	char path[FD_PROC_PATH_SIZE];
	int r = fsg_gate(FSG_OP_REMOVEXATTR, inode);

	if (r == 0)
		r = refuse_name(view, name, true);
	if (r == 0 && (r = begin(view, inode, path)) == 0) {
		r = removexattr(path, name) == 0 ? 0 : -errno;
		if (r == 0)
			note_change(view, inode, path);
		fsg_inode_put_fd(view->inodes, inode);
	}
	fsg_reply_result(req, FSG_OP_REMOVEXATTR, r);
}
