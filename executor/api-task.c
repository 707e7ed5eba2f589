/* One thread for each asynchronous call; see api-task.h. A task keeps its source object, so what it works on lives as long
 * as it. It is ended in the main context that was the thread default where the call was made: the thread leaves the result, and
 * its reference with it, to a source of that context, and does not touch the task again. */
#include "executor/api-task.h"

#include "common/api-error.h"

#include <errno.h>
#include <pthread.h>

typedef struct {
	GTask *task;
	ApiTaskFunc call;
	GDestroyNotify destroy;
	gpointer result;
	GError *error;
	/* Held by the thread until it has left everything: GLib's own locks are not seen by ThreadSanitizer. */
	pthread_mutex_t lock;
} Work;

static void work_free(gpointer data)
{
	Work *work = data;

	g_object_unref(work->task);
	pthread_mutex_destroy(&work->lock);
	g_free(work);
}

static gboolean end_task(gpointer data)
{
	Work *work = data;

	pthread_mutex_lock(&work->lock);
	pthread_mutex_unlock(&work->lock);
	if (work->error)
		g_task_return_error(work->task, g_steal_pointer(&work->error));
	else
		g_task_return_pointer(work->task, g_steal_pointer(&work->result), work->destroy);
	return G_SOURCE_REMOVE;
}

static void leave_to_context(Work *take_work)
{
	GSource *source = g_idle_source_new();
	GMainContext *context = g_task_get_context(take_work->task);

	g_source_set_priority(source, g_task_get_priority(take_work->task));
	g_source_set_callback(source, end_task, take_work, work_free);
	g_source_attach(source, context);
	g_source_unref(source);
}

static gpointer work_in_thread(gpointer data)
{
	Work *work = data;
	gpointer source = g_task_get_source_object(work->task);
	gpointer task_data = g_task_get_task_data(work->task);
	GCancellable *cancellable = g_task_get_cancellable(work->task);

	pthread_mutex_lock(&work->lock);
	work->result = work->call(source, task_data, cancellable, &work->error);
	leave_to_context(work);
	pthread_mutex_unlock(&work->lock); /* which end_task() waits for */
	return NULL;
}

void api_task_call(GTask *take_task, ApiTaskFunc func, GDestroyNotify destroy)
{
	Work *work = g_new(Work, 1);
	GError *error = NULL;
	GThread *thread;

	*work = (Work){ .task = take_task, .call = func, .destroy = destroy };
	pthread_mutex_init(&work->lock, NULL);
	thread = g_thread_try_new("stella-task", work_in_thread, work, NULL);
	if (thread) {
		g_thread_unref(thread);
		return;
	}
	api_error_set_errno(&error, STELLA_ERROR_FAILED, EAGAIN,
			    "cannot make a thread for an asynchronous call");
	g_task_return_error(take_task, error);
	work_free(work);
}

GTask *api_task_new(gpointer source, GCancellable *cancellable, GAsyncReadyCallback callback,
		    gpointer user_data, gpointer tag)
{
	GTask *task = g_task_new(source, cancellable, callback, user_data);

	g_task_set_source_tag(task, tag);
	g_task_set_check_cancellable(task, FALSE);
	return task;
}

gboolean api_task_canceled(GCancellable *cancellable, GError **error)
{
	if (!g_cancellable_is_cancelled(cancellable))
		return FALSE;
	api_error_set(error, STELLA_ERROR_CANCELED, "the call was cancelled by its caller");
	return TRUE;
}
