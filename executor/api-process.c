/* The StellaProcess interface; see stella/process.h. What a caller gives is judged here, so that implementations need not;
 * a member that an implementation has not is answered; and the asynchronous twins run what it has in a thread. What blocks
 * holds the object meanwhile. */
#include "stella/process.h"

#include "common/api-error.h"
#include "executor/api-task.h"

#include <signal.h>

G_DEFINE_INTERFACE(StellaProcess, stella_process, G_TYPE_OBJECT)

static void stella_process_default_init(StellaProcessInterface *iface)
{
	(void)iface;
}

static void refuse(const char *what, GError **error)
{
	api_error_set(error, STELLA_ERROR_NOT_SUPPORTED, "this process cannot %s", what);
}

pid_t stella_process_get_pid(StellaProcess *process)
{
	StellaProcessInterface *iface;

	g_return_val_if_fail(STELLA_IS_PROCESS(process), -1);
	iface = STELLA_PROCESS_GET_IFACE(process);
	return iface->get_pid ? iface->get_pid(process) : -1;
}

int stella_process_dup_pidfd(StellaProcess *process, GError **error)
{
	StellaProcessInterface *iface;

	g_return_val_if_fail(STELLA_IS_PROCESS(process), -1);
	g_return_val_if_fail(!error || !*error, -1);
	iface = STELLA_PROCESS_GET_IFACE(process);
	if (iface->dup_pidfd)
		return iface->dup_pidfd(process, error);
	refuse("give a pidfd", error);
	return -1;
}

#define FD_GETTER(name)                                                                            \
	int stella_process_##name(StellaProcess *process)                                          \
	{                                                                                          \
		StellaProcessInterface *iface;                                                     \
                                                                                                   \
		g_return_val_if_fail(STELLA_IS_PROCESS(process), -1);                              \
		iface = STELLA_PROCESS_GET_IFACE(process);                                         \
		return iface->name ? iface->name(process) : -1;                                    \
	}

FD_GETTER(get_stdin_fd)
FD_GETTER(get_stdout_fd)
FD_GETTER(get_stderr_fd)
FD_GETTER(get_end_fd)

void stella_process_close_stdin(StellaProcess *process)
{
	StellaProcessInterface *iface;

	g_return_if_fail(STELLA_IS_PROCESS(process));
	iface = STELLA_PROCESS_GET_IFACE(process);
	if (iface->close_stdin)
		iface->close_stdin(process);
}

gboolean stella_process_send_signal(StellaProcess *process, int signum, GError **error)
{
	StellaProcessInterface *iface;

	g_return_val_if_fail(STELLA_IS_PROCESS(process), FALSE);
	g_return_val_if_fail(!error || !*error, FALSE);
	iface = STELLA_PROCESS_GET_IFACE(process);
	if (signum < 1 || signum > SIGRTMAX) {
		api_error_set(error, STELLA_ERROR_INVALID_ARGUMENT, "%d is no signal", signum);
		return FALSE;
	}
	if (iface->send_signal)
		return iface->send_signal(process, signum, error);
	refuse("be sent signals", error);
	return FALSE;
}

gboolean stella_process_resize(StellaProcess *process, guint16 rows, guint16 columns,
			       GError **error)
{
	StellaProcessInterface *iface;

	g_return_val_if_fail(STELLA_IS_PROCESS(process), FALSE);
	g_return_val_if_fail(!error || !*error, FALSE);
	iface = STELLA_PROCESS_GET_IFACE(process);
	if (iface->resize)
		return iface->resize(process, rows, columns, error);
	refuse("be given another terminal size", error);
	return FALSE;
}

/* What less than "never" means nobody can know: for ever would hang, and at once would kill. */
static gboolean check_wait(gint64 timeout_ms, GError **error)
{
	if (timeout_ms >= STELLA_NO_TIMEOUT)
		return TRUE;
	api_error_set(error, STELLA_ERROR_INVALID_ARGUMENT,
		      "timeout_ms: %" G_GINT64_FORMAT ": expected at least 0, or STELLA_NO_TIMEOUT",
		      timeout_ms);
	return FALSE;
}

StellaExecResult *stella_process_wait(StellaProcess *process, gint64 timeout_ms,
				      GCancellable *cancellable, GError **error)
{
	g_autoptr(StellaProcess) held = NULL;
	StellaProcessInterface *iface;

	g_return_val_if_fail(STELLA_IS_PROCESS(process), NULL);
	g_return_val_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable), NULL);
	g_return_val_if_fail(!error || !*error, NULL);
	iface = STELLA_PROCESS_GET_IFACE(process);
	if (!check_wait(timeout_ms, error))
		return NULL;
	held = g_object_ref(process);
	if (iface->wait)
		return iface->wait(held, timeout_ms, cancellable, error);
	refuse("be waited for", error);
	return NULL;
}

static void result_destroy(gpointer result)
{
	stella_exec_result_unref(result);
}

static gpointer wait_in_thread(gpointer source, gpointer data, GCancellable *cancellable,
			       GError **error)
{
	const gint64 *timeout_ms = data;

	return stella_process_wait(source, *timeout_ms, cancellable, error);
}

void stella_process_wait_async(StellaProcess *process, gint64 timeout_ms, GCancellable *cancellable,
			       GAsyncReadyCallback callback, gpointer user_data)
{
	GTask *task;

	g_return_if_fail(STELLA_IS_PROCESS(process));
	g_return_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable));
	task = api_task_new(process, cancellable, callback, user_data, stella_process_wait_async);
	g_task_set_task_data(task, g_memdup2(&timeout_ms, sizeof timeout_ms), g_free);
	api_task_call(task, wait_in_thread, result_destroy);
}

StellaExecResult *stella_process_wait_finish(StellaProcess *process, GAsyncResult *async_result,
					     GError **error)
{
	g_return_val_if_fail(g_task_is_valid(async_result, process), NULL);
	g_return_val_if_fail(g_async_result_is_tagged(async_result, stella_process_wait_async),
			     NULL);
	return g_task_propagate_pointer(G_TASK(async_result), error);
}

void stella_process_kill(StellaProcess *process)
{
	StellaProcessInterface *iface;

	g_return_if_fail(STELLA_IS_PROCESS(process));
	iface = STELLA_PROCESS_GET_IFACE(process);
	if (iface->kill)
		iface->kill(process);
}

gboolean stella_process_close(StellaProcess *process, GError **error)
{
	g_autoptr(StellaProcess) held = NULL;
	StellaProcessInterface *iface;

	g_return_val_if_fail(STELLA_IS_PROCESS(process), FALSE);
	g_return_val_if_fail(!error || !*error, FALSE);
	iface = STELLA_PROCESS_GET_IFACE(process);
	held = g_object_ref(process);
	if (iface->close)
		return iface->close(held, error);
	refuse("be closed", error);
	return FALSE;
}

static gpointer close_in_thread(gpointer source, gpointer data, GCancellable *cancellable,
				GError **error)
{
	(void)data;
	return GINT_TO_POINTER(!api_task_canceled(cancellable, error) &&
			       stella_process_close(source, error));
}

void stella_process_close_async(StellaProcess *process, GCancellable *cancellable,
				GAsyncReadyCallback callback, gpointer user_data)
{
	g_return_if_fail(STELLA_IS_PROCESS(process));
	g_return_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable));
	api_task_call(
		api_task_new(process, cancellable, callback, user_data, stella_process_close_async),
		close_in_thread, NULL);
}

gboolean stella_process_close_finish(StellaProcess *process, GAsyncResult *async_result,
				     GError **error)
{
	g_return_val_if_fail(g_task_is_valid(async_result, process), FALSE);
	g_return_val_if_fail(g_async_result_is_tagged(async_result, stella_process_close_async),
			     FALSE);
	return g_task_propagate_pointer(G_TASK(async_result), error) != NULL;
}
