/* seccomp-filter: what the kernel makes of the program.
 *
 * Children load it and make real calls. A refused call is chosen so that without the filter it
 * fails otherwise, or works; a control child without the filter proves that. What cannot be called
 * safely, and every value of every argument, is for test-seccomp-rules.c. */
#include "executor/seccomp-filter.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static ExrSeccomp filter;

static int build_filter(void **state)
{
	(void)state;
	return exr_seccomp_build(&filter);
}

static int clear_filter(void **state)
{
	(void)state;
	exr_seccomp_clear(&filter);
	return 0;
}

/* Runs body in a child of its own, with the filter loaded or without; gives its wait status. */
static int in_child(int (*body)(void *data), void *data, bool filtered)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* whatever hangs ends, by another signal than the one that is waited for; cmocka's
		 * handler would go on with the tests here */
		alarm(30);
		signal(SIGSEGV, SIG_DFL);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
			_exit(120);
		if (filtered && exr_seccomp_load(filter.code, filter.size) != 0)
			_exit(121);
		_exit(body(data));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

typedef struct {
	const char *what;
	long number;
	long args[6];
	int expected; /* errno; 0: the call works; -1: another errno than EPERM and ENOSYS */
} Call;

static const char nowhere[] = "/nonexistent/at/all";

/* The refused ones fail otherwise, or work, when there is no filter and the caller is root. */
static const Call calls[] = {
	{ "mount", SYS_mount, { 0, 0, 0, 0, 0 }, EPERM },
	{ "umount2", SYS_umount2, { (long)nowhere, 0 }, EPERM },
	{ "chroot", SYS_chroot, { (long)nowhere }, EPERM },
	{ "open_tree", SYS_open_tree, { AT_FDCWD, (long)"/", 0 }, EPERM },
	{ "move_mount", SYS_move_mount, { -1, 0, -1, 0, ~0L }, EPERM },
	{ "fsopen", SYS_fsopen, { 0, 0 }, EPERM },
	{ "fspick", SYS_fspick, { -1, (long)nowhere, 0 }, EPERM },
	{ "mount_setattr", SYS_mount_setattr, { -1, 0, ~0L, 0, 0 }, EPERM },
	{ "statmount", 457, { 0, 0, 0, 0 }, ENOSYS },
	{ "setns", SYS_setns, { -1, 0 }, EPERM },
	{ "unshare CLONE_NEWUTS", SYS_unshare, { CLONE_NEWUTS }, EPERM },
	{ "unshare CLONE_FS", SYS_unshare, { CLONE_FS }, 0 },
	{ "unshare of nothing", SYS_unshare, { 0 }, 0 },
	/* CLONE_NEWUSER with CLONE_FS and a lonely CLONE_THREAD are invalid: nothing is made */
	{ "clone CLONE_NEWUSER", SYS_clone, { CLONE_NEWUSER | CLONE_FS | SIGCHLD }, EPERM },
	{ "clone of a lonely thread", SYS_clone, { CLONE_THREAD }, EINVAL },
	{ "clone3", SYS_clone3, { 0, 0 }, ENOSYS },
	{ "io_uring_setup", SYS_io_uring_setup, { 1, 0 }, ENOSYS },
	{ "io_uring_enter", SYS_io_uring_enter, { -1, 0, 0, 0, 0, 0 }, ENOSYS },
	{ "io_setup", SYS_io_setup, { 1, 0 }, EFAULT },
	{ "name_to_handle_at", SYS_name_to_handle_at, { AT_FDCWD, (long)"/", 0, 0, 0 }, EPERM },
	{ "open_by_handle_at", SYS_open_by_handle_at, { -1, 0, 0 }, EPERM },
	{ "fanotify_init", SYS_fanotify_init, { ~0L, 0 }, EPERM },
	{ "inotify_init1", SYS_inotify_init1, { O_CLOEXEC }, 0 },
	{ "bpf", SYS_bpf, { -1, 0, 0 }, EPERM },
	{ "finit_module", SYS_finit_module, { -1, (long)"", 0 }, EPERM },
	{ "delete_module", SYS_delete_module, { 0, 0 }, EPERM },
	{ "kexec_load", SYS_kexec_load, { 0, ~0L, 0, ~0L }, EPERM },
	{ "add_key", SYS_add_key, { 0, 0, 0, 0, 0 }, EPERM },
	{ "request_key", SYS_request_key, { 0, 0, 0, 0 }, EPERM },
	{ "keyctl", SYS_keyctl, { -1, 0, 0, 0, 0 }, EPERM },
	{ "perf_event_open", SYS_perf_event_open, { 0, 0, 0, 0, ~0L }, EPERM },
	{ "userfaultfd", SYS_userfaultfd, { ~0L }, EPERM },
	{ "kcmp", SYS_kcmp, { 0, 0, -1, 0, 0 }, EPERM },
	{ "pidfd_getfd", SYS_pidfd_getfd, { -1, 0, 0 }, EPERM },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, { -1, 0, 0, 0 }, EBADF },
	{ "acct", SYS_acct, { (long)nowhere }, EPERM },
	{ "swapon", SYS_swapon, { (long)nowhere, 0 }, EPERM },
	{ "reboot with a wrong magic", SYS_reboot, { 0, 0, 0, 0 }, EPERM },
	{ "syslog", SYS_syslog, { 10, 0, 0 }, EPERM },
	{ "settimeofday", SYS_settimeofday, { 1, 0 }, EPERM },
	{ "clock_settime", SYS_clock_settime, { CLOCK_REALTIME, 0 }, EPERM },
	{ "clock_gettime", SYS_clock_gettime, { CLOCK_REALTIME, 0 }, EFAULT },
	{ "quotactl", SYS_quotactl, { -1, 0, 0, 0 }, EPERM },
	{ "sethostname", SYS_sethostname, { 0, -1 }, EPERM },
	{ "move_pages", SYS_move_pages, { 0, 0, 0, 0, 0, ~0L }, EPERM },
	{ "mbind", SYS_mbind, { 1, 0, 0, 0, 0, 0 }, EINVAL },
	{ "process_vm_readv", SYS_process_vm_readv, { 0, 0, 0, 0, 0, ~0L }, EINVAL },
	{ "ptrace", SYS_ptrace, { 0xffff, 0x7ffffffe, 0, 0 }, ESRCH },
	{ "personality READ_IMPLIES_EXEC", SYS_personality, { READ_IMPLIES_EXEC }, EPERM },
	{ "personality ADDR_NO_RANDOMIZE", SYS_personality, { ADDR_NO_RANDOMIZE }, EPERM },
	{ "personality asked for", SYS_personality, { 0xffffffff }, 0 },
	{ "socket AF_VSOCK", SYS_socket, { AF_VSOCK, SOCK_RAW, 99 }, EAFNOSUPPORT },
	{ "socket AF_PACKET", SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, EAFNOSUPPORT },
	{ "socket AF_ALG", SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, EAFNOSUPPORT },
	{ "socket SOCK_PACKET", SYS_socket, { AF_INET, SOCK_PACKET, 0 }, EAFNOSUPPORT },
	{ "socket netlink audit",
	  SYS_socket,
	  { AF_NETLINK, SOCK_RAW, NETLINK_AUDIT },
	  EPROTONOSUPPORT },
	{ "socket netlink route", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE }, 0 },
	{ "socket AF_UNIX", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, 0 },
	{ "socket AF_INET", SYS_socket, { AF_INET, SOCK_DGRAM, 0 }, 0 },
	{ "socketpair AF_INET", SYS_socketpair, { AF_INET, SOCK_STREAM, 0, 0 }, -1 },
	{ "TIOCSETD", SYS_ioctl, { -1, TIOCSETD, 0 }, EPERM },
	{ "TIOCLINUX", SYS_ioctl, { -1, TIOCLINUX, 0 }, EPERM },
	{ "TIOCSTI", SYS_ioctl, { -1, TIOCSTI, 0 }, EPERM },
	{ "TIOCSTI with a high bit", SYS_ioctl, { -1, 0x100005412, 0 }, EPERM },
	{ "TIOCGWINSZ", SYS_ioctl, { -1, TIOCGWINSZ, 0 }, EBADF },
	{ "seccomp", SYS_seccomp, { SECCOMP_SET_MODE_FILTER, 0, 0 }, EFAULT },
	{ "landlock_create_ruleset", SYS_landlock_create_ruleset, { 0, 0, ~0L }, -1 },
	{ "openat2", SYS_openat2, { -1, (long)"x", 0, 0 }, EINVAL },
	{ "faccessat2", SYS_faccessat2, { AT_FDCWD, (long)"/", 0, 0 }, 0 },
	{ "statx", SYS_statx, { AT_FDCWD, (long)nowhere, 0, 0, 0 }, ENOENT },
	{ "close_range", SYS_close_range, { 60000, 50000, 0 }, EINVAL },
	{ "an unknown number", 9999, { 0 }, ENOSYS },
};

/* Writes the errno of each call (0 for success) to the pipe. */
static int make_calls(void *data)
{
	int fd = *(int *)data;

	for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
		const long *args = calls[i].args;
		int errnum = 0;

		if (syscall(calls[i].number, args[0], args[1], args[2], args[3], args[4], args[5]) <
		    0)
			errnum = errno;
		if (write(fd, &errnum, sizeof errnum) != sizeof errnum)
			return 1;
	}
	return 0;
}

static void collect_calls(bool filtered, int results[static G_N_ELEMENTS(calls)])
{
	int ends[2];
	int status;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	status = in_child(make_calls, &ends[1], filtered);
	assert_int_equal(status, 0);
	close(ends[1]);
	/* less than a pipe holds, so that the child did not have to wait for us */
	assert_int_equal(read(ends[0], results, sizeof calls / sizeof calls[0] * sizeof results[0]),
			 sizeof calls / sizeof calls[0] * sizeof results[0]);
	close(ends[0]);
}

static void real_calls_get_the_answers_of_the_table(void **state)
{
	int plain[G_N_ELEMENTS(calls)];
	int filtered[G_N_ELEMENTS(calls)];
	int wrong = 0;

	(void)state;
	collect_calls(false, plain);
	collect_calls(true, filtered);
	for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
		bool refusal = calls[i].expected == EPERM || calls[i].expected == ENOSYS ||
			       calls[i].expected == EAFNOSUPPORT ||
			       calls[i].expected == EPROTONOSUPPORT;
		bool right = calls[i].expected >= 0 ? filtered[i] == calls[i].expected
						    : filtered[i] != EPERM && filtered[i] != ENOSYS;

		if (!right) {
			print_message("%s: errno %d, expected %d\n", calls[i].what, filtered[i],
				      calls[i].expected);
			wrong++;
		}
		/* Without privilege, or on a kernel without the call, the kernel may say the
		 * same. */
		if (refusal && geteuid() == 0 && plain[i] == calls[i].expected &&
		    plain[i] != ENOSYS && plain[i] != EAFNOSUPPORT && plain[i] != EPROTONOSUPPORT) {
			print_message("%s: errno %d without the filter too\n", calls[i].what,
				      plain[i]);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static void *return_argument(void *argument)
{
	return argument;
}

static int use_threads(void *data)
{
	pthread_t thread;
	void *result = NULL;

	if (pthread_create(&thread, NULL, return_argument, data) != 0)
		return 1;
	if (pthread_join(thread, &result) != 0)
		return 2;
	return result == data ? 0 : 3;
}

static int use_fork(void *data)
{
	int status;
	pid_t pid = fork();

	(void)data;
	if (pid == 0)
		_exit(7);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 2;
}

static void threads_and_processes_work_without_clone3(void **state)
{
	int datum;

	(void)state;
	assert_int_equal(in_child(use_threads, &datum, true), 0);
	assert_int_equal(in_child(use_fork, NULL, true), 0);
}

static int execute_true(void *data)
{
	(void)data;
	execl("/bin/sh", "sh", "-c", "exit 42", (char *)NULL);
	return 1;
}

static void a_program_runs_and_inherits_the_filter(void **state)
{
	int status = in_child(execute_true, NULL, true);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
}

/* A pseudo-terminal as controlling terminal: the case that TIOCSTI is about. */
static int type_into_terminal(void *data)
{
	unsigned long request = *(unsigned long *)data;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int slave;

	if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
		return 100;
	if (setsid() < 0)
		return 101;
	slave = open(ptsname(master), O_RDWR | O_CLOEXEC);
	if (slave < 0)
		return 102;
	if (syscall(SYS_ioctl, slave, request, "x") == 0)
		return 0;
	return errno;
}

static void nothing_is_typed_into_a_terminal(void **state)
{
	unsigned long requests[] = { TIOCSTI, 0x100005412 };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
		int plain = in_child(type_into_terminal, &requests[i], false);
		int filtered = in_child(type_into_terminal, &requests[i], true);

		assert_true(WIFEXITED(filtered));
		assert_int_equal(WEXITSTATUS(filtered), EPERM);
		/* EIO where the kernel has it switched off (dev.tty.legacy_tiocsti=0) */
		assert_true(WIFEXITED(plain));
		assert_true(WEXITSTATUS(plain) == 0 || WEXITSTATUS(plain) == EIO);
	}
}

#ifdef __x86_64__

static int call_i386(void *data)
{
	long result = 20; /* getpid */

	(void)data;
	__asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
	return result == getpid() ? 0 : 1;
}

static int call_x32(void *data)
{
	long result = syscall(0x40000000 | SYS_getpid);

	(void)data;
	return result == getpid() || (result < 0 && errno == ENOSYS) ? 0 : 1;
}

typedef struct {
	int (*call)(void *data);
} ThreadCall;

static void *call_from_thread(void *data)
{
	const ThreadCall *wanted = data;

	return wanted->call(NULL) == 0 ? NULL : data;
}

/* When only the thread died, the rest would end by itself, with a status. */
static int in_second_thread(void *data)
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, call_from_thread, data) != 0)
		return 1;
	for (int i = 0; i < 100 && pthread_tryjoin_np(thread, &result) != 0; i++)
		poll(NULL, 0, 20);
	return 0;
}

static void a_foreign_entry_kills_the_process(void **state)
{
	static int (*const entries[])(void *data) = { call_i386, call_x32 };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(entries); i++) {
		ThreadCall thread_call = { entries[i] };
		int plain = in_child(entries[i], NULL, false);
		int filtered = in_child(entries[i], NULL, true);
		int threaded = in_child(in_second_thread, &thread_call, true);

		/* a kernel without IA32 emulation faults at int 0x80 before any filter */
		if (WIFSIGNALED(plain) && WTERMSIG(plain) == SIGSEGV) {
			assert_true(WIFSIGNALED(filtered) && WTERMSIG(filtered) == SIGSEGV);
			continue;
		}
		assert_int_equal(plain, 0);
		assert_true(WIFSIGNALED(filtered));
		assert_int_equal(WTERMSIG(filtered), SIGSYS);
		assert_true(WIFSIGNALED(threaded));
		assert_int_equal(WTERMSIG(threaded), SIGSYS);
	}
}

#endif

static void an_empty_program_is_not_loaded(void **state)
{
	(void)state;
	assert_int_equal(exr_seccomp_load(NULL, 0), -EINVAL);
	assert_int_equal(exr_seccomp_load(filter.code, 0), -EINVAL);
	assert_int_equal(prctl(PR_GET_SECCOMP), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_calls_get_the_answers_of_the_table),
		cmocka_unit_test(threads_and_processes_work_without_clone3),
		cmocka_unit_test(a_program_runs_and_inherits_the_filter),
		cmocka_unit_test(nothing_is_typed_into_a_terminal),
#ifdef __x86_64__
		cmocka_unit_test(a_foreign_entry_kills_the_process),
#endif
		cmocka_unit_test(an_empty_program_is_not_loaded),
	};

	return cmocka_run_group_tests(tests, build_filter, clear_filter);
}
