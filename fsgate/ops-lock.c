/* Locks: asking, taking without and with waiting. Works alike on read-only mounts, as a lock changes nothing that
 * is read.
 *
 * Directories never come here: the kernel keeps their flocks itself. */
#include "fsgate/locks.h"
#include "fsgate/ops.h"

#include <errno.h>
#include <sys/file.h>

static FsgLockRequest record_request(const struct fuse_file_info *fi, const struct flock *lock)
{
	FsgLockRequest request = {
		.file = fsg_file_from_fh(fi->fh),
		.key = fsg_lock_key(fsg_file_from_fh(fi->fh)),
		.owner = fi->lock_owner,
		.pid = lock->l_pid,
		.range = {
			.start = (uint64_t)lock->l_start,
			.end = lock->l_len == 0 ? FSG_LOCK_END
						: (uint64_t)lock->l_start + (uint64_t)lock->l_len - 1,
			.type = lock->l_type,
		},
	};

	return request;
}

/* The handles of directories are of another kind. And no arithmetic below has to fear a range that no kernel
 * sends. */
static int check(FsgOp op, const FsgInode *inode, const FsgLockRange *range)
{
	int r = fsg_gate(op, inode);

	if (r == 0 && inode->type != S_IFREG)
		r = -EBADF;
	if (r == 0 &&
	    (range->start > range->end || range->end > FSG_LOCK_END ||
	     (range->type != F_RDLCK && range->type != F_WRLCK && range->type != F_UNLCK)))
		r = -EINVAL;
	return r;
}

void fsg_op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
	FsgLockRequest request = record_request(fi, lock);
	struct flock found = { .l_whence = SEEK_SET };
	FsgLockRange range;
	int r = check(FSG_OP_GETLK, fsg_req_inode(req, ino), &request.range);

	if (r == 0)
		r = fsg_locks_test(fsg_req_view(req), &request, &range, &found.l_pid);
	if (r < 0) {
		fsg_reply_result(req, FSG_OP_GETLK, r);
		return;
	}
	found.l_type = range.type;
	if (range.type != F_UNLCK) {
		found.l_start = (off_t)range.start;
		found.l_len = range.end == FSG_LOCK_END ? 0 : (off_t)(range.end - range.start + 1);
	}
	fsg_reply_lock(req, &found);
}

/* --- waiting --- */

typedef struct {
	fuse_req_t req;
	FsgOp op;
	fuse_ino_t ino;
} Deferred;

static bool give(fuse_req_t req, FsgOp op, fuse_ino_t ino, int r, short type)
{
	if (r == 0 && type != F_UNLCK)
		fsg_reply_expire(fsg_req_view(req), ino);
	return fsg_reply_late(req, op, r);
}

/* Taking the interrupt function off first: once that has returned, it neither runs nor will, and the wait, which is
 * its argument, may go. */
static bool answer(void *data, int r)
{
	g_autofree Deferred *deferred = data;

	fuse_req_interrupt_func(deferred->req, NULL, NULL);
	return give(deferred->req, deferred->op, deferred->ino, r, F_WRLCK);
}

static void interrupted(fuse_req_t req, void *data)
{
	(void)req;
	fsg_lock_wait_cancel(data);
}

static void wait_for(fuse_req_t req, FsgOp op, fuse_ino_t ino, const FsgLockRequest *request,
		     int timeout_ms)
{
	Deferred *deferred = g_new0(Deferred, 1);
	FsgLockWait *wait;

	deferred->req = req;
	deferred->op = op;
	deferred->ino = ino;
	wait = fsg_lock_wait_new(fsg_req_view(req), request, answer, deferred);
	fuse_req_interrupt_func(req, interrupted, wait);
	fsg_lock_wait_start(wait, timeout_ms);
}

/* --- taking --- */

static void set_lock(fuse_req_t req, FsgOp op, fuse_ino_t ino, const FsgLockRequest *request,
		     bool sleep)
{
	FsgView *view = fsg_req_view(req);
	FsgLockDetails details = { .before = NULL };
	int r = check(op, fsg_req_inode(req, ino), &request->range);

	if (r == 0)
		r = fsg_locks_set(view, request, &details);
	if (r == -EAGAIN && (sleep || details.is_closing))
		wait_for(req, op, ino, request, sleep ? -1 : FSG_LOCK_RELEASE_MS);
	else if (!give(req, op, ino, r, request->range.type) && r == 0 &&
		 request->range.type != F_UNLCK)
		fsg_locks_give_back(view, request, g_steal_pointer(&details.before));
	g_clear_pointer(&details.before, g_array_unref);
}

void fsg_op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
		  int sleep)
{
	const FsgLockRequest request = record_request(fi, lock);

	set_lock(req, FSG_OP_SETLK, ino, &request, sleep != 0);
}

static short lock_type(int how)
{
	switch (how & ~LOCK_NB) {
	case LOCK_SH:
		return F_RDLCK;
	case LOCK_EX:
		return F_WRLCK;
	case LOCK_UN:
		return F_UNLCK;
	default:
		return -1; /* refused */
	}
}

void fsg_op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int how)
{
	const FsgLockRequest request = {
		.file = fsg_file_from_fh(fi->fh),
		.key = fsg_lock_key(fsg_file_from_fh(fi->fh)),
		.flock = true,
		.range = { .end = FSG_LOCK_END, .type = lock_type(how) },
	};

	set_lock(req, FSG_OP_FLOCK, ino, &request, !(how & LOCK_NB));
}
