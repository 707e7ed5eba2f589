/* Directories: open, list, close. */
#include "fsgate/cache.h"
#include "fsgate/lookup.h"
#include "fsgate/ops.h"

#include "common/fd-util.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <string.h>

static void dir_free(FsgView *view, FsgDir *handle)
{
	if (handle->dir) {
		closedir(handle->dir);
		fsg_handle_budget_return(view->handles);
	}
	fsg_inode_unref(view->inodes, handle->inode);
	pthread_mutex_destroy(&handle->lock);
	g_free(handle);
}

static int open_host_dir(FsgView *view, FsgInode *inode, DIR **ret_dir, FsgTrust *ret_trust)
{
	int fd, r;

	if ((r = fsg_handle_budget_take(view->handles)) < 0)
		return r;
	/* Not fsg_get_dir_fd: one that may be read and not searched gives its names. */
	if ((fd = fsg_get_object_fd(view, inode, false)) < 0)
		r = fd;
	else {
		*ret_trust = fsg_cache_begin_names(view, inode, fd);
		r = fd_reopen(view->proc_fd, fd, O_RDONLY | O_DIRECTORY);
		fsg_inode_put_fd(view->inodes, inode);
	}
	if (r >= 0 && !(*ret_dir = fdopendir(r))) {
		int opened = r;

		r = -errno;
		fd_close(&opened);
	}
	if (r < 0)
		fsg_handle_budget_return(view->handles);
	return r < 0 ? r : 0;
}

void fsg_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	FsgView *view = fsg_req_view(req);
	FsgInode *inode = fsg_req_inode(req, ino);
	FsgNode *node = fsg_inode_node(view->inodes, inode);
	DIR *dir = NULL;
	FsgTrust trust = 0;
	FsgDir *handle;
	int r = fsg_gate(FSG_OP_OPENDIR, inode);

	if (r == 0 && inode->type != S_IFDIR)
		r = -ENOTDIR;
	if (r == 0 && inode->kind == FSG_INODE_HOST)
		r = open_host_dir(view, inode, &dir, &trust);
	if (r < 0) {
		fsg_reply_result(req, FSG_OP_OPENDIR, r);
		return;
	}
	if (dir && node && node->children->len == 0)
		node = NULL; /* a mount with nothing nested: the host's own positions serve */
	handle = fsg_dir_new(fsg_inode_ref(view->inodes, inode), node, dir);
	handle->is_odd = dir && fsg_view_is_odd_dir(view, inode->key.dev, inode->key.ino);
	fi->fh = (uint64_t)(uintptr_t)handle;
	fi->cache_readdir = fi->keep_cache =
		dir && fsg_cache_keeps_listing(view, trust, dirfd(dir));
	if (!fsg_reply_open(req, fi, 0))
		dir_free(view, handle);
}

/* --- listing ---
 *
 * Positions. A directory without an overlay uses the host's own, which stay right while names come and go. One
 * with an overlay has ".", ".." and the tree's children first, numbered, and then the host's, moved up by as many. A
 * position means the same to every handle. */

typedef struct {
	const char *name;
	uint64_t ino; /* 0: not known */
	mode_t type;
	off_t next; /* the position behind it */
} Entry;

typedef struct {
	fuse_req_t req;
	FsgView *view;
	FsgDir *handle;
	bool plus;
	int dirfd; /* with plus, of a host directory: to look its entries up in; else -1 */
	char *at;
	size_t left;
	struct dirent *read; /* the last one from the host; good until the next */
} Listing;

/* Adds an entry. false: no room. */
static bool add_plain(Listing *listing, const Entry *entry)
{
	struct stat st = { .st_ino = entry->ino, .st_mode = entry->type };
	size_t need = fuse_add_direntry(listing->req, listing->at, listing->left, entry->name, &st,
					entry->next);

	if (need > listing->left)
		return false;
	listing->at += need;
	listing->left -= need;
	return true;
}

/* With attributes, which counts as a lookup by the kernel. An entry that cannot be looked up is listed
 * all the same (no name drops out of a listing); one that went meanwhile is not. */
static bool add_plus(Listing *listing, const Entry *entry)
{
	struct fuse_entry_param param = { .attr.st_ino = entry->ino, .attr.st_mode = entry->type };
	size_t need = fuse_add_direntry_plus(listing->req, NULL, 0, entry->name, NULL, 0);
	bool dots = strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0;

	if (need > listing->left)
		return false;
	if (!dots) {
		int r = fsg_lookup_in(listing->view, listing->handle->inode, listing->dirfd,
				      entry->name, &param);

		if (r == -ENOENT)
			return true;
		if (r < 0) {
			memset(&param, 0, sizeof param);
			param.attr.st_ino = entry->ino;
			param.attr.st_mode = entry->type;
		}
	}
	(void)fuse_add_direntry_plus(listing->req, listing->at, listing->left, entry->name, &param,
				     entry->next);
	listing->at += need;
	listing->left -= need;
	return true;
}

static bool add(Listing *listing, const Entry *entry)
{
	return listing->plus ? add_plus(listing, entry) : add_plain(listing, entry);
}

/* The inode of a node as the view has it, with one lookup that the caller returns: a directory that leads to a mount
 * may be laid over one of the host's. */
static FsgInode *find_node_inode(FsgView *view, const FsgNode *node)
{
	FsgInode *found = node->inode;

	if (node->kind == FSG_NODE_DIR && node->parent) {
		FsgInode *parent = find_node_inode(view, node->parent);
		struct fuse_entry_param entry;
		int r = fsg_lookup(view, parent, node->name, &entry);

		fsg_inode_forget(view->inodes, parent, 1);
		if (r == 0)
			return fsg_inode_from_id(view->inodes, entry.ino);
	}
	fsg_inode_give_lookup(view->inodes, found);
	return found;
}

static uint64_t node_ino(FsgView *view, const FsgNode *node)
{
	FsgInode *inode = find_node_inode(view, node);
	uint64_t ino = fsg_shown_ino(view, inode);

	fsg_inode_forget(view->inodes, inode, 1);
	return ino;
}

static uint64_t parent_ino(FsgView *view, FsgInode *inode)
{
	const FsgNode *node = fsg_inode_node(view->inodes, inode);
	g_autofree char *name = NULL;
	FsgInode *parent;
	uint64_t ino;

	if (!fsg_inode_dup_hint(view->inodes, inode, &parent, &name))
		return node && node->parent ? node_ino(view, node->parent)
					    : fsg_shown_ino(view, inode);
	ino = fsg_shown_ino(view, parent);
	fsg_inode_unref(view->inodes, parent);
	return ino;
}

/* What a name of an odd directory leads to. */
static void correct(Listing *listing, Entry *entry)
{
	FsgView *view = listing->view;
	struct fuse_entry_param param;

	if (fsg_lookup(view, listing->handle->inode, entry->name, &param) < 0)
		return;
	entry->ino = param.attr.st_ino;
	entry->type = param.attr.st_mode & S_IFMT;
	fsg_inode_forget(view->inodes, fsg_inode_from_id(view->inodes, param.ino), 1);
}

static struct dirent *next_dirent(FsgDir *handle)
{
	struct dirent *held = handle->held;

	handle->held = NULL;
	return held ? held : readdir(handle->dir);
}

/* The next entry of the host directory that the view shows. false at the end. */
static bool next_host_entry(Listing *listing, Entry *ret_entry)
{
	FsgDir *handle = listing->handle;
	struct dirent *d;

	while ((d = next_dirent(handle))) {
		bool own = strcmp(d->d_name, ".") == 0;
		bool above = strcmp(d->d_name, "..") == 0;

		if (handle->node && (own || above || fsg_node_find_child(handle->node, d->d_name)))
			continue;
		if (!own && !above && fsg_view_hides(listing->view, handle->inode, d->d_name))
			continue;
		ret_entry->name = d->d_name;
		ret_entry->ino =
			above ? parent_ino(listing->view, handle->inode)
			      : fsg_view_ino(listing->view, handle->inode->key.dev, d->d_ino);
		ret_entry->type = DTTOIF(d->d_type);
		ret_entry->next = d->d_off;
		if (handle->is_odd && !own && !above)
			correct(listing, ret_entry);
		listing->read = d;
		return true;
	}
	return false;
}

/* Going on where the last request ended, with what it had read and had no room for, is the usual case: seeking
 * throws away what the C library has read ahead. */
static void seek_stream(FsgDir *handle, off_t offset)
{
	if (handle->held && offset == handle->held_at)
		return;
	handle->held = NULL;
	if (offset == 0)
		rewinddir(handle->dir);
	else if (telldir(handle->dir) != offset)
		seekdir(handle->dir, offset);
}

static int list_host(Listing *listing, off_t offset)
{
	FsgDir *handle = listing->handle;
	Entry entry;

	seek_stream(handle, offset);
	errno = 0;
	while (next_host_entry(listing, &entry)) {
		if (!add(listing, &entry)) {
			handle->held = listing->read;
			handle->held_at = offset;
			return 0;
		}
		offset = entry.next;
		errno = 0;
	}
	return errno ? -errno : 0;
}

/* The n-th entry of what the view has by its plan. */
static bool made_up_entry(Listing *listing, guint n, Entry *ret_entry)
{
	FsgInode *inode = listing->handle->inode;
	const FsgNode *node = listing->handle->node;
	const FsgNode *child;

	ret_entry->next = (off_t)n + 1;
	ret_entry->type = S_IFDIR;
	if (n < 2) {
		ret_entry->name = n == 0 ? "." : "..";
		ret_entry->ino = n == 0 ? fsg_shown_ino(listing->view, inode)
					: parent_ino(listing->view, inode);
		return true;
	}
	if (!node || n - 2 >= node->children->len)
		return false;
	child = g_ptr_array_index(node->children, n - 2);
	ret_entry->name = child->name;
	ret_entry->ino = node_ino(listing->view, child);
	ret_entry->type = child->inode->type;
	return true;
}

/* The host's positions behind those that are made up. The topmost ones stay where they are: file systems use
 * them for the end, and nothing else near it. */
static off_t moved_up(off_t position, unsigned int made_up)
{
	return position > INT64_MAX - (off_t)made_up ? position : position + (off_t)made_up;
}

static off_t moved_back(off_t position, unsigned int made_up)
{
	return position > INT64_MAX - (off_t)made_up ? position : position - (off_t)made_up;
}

static int list_overlay(Listing *listing, off_t offset)
{
	FsgDir *handle = listing->handle;
	guint made_up = 2 + (handle->node ? handle->node->children->len : 0);
	Entry entry;

	for (; offset < (off_t)made_up && made_up_entry(listing, (guint)offset, &entry); offset++)
		if (!add(listing, &entry))
			return 0;
	if (!handle->dir)
		return 0;
	offset = moved_back(offset, made_up);
	seek_stream(handle, offset);
	errno = 0;
	while (next_host_entry(listing, &entry)) {
		off_t position = entry.next;

		entry.next = moved_up(position, made_up);
		if (!add(listing, &entry)) {
			handle->held = listing->read;
			handle->held_at = offset;
			return 0;
		}
		offset = position;
		errno = 0;
	}
	return errno ? -errno : 0;
}

#define LIST_BYTES_MOST (1024 * 1024)

static void list(fuse_req_t req, FsgInode *inode, size_t size, off_t offset, FsgDir *handle,
		 bool plus)
{
	FsgView *view = fsg_req_view(req);
	g_autofree char *buffer = g_malloc(MIN(size, LIST_BYTES_MOST));
	Listing listing = {
		.req = req,
		.view = view,
		.handle = handle,
		.plus = plus,
		.dirfd = plus ? fsg_get_dir_fd(view, inode) : -1,
		.at = buffer,
		.left = MIN(size, LIST_BYTES_MOST),
	};
	int r = fsg_gate(FSG_OP_READDIR, inode);

	if (r == 0 && inode->kind == FSG_INODE_HOST)
		r = fsg_view_act_as(inode->anchor);
	if (r == 0) {
		pthread_mutex_lock(&handle->lock);
		r = handle->dir && !handle->node ? list_host(&listing, offset)
						 : list_overlay(&listing, offset);
		pthread_mutex_unlock(&handle->lock);
	}
	if (listing.dirfd >= 0)
		fsg_inode_put_fd(view->inodes, inode);
	/* What was listed before an error is given; the error comes again with the next request. */
	if (r < 0 && listing.at == buffer)
		fsg_reply_result(req, FSG_OP_READDIR, r);
	else if (plus)
		fsg_reply_listing(req, view, buffer, (size_t)(listing.at - buffer));
	else
		fsg_reply_bytes(req, buffer, (size_t)(listing.at - buffer));
}

void fsg_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	list(req, fsg_req_inode(req, ino), size, offset, fsg_dir_from_fh(fi->fh), false);
}

void fsg_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			struct fuse_file_info *fi)
{
	list(req, fsg_req_inode(req, ino), size, offset, fsg_dir_from_fh(fi->fh), true);
}

void fsg_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	dir_free(fsg_req_view(req), fsg_dir_from_fh(fi->fh));
	fsg_reply_result(req, FSG_OP_RELEASEDIR, 0);
}

void fsg_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	const FsgDir *handle = fsg_dir_from_fh(fi->fh);
	int r = fsg_gate(FSG_OP_FSYNCDIR, fsg_req_inode(req, ino));

	if (r == 0 && handle->dir) {
		int fd = dirfd(handle->dir);

		r = (datasync ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : -errno;
	}
	fsg_reply_result(req, FSG_OP_FSYNCDIR, r);
}
