/* Ioctls: the attributes of lsattr and chattr. Anything else is answered as by a file that knows no ioctl; the kernel
 * passes on only what says its own size, with the data copied, so that no address of the caller's is ever used here.
 *
 * Setting is limited to attributes that only the file's own user feels. What would outlive the user's own
 * rights over the file (immutable, append-only) or has other limits than the mount (project, verity) is refused;
 * for most of it our threads would not have the capability either. */
#include "fsgate/change.h"
#include "fsgate/lookup.h"
#include "fsgate/ops.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

#define MAY_CHANGE                                                                                 \
	(FS_SYNC_FL | FS_NODUMP_FL | FS_NOATIME_FL | FS_DIRSYNC_FL | FS_COMPR_FL | FS_NOCOMP_FL |  \
	 FS_NOCOW_FL)

/* -1 for what has no host file. */
static int host_fd(const struct fuse_file_info *fi, unsigned int flags)
{
	if (flags & FUSE_IOCTL_DIR) {
		const FsgDir *handle = fsg_dir_from_fh(fi->fh);

		return handle->dir ? dirfd(handle->dir) : -1;
	}
	return fsg_file_from_fh(fi->fh)->fd;
}

static int set_flags(FsgView *view, FsgInode *inode, int fd, const void *in, size_t in_size)
{
	unsigned int wanted;
	struct stat st;
	int now = 0, r;

	if (in_size < sizeof wanted)
		return -EINVAL;
	memcpy(&wanted, in, sizeof wanted);
	if ((r = fsg_view_act_as(inode->anchor)) < 0)
		return r;
	if (ioctl(fd, FS_IOC_GETFLAGS, &now) != 0)
		return -errno;
	if (((unsigned int)now ^ wanted) & ~(unsigned int)MAY_CHANGE)
		return -EPERM;
	if (ioctl(fd, FS_IOC_SETFLAGS, &wanted) != 0)
		return -errno;
	fsg_change_modified(view, inode, fstat(fd, &st) == 0 ? st.st_nlink : 1);
	return 0;
}

FsgOp fsg_ioctl_op(unsigned int command)
{
	return command == FS_IOC_SETFLAGS || command == FS_IOC_FSSETXATTR ? FSG_OP_SETFLAGS
									  : FSG_OP_GETFLAGS;
}

/* Of an ioctl that only reads: its answer into out. */
static int get(int fd, unsigned long command, size_t size, void *out, size_t out_size)
{
	if (fd < 0)
		return -ENOTTY;
	if (out_size < size)
		return -EINVAL;
	return ioctl(fd, command, out) == 0 ? (int)size : -errno;
}

void fsg_op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command, void *arg,
		  struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
		  size_t out_size)
{
	FsgInode *inode = fsg_req_inode(req, ino);
	FsgOp op = fsg_ioctl_op(command);
	struct fsxattr out = { 0 };
	int fd = host_fd(fi, flags), r;

	(void)arg;
	switch (command) {
	case FS_IOC_GETFLAGS:
		if ((r = fsg_gate(op, inode)) == 0)
			r = get(fd, FS_IOC_GETFLAGS, sizeof(int), &out, out_size);
		break;
	case FS_IOC_FSGETXATTR:
		if ((r = fsg_gate(op, inode)) == 0)
			r = get(fd, FS_IOC_FSGETXATTR, sizeof out, &out, out_size);
		break;
	case FS_IOC_SETFLAGS:
		if ((r = fsg_gate(op, inode)) == 0)
			r = set_flags(fsg_req_view(req), inode, fd, in, in_size);
		break;
	case FS_IOC_FSSETXATTR:
		if ((r = fsg_gate(op, inode)) == 0)
			r = -EOPNOTSUPP;
		break;
	default:
		r = -ENOTTY;
		break;
	}
	if (r < 0)
		fsg_reply_result(req, op, r);
	else
		fsg_reply_ioctl(req, &out, (size_t)r);
}
