/* An exec's init while its command runs; see init-exec.c.
 *
 * It exits when the command does, when the supervisor kills it, and when the supervisor's end of its socket is
 * closed. */
#include "executor/init-exec.h"

#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* The end of a pid namespace kills what is in it; without one it is for us to do. */
void exec_init_leave(const ExecInit *exec)
{
	if (exec_init_is_plain(exec))
		init_plain_kill(false);
	_exit(1);
}

static _Noreturn void end_with(const ExecInit *exec, const WireMessage *message)
{
	if (exec_init_is_plain(exec))
		init_plain_kill(false);
	(void)packet_send(exec->control_fd, message, NULL, 0);
	_exit(0);
}

void exec_init_fail(const ExecInit *exec, unsigned int stage, int errnum)
{
	WireMessage message = {
		.type = WIRE_FAILED, .stage = stage, .errnum = errnum, .value = -1
	};

	end_with(exec, &message);
}

void exec_init_take_signals(const ExecInit *exec)
{
	struct signalfd_siginfo info;

	while (read(exec->signal_fd, &info, sizeof info) > 0)
		if (info.ssi_signo == SIGTERM)
			exec_init_leave(exec);
}

static void count_living(const InitStat *stat, void *count)
{
	*(int *)count += stat->pid != 1 && stat->lives;
}

/* Processes of this pid namespace but ourselves, which are stopped. -1 when it cannot be known. */
static int count_left_over(int proc_fd)
{
	int count = 0;

	return init_stat_each(proc_fd, count_living, &count) < 0 ? -1 : count;
}

/* The command has ended. Its failure to start, if that is what it was, is in the status pipe. */
static _Noreturn void end_of_command(const ExecInit *exec, int status)
{
	WireMessage message = { .type = WIRE_ENDED, .value = status };
	ChildFailure failure;
	struct rusage usage;
	bool has_more;

	if (read(exec->status_fd, &failure, sizeof failure) == sizeof failure)
		exec_init_fail(exec, failure.stage, failure.errnum);
	/* The parent of all that have lost theirs, and without a child: nothing is left. */
	has_more = waitpid(-1, NULL, WNOHANG | __WALL) >= 0;
	message.number = !has_more && !exec_init_is_plain(exec);
	/* Or who makes processes faster than we count and reap them would hold up the end. No fork gets past this. */
	if (has_more && !exec_init_is_plain(exec))
		(void)kill(-1, SIGSTOP);
	while (has_more && waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
	if (exec_init_is_plain(exec)) {
		message.left_over = init_plain_count();
		init_plain_kill(false);
	}
	if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
		message.cpu_us =
			(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) +
			usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
		message.max_rss_kib = usage.ru_maxrss;
	}
	if (has_more && !exec_init_is_plain(exec))
		message.left_over = count_left_over(exec->proc_fd);
	end_with(exec, &message);
}

/* Who has asked to be traced by its parent is stopped before each signal, and after its execve. We are no debugger: it gets
 * its signal, and is not traced any more. */
static void untrace(pid_t pid, int status)
{
	long sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);

	(void)ptrace(PTRACE_DETACH, pid, NULL, (void *)sig);
}

/* Orphans are our children: without any, nothing is left. */
static void reap(ExecInit *exec)
{
	bool waits = exec->request->flags & WIRE_EXEC_WAIT_ALL;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (WIFSTOPPED(status)) {
			untrace(pid, status);
			continue;
		}
		if (pid != exec->command)
			continue;
		if (!waits)
			end_of_command(exec, status);
		exec->command_ended = true;
		exec->status = status;
	}
	/* No later signal would tell what was not learnt now. */
	if (pid < 0 && errno != ECHILD)
		exec_init_leave(exec);
	if (pid < 0 && exec->command_ended)
		end_of_command(exec, exec->status);
}

/* The status pipe of a live command has ended without a word: it is the program now. */
static void tell_running(ExecInit *exec)
{
	WireMessage message = { .type = WIRE_RUNNING };
	struct pollfd p = { .fd = exec->status_fd, .events = POLLIN };

	if (!(exec->request->flags & WIRE_EXEC_LIVE) || exec->told_running || poll(&p, 1, 0) <= 0 ||
	    (p.revents & POLLIN))
		return;
	exec->told_running = true;
	if (packet_send(exec->control_fd, &message, NULL, 0) < 0)
		exec_init_leave(exec);
}

static void pass_signal_on(const ExecInit *exec)
{
	WireMessage message;
	int r = packet_receive(exec->control_fd, 0, &message, NULL, NULL);

	if (r == -ETIMEDOUT)
		return;
	if (r < 0)
		exec_init_leave(
			exec); /* the supervisor let go of this exec: everything of it dies */
	if (message.type != WIRE_SIGNAL)
		return;
	/* Until the command has made its own session it has no group of its own; once it was reaped its number may be
	 * another's. */
	if (kill(-exec->command, message.value) != 0 && !exec->command_ended)
		(void)kill(exec->command, message.value);
}

void exec_init_watch(ExecInit *exec)
{
	bool live = exec->request->flags & WIRE_EXEC_LIVE;
	struct pollfd p[] = {
		{ .fd = exec->control_fd, .events = POLLIN },
		{ .fd = exec->signal_fd, .events = POLLIN },
		{ .fd = live ? exec->status_fd : -1 },
	};

	for (;;) {
		if (poll(p, 3, -1) < 0) {
			if (errno == EINTR)
				continue;
			exec_init_leave(exec);
		}
		/* Before its end, which is told after it. */
		tell_running(exec);
		if (p[2].revents)
			p[2].fd = -1;
		if (p[1].revents) {
			exec_init_take_signals(exec);
			reap(exec);
		}
		if (p[0].revents)
			pass_signal_on(exec);
	}
}
