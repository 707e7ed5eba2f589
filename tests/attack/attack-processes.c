/* Processes of others, by their numbers outside (arguments; the first is one of the same user where the test has no
 * privileges); one's own, which a debugger may have; and a tracer on its way round the filter. */
#include "probe.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static char secret[] = "of this process";

static int read_memory(pid_t pid)
{
	char text[sizeof secret];
	struct iovec here = { text, sizeof text }, there = { secret, sizeof secret };

	return PROBE_CALL(process_vm_readv(pid, &here, 1, &there, 1, 0));
}

static int open_memory(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	return PROBE_CALL(open(path, O_RDWR | O_CLOEXEC));
}

static int attach(void *data)
{
	pid_t pid = *(pid_t *)data;

	return PROBE_CALL(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static int take_handle(pid_t pid)
{
	return PROBE_CALL(syscall(SYS_pidfd_open, pid, 0));
}

/* Inside they do not exist. Outside a process of the same user can be had, if the kernel does not keep debuggers to
 * their children (Yama). */
static void try_foreign(Probe *probe, pid_t pid)
{
	char name[64];

	snprintf(name, sizeof name, "trace process %d", (int)pid);
	probe_check(probe, name, (Expected){ "ESRCH", "0|EPERM" }, probe_in_child(attach, &pid));
	snprintf(name, sizeof name, "read the memory of %d", (int)pid);
	probe_check(probe, name, (Expected){ "ESRCH", "0|EFAULT|EPERM" }, read_memory(pid));
	snprintf(name, sizeof name, "open the memory of %d", (int)pid);
	probe_check(probe, name, (Expected){ "ENOENT", "0|EACCES" }, open_memory(pid));
	snprintf(name, sizeof name, "pidfd of %d", (int)pid);
	probe_check(probe, name, (Expected){ "ESRCH|EINVAL", "0" }, take_handle(pid));
	snprintf(name, sizeof name, "signal %d", (int)pid);
	probe_check(probe, name, REFUSED("ESRCH"), PROBE_CALL(kill(pid, 0)));
}

/* Two of the command's own: a debugger works. */
static void try_own(Probe *probe)
{
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	probe_check(probe, "trace a child", ALLOWED, probe_in_child(attach, &child));
	probe_check(probe, "read the memory of a child", ALLOWED, read_memory(child));
	probe_check(probe, "open the memory of a child", ALLOWED, open_memory(child));
	probe_check(probe, "signal a child", ALLOWED, PROBE_CALL(kill(child, SIGKILL)));
	(void)waitpid(child, NULL, 0);
}

static void trace_me(void)
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	_exit((int)(PROBE_CALL(syscall(SYS_getppid))));
}

#ifdef __x86_64__
/* The tracer puts another number in the place of a call that is allowed. The kernel asks the filter after it. */
static int exchange_call(void *data)
{
	pid_t child = fork();
	struct user_regs_struct regs;
	int status;

	if (child == 0)
		trace_me();
	if (waitpid(child, &status, 0) != child ||
	    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0)
		return 200;
	for (int stops = 0; stops < 1000; stops++) {
		if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) != 0 ||
		    waitpid(child, &status, 0) != child)
			return 201;
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 1000 + WTERMSIG(status);
		if (WSTOPSIG(status) != (SIGTRAP | 0x80) ||
		    ptrace(PTRACE_GETREGS, child, NULL, &regs) != 0)
			continue;
		if (regs.orig_rax == SYS_getppid && regs.rax == (unsigned long long)-ENOSYS) {
			regs.orig_rax = *(unsigned long long *)data;
			regs.rdi = regs.rsi = regs.rdx = 0;
			if (ptrace(PTRACE_SETREGS, child, NULL, &regs) != 0)
				return 202;
		}
	}
	return 203;
}
#endif

static int suspend_filter(void *data)
{
	pid_t child = fork();
	int r;

	(void)data;
	if (child == 0)
		trace_me();
	(void)waitpid(child, NULL, 0);
	r = PROBE_CALL(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_SUSPEND_SECCOMP));
	(void)kill(child, SIGKILL);
	return r;
}

/* Only what this command started is there. */
static int count_others(void)
{
	DIR *proc = opendir("/proc");
	int others = 0;

	for (const struct dirent *entry; proc && (entry = readdir(proc));) {
		int pid = atoi(entry->d_name);

		others += pid > 1 && pid != getpid() && pid != getppid();
	}
	if (proc)
		closedir(proc);
	return others;
}

static int exit_with_seven(void *data)
{
	(void)data;
	_exit(7);
}

/* A child that PID 1 has to reap, and that is not the command. */
static int become_sibling(void *data)
{
	long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0L, 0L, 0L, 0L);

	if (pid == 0)
		exit_with_seven(data);
	return pid < 0 ? errno : 0;
}

static int kill_everybody(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		for (;;)
			pause();
	if (kill(-1, SIGKILL) != 0)
		return errno;
	return waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? 0 : ECHILD;
}

int main(int argc, char **argv)
{
	Probe probe = probe_begin(argc, argv);

	for (int i = 0; i < probe.argc; i++)
		try_foreign(&probe, atoi(probe.argv[i]));
	if (!probe.outside)
		probe_that(&probe, "no other process is there", count_others() == 0);
	try_own(&probe);
#ifdef __x86_64__
	unsigned long long umount = SYS_umount2, clone3 = SYS_clone3, getpid_call = SYS_getpid;

	probe_check(&probe, "umount2 by a tracer's hand", (Expected){ "EPERM", "!EPERM" },
		    probe_in_child(exchange_call, &umount));
	probe_check(&probe, "clone3 by a tracer's hand", (Expected){ "ENOSYS", "!ENOSYS" },
		    probe_in_child(exchange_call, &clone3));
	probe_check(&probe, "getpid by a tracer's hand", ALLOWED,
		    probe_in_child(exchange_call, &getpid_call));
#endif
	/* for root; EINVAL from a kernel without checkpointing */
	probe_check(&probe, "a tracer suspends the filter",
		    (Expected){ "EPERM|EINVAL", geteuid() == 0 ? "0|EINVAL" : "EPERM|EINVAL" },
		    probe_in_child(suspend_filter, NULL));
	if (!probe.outside) {
		probe_check(&probe, "a sibling by clone", ALLOWED, become_sibling(NULL));
		/* all but itself and PID 1; who looks from outside finds everybody else alive */
		probe_check(&probe, "kill everybody", ALLOWED, kill_everybody());
	}
	return probe_end(&probe);
}
