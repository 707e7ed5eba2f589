/* Files: open, create, read, write, and what works on an open one. */
#include "fsgate/cache.h"
#include "fsgate/change.h"
#include "fsgate/host-open.h"
#include "fsgate/locks.h"
#include "fsgate/lookup.h"
#include "fsgate/ops.h"
#include "fsgate/passthrough.h"
#include "fsgate/refusal.h"
#include "fsgate/request.h"

#include "common/fd-util.h"
#include "common/limits.h"
#include "common/path-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/uio.h>

/* Flags that mean something for the host's file. O_DIRECT is between the program and the kernel, which then keeps no
 * pages or, with passthrough, opens the host's file so itself. O_APPEND is done write by
 * write, for pages that the kernel writes back through the same handle belong at their offset. O_NOATIME,
 * O_NONBLOCK and all else either has no effect on a regular file or is not the client's to ask. */
#define PASSED_FLAGS (O_ACCMODE | O_TRUNC | O_SYNC | O_DSYNC)

/* One look at what the file is now, for all who want to know. */
static void end_writing(FsgView *view, FsgFile *file)
{
	bool keeps_pages = fsg_cache_begin_close(view, file->inode);
	bool is_awaited = fsg_change_awaits_close(&file->writer);
	struct statx stx;
	bool seen =
		(keeps_pages || is_awaited) &&
		statx(file->fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &stx) == 0;

	if (keeps_pages && seen)
		fsg_cache_closed(view, file->inode, &stx);
	if (is_awaited)
		fsg_change_closed(view, &file->writer, seen ? &stx : NULL);
}

static void file_free(FsgView *view, FsgFile *file)
{
	fsg_inode_remove_file(view->inodes, file->inode, file);
	if (file->fd >= 0) {
		if (file->writes)
			end_writing(view, file);
		fsg_handle_budget_return(view->handles);
	}
	fsg_locks_release(view, file);
	fsg_passthrough_return(view->passthrough, file->inode, file->backing_id);
	fd_close(&file->fd);
	fsg_boundary_closed(view->boundary, &file->opened);
	fsg_inode_unref(view->inodes, file->inode);
	g_free(file);
}

/* Up to this size reading a file takes one request, as much as handing it over, and none when it is read again. */
#define SMALL_BYTES (128 * 1024)

/* Passthrough unless it is not for this file: the kernel would append for as long as the file is open, whatever fcntl says
 * meanwhile; and it would wait for a server in the program's own call. If others have handed the file over,
 * it is so for all. */
static bool is_worth_handing_over(const FsgInode *inode, int flags, uint64_t size)
{
	if ((flags & O_APPEND) || !fsg_inode_is_local(inode))
		return false;
	return (flags & O_ACCMODE) != O_RDONLY || size > SMALL_BYTES;
}

static FsgFile *new_file(FsgView *view, FsgInode *inode, int flags, uint64_t size, int take_fd)
{
	FsgFile *file = fsg_file_new(fsg_inode_ref(view->inodes, inode), take_fd);

	fsg_inode_add_file(view->inodes, inode, file);
	file->backing_id = fsg_passthrough_take(
		view->passthrough, inode, is_worth_handing_over(inode, flags, size) ? take_fd : -1);
	file->writes = (flags & O_ACCMODE) != O_RDONLY;
	fsg_boundary_opened(view->boundary, &file->opened);
	return file;
}

/* O_DIRECT of a file whose reads and writes the kernel passes on is the host's O_DIRECT: only where it has it. */
static int check_direct(const FsgFile *file)
{
	int flags = fcntl(file->fd, F_GETFL);

	if (flags < 0 || fcntl(file->fd, F_SETFL, flags | O_DIRECT) != 0)
		return -errno;
	return fcntl(file->fd, F_SETFL, flags) == 0 ? 0 : -errno;
}

/* What is truncated has changed, whatever is written to it later. */
static void note_writer(FsgView *view, FsgFile *file, int flags, const struct statx *stx)
{
	if (flags & O_TRUNC) {
		fsg_change_modified(view, file->inode, stx->stx_nlink);
	} else if (file->writes) {
		fsg_change_opened(view, file, stx,
				  file->backing_id > 0 && (flags & O_ACCMODE) == O_RDWR);
	}
}

static int open_work(FsgView *view, FsgInode *inode, int flags, FsgFile **ret_file,
		     struct statx *ret_stx)
{
	int fd = -1, r = fsg_gate_open(inode, flags);

	if (r < 0)
		return r;
	if (inode->kind == FSG_INODE_HOST) {
		if ((r = fsg_handle_budget_take(view->handles)) < 0)
			return r;
		if ((fd = fsg_open_file(view, inode, flags, ret_stx)) < 0) {
			fsg_handle_budget_return(view->handles);
			return fd;
		}
	}
	*ret_file = new_file(view, inode, flags, fd >= 0 ? ret_stx->stx_size : 0, fd);
	if (fd >= 0)
		note_writer(view, *ret_file, flags, ret_stx);
	if ((flags & O_DIRECT) && (*ret_file)->backing_id > 0 &&
	    (r = check_direct(*ret_file)) < 0) {
		file_free(view, *ret_file);
		return r;
	}
	return 0;
}

/* Whether closing it tells nothing that has to be known at once: no mapping of it can have been written, the file
 * system reports every error with the write, and nobody takes write locks through it (who makes a new file with O_EXCL
 * has that for a lock). Closing such a file asks nothing of us but the RELEASE, which nobody waits for. */
static bool closes_silently(const FsgFile *file, int flags)
{
	const int new_file = O_WRONLY | O_CREAT | O_EXCL;

	return ((flags & O_ACCMODE) == O_RDONLY ||
		(flags & (O_ACCMODE | O_CREAT | O_EXCL)) == new_file) &&
	       fsg_inode_is_local(file->inode);
}

void fsg_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	FsgFile *file;
	struct statx stx;
	int r = open_work(view, inode, fi->flags, &file, &stx);

	if (r < 0) {
		fsg_reply_result(req, FSG_OP_OPEN, r);
		return;
	}
	fi->fh = (uint64_t)(uintptr_t)file;
	fi->noflush = file->closes_silently = closes_silently(file, fi->flags);
	/* The pages that the kernel has are good if nothing about the file changed since it was opened
	 * last, by whomever. */
	if (file->fd >= 0 && file->backing_id == 0)
		fi->keep_cache = fsg_cache_keeps_pages(view, inode, &stx);
	if (!fsg_reply_open(req, fi, file->backing_id))
		file_free(view, file);
}

/* Makes the file if it is not there. -EEXIST when it is. */
static int create_new(FsgView *view, FsgInode *dir, const char *name, mode_t mode, int flags)
{
	int dirfd = fsg_get_dir_fd(view, dir), fd;

	if (dirfd < 0)
		return dirfd;
	fd = openat(dirfd, name,
		    (flags & PASSED_FLAGS & ~O_TRUNC) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    fsg_identity_new_mode(dir->anchor, view->proc_fd, S_IFREG, mode));
	fd = fd < 0 ? -errno : fd;
	fsg_inode_put_fd(view->inodes, dir);
	return fd;
}

static bool is_taken(FsgView *view, FsgInode *dir, const char *name)
{
	return fsg_node_find_child(fsg_inode_node(view->inodes, dir), name) != NULL;
}

/* The name appeared since the kernel asked for it last. */
static int open_existing(FsgView *view, FsgInode *dir, const char *name, int flags,
			 struct fuse_entry_param *ret_entry, FsgFile **ret_file)
{
	FsgInode *inode;
	struct statx stx;
	int r = fsg_lookup(view, dir, name, ret_entry);

	if (r < 0)
		return r;
	inode = fsg_inode_from_id(view->inodes, ret_entry->ino);
	/* A link or a directory: ESTALE makes the kernel look again and follow or refuse it. And where the kernel
	 * decides, it has not yet: it took the name for a new one. */
	r = inode->type == S_IFREG && !view->kernel_decides
		    ? open_work(view, inode, flags, ret_file, &stx)
		    : -ESTALE;
	if (r == 0 && (flags & O_TRUNC)) /* the attributes are those from before */
		(void)fsg_stat(view, inode, (*ret_file)->fd, &ret_entry->attr);
	if (r < 0)
		fsg_inode_forget(view->inodes, inode, 1);
	return r;
}

/* The entry and the handle of what was just made at fd, whose place in the budget has been taken. */
static int hold_new(FsgView *view, FsgInode *dir, const char *name, int flags, int take_fd,
		    struct fuse_entry_param *ret_entry, FsgFile **ret_file)
{
	int r = fsg_entry_of_new(view, dir, name, take_fd, ret_entry);

	if (r < 0) {
		fsg_handle_budget_return(view->handles);
		fd_close(&take_fd);
		return r;
	}
	*ret_file =
		new_file(view, fsg_inode_from_id(view->inodes, ret_entry->ino), flags, 0, take_fd);
	return 0;
}

/* What the hint of a file without a name says; no object that has this name is taken for it. */
#define UNNAMED "#unnamed"

static int create_work(FsgView *view, FsgInode *dir, const char *name, mode_t mode, int flags,
		       struct fuse_entry_param *ret_entry, FsgFile **ret_file)
{
	int r = fsg_gate_create(dir), bad = path_check_name(name), fd;

	if (bad < 0)
		return bad;
	if (r == -EROFS || is_taken(view, dir, name)) {
		/* On a read-only file system an existing file may be opened for reading with O_CREAT. */
		if (flags & O_EXCL)
			return r < 0 ? r : -EEXIST;
		r = open_existing(view, dir, name, flags, ret_entry, ret_file);
		return r == -ENOENT ? fsg_gate_create(dir) : r;
	}
	if (fsg_view_hides(view, dir, name))
		return fsg_refuse(DENIAL_HIDDEN, -EACCES);
	if ((r = fsg_handle_budget_take(view->handles)) < 0)
		return r;
	fd = create_new(view, dir, name, mode, flags);
	if (fd < 0) {
		fsg_handle_budget_return(view->handles);
		return fd == -EEXIST && !(flags & O_EXCL)
			       ? open_existing(view, dir, name, flags, ret_entry, ret_file)
			       : fd;
	}
	fsg_change_created(view, dir, name);
	return hold_new(view, dir, name, flags, fd, ret_entry, ret_file);
}

/* A file without a name (O_TMPFILE). A link to it may give it one later; until then nothing leads to it, as to one that
 * was unlinked. */
static int create_unnamed(FsgView *view, FsgInode *dir, mode_t mode, int flags,
			  struct fuse_entry_param *ret_entry, FsgFile **ret_file)
{
	FsgInode *inode;
	int r = fsg_gate_create(dir), dirfd, fd;

	if (r < 0 || (r = fsg_handle_budget_take(view->handles)) < 0)
		return r;
	fd = dirfd = fsg_get_dir_fd(view, dir);
	if (dirfd >= 0) {
		fd = openat(dirfd, ".",
			    (flags & (PASSED_FLAGS | O_EXCL) & ~O_TRUNC) | O_TMPFILE | O_CLOEXEC,
			    fsg_identity_new_mode(dir->anchor, view->proc_fd, S_IFREG, mode));
		fd = fd < 0 ? -errno : fd;
		fsg_inode_put_fd(view->inodes, dir);
	}
	if (fd < 0) {
		fsg_handle_budget_return(view->handles);
		return fd;
	}
	r = hold_new(view, dir, UNNAMED, flags, fd, ret_entry, ret_file);
	if (r == 0) {
		inode = (*ret_file)->inode;
		/* not the file's own fd, which keeps it open for writing */
		fsg_inode_unlinked(view->inodes, &inode->key, fd_reopen(view->proc_fd, fd, O_PATH));
	}
	return r;
}

void fsg_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		   struct fuse_file_info *fi)
{
	FsgView *view = fsg_req_view(req);
	struct fuse_entry_param entry;
	FsgFile *file;
	FsgInode *dir = fsg_req_inode(req, parent);
	int r = fsg_request_is_tmpfile()
			? create_unnamed(view, dir, mode, fi->flags, &entry, &file)
			: create_work(view, dir, name, mode, fi->flags, &entry, &file);

	if (r < 0) {
		fsg_reply_result(req, FSG_OP_CREATE, r);
		return;
	}
	fi->fh = (uint64_t)(uintptr_t)file;
	fi->noflush = file->closes_silently = closes_silently(file, fi->flags);
	if (!fsg_reply_create(req, view, &entry, fi, file->backing_id))
		file_free(view, file);
}

void fsg_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		 struct fuse_file_info *fi)
{
	const FsgFile *file = fsg_file_from_fh(fi->fh);
	int r = fsg_gate(FSG_OP_READ, fsg_req_inode(req, ino));

	if (r < 0)
		fsg_reply_result(req, FSG_OP_READ, r);
	else if (file->fd < 0)
		fsg_reply_bytes(req, NULL, 0);
	else
		fsg_reply_data_from_fd(req, file->fd, offset, size);
}

/* At the end of the file as it is now, whatever the program's or the kernel's idea of it. */
static ssize_t append_work(int fd, struct fuse_bufvec *in)
{
	size_t size = fuse_buf_size(in), done = 0;
	g_autofree char *data = g_malloc(size);
	struct fuse_bufvec memory = FUSE_BUFVEC_INIT(size);
	ssize_t r;

	memory.buf[0].mem = data;
	r = fuse_buf_copy(&memory, in, 0);
	if (r < 0)
		return r;
	size = (size_t)r;
	while (done < size) {
		const struct iovec iov = { .iov_base = data + done, .iov_len = size - done };

		r = pwritev2(fd, &iov, 1, 0, RWF_APPEND);
		if (r < 0)
			return done > 0 ? (ssize_t)done : -errno;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

/* Whether it appends is asked of each write: fcntl can change it. Pages that the kernel writes back belong
 * at their offset in any case. */
static ssize_t write_work(const FsgFile *file, struct fuse_bufvec *in, off_t offset,
			  const struct fuse_file_info *fi)
{
	struct fuse_bufvec out = FUSE_BUFVEC_INIT(fuse_buf_size(in));

	if ((fi->flags & O_APPEND) && !fi->writepage)
		return append_work(file->fd, in);
	out.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	out.buf[0].fd = file->fd;
	out.buf[0].pos = offset;
	return fuse_buf_copy(&out, in, 0);
}

void fsg_op_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *in, off_t offset,
		      struct fuse_file_info *fi)
{
	ssize_t written = fsg_gate(FSG_OP_WRITE, fsg_req_inode(req, ino));

	if (written == 0) /* whose writing it is decides whether set-id bits stay */
		written = fsg_view_act_as(fsg_file_from_fh(fi->fh)->inode->anchor);
	if (written == 0)
		written = write_work(fsg_file_from_fh(fi->fh), in, offset, fi);
	if (written < 0)
		fsg_reply_result(req, FSG_OP_WRITE, (int)written);
	else
		fsg_reply_count(req, (size_t)written);
}

/* Closing a duplicate reports what a close would have to report (a full quota on a network file system). */
void fsg_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const FsgFile *file = fsg_file_from_fh(fi->fh);
	const FsgLockKey key = fsg_lock_key(file);
	int r = fsg_gate(FSG_OP_FLUSH, fsg_req_inode(req, ino));

	if (r == 0 && file->fd >= 0 && file->writes) {
		int copy = fd_dup(file->fd);

		r = copy < 0 ? copy : close(copy) == 0 ? 0 : -errno;
	}
	fsg_locks_flush(fsg_req_view(req), &key, file, fi->lock_owner);
	fsg_reply_result(req, FSG_OP_FLUSH, r);
}

static int sync_fd(int fd, int datasync)
{
	if (fd < 0)
		return 0;
	return (datasync ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : -errno;
}

void fsg_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	int r = fsg_gate(FSG_OP_FSYNC, fsg_req_inode(req, ino));

	fsg_reply_result(req, FSG_OP_FSYNC,
			 r < 0 ? r : sync_fd(fsg_file_from_fh(fi->fh)->fd, datasync));
}

void fsg_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	file_free(fsg_req_view(req), fsg_file_from_fh(fi->fh));
	fsg_reply_result(req, FSG_OP_RELEASE, 0);
}

void fsg_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		  struct fuse_file_info *fi)
{
	const FsgFile *file = fsg_file_from_fh(fi->fh);
	int r = fsg_gate(FSG_OP_LSEEK, fsg_req_inode(req, ino));
	off_t found = -1;

	if (r == 0 && file->fd < 0)
		r = -ENXIO;
	if (r == 0 && (found = lseek(file->fd, offset, whence)) < 0)
		r = -errno;
	if (r < 0)
		fsg_reply_result(req, FSG_OP_LSEEK, r);
	else
		fsg_reply_offset(req, found);
}

void fsg_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
		      struct fuse_file_info *fi)
{
	int r = fsg_gate(FSG_OP_FALLOCATE, fsg_req_inode(req, ino));

	if (r == 0)
		r = fsg_view_act_as(fsg_file_from_fh(fi->fh)->inode->anchor);
	if (r == 0 && fallocate(fsg_file_from_fh(fi->fh)->fd, mode, offset, length) != 0)
		r = -errno;
	fsg_reply_result(req, FSG_OP_FALLOCATE, r);
}

void fsg_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in,
			    struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t offset_out,
			    struct fuse_file_info *fi_out, size_t length, int flags)
{
	const FsgFile *from = fsg_file_from_fh(fi_in->fh), *to = fsg_file_from_fh(fi_out->fh);
	ssize_t copied = fsg_gate(FSG_OP_COPY_FILE_RANGE, fsg_req_inode(req, ino_out));

	(void)ino_in;
	/* Without host files the kernel copies by reading and writing. */
	if (copied == 0 && (from->fd < 0 || to->fd < 0 || flags != 0))
		copied = -EOPNOTSUPP;
	if (copied == 0)
		copied = fsg_view_act_as(to->inode->anchor);
	if (copied == 0) {
		copied = copy_file_range(from->fd, &offset_in, to->fd, &offset_out,
					 MIN(length, LIMIT_COPY_BYTES), 0);
		if (copied < 0)
			copied = errno == EXDEV ? -EOPNOTSUPP : -errno;
	}
	if (copied < 0)
		fsg_reply_result(req, FSG_OP_COPY_FILE_RANGE, (int)copied);
	else
		fsg_reply_count(req, (size_t)copied);
}
