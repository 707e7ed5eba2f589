/* The start of a command; see session.h, and exec.c for what follows.
 *
 * What it needs is made while the gateway catches up with the host, and is sent to an init that was kept
 * ready for it, or to a new one. */
#include "executor/exec-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/syscall-wrap.h"
#include "executor/exec-payload.h"
#include "executor/packet.h"
#include "executor/prepared.h"
#include "executor/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* What is sent: their ends of the pipes, and the payload. */
typedef struct {
	int payload;
	int out;
	int err;
	int in;
} Sent;

static void sent_close(Sent *sent)
{
	fd_close(&sent->payload);
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

static int make_pipes(const ExrSession *session, const ExrRequest *request, ExrExec *exec,
		      Sent *sent)
{
	int r;

	if (!request->stdin_null && (r = make_pipe(session, false, &exec->stdin_fd, &sent->in)) < 0)
		return r;
	if ((r = make_pipe(session, true, &exec->stdout_fd, &sent->out)) < 0)
		return r;
	if (request->merge_stderr)
		r = sent->err = fd_dup(sent->out);
	else
		r = make_pipe(session, true, &exec->stderr_fd, &sent->err);
	return MIN(r, 0);
}

static int make_fds(const ExrSession *session, const ExrRequest *request, ExrExec *exec, Sent *sent)
{
	int r;

	/* A terminal is made inside. */
	if (!request->tty && (r = make_pipes(session, request, exec, sent)) < 0)
		return r;
	sent->payload = exr_exec_payload_new(request, &session->policy->limits, exec->nproc);
	return sent->payload < 0 ? sent->payload : 0;
}

/* To its init, on its own socket. Theirs alone from now on: what exec init closes is closed. */
static int send_request(const ExrExec *exec, Sent *sent)
{
	WireMessage message = { .type = WIRE_EXEC };
	int fds[WIRE_MAX_FDS] = { sent->payload, sent->out, sent->err, sent->in };
	size_t count = sent->in >= 0 ? 4 : sent->out >= 0 ? 3 : 1;
	int r = packet_send(exec->control_fd, &message, fds, count);

	if (r == 0)
		sent_close(sent);
	return r;
}

/* Whom the kernel kills when the session's memory is full is its choice: init is small, but it is there. */
static void hint_at_kills(const ExrSession *session, ExrError *error)
{
	if (exr_session_limits_hit(session->limits) & EXR_LIMIT_MEMORY)
		exr_error_set_hint(error, "limits.memory_bytes was used up, and the kernel killed "
					  "processes for it");
}

static int refuse(const ExrSession *session, ExrError *error)
{
	int r = exr_error_set(error, "session-closed", "request", ESHUTDOWN,
			      "the session has ended: its gateway or its sandbox is gone");

	hint_at_kills(session, error);
	return r;
}

/* Two descriptors above 2, so that each of the two streams can be closed by itself. */
static int take_terminal(ExrExec *exec, int master)
{
	exec->stdin_fd = fd_dup(master);
	exec->stdout_fd = fd_dup(master);
	if (exec->stdin_fd < 0)
		return exec->stdin_fd;
	exec->has_terminal = exec->stdout_fd >= 0;
	return MIN(exec->stdout_fd, 0);
}

/* One message of those that an exec begins with. -ECANCELED: init could not make its process, as exec->first says. */
static int take_first(ExrExec *exec, int timeout_ms)
{
	int fds[WIRE_MAX_FDS];
	size_t fd_count = 0;
	WireMessage message;
	int r = packet_receive(exec->control_fd, timeout_ms, &message, fds, &fd_count);

	if (r < 0)
		return r;
	if (message.type == WIRE_STARTED && fd_count > 0 && exec->pidfd < 0) {
		exec->pidfd = fds[--fd_count];
	} else if (message.type == WIRE_PREPARED) {
		exec->is_prepared = true;
		if (message.errnum != 0)
			atomic_store(&exec->session->stays, true);
		exec->in_gateway.pid_namespace = message.number;
	} else if (message.type == WIRE_COMMAND && fd_count > 0 && exec->command_pidfd < 0) {
		exec->command_pidfd = fds[--fd_count];
	} else if (message.type == WIRE_TERMINAL && fd_count > 0 && !exec->has_terminal) {
		r = take_terminal(exec, fds[0]);
	} else {
		exec->has_first = message.type != WIRE_NOT_STARTED;
		exec->first = message;
		r = exec->has_first ? 0 : -ECANCELED;
	}
	while (fd_count > 0)
		fd_close(&fds[--fd_count]);
	return r;
}

/* Its init exists, and is ready or has said why not. For each of the two timeout_ms. */
static int await_init(ExrExec *exec, int timeout_ms)
{
	int r = 0;

	while (r == 0 && (exec->pidfd < 0 || !(exec->is_prepared || exec->has_first)))
		r = take_first(exec, timeout_ms);
	return r;
}

/* As if its init had said so. */
static void fail_start(ExrExec *exec, ExrStage stage, int r)
{
	exec->has_first = true;
	exec->first = (WireMessage){ .type = WIRE_FAILED, .stage = stage, .errnum = -r };
	exr_exec_kill(exec);
}

/* The command's process exists, and its terminal if there is one; or it is known that they could not be
 * made. What does not come in time is not waited for any more: it would be taken for the end. */
static void await_command(ExrExec *exec, const ExrRequest *request)
{
	int r = 0;

	while (r == 0 && !exec->has_first &&
	       ((request->is_live && exec->command_pidfd < 0) ||
		(request->tty && !exec->has_terminal)))
		r = take_first(exec, ANSWER_MS);
	if (exec->has_first ||
	    (r != -EMFILE && (request->tty ? exec->has_terminal : r != -ETIMEDOUT)))
		return;
	fail_start(exec, request->tty ? EXR_STAGE_TERMINAL : EXR_STAGE_EXEC_INIT,
		   r < 0 ? r : -EBADMSG);
}

/* How long a spare may still take to be ready. Longer than on any machine that works: where it hangs, on the way to the
 * directory that it is to wait in, the next ones do not go there. */
#define SPARE_MS 500

/* false: the spare was of no use (it may have met a limit that is no more reached, was killed, or hangs), and is gone. */
static bool start_with_spare(ExrExec *exec, Sent *sent, int take_spare)
{
	int r;

	if (take_spare < 0)
		return false;
	exec->control_fd = take_spare;
	r = await_init(exec, SPARE_MS);
	if (r == 0 && !exec->has_first && send_request(exec, sent) == 0)
		return true;
	if (r == -ETIMEDOUT)
		atomic_store(&exec->session->stays, true);
	if (exec->pidfd >= 0)
		(void)sys_pidfd_send_signal(exec->pidfd, SIGKILL);
	exec->has_first = exec->is_prepared = false;
	fd_close(&exec->control_fd);
	fd_close(&exec->pidfd);
	return false;
}

/* A new init for it: the request is there before that init is. */
static int ask_anew(ExrExec *exec, Sent *sent, bool for_terminal)
{
	ExrSession *session = exec->session;
	int r = -ESHUTDOWN;

	pthread_mutex_lock(&session->lock);
	if (!session->ended && !atomic_load(&session->dead))
		r = exr_prepared_ask(session,
				     for_terminal ? WIRE_PREPARE_TERMINAL : WIRE_PREPARE_STAY,
				     &exec->control_fd);
	pthread_mutex_unlock(&session->lock);
	return r < 0 ? r : send_request(exec, sent);
}

static int start_anew(ExrExec *exec, Sent *sent, bool for_terminal, ExrError *error)
{
	ExrSession *session = exec->session;
	int r = ask_anew(exec, sent, for_terminal);

	if (r == -ESHUTDOWN)
		return refuse(session, error);
	/* Where its init has died by now, what that has said tells why. */
	if (r < 0 && (r != -EPIPE || exec->control_fd < 0))
		return exr_error_set(error, r == -EPIPE ? "session-closed" : "internal", "request",
				     -r, "the command's request: %s", errno_text(-r));
	if ((r = await_init(exec, ANSWER_MS)) == 0)
		return 0;
	if (r == -ECANCELED) {
		r = exr_session_told(&exec->first, NULL, error);
		exr_exec_hint_at_limits(session, &exec->first, error);
		return r;
	}
	/* This command ends with our end of its socket. */
	if (r == -EMFILE)
		return exr_error_set(error, "internal", "request", EMFILE,
				     "the command's start: %s", errno_text(EMFILE));
	/* Its init is there, and was held up, or killed before it was ready: with all of the session, or alone. */
	if (exec->pidfd >= 0) {
		bool killed = r == -EPIPE || r == -ECONNRESET;

		if (!killed || exr_session_alive(session))
			fail_start(exec, EXR_STAGE_EXEC_INIT, killed ? -ESRCH : r);
		return 0;
	}
	exr_session_set_dead(session);
	r = exr_error_set(error, "session-closed", "request", -r,
			  "the sandbox's init does not answer: %s", errno_text(-r));
	hint_at_kills(session, error);
	return r;
}

/* Where nothing is started: what would be said of it is made up. */
static int pretend(ExrExec *exec, Sent *sent, ExrError *error)
{
	FD_AUTO theirs = -1;
	int pair[2];
	int r = exr_socketpair(SOCK_SEQPACKET, pair);

	if (r == 0) {
		exec->control_fd = pair[0];
		theirs = pair[1];
		r = exec->session->backend->answer(theirs);
	}
	sent_close(sent);
	if (r == 0)
		r = await_init(exec, ANSWER_MS);
	if (r < 0)
		return exr_error_set(error, "internal", "request", -r, "the command's request: %s",
				     errno_text(-r));
	return 0;
}

/* What is on the host by now, or was when we were called, is in the view. */
static int let_go(ExrExec *exec, ExrQuestion *take_question, ExrError *error)
{
	WireMessage message = { .type = WIRE_GO };
	int r = 0;

	if (take_question)
		(void)exr_gateway_await_start(exec->gateway, take_question);
	if (exec->control_fd >= 0 && !exec->session->backend->is_pretense)
		r = packet_send(exec->control_fd, &message, NULL, 0);
	/* Who is not there any more has said why, or was killed. */
	if (r < 0 && r != -EPIPE)
		return exr_error_set(error, "internal", "request", -r, "the command's start: %s",
				     errno_text(-r));
	return 0;
}

static int start(ExrExec *exec, Sent *sent, int take_spare, const ExrRequest *request,
		 ExrError *error)
{
	if (exec->session->backend->is_pretense)
		return pretend(exec, sent, error);
	return start_with_spare(exec, sent, take_spare)
		       ? 0
		       : start_anew(exec, sent, request->tty, error);
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
	Sent sent = { .payload = -1, .out = -1, .err = -1, .in = -1 };
	ExrQuestion *question;
	ExrRequest pretended;
	int spare, let_go_r, r;

	exec->stdin_fd = exec->stdout_fd = exec->stderr_fd = exec->control_fd = exec->pidfd =
		exec->command_pidfd = -1;
	exec->session = exr_session_ref(session);
	exec->gateway = session->gateway ? exr_gateway_ref(session->gateway) : NULL;
	if (!exr_session_alive(session))
		return refuse(session, reterr_error);
	if (session->backend->is_pretense) {
		if (request->is_live)
			return exr_error_set(reterr_error, "request-invalid", "request", ENOTSUP,
					     "backend \"%s\" starts no programs",
					     session->backend->name);
		pretended = *request;
		pretended.tty = false; /* nobody is there to use it */
		request = &pretended;
	}
	/* The gateway works while the rest is made; the command sees what was on the host when we were called. */
	exec->told_gateway = exec->gateway != NULL;
	question = exec->gateway ? exr_gateway_exec_starts(exec->gateway, &exec->in_gateway) : NULL;
	/* The spare is among the session's processes already, and a new init will be in its place. */
	spare = request->tty ? -1 : exr_prepared_take_spare(session);
	if (spare < 0)
		exr_session_limits_hold(session->limits);
	exec->limits_told = true;
	exr_session_limits_exec_starts(session->limits, &exec->limits_before, &exec->nproc);
	r = make_fds(session, request, exec, &sent);
	if (r < 0) {
		fd_close(&spare);
		r = exr_error_set(reterr_error, request_code(r), "request", -r,
				  "the command's request: %s", errno_text(-r));
	} else {
		r = start(exec, &sent, spare, request, reterr_error);
	}
	sent_close(&sent);
	/* What is told as not started is not let go: its init, which may have its request, ends with its socket. */
	if (r < 0)
		fd_close(&exec->control_fd);
	if ((let_go_r = let_go(exec, question, reterr_error)) < 0 && r == 0)
		r = let_go_r;
	if (r < 0)
		return r;
	exec->program = g_strdup(request->argv[0]);
	exec->cwd = g_strdup(request->cwd);
	exec->id = (int)(atomic_fetch_add(&session->last_exec, 1) + 1);
	await_command(exec, request);
	*ret_exec = g_steal_pointer(&exec);
	return 0;
}
