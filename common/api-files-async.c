/* The asynchronous twins of the file functions; see stella/files.h. One job holds what any of them is called with and what
 * it gives; each has a function that calls the blocking one in a thread of GTask's. Nothing is shared between the two threads
 * but the job, which only one of them has at a time. GTask hands it over in an order that ThreadSanitizer does not see, for
 * it is hidden in GLib; `handed` says it. */
#include "stella/files.h"

#include "common/files.h"

typedef struct Job Job;
struct Job {
	/* NULL with an error; else what finish gives, or, without free_result, the job itself. */
	gpointer (*run)(Job *job, GCancellable *cancellable, GError **error);
	GDestroyNotify free_result;
	StellaFiles *files; /* a reference */
	char *path;
	char *to; /* or the new text */
	char *old_text;
	void *data;
	gsize size; /* or the limit */
	guint64 offset;
	StellaFilesFlags flags;
	guint count; /* edit's result */
	int handed;  /* atomic; how often it has changed hands */
};

static void job_free(gpointer data)
{
	Job *job = data;

	(void)g_atomic_int_get(&job->handed);
	stella_files_unref(job->files);
	g_free(job->path);
	g_free(job->to);
	g_free(job->old_text);
	g_free(job->data);
	g_free(job);
}

static Job *job_new(StellaFiles *files, const char *path, StellaFilesFlags flags)
{
	Job *job = g_new0(Job, 1);

	job->files = stella_files_ref(files);
	job->path = g_strdup(path);
	job->flags = flags;
	return job;
}

static void run_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	GError *error = NULL;
	GDestroyNotify free_result;
	Job *job = data;
	gpointer result;

	(void)source;
	(void)g_atomic_int_get(&job->handed);
	free_result = job->free_result;
	result = job->run(job, cancellable, &error);
	/* When the caller hears of it nothing of his is held any more: the task itself may last a moment longer. */
	g_clear_pointer(&job->files, stella_files_unref);
	g_atomic_int_set(&job->handed, 2);
	if (result)
		g_task_return_pointer(task, result, free_result);
	else
		g_task_return_error(task, error);
}

/* tag: the twin, which its finish function knows it by. */
static void start(Job *take_job, gpointer tag, GCancellable *cancellable,
		  GAsyncReadyCallback callback, gpointer user_data)
{
	g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);

	g_task_set_source_tag(task, tag);
	/* The work itself asks, and says with our own error that it was cancelled; what was done is not taken back. */
	g_task_set_check_cancellable(task, FALSE);
	g_task_set_task_data(task, take_job, job_free);
	g_atomic_int_set(&take_job->handed, 1);
	g_task_run_in_thread(task, run_in_thread);
}

/* What the task gives, or NULL with an error. */
static gpointer finish(GAsyncResult *result, gpointer tag, GError **error)
{
	Job *job;

	g_return_val_if_fail(g_task_is_valid(result, NULL), NULL);
	g_return_val_if_fail(g_task_get_source_tag(G_TASK(result)) == tag, NULL);
	job = g_task_get_task_data(G_TASK(result));
	(void)g_atomic_int_add(&job->handed, 1);
	return g_task_propagate_pointer(G_TASK(result), error);
}

static gpointer run_stat(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_stat(job->files, job->path, job->flags, cancellable, error);
}

static void free_info(gpointer info)
{
	stella_file_info_free(info);
}

void stella_files_stat_async(StellaFiles *files, const char *path, StellaFilesFlags flags,
			     GCancellable *cancellable, GAsyncReadyCallback callback,
			     gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && path != NULL);
	job = job_new(files, path, flags);
	job->run = run_stat;
	job->free_result = free_info;
	start(job, stella_files_stat_async, cancellable, callback, user_data);
}

StellaFileInfo *stella_files_stat_finish(StellaFiles *files, GAsyncResult *async_result,
					 GError **error)
{
	g_return_val_if_fail(files != NULL, NULL);
	return finish(async_result, stella_files_stat_async, error);
}

static gpointer run_list(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_list(job->files, job->path, cancellable, error);
}

static void free_list(gpointer entries)
{
	g_ptr_array_unref(entries);
}

void stella_files_list_async(StellaFiles *files, const char *path, GCancellable *cancellable,
			     GAsyncReadyCallback callback, gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && path != NULL);
	job = job_new(files, path, STELLA_FILES_NONE);
	job->run = run_list;
	job->free_result = free_list;
	start(job, stella_files_list_async, cancellable, callback, user_data);
}

GPtrArray *stella_files_list_finish(StellaFiles *files, GAsyncResult *async_result, GError **error)
{
	g_return_val_if_fail(files != NULL, NULL);
	return finish(async_result, stella_files_list_async, error);
}

static gpointer run_read(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_read(job->files, job->path, job->offset, job->size, cancellable, error);
}

static void free_bytes(gpointer bytes)
{
	g_bytes_unref(bytes);
}

void stella_files_read_async(StellaFiles *files, const char *path, guint64 offset, gsize limit,
			     GCancellable *cancellable, GAsyncReadyCallback callback,
			     gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && path != NULL);
	job = job_new(files, path, STELLA_FILES_NONE);
	job->run = run_read;
	job->free_result = free_bytes;
	job->offset = offset;
	job->size = limit;
	start(job, stella_files_read_async, cancellable, callback, user_data);
}

GBytes *stella_files_read_finish(StellaFiles *files, GAsyncResult *async_result, GError **error)
{
	g_return_val_if_fail(files != NULL, NULL);
	return finish(async_result, stella_files_read_async, error);
}

static gpointer run_edit(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_edit(job->files, job->path, job->old_text, job->to, job->flags,
				 &job->count, cancellable, error)
		       ? job
		       : NULL;
}

void stella_files_edit_async(StellaFiles *files, const char *path, const char *old_text,
			     const char *new_text, StellaFilesFlags flags,
			     GCancellable *cancellable, GAsyncReadyCallback callback,
			     gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && path != NULL && old_text != NULL && new_text != NULL);
	job = job_new(files, path, flags);
	job->run = run_edit;
	job->old_text = g_strdup(old_text);
	job->to = g_strdup(new_text);
	start(job, stella_files_edit_async, cancellable, callback, user_data);
}

gboolean stella_files_edit_finish(StellaFiles *files, GAsyncResult *async_result, guint *ret_count,
				  GError **error)
{
	Job *job;

	g_return_val_if_fail(files != NULL, FALSE);
	job = finish(async_result, stella_files_edit_async, error);
	if (job && ret_count)
		*ret_count = job->count;
	if (job)
		(void)g_atomic_int_add(&job->handed, 1);
	return job != NULL;
}

/* --- those that give nothing but whether they worked; all are of stella_files_finish() --- */

#define PLAIN_TAG ((gpointer)stella_files_finish)

gboolean stella_files_finish(StellaFiles *files, GAsyncResult *async_result, GError **error)
{
	g_return_val_if_fail(files != NULL, FALSE);
	return finish(async_result, PLAIN_TAG, error) != NULL;
}

static gpointer run_write(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_write(job->files, job->path, job->data, job->size, job->flags,
				  cancellable, error)
		       ? job
		       : NULL;
}

static gpointer run_append(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_append(job->files, job->path, job->data, job->size, job->flags,
				   cancellable, error)
		       ? job
		       : NULL;
}

static gpointer run_mkdir(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_mkdir(job->files, job->path, job->flags, cancellable, error) ? job
											 : NULL;
}

static gpointer run_remove(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_remove(job->files, job->path, job->flags, cancellable, error) ? job
											  : NULL;
}

static gpointer run_rename(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_rename(job->files, job->path, job->to, job->flags, cancellable, error)
		       ? job
		       : NULL;
}

static gpointer run_copy(Job *job, GCancellable *cancellable, GError **error)
{
	return stella_files_copy(job->files, job->path, job->to, job->flags, cancellable, error)
		       ? job
		       : NULL;
}

/* Bytes that are too many are refused without being looked at: one of them stands for all. */
static void set_data(Job *job, const void *data, gsize size)
{
	job->data = g_memdup2(data, size > FILES_MAX_BYTES ? 1 : size);
	job->size = size;
}

void stella_files_write_async(StellaFiles *files, const char *path, const void *data, gsize size,
			      StellaFilesFlags flags, GCancellable *cancellable,
			      GAsyncReadyCallback callback, gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && path != NULL && (data != NULL || size == 0));
	job = job_new(files, path, flags);
	job->run = run_write;
	set_data(job, data, size);
	start(job, PLAIN_TAG, cancellable, callback, user_data);
}

void stella_files_append_async(StellaFiles *files, const char *path, const void *data, gsize size,
			       StellaFilesFlags flags, GCancellable *cancellable,
			       GAsyncReadyCallback callback, gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && path != NULL && (data != NULL || size == 0));
	job = job_new(files, path, flags);
	job->run = run_append;
	set_data(job, data, size);
	start(job, PLAIN_TAG, cancellable, callback, user_data);
}

void stella_files_mkdir_async(StellaFiles *files, const char *path, StellaFilesFlags flags,
			      GCancellable *cancellable, GAsyncReadyCallback callback,
			      gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && path != NULL);
	job = job_new(files, path, flags);
	job->run = run_mkdir;
	start(job, PLAIN_TAG, cancellable, callback, user_data);
}

void stella_files_remove_async(StellaFiles *files, const char *path, StellaFilesFlags flags,
			       GCancellable *cancellable, GAsyncReadyCallback callback,
			       gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && path != NULL);
	job = job_new(files, path, flags);
	job->run = run_remove;
	start(job, PLAIN_TAG, cancellable, callback, user_data);
}

void stella_files_rename_async(StellaFiles *files, const char *from, const char *to,
			       StellaFilesFlags flags, GCancellable *cancellable,
			       GAsyncReadyCallback callback, gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && from != NULL && to != NULL);
	job = job_new(files, from, flags);
	job->run = run_rename;
	job->to = g_strdup(to);
	start(job, PLAIN_TAG, cancellable, callback, user_data);
}

void stella_files_copy_async(StellaFiles *files, const char *from, const char *to,
			     StellaFilesFlags flags, GCancellable *cancellable,
			     GAsyncReadyCallback callback, gpointer user_data)
{
	Job *job;

	g_return_if_fail(files != NULL && from != NULL && to != NULL);
	job = job_new(files, from, flags);
	job->run = run_copy;
	job->to = g_strdup(to);
	start(job, PLAIN_TAG, cancellable, callback, user_data);
}
