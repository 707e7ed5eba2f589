/* The handlers as libfuse calls them: each with its request known to refusal.c, so that counters and denials
 * know what it is about. A handler without a wrapper here works, and is not seen.
 *
 * Every wrapper says the operation, the object or the directory and name that it is about, for a rename also where
 * to, and passes on what it was given. */
#include "fsgate/boundary.h"
#include "fsgate/invalidate.h"
#include "fsgate/ops.h"
#include "fsgate/refusal.h"

#include <fcntl.h>

static void begin(FsgAsked *request, fuse_req_t req, FsgOp op, fuse_ino_t ino, const char *name)
{
	*request = (FsgAsked){
		.view = fsg_req_view(req),
		.op = op,
		.pid = fuse_req_ctx(req)->pid,
		.inode = fsg_req_inode(req, ino),
		.name = name,
	};
	fsg_asked_begin(request);
	/* Before it is done: should we end in between, an exec's end must not look like one of which nothing is known to
	 * have been changed. */
	if (fsg_op_changes(op))
		fsg_boundary_note(request->view->boundary);
}

/* A handler that is about an object, or about a name in a directory. */
#define OBSERVE(field, op, ino, name, parameters, ...)                                             \
	static void seen_##field parameters                                                        \
	{                                                                                          \
		__attribute__((cleanup(fsg_asked_end))) FsgAsked request;                          \
                                                                                                   \
		begin(&request, req, FSG_OP_##op, ino, name);                                      \
		fsg_ops.field(__VA_ARGS__);                                                        \
	}

typedef struct fuse_file_info Info;

OBSERVE(lookup, LOOKUP, parent, name, (fuse_req_t req, fuse_ino_t parent, const char *name), req,
	parent, name)
OBSERVE(getattr, GETATTR, ino, NULL, (fuse_req_t req, fuse_ino_t ino, Info *fi), req, ino, fi)
OBSERVE(setattr, SETATTR, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, Info *fi), req, ino, attr,
	to_set, fi)
OBSERVE(readlink, READLINK, ino, NULL, (fuse_req_t req, fuse_ino_t ino), req, ino)
OBSERVE(statfs, STATFS, ino, NULL, (fuse_req_t req, fuse_ino_t ino), req, ino)
OBSERVE(access, ACCESS, ino, NULL, (fuse_req_t req, fuse_ino_t ino, int mask), req, ino, mask)

static void seen_open(fuse_req_t req, fuse_ino_t ino, Info *fi)
{
	__attribute__((cleanup(fsg_asked_end))) FsgAsked request;

	begin(&request, req, FSG_OP_OPEN, ino, NULL);
	if (fi->flags & (O_ACCMODE | O_TRUNC))
		fsg_boundary_note(request.view->boundary);
	fsg_ops.open(req, ino, fi);
}

OBSERVE(create, CREATE, parent, name,
	(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, Info *fi), req, parent,
	name, mode, fi)
OBSERVE(read, READ, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, Info *fi), req, ino, size,
	offset, fi)
OBSERVE(write_buf, WRITE, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *in, off_t offset, Info *fi), req, ino,
	in, offset, fi)
OBSERVE(flush, FLUSH, ino, NULL, (fuse_req_t req, fuse_ino_t ino, Info *fi), req, ino, fi)
OBSERVE(fsync, FSYNC, ino, NULL, (fuse_req_t req, fuse_ino_t ino, int datasync, Info *fi), req, ino,
	datasync, fi)
OBSERVE(release, RELEASE, ino, NULL, (fuse_req_t req, fuse_ino_t ino, Info *fi), req, ino, fi)
OBSERVE(lseek, LSEEK, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, Info *fi), req, ino, offset,
	whence, fi)
OBSERVE(fallocate, FALLOCATE, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, Info *fi), req, ino,
	mode, offset, length, fi)
OBSERVE(copy_file_range, COPY_FILE_RANGE, ino_out, NULL,
	(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in, Info *fi_in, fuse_ino_t ino_out,
	 off_t offset_out, Info *fi_out, size_t length, int flags),
	req, ino_in, offset_in, fi_in, ino_out, offset_out, fi_out, length, flags)

OBSERVE(getlk, GETLK, ino, NULL, (fuse_req_t req, fuse_ino_t ino, Info *fi, struct flock *lock),
	req, ino, fi, lock)
OBSERVE(setlk, SETLK, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, Info *fi, struct flock *lock, int sleep), req, ino, fi,
	lock, sleep)
OBSERVE(flock, FLOCK, ino, NULL, (fuse_req_t req, fuse_ino_t ino, Info *fi, int how), req, ino, fi,
	how)

OBSERVE(opendir, OPENDIR, ino, NULL, (fuse_req_t req, fuse_ino_t ino, Info *fi), req, ino, fi)
OBSERVE(readdir, READDIR, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, Info *fi), req, ino, size,
	offset, fi)
OBSERVE(readdirplus, READDIR, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, Info *fi), req, ino, size,
	offset, fi)
OBSERVE(releasedir, RELEASEDIR, ino, NULL, (fuse_req_t req, fuse_ino_t ino, Info *fi), req, ino, fi)
OBSERVE(fsyncdir, FSYNCDIR, ino, NULL, (fuse_req_t req, fuse_ino_t ino, int datasync, Info *fi),
	req, ino, datasync, fi)

OBSERVE(mkdir, MKDIR, parent, name,
	(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode), req, parent, name, mode)
OBSERVE(mknod, MKNOD, parent, name,
	(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev), req, parent,
	name, mode, rdev)
OBSERVE(symlink, SYMLINK, parent, name,
	(fuse_req_t req, const char *text, fuse_ino_t parent, const char *name), req, text, parent,
	name)
OBSERVE(unlink, UNLINK, parent, name, (fuse_req_t req, fuse_ino_t parent, const char *name), req,
	parent, name)
OBSERVE(rmdir, RMDIR, parent, name, (fuse_req_t req, fuse_ino_t parent, const char *name), req,
	parent, name)
OBSERVE(link, LINK, parent, name,
	(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name), req, ino, parent,
	name)

OBSERVE(getxattr, GETXATTR, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size), req, ino, name, size)
OBSERVE(listxattr, LISTXATTR, ino, NULL, (fuse_req_t req, fuse_ino_t ino, size_t size), req, ino,
	size)
OBSERVE(setxattr, SETXATTR, ino, NULL,
	(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
	 int flags),
	req, ino, name, value, size, flags)
OBSERVE(removexattr, REMOVEXATTR, ino, NULL, (fuse_req_t req, fuse_ino_t ino, const char *name),
	req, ino, name)

static void seen_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command, void *arg, Info *fi,
		       unsigned int flags, const void *in, size_t in_size, size_t out_size)
{
	__attribute__((cleanup(fsg_asked_end))) FsgAsked request;

	begin(&request, req, fsg_ioctl_op(command), ino, NULL);
	fsg_ops.ioctl(req, ino, command, arg, fi, flags, in, in_size, out_size);
}

static void seen_rename(fuse_req_t req, fuse_ino_t from, const char *name, fuse_ino_t to,
			const char *new_name, unsigned int flags)
{
	__attribute__((cleanup(fsg_asked_end))) FsgAsked request;

	begin(&request, req, FSG_OP_RENAME, from, name);
	request.to_inode = fsg_req_inode(req, to);
	request.to_name = new_name;
	/* The kernel goes on believing what it has been told of the moved objects, by their new names. */
	fsg_told_add_moved(request.view->invalidate->told, to, new_name);
	fsg_told_add_moved(request.view->invalidate->told, from, name);
	fsg_ops.rename(req, from, name, to, new_name, flags);
}

struct fuse_lowlevel_ops fsg_observed_ops(void)
{
	struct fuse_lowlevel_ops ops = fsg_ops;

#define PUT(field)                                                                                 \
	if (ops.field)                                                                             \
		ops.field = seen_##field;
	PUT(lookup)
	PUT(getattr)
	PUT(setattr)
	PUT(readlink)
	PUT(statfs)
	PUT(access)
	PUT(open)
	PUT(create)
	PUT(read)
	PUT(write_buf)
	PUT(flush)
	PUT(fsync)
	PUT(release)
	PUT(lseek)
	PUT(fallocate)
	PUT(copy_file_range)
	PUT(getlk)
	PUT(setlk)
	PUT(flock)
	PUT(ioctl)
	PUT(opendir)
	PUT(readdir)
	PUT(readdirplus)
	PUT(releasedir)
	PUT(fsyncdir)
	PUT(mkdir)
	PUT(mknod)
	PUT(symlink)
	PUT(unlink)
	PUT(rmdir)
	PUT(rename)
	PUT(link)
	PUT(getxattr)
	PUT(listxattr)
	PUT(setxattr)
	PUT(removexattr)
#undef PUT
	return ops;
}
