/* File descriptors: owned by a scope, closed once, born close-on-exec.
 *
 * Every fd that a function holds for longer than one call is declared with FD_AUTO and given away
 * by fd_steal(). Duplicates are made here only, and never below 3, so that a program started with
 * closed standard streams cannot get one of our fds as its output. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/* Closes *fd unless it is negative, and sets it to -1. Never retried: on Linux the fd is gone
 * even when close reports EINTR. Keeps errno. */
void fd_close(int *fd);

#define FD_AUTO __attribute__((cleanup(fd_close))) int

/* Moves the fd out of *fd, which becomes -1. */
static inline int fd_steal(int *fd)
{
	int stolen = *fd;
	*fd = -1;
	return stolen;
}

/* A close-on-exec duplicate of fd, at 3 or above, or -errno. The caller owns it. */
int fd_dup(int fd);

/* Makes room for fd numbers below `count` in the kernel's table of this process's fds. A process with threads
 * that outgrows the table waits for an RCU grace period each time it doubles, some milliseconds; before there are
 * threads it costs nothing, and 8 bytes of the kernel's for each number. A limit that is lower bounds it. */
void fd_reserve(int count);

/* Opens the object behind an O_PATH fd (or any other) again, with other flags, through
 * proc_fd, which is a /proc/self/fd directory that fd_open_proc() made. flags get O_CLOEXEC; an
 * object that is a symlink gives -ELOOP. The caller has to know by fstat that fd is no device and no
 * FIFO, for opening these has side effects. Returns the new fd or -errno. */
int fd_reopen(int proc_fd, int fd, int flags);

/* Opens /proc/self/fd and checks that it is on a proc file system. Returns the fd or -errno. In a process that is forked
 * later it goes on being its parent's. */
int fd_open_proc(void);
/* fd_reopen() through a /proc/self/fd of this very moment: also right in a child of the process that the fd was opened in. */
int fd_reopen_now(int fd, int flags);

/* Sets or clears O_NONBLOCK. Only for our own pipes and sockets: the flag belongs to the open file
 * description, which an inherited fd shares with strangers. 0 or -errno. */
int fd_set_nonblock(int fd, bool nonblock);

/* Sets or clears close-on-exec. 0 or -errno. */
int fd_set_cloexec(int fd, bool cloexec);

/* Text for "/proc/self/fd/<fd>" in the caller's buffer. */
#define FD_PROC_PATH_SIZE 32
void fd_proc_path(int fd, char buf[static FD_PROC_PATH_SIZE]);
