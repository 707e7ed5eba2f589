/* The names that the kernel was told of lately and may still believe, so that they can be taken back where an
 * exec begins. Kept for the view of a session only, and as long as the kernel believes them.
 *
 * Any thread at once; the lock is a leaf, and nothing is told to the kernel under it. */
#pragma once

#include "fsgate/view.h"

struct fuse_session;

/* How long the kernel believes a name. */
FsgRecent *fsg_recent_new(double cache_s);
void fsg_recent_free(FsgRecent *recent); /* NULL is allowed, here and below */

/* The kernel is about to be told what this name in the directory with that node id is, or that it is not there. */
void fsg_recent_note(FsgRecent *recent, uint64_t dir_id, const char *name, bool is_dir);

/* Makes visible what the host has changed before the call: takes back what the kernel may believe from before.
 * Never by a thread that serves requests, for the kernel makes it wait for directories that requests hold. 0, or
 * -ETIMEDOUT when it did not get that far: then what is believed ends by itself, within cache_s. */
int fsg_cache_catch_up(FsgView *view, struct fuse_session *fuse, int timeout_ms);
