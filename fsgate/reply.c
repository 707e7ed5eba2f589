/* Replies; see reply.h. */
#include "fsgate/reply.h"

#include "common/errno-util.h"
#include "fsgate/refusal.h"
#include "fsgate/request.h"

#include <errno.h>
#include <glib.h>
#include <linux/fuse.h>

/* What callers of file system calls expect to be told; README.md says when each is given. */
static bool is_known_errno(int errnum)
{
	static const int known[] = {
		EPERM,	 ENOENT, EINTR,	  EIO,	   ENXIO,      EBADF,	     EAGAIN,	ENOMEM,
		EACCES,	 EBUSY,	 EEXIST,  EXDEV,   ENODEV,     ENOTDIR,	     EISDIR,	EINVAL,
		ENFILE,	 EMFILE, ETXTBSY, EFBIG,   ENOSPC,     EROFS,	     EMLINK,	ERANGE,
		EDEADLK, ENOLCK, ELOOP,	  ENODATA, EOVERFLOW,  ESTALE,	     EDQUOT,	ENOTEMPTY,
		ENOSYS,	 E2BIG,	 ENOTTY,  ESPIPE,  EOPNOTSUPP, ENAMETOOLONG, EHOSTDOWN, ETIMEDOUT,
	};

	for (size_t i = 0; i < G_N_ELEMENTS(known); i++)
		if (known[i] == errnum)
			return true;
	return false;
}

static int answerable(FsgOp op, int r)
{
	fsg_asked_replies(r);
	if (r < 0 && !is_known_errno(-r)) {
		g_debug("%s: unexpected %s, answered as EIO", fsg_op_name(op), errno_name(-r));
		return -EIO;
	}
	/* ENOSYS for most operations would switch them off for good: it never leaves us. */
	return r == -ENOSYS ? -EOPNOTSUPP : r;
}

void fsg_reply_result(fuse_req_t req, FsgOp op, int r)
{
	r = answerable(op, r);
	(void)fuse_reply_err(req,
			     -r); /* fails only for an interrupted request: nothing was given */
}

bool fsg_reply_late(fuse_req_t req, FsgOp op, int r)
{
	return fuse_reply_err(req, -answerable(op, r)) == 0;
}

/* Of the attributes only, which waits for nothing in the kernel; a read compares them and drops the pages it has when
 * they tell of a change. */
void fsg_reply_expire(const FsgView *view, fuse_ino_t ino)
{
	(void)fuse_lowlevel_notify_inval_inode(view->fuse, ino, -1, 0);
}

void fsg_reply_attr(fuse_req_t req, const struct stat *st, double timeout_s)
{
	(void)fuse_reply_attr(req, st, timeout_s);
}

void fsg_reply_text(fuse_req_t req, const char *text)
{
	(void)fuse_reply_readlink(req, text);
}

void fsg_reply_bytes(fuse_req_t req, const void *data, size_t size)
{
	(void)fuse_reply_buf(req, data, size);
}

void fsg_reply_data_from_fd(fuse_req_t req, int fd, off_t offset, size_t size)
{
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(size);

	data.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	data.buf[0].fd = fd;
	data.buf[0].pos = offset;
	(void)fuse_reply_data(req, &data, FUSE_BUF_SPLICE_MOVE);
}

void fsg_reply_lock(fuse_req_t req, const struct flock *lock)
{
	(void)fuse_reply_lock(req, lock);
}

void fsg_reply_count(fuse_req_t req, size_t count)
{
	(void)fuse_reply_write(req, count);
}

void fsg_reply_xattr_size(fuse_req_t req, size_t size)
{
	(void)fuse_reply_xattr(req, size);
}

void fsg_reply_offset(fuse_req_t req, off_t offset)
{
	(void)fuse_reply_lseek(req, offset);
}

void fsg_reply_ioctl(fuse_req_t req, const void *data, size_t size)
{
	(void)fuse_reply_ioctl(req, 0, data, size);
}

void fsg_reply_statfs(fuse_req_t req, const struct statvfs *st)
{
	(void)fuse_reply_statfs(req, st);
}

void fsg_reply_none(fuse_req_t req)
{
	fuse_reply_none(req);
}

static void take_back(FsgView *view, uint64_t node_id)
{
	fsg_inode_forget(view->inodes, fsg_inode_from_id(view->inodes, node_id), 1);
}

void fsg_reply_listing(fuse_req_t req, FsgView *view, const char *listing, size_t size)
{
	if (fuse_reply_buf(req, listing, size) == 0)
		return;
	/* As libfuse has written it, each entry at a multiple of eight bytes. */
	for (size_t at = 0; at < size;) {
		const struct fuse_direntplus *entry = (const void *)(listing + at);

		if (entry->entry_out.nodeid)
			take_back(view, entry->entry_out.nodeid);
		at += FUSE_DIRENTPLUS_SIZE(entry);
	}
}

void fsg_reply_entry(fuse_req_t req, FsgView *view, const struct fuse_entry_param *entry)
{
	if (fuse_reply_entry(req, entry) < 0)
		take_back(view, entry->ino);
}

void fsg_reply_no_entry(fuse_req_t req, double timeout_s)
{
	const struct fuse_entry_param none = { .ino = 0, .entry_timeout = timeout_s };

	fsg_asked_replies(-ENOENT); /* a name that is hidden */
	(void)fuse_reply_entry(req, &none);
}

bool fsg_reply_open(fuse_req_t req, const struct fuse_file_info *fi, int32_t backing_id)
{
	int r;

	fsg_request_set_backing_id(backing_id);
	r = fuse_reply_open(req, fi);
	fsg_request_set_backing_id(0);
	return r == 0;
}

bool fsg_reply_create(fuse_req_t req, FsgView *view, const struct fuse_entry_param *entry,
		      const struct fuse_file_info *fi, int32_t backing_id)
{
	int r;

	fsg_request_set_backing_id(backing_id);
	r = fuse_reply_create(req, entry, fi);
	fsg_request_set_backing_id(0);
	if (r == 0)
		return true;
	take_back(view, entry->ino);
	return false;
}
