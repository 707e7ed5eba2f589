/* The caller's own stdin, stdout and stderr, read and written without ever blocking.
 *
 * They may be anything, are shared with strangers, and must be left as they are: O_NONBLOCK belongs to
 * the open file description, so setting it would change the caller's shell as well. Yet a consumer
 * that has stopped reading must not hold up a timeout. So terminals and pipes are opened a second
 * time, through /proc, with a description of our own; sockets have a flag a call; where neither
 * works, a call is made only when poll says that so much cannot block. Files do not block. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef enum {
	EXR_CALLER_FILE, /* regular files, block devices, directories: poll says nothing about them */
	EXR_CALLER_PIPE,
	EXR_CALLER_SOCKET,
	EXR_CALLER_DEVICE, /* terminals and other character devices */
} ExrCallerKind;

typedef struct {
	int fd;	    /* the caller's, borrowed; -1: none */
	int own_fd; /* a non-blocking description of ours, or -1 */
	ExrCallerKind kind;
} ExrCallerFd;

#define EXR_CALLER_FD_NONE                                                                         \
	{                                                                                          \
		-1, -1, EXR_CALLER_FILE                                                            \
	}

/* access_mode is O_RDONLY or O_WRONLY. */
void exr_caller_fd_init(ExrCallerFd *caller, int fd, int access_mode);
void exr_caller_fd_clear(ExrCallerFd *caller);

/* The descriptor to poll, and to splice to. */
int exr_caller_fd_get(const ExrCallerFd *caller);

/* As read(2) and write(2), in one call: bytes, 0 at the end, -EAGAIN when it would block, -errno. */
ssize_t exr_caller_fd_read(const ExrCallerFd *caller, void *data, size_t size);
ssize_t exr_caller_fd_write(const ExrCallerFd *caller, const void *data, size_t size);

/* Whether a read of this terminal was refused because another job has it in the foreground. */
bool exr_caller_fd_is_in_background(const ExrCallerFd *caller);
