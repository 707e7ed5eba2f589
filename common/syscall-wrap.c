/* Raw system calls; see syscall-wrap.h. */
#include "common/syscall-wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
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
	struct clone_args args;

	memset(&args, 0, sizeof args);
	args.flags = flags;
	args.exit_signal = (uint64_t)exit_signal;
	if (flags & CLONE_PIDFD)
		args.pidfd = (uint64_t)(uintptr_t)ret_pidfd;
	RESULT(syscall(SYS_clone3, &args, sizeof args));
}

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
