/* What watch.c (marks, the thread) and watch-event.c (what an event means) share. For these two files only. */
#pragma once

#include "fsgate/watch.h"

#include <glib.h>
#include <pthread.h>
#include <sys/fanotify.h>

struct FsgWatch {
	FsgView *view;		   /* borrowed */
	struct fuse_session *fuse; /* borrowed */
	int group_fd;
	int wake_fd; /* eventfd */
	pid_t pid;
	GThread *thread;
	/* atomic */
	unsigned int generation; /* from 1; marks of an earlier one are gone */
	unsigned int marks, marks_most;
	bool wants_flush; /* of marks */
	bool wants_room;  /* among the lasting beliefs */
	/* under lock */
	pthread_mutex_t lock;
	pthread_cond_t drained;
	uint64_t asked, done;
	bool ended;	    /* the thread; under lock */
	int64_t working_us; /* since when the thread tells the kernel; 0: it waits. Atomic */
	bool stopping;
	FsgWatchStats shown;
	/* of the thread */
	FsgWatchStats stats; /* but dirs */
	bool lost;	     /* events, or marks */
	int64_t flush_us;    /* not before that are marks given up */
	int64_t again_us;    /* when everything is to be taken back once more; 0: not */
	GPtrArray *again;    /* FsgToldItem: the lasting ones of the first time */
};

/* Tells the kernel what one event means. records: what follows its head. */
void fsg_watch_take_event(FsgWatch *watch, const struct fanotify_event_metadata *event,
			  const char *records, size_t size);

/* What events call an object: a hash of its file handle; 0 when it has none. */
struct file_handle;
uint64_t fsg_watch_hash_handle(const struct file_handle *handle);
