/* One command of a session, seen from the supervisor; see session.h.
 *
 * Its init's pidfd is the only word on its end: readable means that the kernel has ended the whole pid
 * namespace. How it ended was told on the exec's own socket before; when nothing was told, it was
 * killed. The other end of that socket is exec init's: closing ours kills the exec, so none can outlive
 * its handle. */
#include "executor/session-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/syscall-wrap.h"
#include "executor/exec-payload.h"
#include "executor/packet.h"
#include "executor/stage.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ANSWER_MS 10000
#define DIE_MS	  2000

struct ExrExec {
	ExrSession *session; /* borrowed; it outlives its execs */
	int stdin_fd;
	int stdout_fd;
	int stderr_fd;
	int control_fd;
	int pidfd;
	bool killed;
	ExrGateway *gateway; /* a reference, when it has been told of the start */
	ExrBoundary boundary;
	gint64 kill_time_us;
	char *program; /* for messages */
	char *cwd;
};

/* Their ends of the pipes, and what else is sent. */
typedef struct {
	int payload;
	int control;
	int out;
	int err;
	int in;
} Sent;

static void exec_free(ExrExec *exec)
{
	if (!exec)
		return;
	if (exec->gateway)
		(void)exr_gateway_exec_ended(exec->gateway, &exec->boundary);
	exr_gateway_unref(exec->gateway);
	fd_close(&exec->stdin_fd);
	fd_close(&exec->stdout_fd);
	fd_close(&exec->stderr_fd);
	fd_close(&exec->control_fd);
	fd_close(&exec->pidfd);
	g_free(exec->program);
	g_free(exec->cwd);
	g_free(exec);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrExec, exec_free)

static void sent_close(Sent *sent)
{
	fd_close(&sent->payload);
	fd_close(&sent->control);
	fd_close(&sent->out);
	fd_close(&sent->err);
	fd_close(&sent->in);
}

/* Ours is non-blocking and above 2. Theirs is the sandbox's user's, so that a command can open
 * /dev/stdout, which asks for permission anew. */
static int make_pipe(const ExrSession *session, bool ours_reads, int *ret_ours, int *ret_theirs)
{
	FD_AUTO ours = -1;
	FD_AUTO theirs = -1;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	ours = fds[ours_reads ? 0 : 1];
	theirs = fds[ours_reads ? 1 : 0];
	if (ours < 3) {
		int moved = fd_dup(ours);

		if (moved < 0)
			return moved;
		fd_close(&ours);
		ours = moved;
	}
	if ((r = fd_set_nonblock(ours, true)) < 0)
		return r;
	if (session->identity.lent &&
	    fchown(theirs, session->identity.outside_uid, session->identity.outside_gid) != 0)
		return -errno;
	*ret_ours = fd_steal(&ours);
	*ret_theirs = fd_steal(&theirs);
	return 0;
}

static int make_fds(const ExrSession *session, const ExrRequest *request, ExrExec *exec, Sent *sent)
{
	int pair[2], r;

	if (!request->stdin_null && (r = make_pipe(session, false, &exec->stdin_fd, &sent->in)) < 0)
		return r;
	if ((r = make_pipe(session, true, &exec->stdout_fd, &sent->out)) < 0 ||
	    (r = make_pipe(session, true, &exec->stderr_fd, &sent->err)) < 0 ||
	    (r = exr_socketpair(SOCK_SEQPACKET, pair)) < 0)
		return r;
	exec->control_fd = pair[0];
	sent->control = pair[1];
	sent->payload = exr_exec_payload_new(request, &session->policy->limits);
	return sent->payload < 0 ? sent->payload : 0;
}

static int send_request(const ExrSession *session, const Sent *sent)
{
	WireMessage message = { .type = WIRE_EXEC };
	int fds[WIRE_MAX_FDS] = { sent->payload, sent->control, sent->out, sent->err, sent->in };

	return packet_send(session->init_socket, &message, fds, sent->in >= 0 ? 5 : 4);
}

/* An init that does not answer is of no more use: it would answer the next request with this one's. */
static int await_start(ExrSession *session, ExrExec *exec, ExrError *error)
{
	WireMessage message;
	int fds[WIRE_MAX_FDS];
	size_t fd_count = 0;
	int r = packet_receive(session->init_socket, ANSWER_MS, &message, fds, &fd_count);

	if (r == 0 && message.type == WIRE_STARTED && fd_count == 1) {
		exec->pidfd = fds[0];
		return 0;
	}
	for (size_t i = 0; i < fd_count; i++)
		fd_close(&fds[i]);
	if (r == 0 && message.type == WIRE_FAILED)
		return exr_session_told(&message, NULL, error);
	session->dead = true;
	return exr_error_set(error, "session-closed", "request", r < 0 ? -r : EBADMSG,
			     "the sandbox's init does not answer: %s",
			     errno_text(r < 0 ? -r : EBADMSG));
}

static const char *request_code(int r)
{
	if (r == -E2BIG)
		return "program-not-executable"; /* as execve says of it */
	return r == -EINVAL ? "request-invalid" : "internal";
}

int exr_exec_start(ExrSession *session, const ExrRequest *request, ExrExec **ret_exec,
		   ExrError *reterr_error)
{
	g_autoptr(ExrExec) exec = g_new0(ExrExec, 1);
	Sent sent = { .payload = -1, .control = -1, .out = -1, .err = -1, .in = -1 };
	int r;

	exec->session = session;
	exec->stdin_fd = exec->stdout_fd = exec->stderr_fd = exec->control_fd = exec->pidfd = -1;
	if (!exr_session_alive(session))
		return exr_error_set(reterr_error, "session-closed", "request", ESHUTDOWN,
				     "the session has ended: its gateway or its sandbox is gone");
	/* The gateway works while the fds are made; the command sees what was on the host when we were called. */
	if (exr_gateway_exec_starts(session->gateway))
		exec->gateway = exr_gateway_ref(session->gateway);
	r = make_fds(session, request, exec, &sent);
	if (exec->gateway)
		(void)exr_gateway_await_start(exec->gateway, &exec->boundary);
	if (r == 0)
		r = send_request(session, &sent);
	sent_close(&sent);
	if (r < 0)
		return exr_error_set(reterr_error, request_code(r), "request", -r,
				     "the command's request: %s", errno_text(-r));
	exec->program = g_strdup(request->argv[0]);
	exec->cwd = g_strdup(request->cwd);
	if ((r = await_start(session, exec, reterr_error)) < 0)
		return r;
	*ret_exec = g_steal_pointer(&exec);
	return 0;
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

int exr_exec_signal(ExrExec *exec, int sig)
{
	WireMessage message = { .type = WIRE_SIGNAL, .value = sig };
	int r;

	if (exr_wait_readable(exec->pidfd, 0) == 0)
		return -ESRCH;
	r = packet_send(exec->control_fd, &message, NULL, 0);
	return r == -EPIPE ? -ESRCH : r;
}

void exr_exec_kill(ExrExec *exec)
{
	if (exec->killed)
		return;
	exec->killed = true;
	exec->kill_time_us = g_get_monotonic_time();
	(void)sys_pidfd_send_signal(exec->pidfd, SIGKILL);
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
		exr_exec_kill(exec);
	}
	spent_ms = (g_get_monotonic_time() - exec->kill_time_us) / 1000;
	if (exr_wait_readable(exec->pidfd, (int)CLAMP(DIE_MS - spent_ms, 0, DIE_MS)) == 0)
		return 0;
	exec->session->dead = true;
	exr_gateway_kill(exec->session->gateway);
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
	ExrEnd end = { .cpu_ms = -1, .max_rss_bytes = -1, .left_over_killed = -1 };
	WireMessage message;
	int r = wait_for_end(exec);

	if (r == 0 && packet_receive(exec->control_fd, 0, &message, NULL, NULL) == 0)
		fill_end(exec, &message, &end);
	else
		end.signal = SIGKILL;
	*ret_end = end;
	return r;
}

void exr_end_clear(ExrEnd *end)
{
	exr_error_clear(&end->error);
	memset(end, 0, sizeof *end);
}
