/* The asynchronous twins of blocking functions: for the api-*.c files only. */
#pragma once

#include <gio/gio.h>

/* A task that gives what its function gives, whatever has become of the cancellable meanwhile: errors of a cancel are ours. */
GTask *api_task_new(gpointer source, GCancellable *cancellable, GAsyncReadyCallback callback,
		    gpointer user_data, gpointer tag);

/* A blocking function: what it gives, or NULL with *error. */
typedef gpointer (*ApiTaskFunc)(gpointer source, gpointer data, GCancellable *cancellable,
				GError **error);

/* Runs func in a thread of its own with the task's source and data, and gives what it gave by g_task_propagate_pointer();
 * destroy (may be NULL) is for a result that nobody fetches. Where no thread can be made the task ends with
 * STELLA_ERROR_FAILED (EAGAIN). Not GTask's own threads: they are few, and a command may run for days. Nor does the thread
 * hold anything any more when the callback is called: a source whose last reference goes there has its end there. */
void api_task_call(GTask *take_task, ApiTaskFunc func, GDestroyNotify destroy);

/* Whether cancellable (may be NULL) is cancelled: then *error is STELLA_ERROR_CANCELED. */
gboolean api_task_canceled(GCancellable *cancellable, GError **error);
