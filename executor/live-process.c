/* A started process; see live-process.h.
 *
 * The watcher thread owns the exec: kills reach it through an eventfd, and a signal is sent only under the lock that it
 * takes the exec away under. It calls nobody, so the last reference can wait for it. */
#include "executor/live-process.h"

#include "common/cond-util.h"
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/syscall-wrap.h"
#include "executor/outcome-internal.h"
#include "executor/relay-terminal.h"
#include "executor/request.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

struct ExrLive {
	int refs; /* atomic */
	ExrSession *session;
	GThread *watcher;	/* NULL: nothing was started */
	ExrOwnedOutcome *owned; /* complete once ended */
	int64_t timeout_ms, kill_grace_ms;
	int cancel_fd; /* an eventfd: end it, its grace being kept */
	int kill_fd;   /* an eventfd: end it at once */
	int end_fd;    /* an eventfd: it has ended */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	ExrExec *exec; /* NULL once it has ended */
	int streams[3];
	int pidfd;	   /* the command's */
	bool wait_timeout; /* a wait's deadline has killed it */
	int finish_result; /* once ended: exr_exec_finish()'s */
	bool ended;
};

static void *watch(void *data)
{
	ExrLive *live = data;
	ExrRelayConfig config = {
		.stdin_fd = -1,
		.out.fd = -1,
		.err.fd = -1,
		.signal_fd = -1,
		.cancel_fd = live->cancel_fd,
		.kill_fd = live->kill_fd,
		.ended_fd = exr_session_done_fd(live->session),
		.timeout_ms = live->timeout_ms,
		.kill_grace_ms = live->kill_grace_ms,
	};
	int64_t started = g_get_monotonic_time();
	ExrRelayEnd relay_end;
	ExrExec *exec;
	ExrEnd end;
	int r;

	exr_relay_run(live->exec, &config, &relay_end);
	/* Nobody signals it from here on. */
	pthread_mutex_lock(&live->lock);
	exec = g_steal_pointer(&live->exec);
	if (live->wait_timeout && relay_end.canceled) {
		relay_end.canceled = false;
		relay_end.timed_out = true;
	}
	pthread_mutex_unlock(&live->lock);
	live->finish_result = r = exr_exec_finish(exec, &end);
	exr_outcome_take_end(&live->owned->outcome, live->session, &relay_end, r, &end);
	live->owned->outcome.result.duration_ms = (g_get_monotonic_time() - started) / 1000;

	pthread_mutex_lock(&live->lock);
	live->ended = true;
	(void)eventfd_write(live->end_fd, 1);
	pthread_cond_broadcast(&live->changed);
	pthread_mutex_unlock(&live->lock);
	return NULL;
}

/* The pipes become the caller's: blocking, and no more closed with the exec. */
static int take_streams(ExrLive *live, ExrExec *exec)
{
	int (*const get[])(const ExrExec *) = { exr_exec_stdin_fd, exr_exec_stdout_fd,
						exr_exec_stderr_fd };

	for (int i = 0; i < 3; i++) {
		int fd = get[i](exec);

		if (fd < 0)
			continue;
		live->streams[i] = fd_dup(fd);
		if (live->streams[i] < 0)
			return live->streams[i];
		(void)fd_set_nonblock(live->streams[i], false);
	}
	exr_exec_close_stdin(exec);
	exr_exec_close_stdout(exec);
	exr_exec_close_stderr(exec);
	live->pidfd = exr_exec_command_pidfd(exec);
	if (live->pidfd >= 0)
		live->pidfd = fd_dup(live->pidfd);
	return 0;
}

static ExrLive *live_new(ExrSession *session, const ExrExecOptions *options)
{
	ExrLive *live = g_new0(ExrLive, 1);

	live->refs = 1;
	live->session = exr_session_ref(session);
	live->owned = (ExrOwnedOutcome *)exr_outcome_new(session);
	live->timeout_ms = exr_exec_timeout(session, options);
	live->kill_grace_ms = options->kill_grace_ms;
	live->streams[0] = live->streams[1] = live->streams[2] = live->pidfd = -1;
	live->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	live->kill_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	live->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&live->lock, NULL);
	cond_init(&live->changed);
	live->ended = true; /* nothing runs yet */
	return live;
}

static int fail(ExrError *error, int r, const char *what)
{
	return exr_error_set(error, "internal", "request", -r, "%s: %s", what, errno_text(-r));
}

static int start_watcher(ExrLive *live, ExrError *error)
{
	g_autoptr(GError) failed = NULL;

	live->ended = false;
	live->watcher = g_thread_try_new("stella-live", watch, live, &failed);
	if (live->watcher)
		return 0;
	live->ended = true;
	return fail(error, -EAGAIN, "no thread to watch the process");
}

/* What became of a program that was not executed, or was killed before. Takes the exec. */
static int explain(ExrExec *take_exec, int await_result, ExrError *error)
{
	ExrEnd end;
	int r;

	exr_exec_kill(take_exec);
	(void)exr_exec_finish(take_exec, &end);
	if (end.start_failed) {
		*error = end.error;
		end.error = (ExrError){ 0 };
		r = -error->errnum;
	} else if (await_result == -ETIMEDOUT) {
		r = exr_error_set(error, "setup-failed", "exec", ETIMEDOUT,
				  "the program was not executed in time: the view does not answer");
	} else {
		r = exr_error_set(error, "session-closed", "request", ESHUTDOWN,
				  "the session has ended: its gateway or its sandbox is gone");
	}
	exr_end_clear(&end);
	return r < 0 ? r : -EIO;
}

int exr_live_start(ExrSession *session, const ExrExecOptions *options, ExrLive **ret_live,
		   ExrError *reterr_error)
{
	g_autoptr(ExrLive) live = live_new(session, options);
	g_autoptr(ExrFrozenRequest) request = NULL;
	ExrExec *exec = NULL;
	int r;

	if (live->cancel_fd < 0 || live->kill_fd < 0 || live->end_fd < 0)
		return fail(reterr_error, -EMFILE, "descriptors of the process");
	if ((r = exr_request_freeze(session, options, &request, reterr_error)) < 0)
		return r;
	request->request.stdin_null = false;
	request->request.is_live = true;
	if ((r = exr_exec_start(session, &request->request, &exec, reterr_error)) < 0)
		return r;
	if ((r = exr_exec_await_program(exec)) < 0)
		return explain(exec, r, reterr_error);
	live->exec = exec;
	if ((r = take_streams(live, exec)) < 0)
		r = fail(reterr_error, r, "streams of the process");
	else
		r = start_watcher(live, reterr_error);
	if (r < 0)
		return r; /* the handle's end kills it */
	*ret_live = g_steal_pointer(&live);
	return 0;
}

ExrLive *exr_live_ref(ExrLive *live)
{
	g_atomic_int_inc(&live->refs);
	return live;
}

void exr_live_unref(ExrLive *live)
{
	if (!live || !g_atomic_int_dec_and_test(&live->refs))
		return;
	(void)exr_live_close(live);
	if (live->watcher)
		g_thread_join(live->watcher);
	if (live->exec) {
		ExrEnd end;

		exr_exec_kill(live->exec);
		(void)exr_exec_finish(live->exec, &end);
		exr_end_clear(&end);
	}
	fd_close(&live->pidfd);
	fd_close(&live->cancel_fd);
	fd_close(&live->kill_fd);
	fd_close(&live->end_fd);
	exr_outcome_free(&live->owned->outcome);
	exr_session_unref(live->session);
	pthread_mutex_destroy(&live->lock);
	pthread_cond_destroy(&live->changed);
	g_free(live);
}

/* "Pid:" of a pidfd's fdinfo is as our own /proc counts; -1 once the process has been reaped. */
pid_t exr_live_pid(const ExrLive *live)
{
	g_autofree char *path = g_strdup_printf("/proc/self/fdinfo/%d", live->pidfd);
	g_autofree char *text = NULL;
	const char *line;

	if (live->pidfd < 0 || !g_file_get_contents(path, &text, NULL, NULL))
		return -1;
	line = strstr(text, "\nPid:");
	return line ? (pid_t)g_ascii_strtoll(line + strlen("\nPid:"), NULL, 10) : -1;
}

int exr_live_dup_pidfd(const ExrLive *live)
{
	return live->pidfd < 0 ? -ESRCH : fd_dup(live->pidfd);
}

int exr_live_stdin(const ExrLive *live)
{
	return live->streams[0];
}

int exr_live_stdout(const ExrLive *live)
{
	return live->streams[1];
}

int exr_live_stderr(const ExrLive *live)
{
	return live->streams[2];
}

void exr_live_close_stdin(ExrLive *live)
{
	pthread_mutex_lock(&live->lock);
	if (live->streams[0] >= 0 && live->exec)
		exr_terminal_type_end(live->streams[0]);
	fd_close(&live->streams[0]);
	pthread_mutex_unlock(&live->lock);
}

int exr_live_signal(ExrLive *live, int sig)
{
	int r = -ESRCH;

	pthread_mutex_lock(&live->lock);
	if (live->exec)
		r = exr_exec_signal(live->exec, sig);
	pthread_mutex_unlock(&live->lock);
	return r;
}

int exr_live_resize(ExrLive *live, uint16_t rows, uint16_t columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };
	int r = -ESRCH;

	pthread_mutex_lock(&live->lock);
	if (live->exec)
		r = ioctl(live->streams[1], TIOCSWINSZ, &size) != 0 ? -errno : 0;
	pthread_mutex_unlock(&live->lock);
	return r;
}

int exr_live_end_fd(const ExrLive *live)
{
	return live->end_fd;
}

static void tell(int fd)
{
	static const uint64_t one = 1;

	(void)!write(fd, &one, sizeof one);
}

void exr_live_kill(ExrLive *live)
{
	tell(live->kill_fd);
}

void exr_live_stop(ExrLive *live)
{
	tell(live->cancel_fd);
}

const ExrOutcome *exr_live_await(ExrLive *live, int64_t timeout_ms)
{
	int64_t until_us = INT64_MAX;

	if (timeout_ms >= 0 && timeout_ms < INT64_MAX / 2000)
		until_us = g_get_monotonic_time() + timeout_ms * 1000;
	pthread_mutex_lock(&live->lock);
	while (!live->ended) {
		if (until_us == INT64_MAX) {
			(void)pthread_cond_wait(&live->changed, &live->lock);
		} else if (!cond_wait_until(&live->changed, &live->lock, until_us) &&
			   !live->ended) {
			live->wait_timeout = true;
			exr_live_stop(live);
			until_us = INT64_MAX;
		}
	}
	pthread_mutex_unlock(&live->lock);
	return &live->owned->outcome;
}

int exr_live_close(ExrLive *live)
{
	exr_live_kill(live);
	(void)exr_live_await(live, EXR_NO_TIMEOUT);
	pthread_mutex_lock(&live->lock);
	for (int i = 0; i < 3; i++)
		fd_close(&live->streams[i]);
	pthread_mutex_unlock(&live->lock);
	return live->finish_result;
}
