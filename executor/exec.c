/* One command of a session, seen from the supervisor, once it is started (exec-start.c); see session.h.
 *
 * Its init's pidfd is the only word on its end: readable means that the kernel has ended the whole pid
 * namespace. How it ended was told on the exec's own socket before; when nothing was told, it was
 * killed. The other end of that socket is exec init's: closing ours kills the exec, so none can outlive
 * its handle. */
#include "executor/exec-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/syscall-wrap.h"
#include "executor/packet.h"
#include "executor/prepared.h"
#include "executor/stage.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define DIE_MS 2000

/* The gateway is told, once. is_gone: none of its processes runs any more. */
static void tell_end(ExrExec *exec, bool is_gone)
{
	if (exec->told_gateway)
		exr_gateway_exec_ends(exec->gateway, &exec->in_gateway, is_gone);
}

/* What the gateway knows of it, once; NULL: nothing in time. */
static JsonObject *end_boundary(ExrExec *exec, bool is_gone)
{
	if (!exec->told_gateway)
		return NULL;
	tell_end(exec, is_gone);
	exec->told_gateway = false;
	return exr_gateway_await_end(exec->gateway, &exec->in_gateway);
}

/* The limits that were hit since its start, once. Its processes are gone. */
static unsigned int end_limits(ExrExec *exec)
{
	if (!exec->limits_told)
		return 0;
	exec->limits_told = false;
	exr_session_limits_release(exec->session->limits);
	return exr_session_limits_hit_since(exec->session->limits, &exec->limits_before);
}

void exr_exec_free(ExrExec *exec)
{
	JsonObject *observed;

	if (!exec)
		return;
	fd_close(&exec->stdin_fd);
	fd_close(&exec->stdout_fd);
	fd_close(&exec->stderr_fd);
	fd_close(&exec->control_fd); /* a command that still runs dies of it */
	fd_close(&exec->pidfd);
	fd_close(&exec->command_pidfd);
	(void)end_limits(exec);
	observed = end_boundary(exec, false);
	g_clear_pointer(&observed, json_object_unref);
	exr_gateway_unref(exec->gateway);
	exr_session_unref(exec->session);
	g_free(exec->program);
	g_free(exec->cwd);
	g_free(exec);
}
void exr_exec_hint_at_limits(const ExrSession *session, const WireMessage *failed, ExrError *error)
{
	const PolicyLimits *limits = &session->policy->limits;

	if (failed->errnum == EAGAIN && limits->processes)
		exr_error_set_hint(error, "other commands of the session have all the processes "
					  "that limits.processes allows");
	if (failed->errnum == ENOMEM && limits->memory_bytes)
		exr_error_set_hint(error, "limits.memory_bytes may be too little");
}

int exr_exec_stdin_fd(const ExrExec *exec)
{
	return exec->stdin_fd;
}

int exr_exec_stdout_fd(const ExrExec *exec)
{
	return exec->stdout_fd;
}

int exr_exec_stderr_fd(const ExrExec *exec)
{
	return exec->stderr_fd;
}

void exr_exec_close_stdin(ExrExec *exec)
{
	fd_close(&exec->stdin_fd);
}

void exr_exec_close_stdout(ExrExec *exec)
{
	fd_close(&exec->stdout_fd);
}

void exr_exec_close_stderr(ExrExec *exec)
{
	fd_close(&exec->stderr_fd);
}

int exr_exec_end_fd(const ExrExec *exec)
{
	return exec->pidfd;
}

int exr_exec_status_fd(const ExrExec *exec)
{
	return exec->control_fd;
}

/* Whoever was in front there may have gone. */
static bool has_foreground(const ExrExec *exec)
{
	pid_t group = 0;

	return exec->has_terminal && exec->stdout_fd >= 0 &&
	       ioctl(exec->stdout_fd, TIOCGPGRP, &group) == 0 && group != 0;
}

int exr_exec_signal(ExrExec *exec, int sig)
{
	WireMessage message = { .type = WIRE_SIGNAL, .value = sig };
	int r;

	if (exr_wait_readable(exec->pidfd, 0) == 0)
		return -ESRCH;
	if ((sig == SIGINT || sig == SIGQUIT) && has_foreground(exec))
		return ioctl(exec->stdout_fd, TIOCSIG, sig) != 0 ? -errno : 0;
	r = packet_send(exec->control_fd, &message, NULL, 0);
	exec->signaled |= r == 0;
	return r == -EPIPE ? -ESRCH : r;
}

int exr_exec_resize(ExrExec *exec, uint16_t rows, uint16_t columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };

	if (!exec->has_terminal || exec->stdout_fd < 0)
		return -ENOTTY;
	return ioctl(exec->stdout_fd, TIOCSWINSZ, &size) != 0 ? -errno : 0;
}

int exr_exec_await_program(ExrExec *exec)
{
	int r;

	if (exec->has_first)
		return -ECHILD;
	r = packet_receive(exec->control_fd, ANSWER_MS, &exec->first, NULL, NULL);
	if (r == 0 && exec->first.type == WIRE_RUNNING)
		return 0;
	exec->has_first = r == 0;
	return r == -ETIMEDOUT ? r : -ECHILD;
}

int exr_exec_command_pidfd(const ExrExec *exec)
{
	return exec->command_pidfd;
}

void exr_exec_kill(ExrExec *exec)
{
	if (exec->killed)
		return;
	exec->killed = true;
	exec->kill_time_us = g_get_monotonic_time();
	/* Its init kills them; killed itself, it would leave that to the session's. */
	if (exec->session->backend->is_plain)
		(void)shutdown(exec->control_fd, SHUT_WR);
	else
		(void)sys_pidfd_send_signal(exec->pidfd, SIGKILL);
}

/* An init that was killed before it had read its request has started nothing. When that was the end of the session, it is
 * told as that. */
static bool take_reset(ExrExec *exec)
{
	if (exec->killed || exec->signaled || !exr_session_alive(exec->session))
		return false;
	exec->first = (WireMessage){
		.type = WIRE_FAILED,
		.stage = EXR_STAGE_EXEC_INIT,
		.errnum = ESRCH,
	};
	return true;
}

/* The end, if exec init has told it by now. */
static bool take_end(ExrExec *exec)
{
	int r = 0;

	while (!exec->has_first && r == 0) {
		r = packet_receive(exec->control_fd, 0, &exec->first, NULL, NULL);
		if (r == -ECONNRESET)
			exec->has_first = take_reset(exec);
		else
			exec->has_first = r == 0 && (exec->first.type == WIRE_ENDED ||
						     exec->first.type == WIRE_FAILED);
	}
	return exec->has_first;
}

/* That init takes as long to end as its command to start. It is waited for only where it counts. */
bool exr_exec_take_told(ExrExec *exec)
{
	exec->is_gone = take_end(exec) && exec->first.type == WIRE_ENDED &&
			exec->first.number != 0 &&
			!exr_session_limits_count_processes(exec->session->limits);
	if (exec->is_gone)
		tell_end(exec, true);
	exr_exec_kill(exec);
	return exec->is_gone;
}

/* SIGKILL reaches every process but one that waits in a request which the gateway does not answer:
 * killing the gateway ends that too. */
static int wait_for_end(ExrExec *exec)
{
	gint64 spent_ms;

	if (!exec->killed) {
		/* However long the command takes; but not the rest of its processes. */
		struct pollfd fds[] = {
			{ .fd = exec->control_fd, .events = POLLIN },
			{ .fd = exec->pidfd, .events = POLLIN },
		};

		while (poll(fds, G_N_ELEMENTS(fds), -1) < 0 && errno == EINTR)
			;
		(void)exr_exec_take_told(exec);
	}
	if (exec->is_gone)
		return 0;
	spent_ms = (g_get_monotonic_time() - exec->kill_time_us) / 1000;
	if (exr_wait_readable(exec->pidfd, (int)CLAMP(DIE_MS - spent_ms, 0, DIE_MS)) == 0)
		return 0;
	exr_session_set_dead(exec->session);
	(void)sys_pidfd_send_signal(exec->pidfd, SIGKILL);
	if (exec->gateway)
		exr_gateway_kill(exec->gateway);
	return exr_wait_readable(exec->pidfd, DIE_MS) == 0 ? 0 : -EIO;
}

static const char *subject_of(const ExrExec *exec, unsigned int stage)
{
	if (stage == EXR_STAGE_CWD)
		return exec->cwd;
	return stage == EXR_STAGE_EXEC || stage == EXR_STAGE_INTERPRETER ? exec->program : NULL;
}

static void fill_end(const ExrExec *exec, const WireMessage *message, ExrEnd *end)
{
	if (message->type == WIRE_FAILED) {
		end->start_failed = true;
		(void)exr_session_told(message, subject_of(exec, message->stage), &end->error);
		exr_exec_hint_at_limits(exec->session, message, &end->error);
		return;
	}
	if (WIFEXITED(message->value))
		end->exit_code = WEXITSTATUS(message->value);
	else
		end->signal = WTERMSIG(message->value);
	end->cpu_ms = message->cpu_us / 1000;
	end->max_rss_bytes = message->max_rss_kib * 1024;
	end->left_over_killed = message->left_over;
}

int exr_exec_finish(ExrExec *take_exec, ExrEnd *ret_end)
{
	g_autoptr(ExrExec) exec = take_exec;
	ExrEnd end = {
		.exec_id = exec->id, .cpu_ms = -1, .max_rss_bytes = -1, .left_over_killed = -1
	};
	int r = wait_for_end(exec);

	end.told = r == 0 && take_end(exec);
	if (end.told)
		fill_end(exec, &exec->first, &end);
	else
		end.signal = SIGKILL;
	/* Not while it ran: what it takes to make one is the command's till then. */
	exr_prepared_keep_spare(exec->session);
	end.limits_hit = end_limits(exec);
	end.observed = end_boundary(exec, r == 0);
	*ret_end = end;
	return r;
}

void exr_end_clear(ExrEnd *end)
{
	exr_error_clear(&end->error);
	g_clear_pointer(&end->observed, json_object_unref);
	memset(end, 0, sizeof *end);
}
