/* The bounded cache of the inodes' O_PATH fds: which are open, which is closed next, and how one that was
 * closed is opened again; see inode-table.h.
 *
 * Opening again walks names that other processes may have changed meanwhile: each step is one checked name in a
 * directory whose identity was checked (resolve.h), and what comes out has to have the inode's own identity. So a
 * race costs a lookup anew (ESTALE), never another object. */
#include "fsgate/inode-table-internal.h"

#include "common/fd-util.h"
#include "common/resolve.h"

#include <errno.h>
#include <pthread.h>

void fsg_fd_cache_remove(FsgInodeTable *table, FsgInode *inode)
{
	if (!inode->lru_next)
		return;
	inode->lru_prev->lru_next = inode->lru_next;
	inode->lru_next->lru_prev = inode->lru_prev;
	inode->lru_prev = inode->lru_next = NULL;
	table->cached--;
}

void fsg_fd_cache_push(FsgInodeTable *table, FsgInode *inode)
{
	inode->lru_next = table->lru.lru_next;
	inode->lru_prev = &table->lru;
	table->lru.lru_next->lru_prev = inode;
	table->lru.lru_next = inode;
	table->cached++;
}

void fsg_fd_cache_evict(FsgInodeTable *table, FsgEvicted *evicted)
{
	FsgInode *oldest = table->lru.lru_prev;

	evicted->count = 0;
	while (table->cached > table->fd_budget && evicted->count < FSG_EVICT_AT_ONCE &&
	       oldest != &table->lru) {
		FsgInode *before = oldest->lru_prev;

		if (oldest->fd_users == 0) {
			evicted->fds[evicted->count++] = fd_steal(&oldest->fd);
			fsg_fd_cache_remove(table, oldest);
		}
		oldest = before;
	}
}

void fsg_fd_cache_close(FsgEvicted *evicted)
{
	while (evicted->count > 0)
		fd_close(&evicted->fds[--evicted->count]);
}

/* The fd if it is cached, with one more user; else -1. Under the lock. */
static int use_cached(FsgInodeTable *table, FsgInode *inode)
{
	if (inode->fd < 0)
		return -1;
	inode->fd_users++;
	if (!inode->fd_pinned && table->lru.lru_next != inode) {
		fsg_fd_cache_remove(table, inode);
		fsg_fd_cache_push(table, inode);
	}
	return inode->fd;
}

/* Opens (parent's fd, name) and makes sure that it is this inode. */
static int open_by_hint(FsgInode *inode, int parent_fd, const char *name)
{
	FD_AUTO fd = resolve_child(parent_fd, name, inode->anchor->cross_mounts);
	struct statx stx;
	FsgInodeKey key;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -EXDEV ? -ESTALE : fd;
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, FSG_STATX_MASK, &stx) != 0)
		return -errno;
	key = fsg_inode_key(inode->anchor, &stx);
	return fsg_inode_key_equal(&key, &inode->key) ? fd_steal(&fd) : -ESTALE;
}

int fsg_inode_install_fd(FsgInodeTable *table, FsgInode *inode, int take_fd)
{
	FsgEvicted evicted = { .count = 0 };
	int fd;

	pthread_mutex_lock(&table->lock);
	if (inode->fd < 0) {
		inode->fd = fd_steal(&take_fd);
		fsg_fd_cache_push(table, inode);
	}
	fd = inode->fd;
	inode->fd_users++;
	fsg_fd_cache_evict(table, &evicted);
	pthread_mutex_unlock(&table->lock);
	fsg_fd_cache_close(&evicted);
	fd_close(&take_fd);
	return fd;
}

/* The chain from inode up to the nearest one whose fd is cached, each with a reference; the last
 * one's fd has a user. -ESTALE when no ancestor leads to an anchor. */
static int collect_chain(FsgInodeTable *table, FsgInode *inode, GPtrArray *chain, int *ret_top_fd)
{
	int fd = -1;

	pthread_mutex_lock(&table->lock);
	for (; inode; inode = inode->parent) {
		inode->refs++;
		g_ptr_array_add(chain, inode);
		if ((fd = use_cached(table, inode)) >= 0)
			break;
	}
	pthread_mutex_unlock(&table->lock);
	*ret_top_fd = fd;
	return fd >= 0 ? 0 : -ESTALE;
}

static int walk_chain(FsgInodeTable *table, GPtrArray *chain)
{
	int fd = -1, r = 0;

	for (guint i = chain->len - 1; i > 0; i--) {
		FsgInode *parent = g_ptr_array_index(chain, i);
		FsgInode *child = g_ptr_array_index(chain, i - 1);
		g_autofree char *name = NULL;
		bool still;

		pthread_mutex_lock(&table->lock);
		still = child->parent == parent;
		name = g_strdup(child->name);
		fd = parent->fd;
		pthread_mutex_unlock(&table->lock);
		r = still && name ? open_by_hint(child, fd, name) : -ESTALE;
		fsg_inode_put_fd(table, parent);
		if (r < 0)
			return r;
		fd = fsg_inode_install_fd(table, child, r);
	}
	return fd;
}

int fsg_inode_get_cached_fd(FsgInodeTable *table, FsgInode *inode)
{
	int fd;

	pthread_mutex_lock(&table->lock);
	fd = use_cached(table, inode);
	pthread_mutex_unlock(&table->lock);
	return fd;
}

int fsg_inode_get_fd(FsgInodeTable *table, FsgInode *inode)
{
	GPtrArray *chain;
	int fd = fsg_inode_get_cached_fd(table, inode), r;

	if (fd >= 0)
		return fd;
	if (inode->kind != FSG_INODE_HOST)
		return -EBADF;
	chain = g_ptr_array_new();
	r = collect_chain(table, inode, chain, &fd);
	if (r == 0)
		r = chain->len > 1 ? walk_chain(table, chain) : fd;
	for (guint i = 0; i < chain->len; i++)
		fsg_inode_unref(table, g_ptr_array_index(chain, i));
	g_ptr_array_unref(chain);
	return r;
}

void fsg_inode_put_fd(FsgInodeTable *table, FsgInode *inode)
{
	pthread_mutex_lock(&table->lock);
	inode->fd_users--;
	pthread_mutex_unlock(&table->lock);
}
