/* What the changes of one exec come to: folded as they come, so that what is kept is what would be seen by comparing
 * the tree before with the tree after, not every step.
 *
 * Paths are view paths, absolute and clean. Objects that are still there stand by their path of now, with the one that
 * they had at the start; those that have gone by the latter. A directory that is renamed takes along what is below it.
 *
 * Bounded: past `most` paths, or their bytes, nothing new is taken, and what was not is counted, each path once. From
 * then on nothing is said of a path that is not held already, for it could be false: what is missing in the
 * list may have been made by the same exec.
 *
 * No locks: one thread per object. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct FsgFold FsgFold;

typedef enum {
	FSG_CHANGE_CREATED,
	FSG_CHANGE_MODIFIED,
	FSG_CHANGE_DELETED,
	FSG_CHANGE_RENAMED,
	_FSG_CHANGE_N,
} FsgChangeKind;

/* "created" ...; static storage. */
const char *fsg_change_name(FsgChangeKind kind);

typedef struct {
	FsgChangeKind kind;
	char *path;
	char *from; /* of RENAMED: its path at the start; else NULL */
} FsgChange;

FsgFold *fsg_fold_new(size_t most);
void fsg_fold_free(FsgFold *fold); /* NULL is allowed */

/* One step each, in the order in which they happened. */
void fsg_fold_created(FsgFold *fold, const char *path);
void fsg_fold_modified(FsgFold *fold, const char *path);
void fsg_fold_deleted(FsgFold *fold, const char *path);
/* What was at `to` before has to be deleted first. is_dir: something may be known of what is below. */
void fsg_fold_renamed(FsgFold *fold, const char *from, const char *to, bool is_dir);
void fsg_fold_exchanged(FsgFold *fold, const char *a, const char *b, bool are_dirs);

/* FsgChange, by path; owned by the caller. What was renamed and also modified is there twice. */
GPtrArray *fsg_fold_list(const FsgFold *fold);
/* Paths that changed and have no place in the list. */
uint64_t fsg_fold_dropped(const FsgFold *fold);
