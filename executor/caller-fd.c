/* Calls on the caller's descriptors that do not block; see caller-fd.h. */
#include "executor/caller-fd.h"

#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static ExrCallerKind kind_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return EXR_CALLER_FILE; /* a closed one: the first call says so */
	if (S_ISFIFO(st.st_mode))
		return EXR_CALLER_PIPE;
	if (S_ISSOCK(st.st_mode))
		return EXR_CALLER_SOCKET;
	if (S_ISCHR(st.st_mode))
		return EXR_CALLER_DEVICE;
	return EXR_CALLER_FILE;
}

void exr_caller_fd_init(ExrCallerFd *caller, int fd, int access_mode)
{
	char path[FD_PROC_PATH_SIZE];
	int flags = fcntl(fd, F_GETFL);

	*caller = (ExrCallerFd){ .fd = fd, .own_fd = -1, .kind = kind_of(fd) };
	/* Another device than a terminal may do something when it is opened. */
	if (caller->kind != EXR_CALLER_PIPE && !(caller->kind == EXR_CALLER_DEVICE && isatty(fd)))
		return;
	/* Never more than the caller gave: with /proc, a read end could be opened for writing. */
	if (flags < 0 || ((flags & O_ACCMODE) != access_mode && (flags & O_ACCMODE) != O_RDWR))
		return;
	fd_proc_path(fd, path);
	caller->own_fd = open(path, access_mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void exr_caller_fd_clear(ExrCallerFd *caller)
{
	fd_close(&caller->own_fd);
	caller->fd = -1;
}

int exr_caller_fd_get(const ExrCallerFd *caller)
{
	return caller->own_fd >= 0 ? caller->own_fd : caller->fd;
}

/* Whether a call that poll can foretell may be made now. */
static bool is_ready(const ExrCallerFd *caller, short events)
{
	struct pollfd poll_fd = { .fd = caller->fd, .events = events };

	if (caller->own_fd >= 0 || caller->kind == EXR_CALLER_FILE)
		return true;
	return poll(&poll_fd, 1, 0) > 0;
}

ssize_t exr_caller_fd_read(const ExrCallerFd *caller, void *data, size_t size)
{
	ssize_t got;

	if (!is_ready(caller, POLLIN))
		return -EAGAIN;
	if (caller->kind == EXR_CALLER_SOCKET)
		got = recv(caller->fd, data, size, MSG_DONTWAIT);
	else
		got = read(exr_caller_fd_get(caller), data, size);
	return got < 0 ? -errno : got;
}

ssize_t exr_caller_fd_write(const ExrCallerFd *caller, const void *data, size_t size)
{
	ssize_t written;

	if (!is_ready(caller, POLLOUT))
		return -EAGAIN;
	if (caller->kind == EXR_CALLER_SOCKET) {
		written = send(caller->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else {
		/* A pipe that poll calls writable has room for this much, and no more is known. */
		if (caller->own_fd < 0 && caller->kind != EXR_CALLER_FILE && size > PIPE_BUF)
			size = PIPE_BUF;
		written = write(exr_caller_fd_get(caller), data, size);
	}
	return written < 0 ? -errno : written;
}

bool exr_caller_fd_is_in_background(const ExrCallerFd *caller)
{
	pid_t foreground;

	if (caller->kind != EXR_CALLER_DEVICE)
		return false;
	foreground = tcgetpgrp(caller->fd);
	return foreground > 0 && foreground != getpgrp();
}
