/* File descriptors; see fd-util.h. Nothing here allocates, so all of it may be called after fork. */
#include "common/fd-util.h"

#include "common/syscall-wrap.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/vfs.h>

void fd_close(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		*fd = -1;
		errno = saved;
	}
}

int fd_dup(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return copy < 0 ? -errno : copy;
}

void fd_reserve(int count)
{
	FD_AUTO any = open("/", O_PATH | O_CLOEXEC);
	struct rlimit limit;
	int highest;

	if (any < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return; /* it is only slower then */
	if ((rlim_t)count > limit.rlim_cur)
		count = (int)limit.rlim_cur;
	highest = fcntl(any, F_DUPFD_CLOEXEC, count - 1);
	fd_close(&highest);
}

void fd_proc_path(int fd, char buf[static FD_PROC_PATH_SIZE])
{
	snprintf(buf, FD_PROC_PATH_SIZE, "/proc/self/fd/%d", fd);
}

int fd_reopen(int proc_fd, int fd, int flags)
{
	char name[16];
	int reopened;

	snprintf(name, sizeof name, "%d", fd);
	/* Follows the magic link on purpose: that is how an O_PATH fd becomes a usable one. */
	reopened = openat(proc_fd, name, flags | O_CLOEXEC | O_NOCTTY);
	return reopened < 0 ? -errno : reopened;
}

int fd_open_proc(void)
{
	struct statfs fs;
	FD_AUTO fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &fs) != 0)
		return -errno;
	if (fs.f_type != PROC_SUPER_MAGIC)
		return -ENOSYS;
	return fd_steal(&fd);
}

int fd_reopen_now(int fd, int flags)
{
	FD_AUTO proc_fd = fd_open_proc();

	return proc_fd < 0 ? proc_fd : fd_reopen(proc_fd, fd, flags);
}

static int set_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);

	if (flags < 0)
		return -errno;
	flags = on ? flags | flag : flags & ~flag;
	return fcntl(fd, set, flags) < 0 ? -errno : 0;
}

int fd_set_nonblock(int fd, bool nonblock)
{
	return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, nonblock);
}

int fd_set_cloexec(int fd, bool cloexec)
{
	return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, cloexec);
}
