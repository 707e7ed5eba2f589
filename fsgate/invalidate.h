/* What the kernel believes of the host's files, and how it is told that it no longer holds: the watches, the
 * list of what was told for a short time, and the threads of both. */
#pragma once

#include <pthread.h>

#include "fsgate/boundary.h"
#include "fsgate/told.h"
#include "fsgate/view.h"
#include "fsgate/watch.h"

struct fuse_session;

/* How old the view of a single exec is when it begins to watch. Giving up marks waits for a grace period of the kernel's, 6 to
 * 12 ms on an idle machine; in its first second a view believes nothing for longer than that anyway. Where more execs
 * follow, the expiry that their starts rest on then could cross with an answer that is under way. */
#define FSG_WATCH_AFTER_US G_USEC_PER_SEC

struct FsgInvalidate {
	FsgTold *told; /* owned */
	FsgWatch *
		watch; /* owned; NULL when nothing is watched: the mode does not need it, or the kernel cannot */
	ExecBoard *board; /* where an executor reads what is to be taken back; borrowed, or NULL */
	int64_t watches_from_us; /* monotonic: nothing is watched before */
	/* the thread that takes back what was told for a short time */
	struct fuse_session *fuse; /* borrowed */
	GThread *thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t asked, done; /* under lock */
	bool stopping;	      /* under lock */
	bool ended;	      /* the thread; under lock */
};

FsgInvalidate *fsg_invalidate_new(FsgView *view);
void fsg_invalidate_free(FsgInvalidate *invalidate); /* NULL is allowed */

/* The threads: started before the first request is served, stopped after the last. 0 or -errno. */
int fsg_invalidate_start(FsgView *view, struct fuse_session *fuse);
/* Waits at most timeout_ms for each; false: one is held up in the kernel, and only the end of the process is left. */
bool fsg_invalidate_stop(FsgView *view, int timeout_ms);

/* The queue of what the host changes, for poll: empty and with nobody at its events (exec-board.h) means that all of them have
 * been told to the kernel. Borrowed; -1: there is none that an exec's start would have to look at. */
int fsg_invalidate_queue_fd(FsgView *view);

/* The kernel is given the text of this link, and is not to keep it. From any thread. */
void fsg_invalidate_link(FsgView *view, uint64_t link);

/* Makes visible in the view what the host had changed before the call: what the kernel may still believe from
 * before is given up. Blocks for at most timeout_ms. 0; -ETIMEDOUT when it did not get that far (a
 * source hangs, or there was too much to do): then what is believed ends with its own time. With cache `strict`
 * there is nothing to do, with `exclusive` nothing is done. Any thread at once, but never one that serves a
 * request. */
int fsg_invalidate_catch_up(FsgView *view, int timeout_ms);
