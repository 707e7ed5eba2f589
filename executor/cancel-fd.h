/* A GCancellable's cancellation as a descriptor of ours, for poll. GCancellable has one too, but its order of events is
 * hidden from ThreadSanitizer; here writing and reading the descriptor say it. For code that loads GIO anyway. */
#pragma once

#include <gio/gio.h>

typedef struct {
	int fd;	  /* readable once it is cancelled; -1: there is nothing to cancel it */
	int told; /* cancelled; for ThreadSanitizer, see cancel-fd.c */
	gulong handler;
} ExrCancelFd;

/* cancellable may be NULL. 0 or -errno. It has to stay where it is until it is cleared, by the same cancellable. */
int exr_cancel_fd_init(ExrCancelFd *cancel, GCancellable *cancellable);
void exr_cancel_fd_clear(ExrCancelFd *cancel, GCancellable *cancellable);
