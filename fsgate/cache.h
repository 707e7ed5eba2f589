/* How long the kernel may believe what it is told: the rules of `cache: strict | auto | exclusive`.
 *
 *             | names, missing names, listings | attributes        | pages kept over an open
 *   strict    | never                          | never             | never
 *   auto      | as long as nothing is told     | the same; files   | if the stamps are the same (and, unless
 *             | (watch.h); else a second       | with one name     | changes are told, old enough)
 *             |                                | only              |
 *   exclusive | for ever                       | for ever          | always
 *
 * `exclusive` holds as far as the view is the only writer by one way only: where a directory is mounted twice
 * the rules of `auto` hold. What the view has by its plan is believed for a second; for ever in a sandbox, which ends
 * with its gateway.
 *
 * Whoever looks at the host asks before the look (begin) and tells what came of it after: the mark of a watch
 * has to come first. */
#pragma once

#include "fsgate/fuse-api.h"
#include "fsgate/view.h"

/* What a look at the host may be trusted for. */
typedef unsigned int FsgTrust;

/* Before a look at names in this directory, whose O_PATH fd is dirfd; and before one at an object's attributes. */
FsgTrust fsg_cache_begin_names(FsgView *view, FsgInode *dir, int dirfd);
FsgTrust fsg_cache_begin_object(FsgView *view, FsgInode *inode);

/* Whether the kernel may keep a listing of this directory, of which it may then throw away a part and ask for the
 * rest through another handle. */
bool fsg_cache_keeps_listing(FsgView *view, FsgTrust trust, int fd);

/* What events call the object (fd, name), or that of fd when the name is ""; 0 when they do not matter. To be asked
 * before the look: if another object has the name by then, an event says so. */
uint64_t fsg_cache_event_id(FsgTrust trust, int fd, const char *name);

/* The times of an entry that was found, of a name that was not, and of attributes. */
void fsg_cache_entry(FsgView *view, FsgInode *dir, const char *name, FsgTrust trust,
		     struct fuse_entry_param *entry);
double fsg_cache_missing_s(FsgView *view, FsgInode *dir, const char *name, FsgTrust trust);
double fsg_cache_attr_s(FsgView *view, FsgInode *inode, const struct stat *st, FsgTrust trust);
/* Of attributes that come back from a change: the kernel takes them as they are, whatever it was told since. */
double fsg_cache_changed_attr_s(FsgView *view, FsgInode *inode);

/* Whether the kernel's pages of a file that is being opened are good. */
bool fsg_cache_keeps_pages(FsgView *view, FsgInode *inode, const struct statx *stx);
/* A file that was open for writing is closed: what was written through it the kernel knows. Whether it has to be looked at
 * for that, and what was seen. */
bool fsg_cache_begin_close(FsgView *view, FsgInode *inode);
void fsg_cache_closed(FsgView *view, FsgInode *inode, const struct statx *stx);
