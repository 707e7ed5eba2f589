/* How long the kernel may believe what it is told; see cache.h. */
#include "fsgate/cache.h"

#include "fsgate/invalidate.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#define FOR_EVER_S (365.0 * 24 * 3600)
/* What is watched: asked for again now and then, for the thread that tells may be held up in the kernel (a process that
 * lists a directory into memory that hangs holds that directory, and who tells of it). */
#define WATCHED_S FSG_WATCH_FILE_S

/* Nobody else changes it, so nothing has to be told. Any other number but 0 is a generation of watches. */
#define TRUST_ALONE UINT_MAX

static PolicyCache mode_of(const FsgView *view, const FsgInode *inode)
{
	PolicyCache mode = view->plan->policy->cache;

	return mode == POLICY_CACHE_EXCLUSIVE && inode->anchor && inode->anchor->has_twin
		       ? POLICY_CACHE_AUTO
		       : mode;
}

/* A short life needs no watches, and pays for them at its end (FSG_WATCH_AFTER_US). */
static FsgWatch *watch_of(const FsgView *view)
{
	const FsgInvalidate *invalidate = view->invalidate;

	return g_get_monotonic_time() >= invalidate->watches_from_us ? invalidate->watch : NULL;
}

FsgTrust fsg_cache_begin_names(FsgView *view, FsgInode *dir, int dirfd)
{
	FsgWatch *watch = watch_of(view);

	switch (mode_of(view, dir)) {
	case POLICY_CACHE_EXCLUSIVE:
		return TRUST_ALONE;
	case POLICY_CACHE_AUTO:
		return watch ? fsg_watch_dir(watch, dir, dirfd) : 0;
	case POLICY_CACHE_STRICT:
		break;
	}
	return 0;
}

FsgTrust fsg_cache_begin_object(FsgView *view, FsgInode *inode)
{
	FsgWatch *watch = watch_of(view);

	/* What the view has by its plan is asked for every second: so every path shows soon when the gateway
	 * has gone. */
	if (inode->kind != FSG_INODE_HOST || fsg_inode_node(view->inodes, inode))
		return 0;
	switch (mode_of(view, inode)) {
	case POLICY_CACHE_EXCLUSIVE:
		return TRUST_ALONE;
	case POLICY_CACHE_AUTO:
		return watch ? fsg_watch_object(watch, inode) : 0;
	case POLICY_CACHE_STRICT:
		break;
	}
	return 0;
}

/* Whether what was promised before the look still holds. */
static bool holds(const FsgView *view, FsgTrust trust)
{
	if (trust == 0 || trust == TRUST_ALONE)
		return trust == TRUST_ALONE;
	return trust == fsg_watch_generation(view->invalidate->watch) &&
	       !fsg_watch_is_late(view->invalidate->watch);
}

static double name_s(FsgTrust trust)
{
	return trust == TRUST_ALONE ? FOR_EVER_S : WATCHED_S;
}

/* Of file systems that are not known nothing is said. Positions in a directory of tmpfs are counted from its start before Linux 6.6: where names come and go they mean
 * something only to the handle that gave them. */
static bool has_lasting_positions(int fd)
{
	struct utsname name;
	struct statfs fs;
	int major = 0, minor = 0;

	if (!fsg_watch_is_local(fd) || fstatfs(fd, &fs) != 0)
		return false;
	if (fs.f_type != TMPFS_MAGIC)
		return true;
	return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 6));
}

bool fsg_cache_keeps_listing(FsgView *view, FsgTrust trust, int fd)
{
	return holds(view, trust) && has_lasting_positions(fd);
}

uint64_t fsg_cache_event_id(FsgTrust trust, int fd, const char *name)
{
	return trust != 0 && trust != TRUST_ALONE ? fsg_watch_id(fd, name) : 0;
}

static bool is_strict(const FsgView *view)
{
	return view->plan->policy->cache == POLICY_CACHE_STRICT;
}

/* For a second, if that can be kept in mind. */
static double short_s(FsgView *view, uint64_t dir, const char *name, uint64_t object, bool is_dir)
{
	if (is_strict(view))
		return 0;
	/* Nothing is ever taken back. */
	if (view->plan->policy->cache == POLICY_CACHE_EXCLUSIVE)
		return FSG_BELIEF_SHORT_S;
	return fsg_told_add_recent(view->invalidate->told, dir, name, object, is_dir)
		       ? FSG_BELIEF_SHORT_S
		       : 0;
}

/* A name that the table may not know when everything has to be taken back. */
static bool keep_in_mind(FsgView *view, uint64_t dir, const char *name, FsgTrust trust)
{
	if (trust == TRUST_ALONE || fsg_told_add_lasting(view->invalidate->told, dir, name))
		return true;
	fsg_watch_want_room(view->invalidate->watch);
	return false;
}

/* How long attributes that were just looked at may be believed; 0 when not for long. Events name the way by which
 * a file was changed: by a second name it may be one that is not watched. */
static double long_attr_s(const FsgView *view, const FsgInode *inode, const struct stat *st,
			  FsgTrust trust)
{
	bool one_name = inode->type == S_IFDIR || st->st_nlink == 1;

	if (!holds(view, trust))
		return 0;
	if (trust == TRUST_ALONE)
		return one_name || !view->has_near ? FOR_EVER_S : 0;
	return one_name ? WATCHED_S : 0;
}

/* A name that the view has by its plan, whatever the host does: a directory on the way to a mount is laid over the host's,
 * or in the place of one that is missing. */
static bool is_fixed_name(FsgView *view, const FsgInode *dir, FsgInode *inode)
{
	const FsgNode *node = fsg_inode_node(view->inodes, inode);

	return node && (node->kind != FSG_NODE_DIR || dir->kind != FSG_INODE_HOST);
}

/* What never changes. Where a killed gateway does not end all that uses the view, every path is to show that soon. */
static double fixed_s(const FsgView *view)
{
	if (is_strict(view))
		return 0;
	return view->plan->presentation == VIEW_FOR_SANDBOX ? FOR_EVER_S : FSG_BELIEF_SHORT_S;
}

void fsg_cache_entry(FsgView *view, FsgInode *dir, const char *name, FsgTrust trust,
		     struct fuse_entry_param *entry)
{
	FsgInode *inode = fsg_inode_from_id(view->inodes, entry->ino);
	uint64_t dir_id = fsg_inode_id(view->inodes, dir);
	bool is_dir = inode->type == S_IFDIR;
	FsgTrust of_object = trust;
	double missing;

	if (inode->kind != FSG_INODE_HOST || fsg_inode_node(view->inodes, inode))
		trust = of_object = 0;
	/* A directory's own mark is younger than this look at it; a file has to be known to events. */
	else if (trust != TRUST_ALONE)
		of_object = is_dir ? 0 : fsg_cache_begin_object(view, inode);
	entry->attr_timeout = long_attr_s(view, inode, &entry->attr, of_object);
	entry->entry_timeout = 0;
	if (inode->kind == FSG_INODE_SYNTHETIC)
		entry->attr_timeout = fixed_s(view);
	if (is_fixed_name(view, dir, inode))
		entry->entry_timeout = fixed_s(view);
	else if (holds(view, trust) &&
		 (is_dir || entry->attr.st_nlink == 1 || keep_in_mind(view, dir_id, name, trust)))
		entry->entry_timeout = name_s(trust);
	if (entry->attr_timeout > 0 && entry->entry_timeout > 0)
		return;
	missing = short_s(view, dir_id, entry->entry_timeout > 0 ? "" : name,
			  entry->attr_timeout > 0 ? 0 : entry->ino, is_dir);
	if (entry->attr_timeout <= 0)
		entry->attr_timeout = missing;
	if (entry->entry_timeout <= 0)
		entry->entry_timeout = missing;
}

double fsg_cache_missing_s(FsgView *view, FsgInode *dir, const char *name, FsgTrust trust)
{
	uint64_t dir_id = fsg_inode_id(view->inodes, dir);

	if (holds(view, trust) && keep_in_mind(view, dir_id, name, trust))
		return name_s(trust);
	return short_s(view, dir_id, name, 0, false);
}

double fsg_cache_attr_s(FsgView *view, FsgInode *inode, const struct stat *st, FsgTrust trust)
{
	double time = inode->kind == FSG_INODE_HOST	   ? long_attr_s(view, inode, st, trust)
		      : inode->kind == FSG_INODE_SYNTHETIC ? fixed_s(view)
							   : 0;

	if (time > 0)
		return time;
	return short_s(view, 0, "", fsg_inode_id(view->inodes, inode), false);
}

double fsg_cache_changed_attr_s(FsgView *view, FsgInode *inode)
{
	if (mode_of(view, inode) == POLICY_CACHE_EXCLUSIVE)
		return FOR_EVER_S;
	return short_s(view, 0, "", fsg_inode_id(view->inodes, inode), false);
}

bool fsg_cache_keeps_pages(FsgView *view, FsgInode *inode, const struct statx *stx)
{
	FsgTrust trust = fsg_cache_begin_object(view, inode);
	bool same = fsg_inode_restamp(view->inodes, inode, stx, trust != 0);

	if (is_strict(view))
		return false;
	/* A hard link may lie in a mount that does not overlap. */
	if (trust == TRUST_ALONE)
		return same || stx->stx_nlink == 1 || !view->has_near;
	return same;
}

bool fsg_cache_begin_close(FsgView *view, FsgInode *inode)
{
	return fsg_cache_begin_object(view, inode) != 0;
}

void fsg_cache_closed(FsgView *view, FsgInode *inode, const struct statx *stx)
{
	(void)fsg_inode_restamp(view->inodes, inode, stx, true);
}
