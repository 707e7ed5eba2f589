/* File functions for tools of the host agent, inside the boundary: on the paths of an agent, with the verdicts, error codes and
 * denials of the view. They never follow a link that leaves it, never write to a read-only mount, and are bounded in
 * memory.
 *
 * Paths are view paths, or relative to the working directory (host paths are not taken here). Every function blocks on file I/O,
 * and has an asynchronous twin, which runs it in a thread. A GCancellable (NULL: none) is asked between steps: what was cancelled
 * before its last step has changed nothing that can be seen, unless the function says so. Any thread at once.
 *
 * Errors of all: those of stella_path_resolver_open(), NOT_FOUND, EXISTS, READ_ONLY, REFUSED, IO with errno, CANCELED. Others are
 * named at each function. */
#ifndef STELLA_FILES_H
#define STELLA_FILES_H

#include <gio/gio.h>
#include <stella/path-resolver.h>

G_BEGIN_DECLS

#define STELLA_TYPE_FILES (stella_files_get_type())
typedef struct StellaFiles StellaFiles;

/* The most that one read gives and one write, append or edit takes: 64 MiB. */
#define STELLA_FILES_MAX_BYTES (64ull * 1024 * 1024)
/* The most entries that one list gives. */
#define STELLA_FILES_MAX_ENTRIES 100000

typedef enum {
	STELLA_FILE_REGULAR = 0,
	STELLA_FILE_DIRECTORY = 1,
	STELLA_FILE_SYMLINK = 2,
	STELLA_FILE_OTHER = 3, /* FIFO, socket, device */
} StellaFileType;

/* What stat gives. */
typedef struct {
	char *path; /* view path, absolute, clean */
	StellaFileType type;
	guint64 size;	 /* bytes */
	mode_t mode;	 /* permission bits */
	gint64 mtime_ns; /* since 1970 */
	gboolean is_dir;
	gboolean writable; /* its mount lets it be changed; the host's permissions may still not */
	char *mount;	   /* view path of its mount; NULL: a directory of the view's own */
} StellaFileInfo;

STELLA_API void stella_file_info_free(StellaFileInfo *info); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaFileInfo, stella_file_info_free)

/* One row of a listing. */
typedef struct {
	char *name; /* one component, any bytes but '/' and NUL */
	gboolean is_dir;
	guint64 size; /* bytes; of what is no regular file what stat(2) says */
	StellaFileType type;
} StellaDirEntry;

STELLA_API void stella_dir_entry_free(StellaDirEntry *entry); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaDirEntry, stella_dir_entry_free)

/* For the flags of the functions below. */
typedef enum {
	STELLA_FILES_NONE = 0,
	STELLA_FILES_PARENTS =
		1
		<< 0, /* write, append, mkdir, rename, copy: missing directories on the way are made */
	STELLA_FILES_REPLACE =
		1 << 1, /* rename, copy: what is there is replaced (default: EXISTS) */
	STELLA_FILES_EXCLUSIVE =
		1
		<< 2, /* write, mkdir: what is there is an error (mkdir: default only with a file) */
	STELLA_FILES_RECURSIVE = 1 << 3, /* remove, copy: a directory with all that is in it */
	STELLA_FILES_ALL = 1 << 4,	 /* edit: every match is replaced */
	STELLA_FILES_NOFOLLOW = 1 << 5,	 /* stat: of a link itself */
} StellaFilesFlags;

/* File functions over a resolver, of which a reference is taken. Never NULL. */
STELLA_API StellaFiles *stella_files_new(StellaPathResolver *resolver);
STELLA_API StellaFiles *stella_files_ref(StellaFiles *files);
STELLA_API void stella_files_unref(StellaFiles *files); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaFiles, stella_files_unref)
STELLA_API GType stella_files_get_type(void);
/* Its resolver; borrowed. Does not block. */
STELLA_API StellaPathResolver *stella_files_get_resolver(StellaFiles *files);

/* What is at path. */
STELLA_API StellaFileInfo *stella_files_stat(StellaFiles *files, const char *path,
					     StellaFilesFlags flags, GCancellable *cancellable,
					     GError **error);

/* What is in a directory: StellaDirEntry, sorted by name in byte order, mounts and directories of the view's own included;
 * g_ptr_array_unref(). TOO_LARGE beyond STELLA_FILES_MAX_ENTRIES. */
STELLA_API GPtrArray *stella_files_list(StellaFiles *files, const char *path,
					GCancellable *cancellable, GError **error);

/* At most limit bytes (0: all of it) from offset on; fewer at the end, none behind it. TOO_LARGE when more than
 * STELLA_FILES_MAX_BYTES were asked for, or all of a file that is longer. */
STELLA_API GBytes *stella_files_read(StellaFiles *files, const char *path, guint64 offset,
				     gsize limit, GCancellable *cancellable, GError **error);

/* Makes the file's whole content these bytes, atomically: others see the old content or the new one. Links are followed to the
 * file. Of a file that is there the mode and the ACL are kept, and the group if the host
 * lets the mount's owner give it (else the group gets no more than others had); another one gets 0644, or what a default ACL leaves of it. What was made anew is another object: hard links to the old one keep
 * the old content. TOO_LARGE. */
STELLA_API gboolean stella_files_write(StellaFiles *files, const char *path, const void *data,
				       gsize size, StellaFilesFlags flags,
				       GCancellable *cancellable, GError **error);

/* Adds bytes at the end, in one O_APPEND write where the host does that; makes the file (0644) if there is none. */
STELLA_API gboolean stella_files_append(StellaFiles *files, const char *path, const void *data,
					gsize size, StellaFilesFlags flags,
					GCancellable *cancellable, GError **error);

/* Replaces old_text, which has to be in the file exactly once (with STELLA_FILES_ALL: at least once), by new_text; written as by
 * stella_files_write(). Texts are bytes, compared as they are; old_text must not be empty. *ret_count (may be NULL):
 * how many were replaced. NO_MATCH, SEVERAL_MATCHES, TOO_LARGE; the file is then unchanged. */
STELLA_API gboolean stella_files_edit(StellaFiles *files, const char *path, const char *old_text,
				      const char *new_text, StellaFilesFlags flags,
				      guint *ret_count, GCancellable *cancellable, GError **error);

/* Makes a directory, 0755, or what a default ACL leaves of it. One that is there is no error, unless STELLA_FILES_EXCLUSIVE. */
STELLA_API gboolean stella_files_mkdir(StellaFiles *files, const char *path, StellaFilesFlags flags,
				       GCancellable *cancellable, GError **error);

/* Removes a file, a link (itself) or an empty directory; with STELLA_FILES_RECURSIVE all that is in it, no link being followed.
 * A tree that could not be removed whole is left in part: the error names the first thing that stayed. It lasts as long as an
 * agent goes on adding to the tree: who does not want that cancels. What leads to a mount
 * is REFUSED before anything is removed. */
STELLA_API gboolean stella_files_remove(StellaFiles *files, const char *path,
					StellaFilesFlags flags, GCancellable *cancellable,
					GError **error);

/* Renames within one mount (REFUSED between two), links not followed; never replaces anything unless asked, without a
 * race. */
STELLA_API gboolean stella_files_rename(StellaFiles *files, const char *from, const char *to,
					StellaFilesFlags flags, GCancellable *cancellable,
					GError **error);

/* Copies a file with its permission bits, between any two mounts; with STELLA_FILES_RECURSIVE a directory, links as links (without,
 * a link is followed). A directory takes the place of an empty one only. Into itself: INVALID_ARGUMENT; FIFOs, sockets and devices:
 * IO with ENXIO; what lies deeper than a path can name: INVALID_ARGUMENT.
 * A copied file appears whole or not at all; a tree that could not be copied whole is left in part. */
STELLA_API gboolean stella_files_copy(StellaFiles *files, const char *from, const char *to,
				      StellaFilesFlags flags, GCancellable *cancellable,
				      GError **error);

/* The asynchronous twins: arguments are copied; callback is called in the thread-default main context of the caller, and calls the
 * finish function, which gives what the function above gives. */
STELLA_API void stella_files_stat_async(StellaFiles *files, const char *path,
					StellaFilesFlags flags, GCancellable *cancellable,
					GAsyncReadyCallback callback, gpointer user_data);
STELLA_API StellaFileInfo *stella_files_stat_finish(StellaFiles *files, GAsyncResult *async_result,
						    GError **error);
STELLA_API void stella_files_list_async(StellaFiles *files, const char *path,
					GCancellable *cancellable, GAsyncReadyCallback callback,
					gpointer user_data);
STELLA_API GPtrArray *stella_files_list_finish(StellaFiles *files, GAsyncResult *async_result,
					       GError **error);
STELLA_API void stella_files_read_async(StellaFiles *files, const char *path, guint64 offset,
					gsize limit, GCancellable *cancellable,
					GAsyncReadyCallback callback, gpointer user_data);
STELLA_API GBytes *stella_files_read_finish(StellaFiles *files, GAsyncResult *async_result,
					    GError **error);
STELLA_API void stella_files_write_async(StellaFiles *files, const char *path, const void *data,
					 gsize size, StellaFilesFlags flags,
					 GCancellable *cancellable, GAsyncReadyCallback callback,
					 gpointer user_data);
STELLA_API void stella_files_append_async(StellaFiles *files, const char *path, const void *data,
					  gsize size, StellaFilesFlags flags,
					  GCancellable *cancellable, GAsyncReadyCallback callback,
					  gpointer user_data);
STELLA_API void stella_files_edit_async(StellaFiles *files, const char *path, const char *old_text,
					const char *new_text, StellaFilesFlags flags,
					GCancellable *cancellable, GAsyncReadyCallback callback,
					gpointer user_data);
STELLA_API gboolean stella_files_edit_finish(StellaFiles *files, GAsyncResult *async_result,
					     guint *ret_count, GError **error);
STELLA_API void stella_files_mkdir_async(StellaFiles *files, const char *path,
					 StellaFilesFlags flags, GCancellable *cancellable,
					 GAsyncReadyCallback callback, gpointer user_data);
STELLA_API void stella_files_remove_async(StellaFiles *files, const char *path,
					  StellaFilesFlags flags, GCancellable *cancellable,
					  GAsyncReadyCallback callback, gpointer user_data);
STELLA_API void stella_files_rename_async(StellaFiles *files, const char *from, const char *to,
					  StellaFilesFlags flags, GCancellable *cancellable,
					  GAsyncReadyCallback callback, gpointer user_data);
STELLA_API void stella_files_copy_async(StellaFiles *files, const char *from, const char *to,
					StellaFilesFlags flags, GCancellable *cancellable,
					GAsyncReadyCallback callback, gpointer user_data);
/* Of write, append, mkdir, remove, rename and copy. */
STELLA_API gboolean stella_files_finish(StellaFiles *files, GAsyncResult *async_result,
					GError **error);

G_END_DECLS

#endif
