/* From what an event of the host names, a file handle, to the inodes that the kernel knows; see inode-table.h.
 *
 * A handle is kept as a hash of its bytes, so two objects may share one: then both are invalidated, which costs a
 * request and is never wrong. One object has several inodes when it is met in several mounts. Chains run
 * through the inodes; everything is under the table's lock. */
#include "fsgate/inode-table-internal.h"

#include <glib.h>
#include <pthread.h>
#include <string.h>

/* A power of two. */
#define BUCKETS_FIRST 256

static FsgInode **bucket_of(FsgWatchIndex *index, uint64_t id)
{
	return &index->buckets[(id * 0x9e3779b97f4a7c15u >> 32) & (index->size - 1)];
}

static void grow(FsgWatchIndex *index)
{
	size_t old_size = index->size;
	FsgInode **old = index->buckets;

	index->size = old_size ? old_size * 2 : BUCKETS_FIRST;
	index->buckets = g_new0(FsgInode *, index->size);
	for (size_t i = 0; i < old_size; i++) {
		FsgInode *inode = old[i];

		while (inode) {
			FsgInode *next = inode->watch_next,
				 **at = bucket_of(index, inode->watch_id);

			inode->watch_next = *at;
			*at = inode;
			inode = next;
		}
	}
	g_free(old);
}

void fsg_watch_index_remove(FsgWatchIndex *index, FsgInode *inode)
{
	if (inode->watch_id == 0)
		return;
	for (FsgInode **at = bucket_of(index, inode->watch_id); *at; at = &(*at)->watch_next)
		if (*at == inode) {
			*at = inode->watch_next;
			index->count--;
			break;
		}
	inode->watch_id = 0;
	inode->watch_next = NULL;
}

void fsg_inode_set_watch_id(FsgInodeTable *table, FsgInode *inode, uint64_t id)
{
	FsgWatchIndex *index = &table->watched;

	pthread_mutex_lock(&table->lock);
	if (inode->watch_id != id) {
		fsg_watch_index_remove(index, inode);
		if (index->count >= index->size)
			grow(index);
		inode->watch_id = id;
		if (id != 0) {
			FsgInode **at = bucket_of(index, id);

			inode->watch_next = *at;
			*at = inode;
			index->count++;
		}
	}
	pthread_mutex_unlock(&table->lock);
}

unsigned int fsg_inode_find_watched(FsgInodeTable *table, uint64_t id, bool forget,
				    uint64_t *ret_node_ids, unsigned int most)
{
	FsgWatchIndex *index = &table->watched;
	unsigned int count = 0;

	if (id == 0)
		return 0;
	pthread_mutex_lock(&table->lock);
	for (FsgInode *inode = index->size ? *bucket_of(index, id) : NULL, *next; inode;
	     inode = next) {
		next = inode->watch_next;
		if (inode->watch_id != id)
			continue;
		if (count < most)
			ret_node_ids[count] = fsg_inode_id(table, inode);
		count++;
		if (forget && inode->type != S_IFDIR)
			fsg_watch_index_remove(index, inode);
	}
	pthread_mutex_unlock(&table->lock);
	return count;
}

void fsg_inode_set_watch_state(FsgInodeTable *table, FsgInode *inode, unsigned int state)
{
	pthread_mutex_lock(&table->lock);
	inode->watch_state = state;
	pthread_mutex_unlock(&table->lock);
}

unsigned int fsg_inode_watch_state(FsgInodeTable *table, FsgInode *inode)
{
	unsigned int state = 0;

	pthread_mutex_lock(&table->lock);
	if (inode->type == S_IFDIR)
		state = inode->watch_state;
	else if (inode->watch_id != 0 && inode->parent)
		state = inode->parent->watch_state;
	pthread_mutex_unlock(&table->lock);
	return state;
}

GPtrArray *fsg_inode_table_ref_all(FsgInodeTable *table)
{
	GPtrArray *all = g_ptr_array_new();
	GHashTableIter iter;
	gpointer value;

	pthread_mutex_lock(&table->lock);
	g_hash_table_iter_init(&iter, table->by_key);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		FsgInode *inode = value;

		inode->refs++;
		g_ptr_array_add(all, inode);
	}
	pthread_mutex_unlock(&table->lock);
	return all;
}
