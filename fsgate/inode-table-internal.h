/* What inode-table.c (life of inodes, their hints), fd-cache.c (their O_PATH fds) and watch-index.c share. For these
 * files only: everything here is under the table's lock. */
#pragma once

#include "fsgate/inode-table.h"

#include <glib.h>
#include <pthread.h>

/* By watch_id, chained through watch_next. */
typedef struct {
	FsgInode **buckets;
	size_t size; /* 0 or a power of two */
	size_t count;
} FsgWatchIndex;

struct FsgInodeTable {
	pthread_mutex_t lock;
	GHashTable *by_key; /* FsgInodeKey in the inode -> FsgInode; HOST and BLOCKED only */
	FsgNode *root;
	size_t fd_budget;
	size_t cached; /* inodes in the LRU list, each with an fd */
	size_t pinned; /* unlinked inodes that keep theirs */
	FsgWatchIndex watched;
	FsgInode lru; /* list head: next is the most recent, prev the oldest */
};

/* The list of inodes whose fd may be closed. Removing what is not in it is nothing. */
void fsg_fd_cache_remove(FsgInodeTable *table, FsgInode *inode);
void fsg_fd_cache_push(FsgInodeTable *table, FsgInode *inode);

/* Takes an inode out of the index; one that is not in it is nothing. */
void fsg_watch_index_remove(FsgWatchIndex *index, FsgInode *inode);

/* Takes fds out of the oldest unused inodes until the budget holds; the caller closes them without the lock.
 * At most as many as fit: each insertion calls this, so one or two are enough. */
#define FSG_EVICT_AT_ONCE 4
typedef struct {
	int fds[FSG_EVICT_AT_ONCE];
	int count;
} FsgEvicted;

void fsg_fd_cache_evict(FsgInodeTable *table, FsgEvicted *ret_evicted);
/* Without the lock. */
void fsg_fd_cache_close(FsgEvicted *evicted);
