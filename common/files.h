/* File functions on the paths of an agent, for tools that work in the host agent's own process: what the commands of a
 * session could do to the same path, with the same verdicts, and nothing else.
 *
 * Every function walks to a place (path-resolver.h), judges it by what the walk says of it, and then acts relative to
 * the directory's fd on one name, which is never followed. So what an agent renames or exchanges between the walk and
 * the act can make a function fail, or act on another object of the same mount, which the agent could have
 * done itself; it cannot lead it out, nor to what is read-only: roots of mounts, and what leads to them, cannot be
 * moved by any agent.
 *
 * Blocks on file I/O. Any thread at once. Memory is bounded by FILES_MAX_BYTES and FILES_MAX_ENTRIES. */
#pragma once

#include "common/path-resolver.h"

/* Bytes that one read gives, and that one write, append or edit takes. */
#define FILES_MAX_BYTES (UINT64_C(64) << 20)
/* Entries that one listing gives, and directories that a copy has before it at one time. */
#define FILES_MAX_ENTRIES 100000

/* Numbered as StellaFilesFlags. */
enum {
	FILES_PARENTS = 1u << 0,
	FILES_REPLACE = 1u << 1,
	FILES_EXCLUSIVE = 1u << 2,
	FILES_RECURSIVE = 1u << 3,
	FILES_ALL = 1u << 4,
	FILES_NOFOLLOW = 1u << 5,
};

/* One call of one function. */
typedef struct {
	PathResolver *resolver;		 /* borrowed */
	bool (*is_canceled)(void *data); /* asked between steps; NULL: never canceled */
	void *data;			 /* its */
	PathProblem *problem;		 /* empty; filled in by every failure */
	const char *op;			 /* set by the function, as the next three: "mkdir" */
	const char *verb;		 /* "make directory" */
	const char *path;		 /* what it was called with; `to` may be NULL */
	const char *to;
	const void *acts_for; /* the anchor that the thread acts for at present, or NULL */
	PathActing acting;
} FilesCall;

/* All: 0 or -errno with call->problem. -ECANCELED when the caller wanted that. -EFBIG for what is beyond a limit. */

typedef struct {
	char *path;  /* view path; owned */
	char *mount; /* view path of its mount, or NULL; owned */
	mode_t mode; /* with the type */
	uint64_t size;
	int64_t mtime_ns;
	bool writable;
} FilesStat;
void files_stat_clear(FilesStat *stat);

/* flags: FILES_NOFOLLOW. */
int files_stat(FilesCall *call, const char *path, unsigned int flags, FilesStat *ret_stat);

typedef struct {
	char *name;
	mode_t type; /* S_IFMT */
	uint64_t size;
} FilesEntry;
void files_entry_free(FilesEntry *entry);

/* FilesEntry, owned by the array, in byte order of the names. */
int files_list(FilesCall *call, const char *path, GPtrArray **ret_entries);

/* limit 0: to the end. */
int files_read(FilesCall *call, const char *path, uint64_t offset, size_t limit,
	       GBytes **ret_bytes);

/* flags: FILES_PARENTS, FILES_EXCLUSIVE. */
int files_write(FilesCall *call, const char *path, const void *data, size_t size,
		unsigned int flags);
/* flags: FILES_PARENTS. */
int files_append(FilesCall *call, const char *path, const void *data, size_t size,
		 unsigned int flags);

/* flags: FILES_ALL. *ret_count: how often old_text, which is not empty, is in the file. That is 0, or more than 1 without
 * FILES_ALL: then nothing was changed, which is no failure here. *ret_view_path: where the file is; owned. */
int files_edit(FilesCall *call, const char *path, const char *old_text, const char *new_text,
	       unsigned int flags, size_t *ret_count, char **ret_view_path);

/* flags: FILES_PARENTS, FILES_EXCLUSIVE. */
int files_mkdir(FilesCall *call, const char *path, unsigned int flags);
/* flags: FILES_RECURSIVE. */
int files_remove(FilesCall *call, const char *path, unsigned int flags);
/* flags: FILES_PARENTS, FILES_REPLACE. */
int files_rename(FilesCall *call, const char *from, const char *to, unsigned int flags);
/* flags: FILES_PARENTS, FILES_REPLACE, FILES_RECURSIVE. A link at the end of `from` is followed, or with FILES_RECURSIVE
 * copied. */
int files_copy(FilesCall *call, const char *from, const char *to, unsigned int flags);
