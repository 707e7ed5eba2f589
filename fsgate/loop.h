/* The threads that serve a view: they read requests from the device, hand them to libfuse, which calls the
 * handlers, and end with the connection.
 *
 * There is always a thread that reads, however many wait for the host: whoever takes a request sees to it
 * that another one reads. A few stay when there is little to do, the others end. */
#pragma once

#include "fsgate/device.h"
#include "fsgate/view.h"

#include <stdbool.h>

typedef struct FsgLoop FsgLoop;

typedef struct {
	FsgView *view;
	struct fuse_session *fuse;
	FsgDevice *device;
	/* The procfs in which the kernel's pids are found (task.h), or -1; taken by fsg_loop_new. */
	int take_tasks_fd;
	/* Called by every thread first; < 0 ends the loop. */
	int (*prepare)(void);
} FsgLoopConfig;

FsgLoop *fsg_loop_new(const FsgLoopConfig *config);
/* The first thread, and the watchdog. 0 or -errno. Once. */
int fsg_loop_start(FsgLoop *loop);
/* Readable when the connection has ended. Borrowed. */
int fsg_loop_end_fd(const FsgLoop *loop);
/* Waits until all threads have ended; false: they have not within that time. */
bool fsg_loop_wait(FsgLoop *loop, int timeout_ms);
/* Not while threads run. NULL is allowed. */
void fsg_loop_free(FsgLoop *loop);
