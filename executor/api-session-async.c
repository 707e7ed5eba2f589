/* The asynchronous twins of a session's blocking functions; see stella/session.h. They go through the public functions, so
 * that they hold for every implementation. What a caller gives is judged and copied before the call returns. */
#include "stella/session.h"

#include "common/api-error.h"
#include "executor/api-options.h"
#include "executor/api-task.h"

#include <glib-unix.h>

static gpointer close_in_thread(gpointer source, gpointer data, GCancellable *cancellable,
				GError **error)
{
	(void)data;
	return GINT_TO_POINTER(stella_session_close(source, cancellable, error));
}

void stella_session_close_async(StellaSession *session, GCancellable *cancellable,
				GAsyncReadyCallback callback, gpointer user_data)
{
	g_return_if_fail(STELLA_IS_SESSION(session));
	g_return_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable));
	api_task_call(
		api_task_new(session, cancellable, callback, user_data, stella_session_close_async),
		close_in_thread, NULL);
}

gboolean stella_session_close_finish(StellaSession *session, GAsyncResult *async_result,
				     GError **error)
{
	g_return_val_if_fail(g_task_is_valid(async_result, session), FALSE);
	g_return_val_if_fail(g_async_result_is_tagged(async_result, stella_session_close_async),
			     FALSE);
	return g_task_propagate_pointer(G_TASK(async_result), error) != NULL;
}

/* Called for either: that the descriptor is readable, or, without any condition, that the cancellable is cancelled. */
static gboolean on_done(gint fd, GIOCondition condition, gpointer data)
{
	GTask *task = data;
	GError *error = NULL;

	(void)fd;
	if (condition != 0)
		g_task_return_boolean(task, TRUE);
	else if (api_task_canceled(g_task_get_cancellable(task), &error))
		g_task_return_error(task, error);
	else
		return G_SOURCE_CONTINUE;
	return G_SOURCE_REMOVE;
}

static void watch_done(GTask *task, int done_fd)
{
	GCancellable *cancellable = g_task_get_cancellable(task);
	GSource *source = g_unix_fd_source_new(done_fd, G_IO_IN);

	if (cancellable) {
		GSource *cancel = g_cancellable_source_new(cancellable);

		g_source_set_dummy_callback(cancel);
		g_source_add_child_source(source, cancel);
		g_source_unref(cancel);
	}
	g_task_attach_source(task, source, G_SOURCE_FUNC(on_done));
	g_source_unref(source);
}

/* A session may live for days: no thread waits for that, but the caller's main loop. */
void stella_session_wait_done_async(StellaSession *session, GCancellable *cancellable,
				    GAsyncReadyCallback callback, gpointer user_data)
{
	g_autoptr(GTask) task = NULL;
	GError *error = NULL;
	int done_fd;

	g_return_if_fail(STELLA_IS_SESSION(session));
	g_return_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable));
	task = api_task_new(session, cancellable, callback, user_data,
			    stella_session_wait_done_async);
	done_fd = stella_session_get_done_fd(session);
	if (done_fd >= 0 && stella_session_is_alive(session))
		watch_done(task, done_fd);
	else if (stella_session_wait_done(session, NULL, &error)) /* which does not wait */
		g_task_return_boolean(task, TRUE);
	else
		g_task_return_error(task, error);
}

gboolean stella_session_wait_done_finish(StellaSession *session, GAsyncResult *async_result,
					 GError **error)
{
	g_return_val_if_fail(g_task_is_valid(async_result, session), FALSE);
	g_return_val_if_fail(g_async_result_is_tagged(async_result, stella_session_wait_done_async),
			     FALSE);
	return g_task_propagate_boolean(G_TASK(async_result), error);
}

typedef struct {
	char *command;
	StellaExecOptions *options;
} ExecCall;

static void exec_call_free(gpointer data)
{
	ExecCall *call = data;

	g_free(call->command);
	api_exec_options_free(call->options);
	g_free(call);
}

static void result_destroy(gpointer result)
{
	stella_exec_result_unref(result);
}

static gpointer exec_in_thread(gpointer source, gpointer data, GCancellable *cancellable,
			       GError **error)
{
	const ExecCall *call = data;

	return stella_session_exec(source, call->command, call->options, cancellable, error);
}

void stella_session_exec_async(StellaSession *session, const char *command,
			       const StellaExecOptions *options, GCancellable *cancellable,
			       GAsyncReadyCallback callback, gpointer user_data)
{
	StellaExecOptions given;
	GError *error = NULL;
	ExecCall *call;
	GTask *task;

	g_return_if_fail(STELLA_IS_SESSION(session));
	g_return_if_fail(command != NULL);
	g_return_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable));
	task = api_task_new(session, cancellable, callback, user_data, stella_session_exec_async);
	if (!api_exec_options_read(options, &given, &error)) {
		g_task_return_error(task, error);
		g_object_unref(task);
		return;
	}
	call = g_new(ExecCall, 1);
	*call = (ExecCall){ g_strdup(command), api_exec_options_copy(&given) };
	g_task_set_task_data(task, call, exec_call_free);
	api_task_call(task, exec_in_thread, result_destroy);
}

StellaExecResult *stella_session_exec_finish(StellaSession *session, GAsyncResult *async_result,
					     GError **error)
{
	g_return_val_if_fail(g_task_is_valid(async_result, session), NULL);
	g_return_val_if_fail(g_async_result_is_tagged(async_result, stella_session_exec_async),
			     NULL);
	return g_task_propagate_pointer(G_TASK(async_result), error);
}

static void request_free(gpointer request)
{
	api_process_request_free(request);
}

static gpointer start_in_thread(gpointer source, gpointer data, GCancellable *cancellable,
				GError **error)
{
	return stella_session_start_process(source, data, cancellable, error);
}

void stella_session_start_process_async(StellaSession *session, const StellaProcessRequest *request,
					GCancellable *cancellable, GAsyncReadyCallback callback,
					gpointer user_data)
{
	StellaProcessRequest given;
	GError *error = NULL;
	GTask *task;

	g_return_if_fail(STELLA_IS_SESSION(session));
	g_return_if_fail(request != NULL);
	g_return_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable));
	task = api_task_new(session, cancellable, callback, user_data,
			    stella_session_start_process_async);
	if (!api_process_request_read(request, &given, &error)) {
		g_task_return_error(task, error);
		g_object_unref(task);
		return;
	}
	g_task_set_task_data(task, api_process_request_copy(&given), request_free);
	api_task_call(task, start_in_thread, g_object_unref);
}

StellaProcess *stella_session_start_process_finish(StellaSession *session,
						   GAsyncResult *async_result, GError **error)
{
	g_return_val_if_fail(g_task_is_valid(async_result, session), NULL);
	g_return_val_if_fail(
		g_async_result_is_tagged(async_result, stella_session_start_process_async), NULL);
	return g_task_propagate_pointer(G_TASK(async_result), error);
}
