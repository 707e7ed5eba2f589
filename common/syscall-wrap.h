/* Every raw system call of the project: those that glibc 2.36 does not wrap, and those whose glibc
 * wrapper does something else (setfsuid, capset: per thread here, as the kernel has them).
 *
 * All return a value >= 0 or -errno, and allocate nothing: they may be called after fork. */
#pragma once

#include "common/sanitizers.h"

#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif

/* openat2(2), once; resolve and flags as the kernel has them. */
int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);

int sys_open_tree(int dirfd, const char *path, unsigned int flags);
int sys_move_mount(int from_dirfd, const char *from_path, int to_dirfd, const char *to_path,
		   unsigned int flags);
int sys_mount_setattr(int dirfd, const char *path, unsigned int flags, uint64_t attr_set,
		      uint64_t attr_clr, uint64_t propagation);
/* MOUNT_ATTR_IDMAP for a detached mount, by the id maps of a user namespace: an id inside of it is that of a file, the one
 * outside the one that is shown. */
int sys_mount_idmap(int mount_fd, int userns_fd);
int sys_fsopen(const char *fsname, unsigned int flags);
int sys_fsconfig(int fs_fd, unsigned int cmd, const char *key, const void *value, int aux);
int sys_fsmount(int fs_fd, unsigned int flags, unsigned int attr);
int sys_pivot_root(const char *new_root, const char *put_old);

/* clone3(2) without a new stack: like fork, with namespaces. flags are CLONE_*; exit_signal is 0
 * (only waitid with __WALL or P_PIDFD sees the child) or SIGCHLD. With CLONE_PIDFD in flags,
 * *ret_pidfd is the child's pidfd (close-on-exec). Returns 0 in the child, the pid in the parent. */
pid_t sys_clone3(uint64_t flags, int exit_signal, int *ret_pidfd);
/* The same, with the child in that cgroup of version 2 from its first instruction on; -1: in ours. */
pid_t sys_clone3_into(int cgroup_fd, uint64_t flags, int exit_signal, int *ret_pidfd);
/* For ThreadSanitizer, in the child of a parent with threads: it is not told of a raw clone, and would go on comparing
 * what the child does to its own copy of everything with what the parent's other threads did before. */
void sys_clone3_alone(void);

/* As sys_clone3() with SIGCHLD, by the older call, whose flags a filter can see. Returns the pid (0 in the child) or
 * -errno. */
pid_t sys_clone_copy(unsigned int flags, int *ret_pidfd);

/* The stack of such a child: for system calls, and for the path that a program is looked up by. */
#define SYS_CLONE_STACK_BYTES (WITH_SANITIZER ? 65536 : 16384)

/* A child for run(data), which may only make system calls and ends in execve or _exit. Until then it shares our memory,
 * so that nothing is copied however much of it there is, and the calling thread stands still. The caller has
 * blocked all signals. flags and *ret_pidfd as with sys_clone3(); SIGCHLD tells of the end. Returns the pid or -errno. */
pid_t sys_clone_until_exec(int flags, int (*run)(void *data), void *data, int *ret_pidfd);

int sys_pidfd_open(pid_t pid, unsigned int flags);
int sys_pidfd_send_signal(int pidfd, int sig);
int sys_close_range(unsigned int first, unsigned int last, unsigned int flags);

/* Per thread. Returns the id that was in effect before; the kernel reports no error, so a caller that
 * depends on it reads it back with a second call. */
int sys_setfsuid(uid_t uid);
int sys_setfsgid(gid_t gid);
/* The supplementary groups of this thread alone. */
int sys_setgroups(size_t count, const gid_t *groups);

/* Sets this thread's effective, permitted and inheritable sets, as bit masks of CAP_*. */
int sys_capset(uint64_t effective, uint64_t permitted, uint64_t inheritable);
int sys_capget(uint64_t *ret_effective, uint64_t *ret_permitted, uint64_t *ret_inheritable);

/* renameat2(2); glibc has it, but only to one errno convention. */
int sys_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
		  unsigned int flags);

/* close_range(CLOSE_RANGE_CLOEXEC) and friends need these on older headers. */
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif
