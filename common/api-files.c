/* The file functions at the edge; see stella/files.h. The work is done in files-*.c; here are GErrors, and structs that a
 * host agent keeps. */
#include "stella/files.h"

#include "common/api-error.h"
#include "common/api-path-resolver.h"
#include "common/files.h"
#include "common/path-util.h"

_Static_assert(STELLA_FILES_MAX_BYTES == FILES_MAX_BYTES, "one limit");
_Static_assert(STELLA_FILES_MAX_ENTRIES == FILES_MAX_ENTRIES, "one limit");
_Static_assert((int)STELLA_FILES_PARENTS == (int)FILES_PARENTS &&
		       (int)STELLA_FILES_REPLACE == (int)FILES_REPLACE &&
		       (int)STELLA_FILES_EXCLUSIVE == (int)FILES_EXCLUSIVE &&
		       (int)STELLA_FILES_RECURSIVE == (int)FILES_RECURSIVE &&
		       (int)STELLA_FILES_ALL == (int)FILES_ALL &&
		       (int)STELLA_FILES_NOFOLLOW == (int)FILES_NOFOLLOW,
	       "one numbering");

struct StellaFiles {
	int refs;		      /* atomic */
	StellaPathResolver *resolver; /* a reference */
};

G_DEFINE_BOXED_TYPE(StellaFiles, stella_files, stella_files_ref, stella_files_unref)

StellaFiles *stella_files_new(StellaPathResolver *resolver)
{
	StellaFiles *files;

	g_return_val_if_fail(resolver != NULL, NULL);
	files = g_new0(StellaFiles, 1);
	files->refs = 1;
	files->resolver = stella_path_resolver_ref(resolver);
	return files;
}

StellaFiles *stella_files_ref(StellaFiles *files)
{
	g_return_val_if_fail(files != NULL, NULL);
	g_atomic_int_inc(&files->refs);
	return files;
}

void stella_files_unref(StellaFiles *files)
{
	if (!files || !g_atomic_int_dec_and_test(&files->refs))
		return;
	stella_path_resolver_unref(files->resolver);
	g_free(files);
}

StellaPathResolver *stella_files_get_resolver(StellaFiles *files)
{
	g_return_val_if_fail(files != NULL, NULL);
	return files->resolver;
}

void stella_file_info_free(StellaFileInfo *info)
{
	if (!info)
		return;
	g_free(info->path);
	g_free(info->mount);
	g_free(info);
}

void stella_dir_entry_free(StellaDirEntry *entry)
{
	if (!entry)
		return;
	g_free(entry->name);
	g_free(entry);
}

static bool is_canceled(void *data)
{
	return g_cancellable_is_cancelled(data);
}

static FilesCall call_of(const StellaFiles *files, GCancellable *cancellable, PathProblem *problem)
{
	*problem = (PathProblem){ .reason = -1 };
	return (FilesCall){
		.resolver = api_path_resolver_inner(files->resolver),
		.is_canceled = cancellable ? is_canceled : NULL,
		.data = cancellable,
		.problem = problem,
	};
}

static gboolean finish(int r, PathProblem *problem, GError **error)
{
	if (r >= 0)
		return TRUE;
	api_error_take_problem(error, problem);
	return FALSE;
}

static StellaFileType type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return STELLA_FILE_REGULAR;
	case S_IFDIR:
		return STELLA_FILE_DIRECTORY;
	case S_IFLNK:
		return STELLA_FILE_SYMLINK;
	default:
		return STELLA_FILE_OTHER;
	}
}

StellaFileInfo *stella_files_stat(StellaFiles *files, const char *path, StellaFilesFlags flags,
				  GCancellable *cancellable, GError **error)
{
	PathProblem problem;
	StellaFileInfo *info;
	FilesStat found;
	FilesCall call;

	g_return_val_if_fail(files != NULL && path != NULL, NULL);
	call = call_of(files, cancellable, &problem);
	if (!finish(files_stat(&call, path, flags, &found), &problem, error))
		return NULL;
	info = g_new0(StellaFileInfo, 1);
	*info = (StellaFileInfo){
		.path = g_steal_pointer(&found.path),
		.type = type_of(found.mode),
		.size = found.size,
		.mode = found.mode & 07777,
		.mtime_ns = found.mtime_ns,
		.is_dir = S_ISDIR(found.mode),
		.writable = found.writable,
		.mount = g_steal_pointer(&found.mount),
	};
	return info;
}

/* In place, the inside's by the edge's: a listing is not twice in memory. */
static StellaDirEntry *entry_of(FilesEntry *take_entry)
{
	StellaDirEntry *entry = g_new0(StellaDirEntry, 1);

	*entry = (StellaDirEntry){
		.name = g_steal_pointer(&take_entry->name),
		.is_dir = S_ISDIR(take_entry->type),
		.size = take_entry->size,
		.type = type_of(take_entry->type),
	};
	files_entry_free(take_entry);
	return entry;
}

GPtrArray *stella_files_list(StellaFiles *files, const char *path, GCancellable *cancellable,
			     GError **error)
{
	GPtrArray *entries = NULL;
	PathProblem problem;
	FilesCall call;

	g_return_val_if_fail(files != NULL && path != NULL, NULL);
	call = call_of(files, cancellable, &problem);
	if (!finish(files_list(&call, path, &entries), &problem, error))
		return NULL;
	for (guint i = 0; i < entries->len; i++)
		entries->pdata[i] = entry_of(entries->pdata[i]);
	g_ptr_array_set_free_func(entries, (GDestroyNotify)stella_dir_entry_free);
	return entries;
}

GBytes *stella_files_read(StellaFiles *files, const char *path, guint64 offset, gsize limit,
			  GCancellable *cancellable, GError **error)
{
	GBytes *bytes = NULL;
	PathProblem problem;
	FilesCall call;

	g_return_val_if_fail(files != NULL && path != NULL, NULL);
	call = call_of(files, cancellable, &problem);
	(void)finish(files_read(&call, path, offset, limit, &bytes), &problem, error);
	return bytes;
}

gboolean stella_files_write(StellaFiles *files, const char *path, const void *data, gsize size,
			    StellaFilesFlags flags, GCancellable *cancellable, GError **error)
{
	PathProblem problem;
	FilesCall call;

	g_return_val_if_fail(files != NULL && path != NULL && (data != NULL || size == 0), FALSE);
	call = call_of(files, cancellable, &problem);
	return finish(files_write(&call, path, data, size, flags), &problem, error);
}

gboolean stella_files_append(StellaFiles *files, const char *path, const void *data, gsize size,
			     StellaFilesFlags flags, GCancellable *cancellable, GError **error)
{
	PathProblem problem;
	FilesCall call;

	g_return_val_if_fail(files != NULL && path != NULL && (data != NULL || size == 0), FALSE);
	call = call_of(files, cancellable, &problem);
	return finish(files_append(&call, path, data, size, flags), &problem, error);
}

static void say_count(const char *path, size_t count, GError **error)
{
	g_autofree char *escaped = path_escape(path);

	if (count == 0)
		api_error_set(error, STELLA_ERROR_NO_MATCH,
			      "cannot edit \"%s\": the text to be replaced is not in it", escaped);
	else
		api_error_set(
			error, STELLA_ERROR_SEVERAL_MATCHES,
			"cannot edit \"%s\": the text to be replaced is in it %zu times; give more "
			"of what is around it",
			escaped, count);
}

/* How many matches are wanted. */
static gboolean check_matches(const char *path, size_t count, StellaFilesFlags flags,
			      const char *view_path, GError **error)
{
	if (count == 1 || (count > 1 && (flags & STELLA_FILES_ALL)))
		return TRUE;
	say_count(path, count, error);
	if (error)
		api_error_details(*error)->path = g_strdup(view_path);
	return FALSE;
}

gboolean stella_files_edit(StellaFiles *files, const char *path, const char *old_text,
			   const char *new_text, StellaFilesFlags flags, guint *ret_count,
			   GCancellable *cancellable, GError **error)
{
	g_autofree char *view_path = NULL;
	PathProblem problem;
	FilesCall call;
	size_t count;

	g_return_val_if_fail(files != NULL && path != NULL, FALSE);
	g_return_val_if_fail(old_text != NULL && new_text != NULL, FALSE);
	call = call_of(files, cancellable, &problem);
	if (!finish(files_edit(&call, path, old_text, new_text, flags, &count, &view_path),
		    &problem, error) ||
	    !check_matches(path, count, flags, view_path, error))
		return FALSE;
	if (ret_count)
		*ret_count = (guint)count;
	return TRUE;
}

gboolean stella_files_mkdir(StellaFiles *files, const char *path, StellaFilesFlags flags,
			    GCancellable *cancellable, GError **error)
{
	PathProblem problem;
	FilesCall call;

	g_return_val_if_fail(files != NULL && path != NULL, FALSE);
	call = call_of(files, cancellable, &problem);
	return finish(files_mkdir(&call, path, flags), &problem, error);
}

gboolean stella_files_remove(StellaFiles *files, const char *path, StellaFilesFlags flags,
			     GCancellable *cancellable, GError **error)
{
	PathProblem problem;
	FilesCall call;

	g_return_val_if_fail(files != NULL && path != NULL, FALSE);
	call = call_of(files, cancellable, &problem);
	return finish(files_remove(&call, path, flags), &problem, error);
}

gboolean stella_files_rename(StellaFiles *files, const char *from, const char *to,
			     StellaFilesFlags flags, GCancellable *cancellable, GError **error)
{
	PathProblem problem;
	FilesCall call;

	g_return_val_if_fail(files != NULL && from != NULL && to != NULL, FALSE);
	call = call_of(files, cancellable, &problem);
	return finish(files_rename(&call, from, to, flags), &problem, error);
}

gboolean stella_files_copy(StellaFiles *files, const char *from, const char *to,
			   StellaFilesFlags flags, GCancellable *cancellable, GError **error)
{
	PathProblem problem;
	FilesCall call;

	g_return_val_if_fail(files != NULL && from != NULL && to != NULL, FALSE);
	call = call_of(files, cancellable, &problem);
	return finish(files_copy(&call, from, to, flags), &problem, error);
}
