/* What locks.c (what is held) and lock-waits.c (who waits) share; for these two only. */
#pragma once

#include "fsgate/locks.h"

/* Not glib's, which ThreadSanitizer does not know. */
#include <pthread.h>

/* A file of the host's that somebody of the view holds or wants a lock on. */
typedef struct {
	FsgLockKey key;
	unsigned int refs;  /* owners, waits and calls; under the mutex */
	pthread_mutex_t op; /* see locks.h */
	GPtrArray *owners;  /* FsgLockOwner; changed with op and the mutex, read with either */
	unsigned int waits; /* under the mutex */
} FsgLockFile;

/* An owner of locks on one file. What is not constant and not otherwise marked is under op. */
typedef struct {
	bool flock;  /* constant, as is id */
	uint64_t id; /* the kernel's, or the handle for a flock */
	pid_t pid;   /* of the last that locked */
	/* The last handle that it locked through. A record lock's owner that is there when that handle is
	 * released is the handle itself (an OFD lock): a process would have closed it before. */
	const FsgFile *handle;
	const FsgFile *fd_of; /* whose description fd is, or NULL: its own */
	int fd;
	int mode;	/* O_ACCMODE of fd */
	bool may_close; /* the handle was closed by somebody since */
	GArray *ranges; /* never empty between calls; as FsgLockFile.owners */
} FsgLockOwner;

/* The host's calls: 0 or -errno, -EAGAIN when somebody is in the way. */
int fsg_lock_host_record(int fd, const FsgLockRange *range);
int fsg_lock_host_flock(int fd, short type);

static inline uint64_t fsg_lock_owner_id(const FsgLockRequest *request)
{
	return request->flock ? (uint64_t)(uintptr_t)request->file : request->owner;
}

/* One that holds nothing yet and is in no list; with a description of its own. All of these under op. 0, -ENOLCK, or
 * what the host says. */
int fsg_lock_owner_new(FsgView *view, const FsgLockFile *file, const FsgLockRequest *request,
		       FsgLockOwner **ret_owner);
/* Makes sure that its description allows a lock of this type that comes through this handle. */
int fsg_lock_owner_prepare(FsgView *view, const FsgLockFile *file, FsgLockOwner *owner,
			   const FsgFile *handle, short type);
/* Ends what it holds on the host. */
void fsg_lock_owner_end(FsgView *view, FsgLockOwner *owner);
/* One that holds nothing any more, neither here nor on the host. */
void fsg_lock_owner_free(FsgView *view, FsgLockOwner *owner);

/* Threads for waits, by device: one whose lock calls hang holds up no other device's, but for those that
 * fall on the same one. */
#define FSG_LOCK_QUEUES 4

typedef struct {
	FsgLocks *locks;
	GThread *thread; /* started at the first wait */
	pthread_cond_t changed;
	GQueue waits; /* FsgLockWait, the longest waiting first */
	bool ended;
} FsgLockQueue;

struct FsgLocks {
	pthread_mutex_t mutex;
	GHashTable *files;   /* FsgLockFile by its key */
	unsigned int owners; /* of all files; atomic: read without the mutex */
	unsigned int ranges; /* of all owners */
	unsigned int waits;
	bool stopped;
	FsgLockQueue queues[FSG_LOCK_QUEUES];
	pthread_cond_t ended;
};

/* A reference to the file's entry; NULL if there is none and it is not to be made. */
FsgLockFile *fsg_lock_file_get(FsgLocks *locks, const FsgLockKey *key, bool make);
void fsg_lock_file_put(FsgLocks *locks, FsgLockFile *file);

/* Who of the view is in the way of the request, from `from` on; NULL: nobody. Under the mutex or op. */
FsgLockOwner *fsg_lock_file_find_conflict(const FsgLockFile *file, const FsgLockRequest *request,
					  guint *from);

/* Something on this file was unlocked: who waits for it tries again. Under the mutex. */
void fsg_lock_waits_wake(FsgLocks *locks, const FsgLockFile *file);
void fsg_lock_queues_init(FsgLocks *locks);
void fsg_lock_queues_clear(FsgLocks *locks);
