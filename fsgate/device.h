/* The connection to the kernel: /dev/fuse, read and written by us, so that what libfuse 3.14 does not know of
 * the protocol can be used all the same.
 *
 * libfuse parses requests and makes replies; its reads and writes go through here (fuse_session_custom_io). The reply
 * to INIT is extended on its way: to the size that newer kernels take, with what we want of them. */
#pragma once

#include "fsgate/fuse-api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A write of the most that a request may carry, and its headers. */
#define FSG_DEVICE_REQUEST_MOST (1024 * 1024 + 4096)

typedef struct FsgDevice FsgDevice;

/* Takes over a session's device: libfuse's reads and writes come here from now on. want_passthrough: ask
 * for it, if the kernel has it. The session owns the fd; its userdata has to be a view whose `device` is what
 * this returns. NULL when libfuse refuses. */
FsgDevice *fsg_device_new(struct fuse_session *fuse, bool want_passthrough);
void fsg_device_free(FsgDevice *device); /* NULL is allowed; after the session */

/* Ends the connection for a process that is about to end itself: threads that hang in the kernel would keep it open, and
 * with it everybody who waits for them. */
void fsg_device_abort(FsgDevice *device, struct fuse_session *fuse);

/* The next request, whole. > 0: its size. -ENODEV: the view was unmounted or the connection aborted.
 * -EAGAIN: nothing came (interrupted by a signal, or aborted by the client): ask again. */
ssize_t fsg_device_read(FsgDevice *device, void *buffer, size_t size);

/* Answers a request by its number, without libfuse, with an error. 0, or -ENOENT when it has been answered. */
int fsg_device_reply_error(FsgDevice *device, uint64_t unique, int errnum);

/* Borrowed. */
int fsg_device_fd(const FsgDevice *device);

/* Whether reads and writes may be handed to the kernel: both sides agreed in INIT. */
bool fsg_device_has_passthrough(const FsgDevice *device);
/* Whether we asked for it; whether the kernel offered it. */
bool fsg_device_wants_passthrough(const FsgDevice *device);
bool fsg_device_offered_passthrough(const FsgDevice *device);
