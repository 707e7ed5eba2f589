/* Raw system calls; see syscall-wrap.h. */
#include "common/syscall-wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RESULT(call)                                                                               \
	do {                                                                                       \
		long result_ = (call);                                                             \
		return result_ < 0 ? -errno : (int)result_;                                        \
	} while (0)

int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags, .mode = mode, .resolve = resolve };

	RESULT(syscall(SYS_openat2, dirfd, path, &how, sizeof how));
}

int sys_open_tree(int dirfd, const char *path, unsigned int flags)
{
	RESULT(syscall(SYS_open_tree, dirfd, path, flags));
}

int sys_move_mount(int from_dirfd, const char *from_path, int to_dirfd, const char *to_path,
		   unsigned int flags)
{
	RESULT(syscall(SYS_move_mount, from_dirfd, from_path, to_dirfd, to_path, flags));
}

int sys_mount_setattr(int dirfd, const char *path, unsigned int flags, uint64_t attr_set,
		      uint64_t attr_clr, uint64_t propagation)
{
	struct mount_attr attr = {
		.attr_set = attr_set,
		.attr_clr = attr_clr,
		.propagation = propagation,
	};

	RESULT(syscall(SYS_mount_setattr, dirfd, path, flags, &attr, sizeof attr));
}

int sys_mount_idmap(int mount_fd, int userns_fd)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)userns_fd,
	};

	RESULT(syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr));
}

int sys_fsopen(const char *fsname, unsigned int flags)
{
	RESULT(syscall(SYS_fsopen, fsname, flags));
}

int sys_fsconfig(int fs_fd, unsigned int cmd, const char *key, const void *value, int aux)
{
	RESULT(syscall(SYS_fsconfig, fs_fd, cmd, key, value, aux));
}

int sys_fsmount(int fs_fd, unsigned int flags, unsigned int attr)
{
	RESULT(syscall(SYS_fsmount, fs_fd, flags, attr));
}

int sys_pivot_root(const char *new_root, const char *put_old)
{
	RESULT(syscall(SYS_pivot_root, new_root, put_old));
}

pid_t sys_clone3(uint64_t flags, int exit_signal, int *ret_pidfd)
{
	return sys_clone3_into(-1, flags, exit_signal, ret_pidfd);
}

pid_t sys_clone3_into(int cgroup_fd, uint64_t flags, int exit_signal, int *ret_pidfd)
{
	struct clone_args args;

	memset(&args, 0, sizeof args);
	args.flags = flags;
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	args.exit_signal = (uint64_t)exit_signal;
	if (flags & CLONE_PIDFD)
		args.pidfd = (uint64_t)(uintptr_t)ret_pidfd;
	RESULT(syscall(SYS_clone3, &args, sizeof args));
}

pid_t sys_clone_copy(unsigned int flags, int *ret_pidfd)
{
	/* where a thread's id would be stored, for CLONE_PIDFD */
	RESULT(syscall(SYS_clone, (unsigned long)flags | SIGCHLD, NULL, ret_pidfd, NULL, NULL));
}

#if WITH_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)0)
#endif
#if WITH_THREAD_SANITIZER
void __tsan_ignore_thread_begin(void);
#else
#define __tsan_ignore_thread_begin() ((void)0)
#endif

void sys_clone3_alone(void)
{
	__tsan_ignore_thread_begin();
}

#if WITH_THREAD_SANITIZER
/* It intercepts clone(), and does not survive a child in our memory: there it is a copy, whose writes do not come back. */
pid_t sys_clone_until_exec(int flags, int (*run)(void *data), void *data, int *ret_pidfd)
{
	pid_t pid = sys_clone_copy((unsigned int)flags | CLONE_VFORK, ret_pidfd);

	if (pid == 0) {
		sys_clone3_alone();
		_exit(run(data));
	}
	return pid;
}
#else
/* On a stack of its own, or its calls would overwrite ours. What it has called never returned, as AddressSanitizer sees
 * it. */
pid_t sys_clone_until_exec(int flags, int (*run)(void *data), void *data, int *ret_pidfd)
{
	_Alignas(16) char stack[SYS_CLONE_STACK_BYTES];
	pid_t pid;

	pid = clone(run, stack + sizeof stack, flags | CLONE_VM | CLONE_VFORK | SIGCHLD, data,
		    ret_pidfd);
	if (pid < 0)
		pid = -errno;
	ASAN_UNPOISON_MEMORY_REGION(stack, sizeof stack);
	return pid;
}
#endif

int sys_pidfd_open(pid_t pid, unsigned int flags)
{
	RESULT(syscall(SYS_pidfd_open, pid, flags));
}

int sys_pidfd_send_signal(int pidfd, int sig)
{
	RESULT(syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

int sys_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	RESULT(syscall(SYS_close_range, first, last, flags));
}

int sys_setfsuid(uid_t uid)
{
	return (int)syscall(SYS_setfsuid, uid);
}

int sys_setfsgid(gid_t gid)
{
	return (int)syscall(SYS_setfsgid, gid);
}

int sys_setgroups(size_t count, const gid_t *groups)
{
	RESULT(syscall(SYS_setgroups, count, groups));
}

int sys_capset(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++) {
		data[i].effective = (uint32_t)(effective >> (32 * i));
		data[i].permitted = (uint32_t)(permitted >> (32 * i));
		data[i].inheritable = (uint32_t)(inheritable >> (32 * i));
	}
	RESULT(syscall(SYS_capset, &header, data));
}

int sys_capget(uint64_t *ret_effective, uint64_t *ret_permitted, uint64_t *ret_inheritable)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) != 0)
		return -errno;
	*ret_effective = data[0].effective | (uint64_t)data[1].effective << 32;
	*ret_permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	*ret_inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return 0;
}

int sys_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
		  unsigned int flags)
{
	RESULT(syscall(SYS_renameat2, from_dirfd, from, to_dirfd, to, flags));
}
