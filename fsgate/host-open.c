/* Opening the host's file behind an inode for I/O; see host-open.h.
 *
 * The short way opens the name where the object was last seen, in a directory that is inside the mount, and
 * compares identities: two system calls say both that the object is in its place and give the fd. Between the
 * caller's last look and this one the name may have become anything: a link is not followed, nothing is waited
 * for, no device can be opened in a clone, and what is not the inode is closed unused. So the file is only
 * truncated when it is known to be the right one. The long way goes by the object's O_PATH fd. */
#include "fsgate/host-open.h"

#include "common/fd-util.h"
#include "common/resolve.h"
#include "fsgate/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>

/* Of the flags only these are the host's business; see ops-file.c. */
#define PASSED_FLAGS (O_ACCMODE | O_TRUNC | O_SYNC | O_DSYNC)

static int open_by_place(FsgView *view, FsgInode *inode, int flags, struct statx *ret_stx)
{
	g_autofree char *name = NULL;
	FD_AUTO fd = -1;
	FsgInode *parent;
	FsgInodeKey key;
	int dirfd;

	/* Truncating takes the right to write, which only a file opened for writing has shown. */
	if ((flags & O_TRUNC) && (flags & O_ACCMODE) == O_RDONLY)
		return -EINVAL;
	if (inode->fd_borrowed || !fsg_inode_dup_hint(view->inodes, inode, &parent, &name))
		return -ESTALE;
	/* The root of an alias lies in another clone than its parent. */
	dirfd = parent->anchor == inode->anchor ? fsg_get_dir_fd(view, parent) : -ESTALE;
	if (dirfd >= 0) {
		fd = resolve_open_child(dirfd, name, flags & ~O_TRUNC, inode->anchor->cross_mounts);
		fsg_inode_put_fd(view->inodes, parent);
	}
	fsg_inode_unref(view->inodes, parent);
	if (fd < 0)
		return fd;
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, FSG_STATX_MASK, ret_stx) != 0)
		return -errno;
	key = fsg_inode_key(inode->anchor, ret_stx);
	if (!fsg_inode_key_equal(&key, &inode->key))
		return -ESTALE;
	if ((flags & O_TRUNC) && ftruncate(fd, 0) != 0)
		return -errno;
	return fd_steal(&fd);
}

static int open_by_object(FsgView *view, FsgInode *inode, int flags, struct statx *ret_stx)
{
	int fd = fsg_get_object_fd(view, inode, true), opened;

	if (fd < 0)
		return fd;
	opened = fsg_reopen(view, fd, flags & PASSED_FLAGS);
	if (opened == -EPERM && (flags & O_APPEND)) /* a file that may only be appended to */
		opened = fsg_reopen(view, fd, (flags & PASSED_FLAGS) | O_APPEND);
	fsg_inode_put_fd(view->inodes, inode);
	if (opened >= 0 &&
	    statx(opened, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, FSG_STATX_MASK, ret_stx) != 0) {
		int r = -errno;

		fd_close(&opened);
		return r;
	}
	return opened;
}

int fsg_open_file(FsgView *view, FsgInode *inode, int flags, struct statx *ret_stx)
{
	int fd = inode->type == S_IFREG && inode->kind == FSG_INODE_HOST
			 ? open_by_place(view, inode, flags & PASSED_FLAGS, ret_stx)
			 : -ESTALE;

	return fd >= 0 ? fd : open_by_object(view, inode, flags, ret_stx);
}
