/* Commands as GIO has it: with a GCancellable, and asynchronously; see session-exec.h. Apart, so that a program that
 * needs neither does not load GIO. */
#include "executor/live-process.h"

#include "common/errno-util.h"
#include "executor/cancel-fd.h"

#include <errno.h>

ExrOutcome *exr_session_exec(ExrSession *session, const ExrExecOptions *options)
{
	ExrCancelFd cancel;
	ExrOutcome *outcome;
	int r = exr_cancel_fd_init(&cancel, options->cancellable);

	if (r < 0) {
		ExrError error = { 0 };

		outcome = exr_outcome_new(session);
		(void)exr_error_set(&error, "internal", "request", -r, "cancellation: %s",
				    errno_text(-r));
		exr_outcome_fail(outcome, &error);
	} else if (options->cancellable && g_cancellable_is_cancelled(options->cancellable)) {
		outcome = exr_outcome_new(session);
		outcome->result.ended = EXR_ENDED_CANCELED;
	} else {
		outcome = exr_session_exec_until(session, options, cancel.fd);
	}
	exr_cancel_fd_clear(&cancel, options->cancellable);
	return outcome;
}

/* The options of an asynchronous run, with what they point to. */
typedef struct {
	ExrExecOptions options;
	char **argv;
	char *cwd;
	ExrEnvList *env;
	GBytes *input;
	ExrSession *session;
} Async;

static void async_free(void *data)
{
	Async *async = data;

	g_strfreev(async->argv);
	g_free(async->cwd);
	exr_env_list_free(async->env);
	g_clear_pointer(&async->input, g_bytes_unref);
	g_clear_object(&async->options.cancellable);
	exr_session_unref(async->session);
	g_free(async);
}

static Async *async_new(ExrSession *session, const ExrExecOptions *options)
{
	Async *async = g_new0(Async, 1);

	async->session = exr_session_ref(session);
	async->options = *options;
	async->argv = g_strdupv((char **)(uintptr_t)options->argv);
	async->cwd = g_strdup(options->cwd);
	async->env = options->env ? exr_env_list_copy(options->env) : NULL;
	async->input = g_bytes_new(options->input, options->input_size);
	async->options.argv = (const char *const *)async->argv;
	async->options.cwd = async->cwd;
	async->options.env = async->env;
	async->options.input = g_bytes_get_data(async->input, NULL);
	if (options->cancellable)
		g_object_ref(options->cancellable);
	return async;
}

static void outcome_destroy(void *outcome)
{
	exr_outcome_free(outcome);
}

static void *async_run(void *data)
{
	GTask *task = data;
	Async *async = g_task_get_task_data(task);

	g_task_return_pointer(task, exr_session_exec(async->session, &async->options),
			      outcome_destroy);
	g_object_unref(task);
	return NULL;
}

/* Not GTask's own threads: they are few, and a command may run for days. */
void exr_session_exec_async(ExrSession *session, const ExrExecOptions *options,
			    GAsyncReadyCallback callback, void *user_data)
{
	GTask *task = g_task_new(NULL, NULL, callback, user_data);
	g_autoptr(GError) error = NULL;
	GThread *thread;

	g_task_set_task_data(task, async_new(session, options), async_free);
	thread = g_thread_try_new("stella-exec", async_run, task, &error);
	if (thread) {
		g_thread_unref(thread);
	} else {
		ExrOutcome *outcome = exr_outcome_new(session);
		ExrError failed = { 0 };

		(void)exr_error_set(&failed, "internal", "request", EAGAIN, "%s", error->message);
		exr_outcome_fail(outcome, &failed);
		g_task_return_pointer(task, outcome, outcome_destroy);
		g_object_unref(task);
	}
}

ExrOutcome *exr_session_exec_finish(GAsyncResult *async)
{
	return g_task_propagate_pointer(G_TASK(async), NULL);
}

static void stop_live(GCancellable *cancellable, void *live)
{
	(void)cancellable;
	exr_live_stop(live);
}

const ExrOutcome *exr_live_wait(ExrLive *live, int64_t timeout_ms, GCancellable *cancellable)
{
	gulong handler = 0;
	const ExrOutcome *outcome;

	/* Called at once when it is cancelled already. */
	if (cancellable)
		handler = g_cancellable_connect(cancellable, G_CALLBACK(stop_live), live, NULL);
	outcome = exr_live_await(live, timeout_ms);
	if (handler)
		g_cancellable_disconnect(cancellable, handler);
	return outcome;
}
