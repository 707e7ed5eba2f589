/* From a directory and a name to an inode; see lookup.h. The order of the questions is the policy: first
 * the view tree (what a mount covers is never asked of the host), then what is hidden, then the host,
 * through one checked step; and what the host gives is served read-only where it is the root of some
 * read-only mount. */
#include "fsgate/lookup.h"

#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/resolve.h"
#include "fsgate/cache.h"
#include "fsgate/place.h"
#include "fsgate/refusal.h"
#include "fsgate/symlink.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

uid_t fsg_shown_uid(const FsgView *view, const FsgAnchor *anchor, uid_t uid)
{
	uid_t own = anchor->act_uid == (uid_t)-1 ? geteuid() : anchor->act_uid;

	if (fsg_view_serves_callers(view))
		return uid;
	return view->maps_one_id || uid == own ? view->shown_uid : uid;
}

static void show_ids(const FsgView *view, const FsgAnchor *anchor, struct stat *st)
{
	gid_t own_gid = anchor->act_gid == (gid_t)-1 ? getegid() : anchor->act_gid;

	st->st_uid = fsg_shown_uid(view, anchor, st->st_uid);
	if (fsg_view_serves_callers(view))
		return;
	if (view->maps_one_id || st->st_gid == own_gid)
		st->st_gid = view->shown_gid;
}

static void stat_from_statx(const FsgView *view, const FsgAnchor *anchor, const struct statx *stx,
			    struct stat *ret_st)
{
	dev_t dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);

	memset(ret_st, 0, sizeof *ret_st);
	ret_st->st_ino = fsg_view_ino(view, dev, stx->stx_ino);
	ret_st->st_mode = stx->stx_mode;
	ret_st->st_nlink = stx->stx_nlink;
	ret_st->st_uid = stx->stx_uid;
	ret_st->st_gid = stx->stx_gid;
	ret_st->st_rdev = makedev(stx->stx_rdev_major, stx->stx_rdev_minor);
	ret_st->st_size = (off_t)stx->stx_size;
	ret_st->st_blksize = (blksize_t)stx->stx_blksize;
	ret_st->st_blocks = (blkcnt_t)stx->stx_blocks;
	ret_st->st_atim = (struct timespec){ stx->stx_atime.tv_sec, stx->stx_atime.tv_nsec };
	ret_st->st_mtim = (struct timespec){ stx->stx_mtime.tv_sec, stx->stx_mtime.tv_nsec };
	ret_st->st_ctim = (struct timespec){ stx->stx_ctime.tv_sec, stx->stx_ctime.tv_nsec };
	show_ids(view, anchor, ret_st);
}

/* Directories, links and stand-ins of the view's own. */
static void stat_made_up(const FsgView *view, const FsgInode *inode, const FsgNode *node,
			 struct stat *ret_st)
{
	memset(ret_st, 0, sizeof *ret_st);
	ret_st->st_ino = fsg_shown_ino(view, inode);
	ret_st->st_uid = view->shown_uid;
	ret_st->st_gid = view->shown_gid;
	ret_st->st_blksize = 4096;
	switch (inode->type) {
	case S_IFDIR:
		ret_st->st_mode = S_IFDIR | 0555;
		ret_st->st_nlink = 2 + (node ? fsg_node_count_dirs(node) : 0);
		break;
	case S_IFLNK:
		ret_st->st_mode = S_IFLNK | 0777;
		ret_st->st_nlink = 1;
		ret_st->st_size = node && node->target ? (off_t)strlen(node->target) : 0;
		break;
	default:
		ret_st->st_mode = S_IFREG | 0444;
		ret_st->st_nlink = 1;
		break;
	}
}

uint64_t fsg_shown_ino(const FsgView *view, const FsgInode *inode)
{
	switch (inode->kind) {
	case FSG_INODE_SYNTHETIC:
		return inode->node->ino; /* constant for nodes */
	case FSG_INODE_BLOCKED:
		return inode->key.ino;
	case FSG_INODE_HOST:
		break;
	}
	return fsg_view_ino(view, inode->key.dev, inode->key.ino);
}

/* Without an fd. Not for what a program has open, which may be anywhere. */
static bool stat_by_place(FsgView *view, FsgInode *inode, struct stat *ret_st)
{
	struct statx stx;

	if (inode->type == S_IFDIR || fsg_inode_has_handles(view->inodes, inode) ||
	    fsg_place_stat(view, inode, &stx) < 0)
		return false;
	stat_from_statx(view, inode->anchor, &stx, ret_st);
	return true;
}

int fsg_stat(FsgView *view, FsgInode *inode, int file_fd, struct stat *ret_st)
{
	struct statx stx;
	int fd = file_fd, r = 0;

	if (inode->kind != FSG_INODE_HOST) {
		stat_made_up(view, inode, fsg_inode_node(view->inodes, inode), ret_st);
		return 0;
	}
	if (file_fd < 0 && stat_by_place(view, inode, ret_st))
		goto out;
	if (file_fd < 0 && (fd = fsg_get_object_fd(view, inode, true)) < 0)
		return fd;
	r = statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &stx) == 0 ? 0
											 : -errno;
	if (r == 0)
		stat_from_statx(view, inode->anchor, &stx, ret_st);
	if (file_fd < 0)
		fsg_inode_put_fd(view->inodes, inode);
	if (r < 0)
		return r;
out:
	if (inode->type == S_IFLNK)
		fsg_link_adjust_size(view, inode, ret_st);
	return 0;
}

static int check_connected(int fd)
{
	int r = resolve_check_connected(fd);

	return r == -ESTALE ? fsg_refuse(DENIAL_MOVED_OUT, r) : r;
}

/* Whether the name that the object was last seen by still leads to it, from a directory that is inside the
 * mount. An object without any name is nowhere, and so not outside either. */
static int check_place(FsgView *view, FsgInode *inode, int fd)
{
	struct statx stx;
	int r;

	/* A directory that may not be searched does not say; its name does. */
	if (inode->type == S_IFDIR && (r = check_connected(fd)) != -EACCES)
		return r;
	if (fsg_place_stat(view, inode, &stx) == 0)
		return 0;
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_NLINK, &stx) != 0)
		return -errno;
	return stx.stx_nlink == 0 ? 0 : -ESTALE;
}

/* By an open file of the object's: who has that may use it wherever it is. */
static int get_fd_by_handle(FsgView *view, FsgInode *inode)
{
	FD_AUTO copy = fsg_inode_dup_file_fd(view->inodes, inode);
	int fd = copy < 0 ? -ESTALE : fd_reopen(view->proc_fd, copy, O_PATH);

	return fd < 0 ? fd : fsg_inode_install_fd(view->inodes, inode, fd);
}

int fsg_get_object_fd(FsgView *view, FsgInode *inode, bool held)
{
	int fd, r;

	if (inode->kind != FSG_INODE_HOST)
		return -EBADF;
	if ((r = fsg_view_act_as(inode->anchor)) < 0)
		return r;
	fd = fsg_inode_get_cached_fd(view->inodes, inode);
	if (fd < 0 && inode->type != S_IFDIR) {
		fd = fsg_place_open(view, inode);
		return fd == -ESTALE && held ? get_fd_by_handle(view, inode) : fd;
	}
	if (fd < 0 && (fd = fsg_inode_get_fd(view->inodes, inode)) < 0)
		return fd;
	if (inode->fd_borrowed || (held && fsg_inode_has_handles(view->inodes, inode)))
		return fd;
	if ((r = check_place(view, inode, fd)) < 0 || (r = fsg_view_act_as(inode->anchor)) < 0) {
		fsg_inode_put_fd(view->inodes, inode);
		return r;
	}
	return fd;
}

/* Threads that may wait at a time for other processes to give up their leases. */
#define LEASE_WAITS_MOST 4

int fsg_reopen(FsgView *view, int fd, int flags)
{
	struct stat st;
	int opened;

	/* Asked of the object itself: a device, FIFO or socket is never opened here. */
	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	opened = fd_reopen(view->proc_fd, fd, flags | O_NONBLOCK);
	if (opened != -EAGAIN)
		return opened;
	(void)fsg_refuse(DENIAL_HOST_LEASE, -EAGAIN); /* when that stays the answer */
	if (__atomic_add_fetch(&view->lease_waits, 1, __ATOMIC_RELAXED) <= LEASE_WAITS_MOST)
		opened = fd_reopen(view->proc_fd, fd, flags);
	__atomic_sub_fetch(&view->lease_waits, 1, __ATOMIC_RELAXED);
	return opened;
}

int fsg_get_dir_fd(FsgView *view, FsgInode *dir)
{
	int fd, r;

	if (dir->kind != FSG_INODE_HOST)
		return -EBADF;
	if ((r = fsg_view_act_as(dir->anchor)) < 0)
		return r;
	if ((fd = fsg_inode_get_fd(view->inodes, dir)) < 0)
		return fd;
	if (!dir->fd_borrowed && (r = check_connected(fd)) < 0) {
		fsg_inode_put_fd(view->inodes, dir);
		return r;
	}
	return fd;
}

static void fill_entry(FsgView *view, const FsgInode *inode, struct fuse_entry_param *ret_entry)
{
	ret_entry->ino = fsg_inode_id(view->inodes, inode);
	ret_entry->generation = 1;
}

/* Whoever looks up the same name at the same time waits in the kernel where nothing can end it: so the name of a
 * mount must not wait for a server. The attributes are then what the client side of the host's file system has,
 * and the kernel is told not to believe them. */
static int stat_mount_without_server(FsgView *view, FsgInode *inode, struct stat *ret_st)
{
	struct statx stx;

	if (statx(inode->anchor->fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		  STATX_BASIC_STATS, &stx) != 0)
		return -errno;
	stat_from_statx(view, inode->anchor, &stx, ret_st);
	return 0;
}

static int node_entry(FsgView *view, const FsgNode *node, struct fuse_entry_param *ret_entry)
{
	bool asks_server = node->kind == FSG_NODE_MOUNT && !node->anchor->is_local;
	int r = asks_server ? stat_mount_without_server(view, node->inode, &ret_entry->attr)
			    : fsg_stat(view, node->inode, -1, &ret_entry->attr);

	if (r < 0)
		return r;
	fsg_inode_give_lookup(view->inodes, node->inode);
	fill_entry(view, node->inode, ret_entry);
	if (asks_server)
		ret_entry->attr_timeout = 0;
	return 0;
}

/* What is mounted on the host at dir/name is not part of the mount: an empty, read-only stand-in of the
 * same kind shows. Its number is a hash of where it is. */
static int blocked_entry(FsgView *view, FsgInode *dir, const char *name, bool is_private,
			 struct fuse_entry_param *ret_entry)
{
	uint64_t hash = fsg_shown_ino(view, dir) * 0x9e3779b97f4a7c15u;
	struct statx stx = { .stx_mode = S_IFDIR };
	struct stat st;
	FsgInode *inode;
	int dirfd = fsg_inode_get_fd(view->inodes, dir);

	if (dirfd < 0)
		return dirfd;
	/* Of the mounted object only the kind is used. */
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
	    !S_ISDIR(st.st_mode))
		stx.stx_mode = S_IFREG;
	fsg_inode_put_fd(view->inodes, dir);
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	stx.stx_ino = (hash & (FSG_INO_PRIVATE - 1)) | 1ull << 61;
	if (is_private)
		stx.stx_ino |= FSG_INO_PRIVATE;
	inode = fsg_inode_ensure(view->inodes, FSG_INODE_BLOCKED, dir->anchor, &stx, dir, name,
				 NULL, -1);
	stat_made_up(view, inode, NULL, &ret_entry->attr);
	fill_entry(view, inode, ret_entry);
	return 0;
}

/* The entry of what stx says of it. take_fd: its O_PATH fd, or -1 when it is not needed yet. event_id: what events
 * call it, or 0. */
static int host_entry(FsgView *view, FsgInode *dir, const char *name, FsgNode *node,
		      const struct statx *stx, int take_fd, uint64_t event_id,
		      struct fuse_entry_param *ret_entry)
{
	FD_AUTO fd = take_fd;
	FsgAnchor *anchor = dir->anchor, *alias;
	FsgInode *inode;

	if (S_ISDIR(stx->stx_mode) &&
	    fsg_view_is_private(view, makedev(stx->stx_dev_major, stx->stx_dev_minor),
				stx->stx_ino))
		return blocked_entry(view, dir, name, true, ret_entry);
	alias = fsg_anchor_find_alias(anchor, makedev(stx->stx_dev_major, stx->stx_dev_minor),
				      stx->stx_ino);
	if (alias) {
		anchor = alias;
		fd_close(&fd); /* it is in the writable clone; the alias's own fd serves */
	}
	stat_from_statx(view, anchor, stx, &ret_entry->attr);
	inode = fsg_inode_ensure(view->inodes, FSG_INODE_HOST, anchor, stx, dir, name, node,
				 fd_steal(&fd));
	if (event_id)
		fsg_inode_set_watch_id(view->inodes, inode, event_id);
	if (inode->type == S_IFLNK)
		fsg_link_adjust_size(view, inode, &ret_entry->attr);
	fill_entry(view, inode, ret_entry);
	return 0;
}

int fsg_entry_of_new(FsgView *view, FsgInode *dir, const char *name, int fd,
		     struct fuse_entry_param *ret_entry)
{
	FsgTrust trust = fsg_cache_begin_object(view, dir);
	struct statx stx;
	int r;

	memset(ret_entry, 0, sizeof *ret_entry);
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, FSG_STATX_MASK, &stx) != 0)
		return -errno;
	/* As long as it is open, that fd serves. */
	r = host_entry(view, dir, name, NULL, &stx, -1, fsg_cache_event_id(trust, fd, ""),
		       ret_entry);
	if (r == 0)
		fsg_cache_entry(view, dir, name, trust, ret_entry);
	return r;
}

/* What the entry is, and its fd where one is needed at once: a directory is opened, for names will be looked up in it,
 * and who is in it stays in it wherever the host moves it within the mount. Of all else most is never opened. */
static int find_entry(const FsgAnchor *anchor, int dirfd, const char *name, struct statx *ret_stx,
		      int *ret_fd)
{
	FD_AUTO fd = -1;
	int r = fsg_stat_child(anchor, dirfd, name, ret_stx);

	*ret_fd = -1;
	if (r < 0 || !S_ISDIR(ret_stx->stx_mode))
		return r;
	fd = resolve_child(dirfd, name, anchor->cross_mounts);
	if (fd < 0)
		return fd;
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, FSG_STATX_MASK, ret_stx) != 0)
		return -errno;
	*ret_fd = fd_steal(&fd);
	return 0;
}

/* *ret_trust is set when the host was looked at. */
static int look_up(FsgView *view, FsgInode *dir, int held_dirfd, const char *name,
		   FsgTrust *ret_trust, struct fuse_entry_param *ret_entry)
{
	FsgNode *node = fsg_node_find_child(fsg_inode_node(view->inodes, dir), name);
	int dirfd, fd, r = path_check_name(name);
	struct statx stx;
	uint64_t event_id;

	memset(ret_entry, 0, sizeof *ret_entry);
	if (r < 0)
		return r;
	if (node && (node->kind != FSG_NODE_DIR || dir->kind != FSG_INODE_HOST))
		return node_entry(view, node, ret_entry);
	if (dir->kind != FSG_INODE_HOST)
		return -ENOENT;
	if (fsg_view_hides(view, dir, name))
		return fsg_refuse(DENIAL_HIDDEN, -ENOENT);
	if (held_dirfd >= 0 && (r = fsg_view_act_as(dir->anchor)) < 0)
		return r;
	dirfd = held_dirfd >= 0 ? held_dirfd : fsg_get_dir_fd(view, dir);
	if (dirfd < 0)
		return dirfd;
	*ret_trust = fsg_cache_begin_names(view, dir, dirfd);
	event_id = fsg_cache_event_id(*ret_trust, dirfd, name);
	r = find_entry(dir->anchor, dirfd, name, &stx, &fd);
	if (held_dirfd < 0)
		fsg_inode_put_fd(view->inodes, dir);
	/* A directory that leads to a mount: laid over the host's, or in its place whatever it is. */
	if (node && (r < 0 || !S_ISDIR(stx.stx_mode))) {
		fd_close(&fd);
		return node_entry(view, node, ret_entry);
	}
	if (r == -EXDEV)
		return blocked_entry(view, dir, name, false, ret_entry);
	if (r < 0)
		return r;
	return host_entry(view, dir, name, node, &stx, fd, event_id, ret_entry);
}

int fsg_lookup_in(FsgView *view, FsgInode *dir, int held_dirfd, const char *name,
		  struct fuse_entry_param *ret_entry)
{
	FsgTrust trust = 0;
	int r = look_up(view, dir, held_dirfd, name, &trust, ret_entry);

	if (r == 0)
		fsg_cache_entry(view, dir, name, trust, ret_entry);
	else if (r == -ENOENT)
		ret_entry->entry_timeout = fsg_cache_missing_s(view, dir, name, trust);
	return r;
}

int fsg_lookup(FsgView *view, FsgInode *dir, const char *name, struct fuse_entry_param *ret_entry)
{
	return fsg_lookup_in(view, dir, -1, name, ret_entry);
}
