/* All inodes of a view; see inode-table.h.
 *
 * Why a freed inode is never used: the kernel names a node only while it holds a lookup on it, every other pointer
 * is a counted reference, and both counters change under the table's lock, in the same section that
 * takes the inode out of the table when they reach zero. */
#include "fsgate/inode-table-internal.h"

#include "fsgate/handle.h"

#include "common/fd-util.h"

#include <glib.h>
#include <pthread.h>
#include <string.h>
#include <sys/sysmacros.h>

/* FUSE_ROOT_ID of the kernel's protocol. */
#define ROOT_ID 1

static guint key_hash(gconstpointer data)
{
	const FsgInodeKey *key = data;
	uint64_t hash = key->ino * 0x9e3779b97f4a7c15u;

	hash ^= (key->dev + key->anchor_id) * 0xc2b2ae3d27d4eb4fu;
	return (guint)(hash >> 32);
}

static gboolean key_equal_data(gconstpointer a, gconstpointer b)
{
	const FsgInodeKey *x = a, *y = b;

	return x->ino == y->ino && x->dev == y->dev && x->anchor_id == y->anchor_id &&
	       x->birth_sec == y->birth_sec && x->birth_nsec == y->birth_nsec && x->type == y->type;
}

bool fsg_inode_key_equal(const FsgInodeKey *a, const FsgInodeKey *b)
{
	return key_equal_data(a, b);
}

FsgInodeKey fsg_inode_key(const FsgAnchor *anchor, const struct statx *stx)
{
	FsgInodeKey key;

	memset(&key, 0, sizeof key);
	key.anchor_id = anchor->id;
	key.dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	key.ino = stx->stx_ino;
	key.type = stx->stx_mode & S_IFMT;
	if (stx->stx_mask & STATX_BTIME) {
		key.birth_sec = stx->stx_btime.tv_sec;
		key.birth_nsec = stx->stx_btime.tv_nsec;
	}
	return key;
}

static FsgInode *inode_alloc(FsgInodeKind kind, FsgAnchor *anchor, mode_t type)
{
	FsgInode *inode = g_new0(FsgInode, 1);

	inode->kind = kind;
	inode->anchor = anchor;
	inode->type = type;
	inode->fd = -1;
	return inode;
}

/* Drops one counted reference that is known not to be the kernel's, taking out of the table the inode and then
 * its ancestors as far as this was their last. A loop, for a tree may be deep. Who was taken out is put on
 * `dead`, a list by way of `parent`, for bury() without the lock. */
static void drop_if_unused(FsgInodeTable *table, FsgInode *inode, FsgInode **dead)
{
	while (inode && inode->lookups == 0 && inode->refs == 0) {
		FsgInode *parent = inode->parent;

		g_hash_table_remove(table->by_key, &inode->key);
		fsg_fd_cache_remove(table, inode);
		fsg_watch_index_remove(&table->watched, inode);
		if (inode->fd_pinned && !inode->fd_borrowed)
			table->pinned--;
		inode->parent = *dead;
		*dead = inode;
		if (parent)
			parent->refs--;
		inode = parent;
	}
}

static void inode_free(FsgInode *inode)
{
	/* Only at the end of the view, when a RELEASE comes no more. */
	while (inode->files) {
		FsgFile *file = inode->files;

		inode->files = file->next;
		fd_close(&file->fd);
		g_free(file);
	}
	if (!inode->fd_borrowed)
		fd_close(&inode->fd);
	g_free(inode->stamp);
	g_free(inode->name);
	g_free(inode);
}

static void bury(FsgInode *dead)
{
	while (dead) {
		FsgInode *next = dead->parent;

		inode_free(dead);
		dead = next;
	}
}

static void borrow_anchor_fd(FsgInode *inode)
{
	inode->fd = inode->anchor->fd;
	inode->fd_pinned = true;
	inode->fd_borrowed = true;
}

/* A node's inode lives as long as the table: our own reference on it is never returned. */
static void make_node_inodes(FsgInodeTable *table, FsgNode *node)
{
	FsgInode *inode;

	switch (node->kind) {
	case FSG_NODE_DIR:
		inode = inode_alloc(FSG_INODE_SYNTHETIC, NULL, S_IFDIR);
		break;
	case FSG_NODE_LINK:
		inode = inode_alloc(FSG_INODE_SYNTHETIC, NULL, S_IFLNK);
		break;
	case FSG_NODE_MOUNT:
	default:
		inode = inode_alloc(FSG_INODE_HOST, node->anchor,
				    node->anchor->is_dir ? S_IFDIR : S_IFREG);
		inode->key.anchor_id = node->anchor->id;
		inode->key.dev = node->anchor->dev;
		inode->key.ino = node->anchor->ino;
		inode->key.type = inode->type;
		borrow_anchor_fd(inode);
		break;
	}
	inode->node = node;
	inode->refs = 1;
	node->inode = inode;
	for (guint i = 0; i < node->children->len; i++)
		make_node_inodes(table, g_ptr_array_index(node->children, i));
}

static void free_node_inodes(FsgNode *node)
{
	for (guint i = 0; i < node->children->len; i++)
		free_node_inodes(g_ptr_array_index(node->children, i));
	if (node->inode)
		inode_free(node->inode);
	node->inode = NULL;
}

FsgInodeTable *fsg_inode_table_new(FsgNode *root, size_t fd_budget)
{
	FsgInodeTable *table = g_new0(FsgInodeTable, 1);

	pthread_mutex_init(&table->lock, NULL);
	table->by_key = g_hash_table_new(key_hash, key_equal_data);
	table->root = root;
	table->fd_budget = fd_budget;
	table->lru.lru_next = table->lru.lru_prev = &table->lru;
	make_node_inodes(table, root);
	return table;
}

void fsg_inode_table_free(FsgInodeTable *table)
{
	GHashTableIter iter;
	gpointer value;

	if (!table)
		return;
	/* After an unmount the kernel sends no FORGET for what it still knew. */
	g_hash_table_iter_init(&iter, table->by_key);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		inode_free(value);
	g_hash_table_unref(table->by_key);
	free_node_inodes(table->root);
	g_free(table->watched.buckets);
	pthread_mutex_destroy(&table->lock);
	g_free(table);
}

FsgInode *fsg_inode_from_id(FsgInodeTable *table, uint64_t node_id)
{
	return node_id == ROOT_ID ? table->root->inode : (FsgInode *)(uintptr_t)node_id;
}

uint64_t fsg_inode_id(FsgInodeTable *table, const FsgInode *inode)
{
	return inode == table->root->inode ? ROOT_ID : (uint64_t)(uintptr_t)inode;
}

/* Whether `ancestor` is above or equal to inode by the hints: a parent link must never close a ring. */
static bool is_above(const FsgInode *ancestor, const FsgInode *inode)
{
	for (; inode; inode = inode->parent)
		if (inode == ancestor)
			return true;
	return false;
}

/* Sets the hint; the old parent's reference goes to the caller to be dropped. */
static FsgInode *set_hint(FsgInode *inode, FsgInode *parent, const char *name)
{
	FsgInode *old = NULL;

	if (inode->parent == parent && inode->name && strcmp(inode->name, name) == 0)
		return NULL;
	/* Moves on the host can show us a child above its former parent: then the stale hint stays. What is
	 * new is above nothing. */
	if (inode->name && is_above(inode, parent))
		return NULL;
	if (inode->parent != parent) {
		old = inode->parent;
		inode->parent = parent;
		if (parent)
			parent->refs++;
	}
	g_free(inode->name);
	inode->name = g_strdup(name);
	return old;
}

static void drop_old_parent(FsgInodeTable *table, FsgInode *old, FsgInode **dead)
{
	if (old) {
		old->refs--;
		drop_if_unused(table, old, dead);
	}
}

FsgInode *fsg_inode_ensure(FsgInodeTable *table, FsgInodeKind kind, FsgAnchor *anchor,
			   const struct statx *stx, FsgInode *parent, const char *name,
			   FsgNode *node, int take_fd)
{
	FsgInodeKey key = fsg_inode_key(anchor, stx);
	FsgInode *dead = NULL;
	FsgEvicted evicted = { .count = 0 };
	FsgInode *inode;

	pthread_mutex_lock(&table->lock);
	inode = g_hash_table_lookup(table->by_key, &key);
	if (!inode) {
		inode = inode_alloc(kind, anchor, stx->stx_mode & S_IFMT);
		inode->key = key;
		g_hash_table_insert(table->by_key, &inode->key, inode);
		/* The root of an alias: reached through its parent it would be in the wrong clone. */
		if (kind == FSG_INODE_HOST && key.dev == anchor->dev && key.ino == anchor->ino)
			borrow_anchor_fd(inode);
	}
	inode->lookups++;
	__atomic_store_n(&inode->node, node,
			 __ATOMIC_RELAXED); /* read without the lock by jobs.c */
	drop_old_parent(table, set_hint(inode, parent, name), &dead);
	if (take_fd >= 0 && inode->fd < 0) {
		inode->fd = fd_steal(&take_fd);
		fsg_fd_cache_push(table, inode);
		fsg_fd_cache_evict(table, &evicted);
	}
	pthread_mutex_unlock(&table->lock);
	fsg_fd_cache_close(&evicted);
	fd_close(&take_fd);
	bury(dead);
	return inode;
}

void fsg_inode_give_lookup(FsgInodeTable *table, FsgInode *inode)
{
	pthread_mutex_lock(&table->lock);
	inode->lookups++;
	pthread_mutex_unlock(&table->lock);
}

void fsg_inode_forget(FsgInodeTable *table, FsgInode *inode, uint64_t n)
{
	FsgInode *dead = NULL;

	pthread_mutex_lock(&table->lock);
	inode->lookups -= MIN(n, inode->lookups);
	drop_if_unused(table, inode, &dead);
	pthread_mutex_unlock(&table->lock);
	bury(dead);
}

FsgInode *fsg_inode_ref(FsgInodeTable *table, FsgInode *inode)
{
	pthread_mutex_lock(&table->lock);
	inode->refs++;
	pthread_mutex_unlock(&table->lock);
	return inode;
}

void fsg_inode_unref(FsgInodeTable *table, FsgInode *inode)
{
	FsgInode *dead = NULL;

	pthread_mutex_lock(&table->lock);
	inode->refs--;
	drop_if_unused(table, inode, &dead);
	pthread_mutex_unlock(&table->lock);
	bury(dead);
}

void fsg_inode_add_file(FsgInodeTable *table, FsgInode *inode, FsgFile *file)
{
	pthread_mutex_lock(&table->lock);
	file->next = inode->files;
	if (file->next)
		file->next->prev = file;
	inode->files = file;
	pthread_mutex_unlock(&table->lock);
}

void fsg_inode_remove_file(FsgInodeTable *table, FsgInode *inode, FsgFile *file)
{
	pthread_mutex_lock(&table->lock);
	if (file->next)
		file->next->prev = file->prev;
	if (file->prev)
		file->prev->next = file->next;
	else
		inode->files = file->next;
	pthread_mutex_unlock(&table->lock);
}

bool fsg_inode_has_handles(FsgInodeTable *table, FsgInode *inode)
{
	bool has;

	pthread_mutex_lock(&table->lock);
	has = inode->files != NULL;
	pthread_mutex_unlock(&table->lock);
	return has;
}

int fsg_inode_dup_file_fd(FsgInodeTable *table, FsgInode *inode)
{
	int copy = -1;

	pthread_mutex_lock(&table->lock);
	if (inode->files && inode->files->fd >= 0)
		copy = fd_dup(inode->files->fd); /* no file system call: allowed under the lock */
	pthread_mutex_unlock(&table->lock);
	return copy < 0 ? -1 : copy;
}

void fsg_inode_renamed(FsgInodeTable *table, const FsgInodeKey *key, FsgInode *parent,
		       const char *name)
{
	FsgInode *dead = NULL;
	FsgInode *inode;

	pthread_mutex_lock(&table->lock);
	inode = g_hash_table_lookup(table->by_key, key);
	if (inode)
		drop_old_parent(table, set_hint(inode, parent, name), &dead);
	pthread_mutex_unlock(&table->lock);
	bury(dead);
}

void fsg_inode_unlinked(FsgInodeTable *table, const FsgInodeKey *key, int take_fd)
{
	FsgInode *inode;

	pthread_mutex_lock(&table->lock);
	inode = g_hash_table_lookup(table->by_key, key);
	/* Past the budget an unlinked file is still served through the handles that are open on it. */
	if (inode && !inode->fd_pinned && table->pinned < table->fd_budget &&
	    (inode->fd >= 0 || take_fd >= 0)) {
		fsg_fd_cache_remove(table, inode);
		if (inode->fd < 0)
			inode->fd = fd_steal(&take_fd);
		inode->fd_pinned = true;
		table->pinned++;
	}
	pthread_mutex_unlock(&table->lock);
	fd_close(&take_fd);
}

/* --- what the hints know --- */

bool fsg_inode_dup_hint(FsgInodeTable *table, FsgInode *inode, FsgInode **ret_parent,
			char **ret_name)
{
	bool known;

	pthread_mutex_lock(&table->lock);
	known = inode->parent != NULL;
	if (known) {
		inode->parent->refs++;
		*ret_parent = inode->parent;
		*ret_name = g_strdup(inode->name);
	}
	pthread_mutex_unlock(&table->lock);
	return known;
}

FsgNode *fsg_inode_node(FsgInodeTable *table, FsgInode *inode)
{
	FsgNode *node;

	pthread_mutex_lock(&table->lock);
	node = inode->node;
	pthread_mutex_unlock(&table->lock);
	return node;
}

/* Of an inode up to where its hints end, and the name of an entry of it or NULL: "/a/b", or "" for none. Written from its
 * end, under the lock. */
static char *path_by_hints(const FsgInode *inode, const char *name)
{
	size_t length = name ? strlen(name) + 1 : 0;
	char *path, *at;

	for (const FsgInode *i = inode; i->parent; i = i->parent)
		length += strlen(i->name) + 1;
	path = g_malloc(length + 1);
	at = path + length;
	*at = '\0';
	while (name) {
		size_t size = strlen(name);

		at -= size;
		memcpy(at, name, size);
		*--at = '/';
		name = inode->parent ? inode->name : NULL;
		inode = inode->parent;
	}
	return path;
}

char *fsg_inode_dup_entry_path(FsgInodeTable *table, FsgInode *inode, const char *name)
{
	g_autofree char *path = NULL;
	g_autofree char *start = NULL;
	const FsgInode *top = inode;
	const FsgNode *node;

	pthread_mutex_lock(&table->lock);
	path = name || !inode->parent ? path_by_hints(inode, name)
				      : path_by_hints(inode->parent, inode->name);
	while (top->parent)
		top = top->parent;
	node = top->node;
	pthread_mutex_unlock(&table->lock);
	if (node && node->parent) {
		start = fsg_node_dup_path(node);
		return g_strconcat(start, path, NULL);
	}
	return *path ? g_steal_pointer(&path) : g_strdup("/");
}

char *fsg_inode_dup_path(FsgInodeTable *table, FsgInode *inode)
{
	return fsg_inode_dup_entry_path(table, inode, NULL);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* A change within the granularity of the file system's times (1 s on ext3 and small ext4 inodes, 2 s on
 * FAT) may leave no trace in them: only stamps older than this say anything. */
#define SETTLED_NS 2100000000ll

static bool is_settled(const struct timespec *ctime)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (now.tv_sec - ctime->tv_sec) * 1000000000ll + (now.tv_nsec - ctime->tv_nsec) >
	       SETTLED_NS;
}

bool fsg_inode_restamp(FsgInodeTable *table, FsgInode *inode, const struct statx *stx,
		       bool are_told)
{
	FsgStamp stamp = {
		.size = stx->stx_size,
		.mtime = { stx->stx_mtime.tv_sec, stx->stx_mtime.tv_nsec },
		.ctime = { stx->stx_ctime.tv_sec, stx->stx_ctime.tv_nsec },
	};
	bool same;

	stamp.settled = is_settled(&stamp.ctime);
	pthread_mutex_lock(&table->lock);
	same = inode->stamp && (inode->stamp->settled || are_told) &&
	       stamp.size == inode->stamp->size && same_time(&stamp.mtime, &inode->stamp->mtime) &&
	       same_time(&stamp.ctime, &inode->stamp->ctime);
	if (!inode->stamp)
		inode->stamp = g_new0(FsgStamp, 1);
	*inode->stamp = stamp;
	pthread_mutex_unlock(&table->lock);
	return same;
}

void fsg_inode_set_link_kind(FsgInodeTable *table, FsgInode *inode, FsgLinkKind kind)
{
	pthread_mutex_lock(&table->lock);
	inode->link_kind = kind;
	pthread_mutex_unlock(&table->lock);
}

FsgLinkKind fsg_inode_link_kind(FsgInodeTable *table, FsgInode *inode)
{
	FsgLinkKind kind;

	pthread_mutex_lock(&table->lock);
	kind = inode->link_kind;
	pthread_mutex_unlock(&table->lock);
	return kind;
}

void fsg_inode_table_stats(FsgInodeTable *table, FsgInodeStats *ret_stats)
{
	pthread_mutex_lock(&table->lock);
	ret_stats->inodes = g_hash_table_size(table->by_key);
	ret_stats->fds = table->cached + table->pinned;
	pthread_mutex_unlock(&table->lock);
}
