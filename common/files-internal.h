/* What the file functions share; for files-*.c only. */
#pragma once

#include "common/files.h"

#include <fcntl.h>

#define PLACE_AUTO __attribute__((cleanup(path_place_clear))) PathPlace
#define PLACE_NONE                                                                                 \
	{                                                                                          \
		.fd = -1, .parent_fd = -1                                                          \
	}

/* The thread acts as a place's mount until the end of the scope: between the two nothing but the system calls. */
#define ACTING_AUTO __attribute__((cleanup(path_resolver_act_end))) PathActing

/* The same for many steps in a row: acts for the place's mount, and goes on doing so until files_act_end(), or a failure. 0
 * or -errno, not failed yet. */
int files_act(FilesCall *call, const PathPlace *place);
void files_act_end(FilesCall *call);

/* The first line of each function. op: its name in the log; verb: in messages, `cannot VERB "PATH"`, where that is
 * another one. */
void files_begin(FilesCall *call, const char *op, const char *verb, const char *path,
		 const char *to);

/* -ECANCELED, failed, when the caller wants that. */
int files_check_canceled(FilesCall *call);

/* Ends a call with -errno: `cannot VERB "PATH": why`. at: the place that is to blame, and, if it is not NULL, a name in
 * it. A refusal of the host's is a denial too. Returns r. */
int files_fail(FilesCall *call, int r, const PathPlace *at, const char *name);
/* The same for another argument than the path, in words: -EINVAL. */
int files_fail_argument(FilesCall *call, const char *why);
/* The same for what a rule of the view refuses. */
int files_refuse(FilesCall *call, int r, DenialReason reason, const PathPlace *at,
		 const char *name);

/* A walk's failure, in the words of the call. Returns r. */
int files_reword(FilesCall *call, const char *path, int r);
/* Fails for a place in which there is nothing. Returns -ENOENT. */
int files_fail_absent(FilesCall *call, const PathPlace *place);

/* Walks, with make_parents making the directories on the way that are missing. */
int files_walk(FilesCall *call, const char *path, unsigned int walk_flags, bool make_parents,
	       PathPlace *ret_place);

/* Walks to a name itself, for what is done to names: a link is not followed, also where a slash at the end asks for a
 * directory (ENOTDIR); "." and ".." are no names (EINVAL). */
int files_walk_to_name(FilesCall *call, const char *path, bool make_parents, PathPlace *ret_place);

/* Whether what is in a place, or could be made there, may be changed: 0, or EROFS (EACCES for a hidden name), failed. */
int files_check_writable(FilesCall *call, const PathPlace *place);
/* Whether what is there may be moved, removed or replaced: not what is a mount, or leads to one. 0, or EBUSY, failed. */
int files_check_movable(FilesCall *call, const PathPlace *place);

/* Calls for each name of a directory, in no order: what the host has and the view does not cover, and what the view
 * itself has there (type 0). type: S_IFMT, or 0 where that is not known. Ends when visit returns other than 0, with
 * that; visit has failed the call then. */
typedef int (*FilesVisit)(void *data, const char *name, mode_t type);
int files_scan(FilesCall *call, const PathPlace *dir, FilesVisit visit, void *data);

/* A new file beside a place, that takes its name when it is finished. Until then it has a name that nobody guesses. */
typedef struct {
	const PathPlace *place; /* borrowed */
	int fd;			/* open for reading and writing; -1: there is none */
	char name[40];
} FilesTemp;
#define FILES_TEMP_AUTO __attribute__((cleanup(files_temp_clear))) FilesTemp

/* mode: what it has until it is committed, less the umask. 0 or -errno, not failed yet. */
int files_temp_new(const PathPlace *place, mode_t mode, FilesTemp *ret_temp);
/* Gives it its mode and name. Without replace, what has that name is -EEXIST. sync: its content is on disk before. 0 or
 * -errno, not failed yet; takes the temp, also then. */
int files_temp_commit(FilesTemp *take_temp, mode_t mode, bool replace, bool sync);
/* Removes what was not committed. */
void files_temp_clear(FilesTemp *temp);

/* A name that nobody guesses, for something of ours in an agent's directory. 0 or -errno. */
int files_random_name(char buf[static 40]);

/* One directory, 0755 whatever the umask. 0 or -errno, not failed yet. */
int files_make_dir(const PathPlace *place, mode_t mode);

/* From where each fd is to its end or up to the size that it has now, in steps between which cancelling is asked for;
 * holes stay holes. 0 or -errno, not failed yet. */
int files_copy_bytes(FilesCall *call, int from_fd, int to_fd);

/* files_copy() of a directory; `to` is absent. */
int files_copy_tree(FilesCall *call, const PathPlace *from, const PathPlace *to);
/* One file or link, into a place; replace: what is there may be replaced. */
int files_copy_one(FilesCall *call, const PathPlace *from, const PathPlace *to, bool replace);
