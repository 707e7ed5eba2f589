/* flock and record locks of a view, taken on the host's files, so that programs in the view and beside it see
 * each other's.
 *
 * One process serves all owners, and the host knows owners of classic record locks by process. So the owners of the
 * view are open file descriptions on the host: a record lock of the view is an OFD lock there, on a description
 * that this owner alone uses for that file: the handle's own one for the first owner that locks through it, one
 * opened for the purpose for others. A flock is the handle's, on its description or on one opened for it.
 *
 * What the view's owners hold is also kept here. It says at once what the host cannot say: that an owner holds
 * nothing (asked at every close), who of the view is in the way, and who waits for whom. What it is:
 * Linux's semantics, where record locks of a process end with its first close of the file (FLUSH), and all
 * others with the last close of what they were taken through (RELEASE). Files are told apart by the host's
 * (device, inode), as one file may be seen through two mounts.
 *
 * Waiting takes no serving thread; see fsg_lock_wait_start.
 *
 * Locks, in this order: `op` of a file, held over the host's (never blocking) lock calls for that file, so that
 * what is kept here is what the host was told, in the same order; then the mutex of all, a leaf. Any thread
 * at once. */
#pragma once

#include "fsgate/handle.h"
#include "fsgate/lock-ranges.h"
#include "fsgate/view.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct FsgLocks FsgLocks;

FsgLocks *fsg_locks_new(void);
/* After fsg_locks_stop and the last request. NULL is allowed. */
void fsg_locks_free(FsgLocks *locks);

/* Answers everything that waits with -EINTR and ends the threads; nothing waits from then on. false: one of
 * them hangs in the host's file system. */
bool fsg_locks_stop(FsgLocks *locks, int timeout_ms);

/* Which file of the host's. A copy, made before anything that can hang: the handle of a process that is killed
 * meanwhile (jobs.h) may be gone afterwards. */
typedef struct {
	dev_t dev;
	ino_t ino;
} FsgLockKey;

static inline FsgLockKey fsg_lock_key(const FsgFile *handle)
{
	return (FsgLockKey){ .dev = handle->inode->key.dev, .ino = handle->inode->key.ino };
}

typedef struct {
	FsgFile *file;	/* the handle that it came through */
	FsgLockKey key; /* fsg_lock_key(file) */
	uint64_t owner; /* the kernel's name of a record lock's owner */
	bool flock;	/* of the handle, not of the owner; range is the whole file */
	pid_t pid;	/* whose request it is, as the kernel of the view gives it */
	FsgLockRange range;
} FsgLockRequest;

typedef struct {
	/* What the owner had where it has the lock now, for fsg_locks_give_back; NULL: nothing. Owned. */
	GArray *before;
	/* With -EAGAIN: who is in the way has closed something since it locked, so that its RELEASE, which closes do
	 * not wait for, may be on its way. Said once; that deserves FSG_LOCK_RELEASE_MS. */
	bool is_closing;
} FsgLockDetails;
#define FSG_LOCK_RELEASE_MS 50

/* Locks or unlocks without waiting. 0; -EAGAIN when somebody is in the way; -ENOLCK when there are too many
 * locks, when there is no host file, or when the owner's description cannot be had; what the host says.
 * ret_details, which may be NULL, is filled in any case. */
int fsg_locks_set(FsgView *view, const FsgLockRequest *request, FsgLockDetails *ret_details);

/* A lock whose reply did not arrive: the owner has what it had before. before (may be NULL) is taken. */
void fsg_locks_give_back(FsgView *view, const FsgLockRequest *request, GArray *take_before);

/* What is in the way of a record lock: F_UNLCK in ret_range->type when nothing is. The pid is as the view's kernel
 * gave it or, for a process beside the view, the host's; 0 when there is none to name. */
int fsg_locks_test(FsgView *view, const FsgLockRequest *request, FsgLockRange *ret_range,
		   pid_t *ret_pid);

/* A close: the end of all record locks that this owner has on the file. */
void fsg_locks_flush(FsgView *view, const FsgLockKey *key, const FsgFile *handle, uint64_t owner);
/* The last close: the end of all that was taken through the handle. Before its fd is closed. */
void fsg_locks_release(FsgView *view, const FsgFile *handle);

/* --- waiting --- */

typedef struct FsgLockWait FsgLockWait;

/* Gives the result of a wait: 0 for a lock that is held now, or -errno. Called once, from whatever thread, without
 * locks. false: it did not arrive, and a lock is given back. */
typedef bool (*FsgLockAnswer)(void *data, int r);

/* Prepares waiting for what fsg_locks_set refused with -EAGAIN. */
FsgLockWait *fsg_lock_wait_new(FsgView *view, const FsgLockRequest *request, FsgLockAnswer answer,
			       void *data);

/* Waits (taken), and always answers: 0, -EINTR after fsg_lock_wait_cancel, -EDEADLK when a circle of record
 * locks' owners would wait for each other, -ENOLCK when too many wait. With timeout_ms >= 0, -EAGAIN
 * after that time. */
void fsg_lock_wait_start(FsgLockWait *take_wait, int timeout_ms);

/* Makes it answer at once. Until its answer function has returned, from any thread. */
void fsg_lock_wait_cancel(FsgLockWait *wait);
