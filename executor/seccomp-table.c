/* Which system calls a command may make; see seccomp-table.h.
 *
 * Every call of x86_64 and of aarch64 up to Linux 6.18 stands here, so that each was decided by
 * somebody; a call without a row is one that nobody has thought about and gives ENOSYS. The filter
 * is the second wall, not the first: the view, the namespaces and the missing capabilities already
 * refuse most of what is refused here. Hence the measure: what unprivileged programs use is
 * allowed; what only serves to reconfigure the machine, or is known for kernel holes and little
 * else, is not.
 *
 * The arguments of clone, unshare, ioctl, socket, socketpair and personality are looked at by
 * seccomp-filter.c. Calls that take a path need no care: the root is the view. */
#include "executor/seccomp-table.h"

#include <seccomp.h>
#include <string.h>

/* Names in groups, as many on a line as fit. */
/* clang-format off */

static const char *const allowed[] = {
	/* files by path */
	"access", "chdir", "chmod", "chown", "creat", "faccessat", "faccessat2", "fchmodat",
	"fchmodat2", "fchownat", "futimesat", "getcwd", "lchown", "link", "linkat", "lstat",
	"mkdir", "mkdirat", "newfstatat", "open", "openat", "openat2", "readlink", "readlinkat",
	"rename", "renameat", "renameat2", "rmdir", "stat", "statfs", "statx", "symlink",
	"symlinkat", "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes",
	/* no device without CAP_MKNOD; FIFOs, sockets and regular files are for everyone */
	"mknod", "mknodat",

	/* open files */
	"cachestat", "close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "fadvise64",
	"fallocate", "fchdir", "fchmod", "fchown", "fcntl", "fdatasync", "flock", "fstat",
	"fstatfs", "fsync", "ftruncate", "getdents", "getdents64", "ioctl", "lseek", "pipe",
	"pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
	"readahead", "readv", "sendfile", "splice", "sync", "sync_file_range", "syncfs", "tee",
	"vmsplice", "write", "writev",

	/* attributes: what they may change is for the file system to say */
	"fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "getxattr", "getxattrat",
	"lgetxattr", "listxattr", "listxattrat", "llistxattr", "lremovexattr", "lsetxattr",
	"removexattr", "removexattrat", "setxattr", "setxattrat", "file_getattr",

	/* waiting for events */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"eventfd", "eventfd2", "inotify_add_watch", "inotify_init", "inotify_init1",
	"inotify_rm_watch", "poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4",
	"timerfd_create", "timerfd_gettime", "timerfd_settime",

	/* POSIX AIO as databases use it; io_uring is absent, see below */
	"io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit",

	/* memory of the process itself */
	"brk", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "mincore", "mlock",
	"mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync", "munlock",
	"munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect", "process_madvise",
	"process_mrelease", "remap_file_pages",
	/* where memory comes from on machines of several nodes: numerical libraries ask and set
	 * it */
	"get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node",

	/* processes and threads; clone and unshare without namespaces */
	"clone", "execve", "execveat", "exit", "exit_group", "fork", "futex", "futex_requeue",
	"futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "getcpu", "getpgid",
	"getpgrp", "getpid", "getppid", "getpriority", "getrlimit", "getrusage", "getsid", "gettid",
	"ioprio_get", "ioprio_set", "pidfd_open", "prctl", "prlimit64", "restart_syscall", "rseq",
	"sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
	"sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity",
	"sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "set_robust_list",
	"set_tid_address", "setpgid", "setpriority", "setrlimit", "setsid", "sysinfo", "times",
	"uname", "unshare", "vfork", "wait4", "waitid",
	/* 0, what is the default anyway, and asking */
	"personality",
	/* the thread pointer and CET of x86_64 */
	"arch_prctl",
	/* only ever entered from code that the kernel itself puts into a traced program; elsewhere
	 * the kernel ends the caller. Refusing them would break a program when an administrator
	 * traces it. */
	"uprobe", "uretprobe",

	/* debuggers: the pid namespace holds the exec's own processes and a PID 1 that is not
	 * dumpable. A tracer cannot get past the filter, which the kernel consults after the tracer
	 * (4.8). */
	"process_vm_readv", "process_vm_writev", "ptrace",

	/* ids and capabilities: without privilege these only give up */
	"capget", "capset", "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid",
	"getuid", "setfsgid", "setfsuid", "setgid", "setgroups", "setregid", "setresgid",
	"setresuid", "setreuid", "setuid",

	/* making oneself a smaller sandbox: filters and rule sets stack, the strictest answer
	 * counts */
	"landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "seccomp",

	/* signals */
	"alarm", "getitimer", "kill", "pause", "pidfd_send_signal", "rt_sigaction", "rt_sigpending",
	"rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
	"rt_tgsigqueueinfo", "setitimer", "sigaltstack", "tgkill", "tkill",

	/* time: reading it and sleeping */
	"clock_getres", "clock_gettime", "clock_nanosleep", "getrandom", "gettimeofday",
	"nanosleep", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
	"timer_settime",

	/* sockets: socket and socketpair of some families only */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
	"listen", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt",
	"shutdown", "socket", "socketpair",

	/* System V and POSIX IPC: the namespace is the session's own */
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
	"msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
	"shmctl", "shmdt", "shmget",
	NULL,
};

static const char *const refused[] = {
	/* mounts and roots, old and new interface */
	"chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
	"open_tree", "open_tree_attr", "pivot_root", "umount2",

	/* another namespace; unshare and clone are allowed without CLONE_NEW* */
	"setns",

	/* file handles name files that no path of the view leads to, and fanotify hands them out */
	"fanotify_init", "fanotify_mark", "name_to_handle_at", "open_by_handle_at",

	/* code into the kernel */
	"bpf", "delete_module", "finit_module", "init_module", "kexec_file_load", "kexec_load",

	/* keyrings are the user's, not the namespace's, and live on */
	"add_key", "keyctl", "request_key",

	/* the machine's clocks, names, logs, accounting, quotas, swap, terminals, I/O ports */
	"acct", "adjtimex", "clock_adjtime", "clock_settime", "ioperm", "iopl", "quotactl",
	"quotactl_fd", "reboot", "setdomainname", "sethostname", "settimeofday", "swapoff",
	"swapon", "syslog", "vhangup",

	/* measuring the kernel and other processes, or comparing and taking what they hold */
	"kcmp", "lookup_dcookie", "perf_event_open", "pidfd_getfd",

	/* moves pages of other processes between nodes */
	"migrate_pages", "move_pages",

	/* holds kernel threads at a fault for as long as the caller likes: the tool of race
	 * exploits */
	"userfaultfd",

	/* 16-bit segments, which only emulators of old systems want */
	"modify_ldt",
	NULL,
};

static const char *const absent[] = {
	/* its flags lie in memory where no filter can read them; libc falls back to clone, but only
	 * on ENOSYS: EPERM would be the end of every thread */
	"clone3",

	/* does file and socket work that no filter sees; node, tokio and others fall back */
	"io_uring_enter", "io_uring_register", "io_uring_setup",

	/* new ways to learn about mounts and namespaces: libmount falls back to mountinfo, which is
	 * the view's */
	"listmount", "listns", "statmount",

	/* attributes of security modules: nothing that a command needs */
	"lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr",

	/* the ioctl does the same, and chattr falls back to it */
	"file_setattr",

	/* memory that even the kernel cannot reclaim or look into; callers fall back to locked
	 * memory */
	"memfd_secret",

	/* kept for programs of twenty years ago, or never implemented at all */
	"_sysctl", "afs_syscall", "create_module", "epoll_ctl_old", "epoll_wait_old",
	"get_kernel_syms", "get_thread_area", "getpmsg", "nfsservctl", "putpmsg", "query_module",
	"security", "set_thread_area", "sysfs", "tuxcall", "uselib", "ustat", "vserver",
	NULL,
};

/* clang-format on */

const char *const *const exr_seccomp_names[EXR_SECCOMP_N_CLASSES] = {
	[EXR_SECCOMP_ALLOW] = allowed,
	[EXR_SECCOMP_REFUSE] = refused,
	[EXR_SECCOMP_ABSENT] = absent,
};

/* Calls that libseccomp 2.5 has no name for. Numbers above 424 are the same on every
 * architecture. */
static const struct {
	const char *name;
	int number;
} newer[] = {
#ifdef __x86_64__
	{ "uretprobe", 335 },	      { "uprobe", 336 },
#endif
	{ "cachestat", 451 },	      { "fchmodat2", 452 },	   { "map_shadow_stack", 453 },
	{ "futex_wake", 454 },	      { "futex_wait", 455 },	   { "futex_requeue", 456 },
	{ "statmount", 457 },	      { "listmount", 458 },	   { "lsm_get_self_attr", 459 },
	{ "lsm_set_self_attr", 460 }, { "lsm_list_modules", 461 }, { "mseal", 462 },
	{ "setxattrat", 463 },	      { "getxattrat", 464 },	   { "listxattrat", 465 },
	{ "removexattrat", 466 },     { "open_tree_attr", 467 },   { "file_getattr", 468 },
	{ "file_setattr", 469 },      { "listns", 470 },
};

int exr_seccomp_number(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number >= 0)
		return number;
	for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++)
		if (strcmp(newer[i].name, name) == 0)
			return newer[i].number;
	/* libseccomp has numbers below zero for calls that only other architectures have */
	return -1;
}
