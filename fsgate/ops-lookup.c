/* Lookup, forget, attributes, link texts, statfs, access. */
#include "fsgate/cache.h"
#include "fsgate/change.h"
#include "fsgate/invalidate.h"
#include "fsgate/lookup.h"
#include "fsgate/ops.h"
#include "fsgate/refusal.h"
#include "fsgate/symlink.h"

#include "common/fd-util.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

/* Requests in flight that no process waits for: reading ahead, RELEASE. */
#define BACKGROUND_MOST 1024

/* A link's text never changes, so that the kernel may keep it, which each start of a program gains by. Not where it says
 * more than the link does: in a view for the host it is where other links lead at the moment. */
static bool may_cache_links(const FsgView *view)
{
	return view->plan->presentation == VIEW_FOR_SANDBOX &&
	       view->plan->policy->cache != POLICY_CACHE_STRICT;
}

void fsg_op_init(void *userdata, struct fuse_conn_info *conn)
{
	FsgView *view = userdata;

	/* A killed gateway must lose nothing that a program has written. */
	conn->want &= ~(unsigned int)FUSE_CAP_WRITEBACK_CACHE;
	/* Reading ahead is counted for all mounts together: those of a source that hangs must not use
	 * up what there is. */
	conn->max_background = BACKGROUND_MOST;
	conn->congestion_threshold = BACKGROUND_MOST / 4 * 3;
	view->caches_links = may_cache_links(view) && (conn->capable & FUSE_CAP_CACHE_SYMLINKS);
	if (view->caches_links)
		conn->want |= FUSE_CAP_CACHE_SYMLINKS;
	/* The umask is applied on the host, which knows where a default ACL takes its place. */
	conn->want |= conn->capable & FUSE_CAP_DONT_MASK;
	/* Where the kernel judges by the modes it has to judge by the ACLs too. Elsewhere it would begin to. */
	if (view->kernel_decides)
		conn->want |= FUSE_CAP_POSIX_ACL;
}

void fsg_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *dir = fsg_req_inode(req, parent);
	struct fuse_entry_param entry;
	int r = fsg_gate(FSG_OP_LOOKUP, dir);

	if (r == 0)
		r = fsg_lookup(view, dir, name, &entry);
	if (r == -ENOENT)
		fsg_reply_no_entry(req, entry.entry_timeout);
	else if (r < 0)
		fsg_reply_result(req, FSG_OP_LOOKUP, r);
	else
		fsg_reply_entry(req, view, &entry);
}

void fsg_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	FsgView *view = fsg_req_view(req);

	fsg_inode_forget(view->inodes, fsg_req_inode(req, ino), n);
	fsg_reply_none(req);
}

void fsg_op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	FsgView *view = fsg_req_view(req);

	for (size_t i = 0; i < count; i++)
		fsg_inode_forget(view->inodes, fsg_req_inode(req, forgets[i].ino),
				 forgets[i].nlookup);
	fsg_reply_none(req);
}

static int handle_fd(const struct fuse_file_info *fi)
{
	return fi ? fsg_file_from_fh(fi->fh)->fd : -1;
}

void fsg_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	FsgTrust trust = fsg_cache_begin_object(view, inode);
	struct stat st;
	int r = fsg_gate(FSG_OP_GETATTR, inode);

	/* The kernel sends a handle with GETATTR for files only. */
	if (r == 0)
		r = fsg_stat(view, inode, inode->type == S_IFREG ? handle_fd(fi) : -1, &st);
	if (r < 0)
		fsg_reply_result(req, FSG_OP_GETATTR, r);
	else
		fsg_reply_attr(req, &st, fsg_cache_attr_s(view, inode, &st, trust));
}

static struct timespec time_to_set(int to_set, int set, int now, struct timespec given)
{
	if (to_set & now)
		return (struct timespec){ .tv_nsec = UTIME_NOW };
	return to_set & set ? given : (struct timespec){ .tv_nsec = UTIME_OMIT };
}

/* The view shows one owner; giving a file to whom it belongs already is what programs do who copy
 * owners. */
static int check_owner(const FsgView *view, const struct stat *now, const struct stat *attr,
		       int to_set)
{
	if (fsg_view_serves_callers(view))
		return 0; /* the host decides, as whom we act */
	if ((to_set & FUSE_SET_ATTR_UID) && attr->st_uid != now->st_uid)
		return fsg_refuse(DENIAL_CHOWN, -EPERM);
	if ((to_set & FUSE_SET_ATTR_GID) && attr->st_gid != now->st_gid)
		return fsg_refuse(DENIAL_CHOWN, -EPERM);
	return 0;
}

/* Not truncate() of the path, which would wait for leases. */
static int set_size(FsgView *view, int fd, int file_fd, off_t size)
{
	FD_AUTO opened = -1;

	if (file_fd >= 0 && ftruncate(file_fd, size) == 0)
		return 0;
	if (file_fd >= 0 && errno != EINVAL && errno != EBADF)
		return -errno;
	opened = fsg_reopen(view, fd, O_WRONLY);
	if (opened < 0)
		return opened == -ENXIO ? -EINVAL : opened;
	return ftruncate(opened, size) == 0 ? 0 : -errno;
}

/* Where the view shows one owner, it is to whom the object belongs already, and the host is told nobody in particular:
 * that moves the time of change and takes set-id bits away, as it does on any file system, and needs no right where there
 * are none. With nothing to set, it is a chown(-1, -1), or the kernel before a write to a file with set-id bits, by whom
 * it may be: then the host does it itself at the write, for our threads have no CAP_FSETID for such a writer. */
static int set_owner(FsgView *view, FsgInode *inode, int fd, const struct stat *attr, int to_set)
{
	uid_t uid = to_set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1;
	gid_t gid = to_set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1;
	int r;

	if (!inode->anchor->as_caller)
		uid = gid = (uid_t)-1;
	else if (gid != (gid_t)-1 &&
		 (r = fsg_identity_add_groups(inode->anchor, view->proc_fd)) < 0)
		return r;
	r = fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == 0 ? 0 : -errno;
	return r == -EPERM && to_set == 0 ? 0 : r;
}

static int set_mode(FsgView *view, FsgInode *inode, const char *path, mode_t mode)
{
	int r;

	mode = fsg_identity_mode(inode->anchor, inode->type, mode);
	if ((mode & S_ISGID) && (r = fsg_identity_add_groups(inode->anchor, view->proc_fd)) < 0)
		return r;
	return chmod(path, mode) == 0 ? 0 : -errno;
}

/* path is /proc/self/fd/N of the O_PATH fd: chmod knows no other way to such an fd that works on every
 * kernel. It leads to the object itself, never on through a link that it may be. */
static int set_attributes(FsgView *view, FsgInode *inode, int fd, const char *path,
			  const struct stat *attr, int to_set, int file_fd)
{
	int r;

	/* Nothing to set: chown(-1, -1). */
	if ((to_set == 0 || (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))) &&
	    (r = set_owner(view, inode, fd, attr, to_set)) < 0)
		return r;
	if ((to_set & FUSE_SET_ATTR_MODE) && (r = set_mode(view, inode, path, attr->st_mode)) < 0)
		return r;
	if ((to_set & FUSE_SET_ATTR_SIZE) && (r = set_size(view, fd, file_fd, attr->st_size)) < 0)
		return r;
	if (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) {
		struct timespec times[2] = {
			time_to_set(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW,
				    attr->st_atim),
			time_to_set(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW,
				    attr->st_mtim),
		};

		if (utimensat(fd, "", times, AT_EMPTY_PATH) != 0)
			return -errno;
	}
	return 0;
}

static int setattr_work(FsgView *view, FsgInode *inode, const struct stat *attr, int to_set,
			int file_fd, struct stat *ret_st)
{
	char path[FD_PROC_PATH_SIZE];
	int fd, r;

	if ((r = fsg_stat(view, inode, file_fd, ret_st)) < 0 ||
	    (r = check_owner(view, ret_st, attr, to_set)) < 0)
		return r;
	if ((fd = fsg_get_object_fd(view, inode, true)) < 0)
		return fd;
	fd_proc_path(fd, path);
	r = set_attributes(view, inode, fd, path, attr, to_set, file_fd);
	fsg_inode_put_fd(view->inodes, inode);
	return r < 0 ? r : fsg_stat(view, inode, file_fd, ret_st);
}

void fsg_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		    struct fuse_file_info *fi)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	struct stat st;
	int r = fsg_gate(FSG_OP_SETATTR, inode);

	if (r == 0)
		r = setattr_work(view, inode, attr, to_set,
				 inode->type == S_IFREG ? handle_fd(fi) : -1, &st);
	if (r < 0) {
		fsg_reply_result(req, FSG_OP_SETATTR, r);
		return;
	}
	fsg_change_modified(view, inode, st.st_nlink);
	fsg_reply_attr(req, &st, fsg_cache_changed_attr_s(view, inode));
}

void fsg_op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	bool once = false;
	char *text = NULL;
	int r = fsg_gate(FSG_OP_READLINK, inode);

	if (r == 0)
		r = inode->type == S_IFLNK ? fsg_link_text(view, inode, &text, &once) : -EINVAL;
	/* Both before, for an exec may start as soon as there is a reply, and after, when the kernel has what it is to
	 * forget. */
	if (once)
		fsg_invalidate_link(view, ino);
	if (r < 0)
		fsg_reply_result(req, FSG_OP_READLINK, r);
	else
		fsg_reply_text(req, text);
	if (once)
		fsg_invalidate_link(view, ino);
	free(text);
}

/* Of a synthetic directory: a file system with no room and names of the usual length. */
static int statfs_work(FsgView *view, FsgInode *inode, struct statvfs *ret_st)
{
	int fd, r;

	memset(ret_st, 0, sizeof *ret_st);
	ret_st->f_bsize = ret_st->f_frsize = 4096;
	ret_st->f_namemax = 255;
	if (inode->kind != FSG_INODE_HOST)
		return 0;
	if ((r = fsg_view_act_as(inode->anchor)) < 0)
		return r;
	if ((fd = fsg_inode_get_fd(view->inodes, inode)) < 0)
		return fd;
	r = fstatvfs(fd, ret_st) == 0 ? 0 : -errno;
	fsg_inode_put_fd(view->inodes, inode);
	return r;
}

void fsg_op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	FsgInode *inode = fsg_req_inode(req, ino);
	struct statvfs st;
	int r = fsg_gate(FSG_OP_STATFS, inode);

	if (r == 0)
		r = statfs_work(fsg_req_view(req), inode, &st);
	if (r < 0)
		fsg_reply_result(req, FSG_OP_STATFS, r);
	else
		fsg_reply_statfs(req, &st);
}

static int access_work(FsgView *view, FsgInode *inode, int mask)
{
	int fd, r = fsg_gate_access(inode, mask);

	if (r < 0 || inode->kind != FSG_INODE_HOST || mask == F_OK)
		return r;
	if ((fd = fsg_get_object_fd(view, inode, true)) < 0)
		return fd;
	r = faccessat(fd, "", mask, AT_EACCESS | AT_EMPTY_PATH) == 0 ? 0 : -errno;
	fsg_inode_put_fd(view->inodes, inode);
	return r;
}

void fsg_op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	fsg_reply_result(req, FSG_OP_ACCESS,
			 access_work(fsg_req_view(req), fsg_req_inode(req, ino), mask));
}
