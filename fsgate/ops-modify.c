/* Changes of names: making, removing, renaming, linking.
 *
 * Each looks at the object behind the name before it acts, for a mounted host directory and those above it
 * may not move or go (EBUSY). Between the look and the act another process may exchange the names, but
 * never for a pinned object: moving that is what is refused here. */
#include "fsgate/change.h"
#include "fsgate/lookup.h"
#include "fsgate/ops.h"
#include "fsgate/place.h"
#include "fsgate/refusal.h"

#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/resolve.h"
#include "common/syscall-wrap.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/sysmacros.h>

/* The directory's fd to make `name` in. The view tree's own names are there already. */
static int begin_make(FsgView *view, FsgOp op, FsgInode *dir, const char *name)
{
	int r;

	if ((r = fsg_gate(op, dir)) < 0 || (r = path_check_name(name)) < 0)
		return r;
	if (fsg_node_find_child(fsg_inode_node(view->inodes, dir), name))
		return -EEXIST;
	if (fsg_view_hides(view, dir, name))
		return fsg_refuse(DENIAL_HIDDEN, -EACCES);
	return fsg_get_dir_fd(view, dir);
}

/* The entry of what was made, unless something of another type has its name by now: such an answer the kernel does not
 * take, and does not give back the look-up in it. */
static int look_up_made(FsgView *view, FsgInode *dir, const char *name, mode_t type,
			struct fuse_entry_param *ret_entry)
{
	int r = fsg_lookup(view, dir, name, ret_entry);

	if (r < 0 || (ret_entry->attr.st_mode & S_IFMT) == type)
		return r;
	fsg_inode_forget(view->inodes, fsg_inode_from_id(view->inodes, ret_entry->ino), 1);
	return -ENOENT; /* what was made is gone */
}

static void finish_make(fuse_req_t req, FsgOp op, FsgInode *dir, const char *name, mode_t type,
			int r)
{
	FsgView *view = fsg_req_view(req);
	struct fuse_entry_param entry;

	if (r == 0) {
		fsg_change_created(view, dir, name);
		r = look_up_made(view, dir, name, type, &entry);
	}
	if (r < 0)
		fsg_reply_result(req, op, r);
	else
		fsg_reply_entry(req, view, &entry);
}

void fsg_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *dir = fsg_req_inode(req, parent);
	int r = begin_make(view, FSG_OP_MKDIR, dir, name);

	if (r >= 0) {
		r = mkdirat(r, name,
			    fsg_identity_new_mode(dir->anchor, view->proc_fd, S_IFDIR, mode)) == 0
			    ? 0
			    : -errno;
		fsg_inode_put_fd(view->inodes, dir);
	}
	finish_make(req, FSG_OP_MKDIR, dir, name, S_IFDIR, r);
}

void fsg_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *dir = fsg_req_inode(req, parent);
	mode_t type = mode & S_IFMT;
	int r = begin_make(view, FSG_OP_MKNOD, dir, name);

	(void)rdev; /* means something for devices only, which are not made */
	if (r >= 0) {
		if (type != S_IFREG && type != S_IFIFO && type != S_IFSOCK)
			r = fsg_refuse(DENIAL_DEVICE_NODE, -EPERM);
		else
			r = mknodat(r, name,
				    type | fsg_identity_new_mode(dir->anchor, view->proc_fd, type,
								 mode),
				    0) == 0
				    ? 0
				    : -errno;
		fsg_inode_put_fd(view->inodes, dir);
	}
	finish_make(req, FSG_OP_MKNOD, dir, name, type, r);
}

void fsg_op_symlink(fuse_req_t req, const char *text, fuse_ino_t parent, const char *name)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *dir = fsg_req_inode(req, parent);
	int r = begin_make(view, FSG_OP_SYMLINK, dir, name);

	/* Any text: programs make links before their targets. Using it is what is judged. */
	if (r >= 0) {
		r = symlinkat(text, r, name) == 0 ? 0 : -errno;
		fsg_inode_put_fd(view->inodes, dir);
	}
	finish_make(req, FSG_OP_SYMLINK, dir, name, S_IFLNK, r);
}

/* The object that a name stands for before it is removed or moved. */
typedef struct {
	int dirfd; /* of its directory; a user of the inode's fd */
	int fd;	   /* O_PATH; -1 when there is none, or it is not needed */
	FsgInodeKey key;
	nlink_t nlink;
	bool is_dir;
} Victim;

static void victim_clear(FsgView *view, FsgInode *dir, Victim *victim)
{
	if (victim->dirfd >= 0)
		fsg_inode_put_fd(view->inodes, dir);
	victim->dirfd = -1;
	fd_close(&victim->fd);
}

/* Where the kernel decides for many callers, and we act as one owner for all of them: it has judged by whose the
 * object was that it knows by this name. In a sticky directory that turns on whose it is now. */
static int check_sticky(const FsgView *view, const FsgInode *dir, int dirfd, uid_t owner)
{
	uid_t caller = fsg_identity_caller();
	struct stat st;

	if (!view->kernel_decides || dir->anchor->as_caller || caller == 0)
		return 0;
	if (fstat(dirfd, &st) != 0)
		return -errno;
	if (!(st.st_mode & S_ISVTX) || caller == fsg_shown_uid(view, dir->anchor, owner) ||
	    caller == fsg_shown_uid(view, dir->anchor, st.st_uid))
		return 0;
	return -EPERM;
}

/* Whether the name may be removed or moved, and what it is. An absent one is -ENOENT. With may_go it is opened: were this
 * its last name, nothing would lead to it afterwards. dir_known: the directory has been looked at just now. */
static int victim_open(FsgView *view, FsgInode *dir, const char *name, bool may_go, bool dir_known,
		       Victim *ret_victim)
{
	struct statx stx;
	int r;

	*ret_victim = (Victim){ .dirfd = -1, .fd = -1 };
	if ((r = path_check_name(name)) < 0)
		return r;
	if (fsg_node_find_child(fsg_inode_node(view->inodes, dir), name))
		return fsg_refuse_entry(DENIAL_PINNED_DIRECTORY, -EBUSY, dir, name);
	if (fsg_view_hides(view, dir, name))
		return fsg_refuse_entry(DENIAL_HIDDEN, -ENOENT, dir, name);
	r = dir_known ? fsg_inode_get_fd(view->inodes, dir) : fsg_get_dir_fd(view, dir);
	if (r < 0)
		return r;
	ret_victim->dirfd = r;
	if (may_go)
		r = resolve_child(ret_victim->dirfd, name, dir->anchor->cross_mounts);
	else
		r = fsg_stat_child(dir->anchor, ret_victim->dirfd, name, &stx);
	if (r == -EXDEV) /* a host mount point: as on the host */
		return fsg_refuse_entry(DENIAL_STAND_IN, -EBUSY, dir, name);
	if (r < 0)
		return r;
	if (may_go) {
		ret_victim->fd = r;
		if (statx(r, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, FSG_STATX_MASK, &stx) != 0)
			return -errno;
	}
	ret_victim->key = fsg_inode_key(dir->anchor, &stx);
	ret_victim->nlink = stx.stx_nlink;
	ret_victim->is_dir = S_ISDIR(stx.stx_mode);
	if (fsg_view_is_pinned(view, makedev(stx.stx_dev_major, stx.stx_dev_minor), stx.stx_ino))
		return fsg_refuse_entry(DENIAL_PINNED_DIRECTORY, -EBUSY, dir, name);
	return check_sticky(view, dir, ret_victim->dirfd, stx.stx_uid);
}

/* Its last name is gone: what the kernel still uses of it must stay reachable. */
static void victim_is_gone(FsgView *view, Victim *victim)
{
	if (victim->is_dir || victim->nlink <= 1)
		fsg_inode_unlinked(view->inodes, &victim->key, fd_steal(&victim->fd));
}

static void remove_name(fuse_req_t req, FsgOp op, fuse_ino_t parent, const char *name, int flags)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *dir = fsg_req_inode(req, parent);
	Victim victim = { .dirfd = -1, .fd = -1 };
	int r = fsg_gate(op, dir);

	if (r == 0)
		r = victim_open(view, dir, name, true, false, &victim);
	if (r == 0)
		r = unlinkat(victim.dirfd, name, flags) == 0 ? 0 : -errno;
	if (r == 0) {
		victim_is_gone(view, &victim);
		fsg_change_deleted(view, dir, name);
	}
	victim_clear(view, dir, &victim);
	fsg_reply_result(req, op, r);
}

void fsg_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, FSG_OP_UNLINK, parent, name, 0);
}

void fsg_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, FSG_OP_RMDIR, parent, name, AT_REMOVEDIR);
}

/* Two names of one object: the host has done nothing. */
static bool is_one_object(const Victim *moved, const Victim *target)
{
	return target->key.type != 0 && fsg_inode_key_equal(&moved->key, &target->key);
}

static void note_renamed(FsgView *view, const FsgRename *renamed, const Victim *moved,
			 Victim *target)
{
	fsg_inode_renamed(view->inodes, &moved->key, renamed->to_dir, renamed->to);
	if (renamed->exchange)
		fsg_inode_renamed(view->inodes, &target->key, renamed->from_dir, renamed->from);
	else if (renamed->replaces)
		victim_is_gone(view, target);
	if (!is_one_object(moved, target))
		fsg_change_renamed(view, renamed);
}

static int rename_checked(FsgView *view, FsgInode *from_dir, const char *from, FsgInode *to_dir,
			  const char *to, unsigned int flags)
{
	Victim moved = { .dirfd = -1, .fd = -1 }, target = { .dirfd = -1, .fd = -1 };
	bool exchange = (flags & RENAME_EXCHANGE) != 0;
	int r = victim_open(view, from_dir, from, false, false, &moved);
	bool found = r == 0;
	FsgRename renamed;

	if (found)
		r = victim_open(view, to_dir, to, !exchange, to_dir == from_dir, &target);
	if (r == -ENOENT && found && target.dirfd >= 0 && !exchange)
		r = 0; /* nothing is replaced */
	else if (r == -ENOENT && found && fsg_view_hides(view, to_dir, to))
		r = fsg_refuse_entry(DENIAL_HIDDEN, -EACCES, to_dir, to);
	if (r == 0)
		r = sys_renameat2(moved.dirfd, from, target.dirfd, to, flags);
	renamed = (FsgRename){
		.from_dir = from_dir,
		.from = from,
		.to_dir = to_dir,
		.to = to,
		.is_dir = moved.is_dir || target.is_dir,
		.replaces = target.fd >= 0 && !exchange,
		.exchange = exchange,
	};
	if (r == 0)
		note_renamed(view, &renamed, &moved, &target);
	victim_clear(view, to_dir, &target);
	victim_clear(view, from_dir, &moved);
	return r;
}

void fsg_op_rename(fuse_req_t req, fuse_ino_t from, const char *name, fuse_ino_t to,
		   const char *new_name, unsigned int flags)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *from_dir = fsg_req_inode(req, from), *to_dir = fsg_req_inode(req, to);
	int r = fsg_gate(FSG_OP_RENAME, from_dir);

	if (r == 0)
		r = fsg_gate(FSG_OP_RENAME, to_dir);
	/* WHITEOUT makes a device node; what is not known is not passed on. */
	if (r == 0 && (flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE)))
		r = fsg_refuse(DENIAL_DEVICE_NODE, -EINVAL);
	if (r == 0 && from_dir->anchor != to_dir->anchor)
		r = fsg_refuse(DENIAL_CROSS_MOUNT, -EXDEV);
	if (r == 0)
		r = rename_checked(view, from_dir, name, to_dir, new_name, flags);
	fsg_reply_result(req, FSG_OP_RENAME, r);
}

static int link_work(FsgView *view, FsgInode *inode, FsgInode *dir, const char *name)
{
	char number[16];
	int dirfd, fd, r;

	if (inode->kind != FSG_INODE_HOST || inode->anchor != dir->anchor)
		return fsg_refuse(DENIAL_CROSS_MOUNT, -EXDEV);
	if ((dirfd = begin_make(view, FSG_OP_LINK, dir, name)) < 0)
		return dirfd;
	/* Not even for who has it open: a new name would bring back what the host has taken out. */
	fd = fsg_get_object_fd(view, inode, false);
	r = fd;
	if (fd >= 0) {
		/* Follows the magic link to the object of the fd, which may itself be a symlink: that is
		 * linked, not followed. */
		snprintf(number, sizeof number, "%d", fd);
		r = linkat(view->proc_fd, number, dirfd, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
		fsg_inode_put_fd(view->inodes, inode);
	}
	fsg_inode_put_fd(view->inodes, dir);
	return r;
}

void fsg_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	FsgInode *inode = fsg_req_inode(req, ino), *dir = fsg_req_inode(req, parent);
	int r = fsg_gate(FSG_OP_LINK, dir);

	if (r == 0)
		r = link_work(fsg_req_view(req), inode, dir, name);
	finish_make(req, FSG_OP_LINK, dir, name, inode->type, r);
}
