/* What changes through the view: told to whoever listens (events.h), and folded for the exec that did it (fold.h).
 *
 * Handlers say here what they have done, after it worked and before the reply: so what one process does after
 * another's answer stands behind it, and the process is still there to be asked whose it is (client.h). Whether a file
 * that was opened for writing was changed is seen when it is closed, by size, mtime and ctime, for
 * the kernel may have written without us (passthrough); whose it is then was found out at its opening. A mapping of a file that
 * is passed through can outlive the handle: then an exec's end looks once more.
 *
 * Paths are view paths by the hints of the inodes: those by which the changing process went.
 *
 * Any thread at once. The lock is held while a path is made from the hints, so that what a renamed directory takes along
 * is neither missed nor moved twice; the inode table's lock and that of events are taken under it. */
#pragma once

#include "fsgate/events.h"
#include "fsgate/view.h"

FsgChanges *fsg_changes_new(FsgView *view);
/* NULL is allowed. Before the inodes; no handle is closed any more. */
void fsg_changes_free(FsgChanges *changes);

/* --- by handlers --- */

void fsg_change_created(FsgView *view, FsgInode *dir, const char *name);
void fsg_change_deleted(FsgView *view, FsgInode *dir, const char *name);
/* One without a name (nlink 0) is not told. */
void fsg_change_modified(FsgView *view, FsgInode *inode, nlink_t nlink);

typedef struct {
	FsgInode *from_dir, *to_dir;
	const char *from, *to;
	bool is_dir;   /* the moved object, or of an exchange either */
	bool replaces; /* something was at `to` and has gone */
	bool exchange; /* something was at `to` and is at `from` now */
} FsgRename;
/* After the hints of the inodes have followed. */
void fsg_change_renamed(FsgView *view, const FsgRename *moved);

/* A file that was there is open for writing, and has not been changed by that: stx is what it was. may_be_mapped: the
 * kernel may write it through a mapping that outlives the handle. */
void fsg_change_opened(FsgView *view, FsgFile *file, const struct statx *stx, bool may_be_mapped);
/* Whether its close has to be told, with what it is then (NULL: that cannot be found out, and counts as a change). */
static inline bool fsg_change_awaits_close(const FsgWriter *writer)
{
	return writer->inode != NULL;
}
void fsg_change_closed(FsgView *view, FsgWriter *writer, const struct statx *stx);

/* --- by the boundary --- */

typedef struct {
	GPtrArray *rows; /* FsgChange; owned */
	uint64_t dropped;
	bool incomplete; /* there may be more: files are still open, or some change could not be told whose it was */
} FsgChangeList;

/* The changes of the exec in that pid namespace, which began as the boundary's `exec` and has ended. Waits until
 * until_us for files that it had open for writing to be closed; what is still open then is looked at as it is. */
void fsg_changes_take(FsgView *view, uint64_t pid_namespace, uint64_t exec, int64_t until_us,
		      FsgChangeList *ret_list);
void fsg_change_list_clear(FsgChangeList *list);
