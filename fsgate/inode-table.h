/* All inodes of a view, and the bounded cache of their O_PATH fds.
 *
 * An inode owns no fd for life: a `find` looks up a million files, and a process has some thousand fds. The
 * table keeps at most `fd_budget` open, closes the least recently used, and opens again by walking
 * (parent, name) from the nearest inode that has one, comparing identities; a mismatch is ESTALE, which makes
 * the kernel look the path up again.
 *
 * Locks: one mutex for the table, the inodes' variable fields and the cache. It is a leaf: no system call on the
 * host file system, no reply and no other lock is made under it. Any thread at once. */
#pragma once

#include "fsgate/inode.h"

#include <stddef.h>

typedef struct FsgInodeTable FsgInodeTable;

/* Makes the inodes of all nodes of the tree; the root's answers to FUSE_ROOT_ID. */
FsgInodeTable *fsg_inode_table_new(FsgNode *root, size_t fd_budget);
void fsg_inode_table_free(FsgInodeTable *table); /* NULL is allowed; no other thread may use it */

/* The inode behind a node id of the kernel's: valid as long as the kernel holds a lookup on it,
 * which it does during a request that names it. */
FsgInode *fsg_inode_from_id(FsgInodeTable *table, uint64_t node_id);
uint64_t fsg_inode_id(FsgInodeTable *table, const FsgInode *inode);

/* Finds or creates the inode of a host object and gives the kernel one lookup on it. take_fd is an O_PATH fd of
 * it or -1; it is cached or closed. parent and name become the hint, node the overlay. */
FsgInode *fsg_inode_ensure(FsgInodeTable *table, FsgInodeKind kind, FsgAnchor *anchor,
			   const struct statx *stx, FsgInode *parent, const char *name,
			   FsgNode *node, int take_fd);

/* One more lookup by the kernel on a node's own inode. */
void fsg_inode_give_lookup(FsgInodeTable *table, FsgInode *inode);

/* The kernel, or we after a reply that did not arrive, return n lookups. The inode may be gone afterwards. */
void fsg_inode_forget(FsgInodeTable *table, FsgInode *inode, uint64_t n);

/* A reference of ours, e.g. of an open handle. */
FsgInode *fsg_inode_ref(FsgInodeTable *table, FsgInode *inode);
void fsg_inode_unref(FsgInodeTable *table, FsgInode *inode);

/* The inode's O_PATH fd, opened if need be; it stays open until fsg_inode_put_fd(). -errno, ESTALE when
 * the object is not where it was. */
int fsg_inode_get_fd(FsgInodeTable *table, FsgInode *inode);
void fsg_inode_put_fd(FsgInodeTable *table, FsgInode *inode);

/* The same if it is cached, else -1: nothing is looked up. */
int fsg_inode_get_cached_fd(FsgInodeTable *table, FsgInode *inode);

/* Caches an O_PATH fd that the caller has made sure is the inode's own, unless another thread was faster, and makes the
 * caller a user of what is cached then. */
int fsg_inode_install_fd(FsgInodeTable *table, FsgInode *inode, int take_fd);

/* The inode has one more open file, or one less (to be said before its fd is closed); and whether there is any. */
void fsg_inode_add_file(FsgInodeTable *table, FsgInode *inode, FsgFile *file);
void fsg_inode_remove_file(FsgInodeTable *table, FsgInode *inode, FsgFile *file);
bool fsg_inode_has_handles(FsgInodeTable *table, FsgInode *inode);

/* A duplicate of the fd of one of its open files, or -1. */
int fsg_inode_dup_file_fd(FsgInodeTable *table, FsgInode *inode);

/* A name of ours was moved or is going away. If the kernel knows the object: after a rename the hint follows;
 * after an unlink of the last name its O_PATH fd (or -1) is kept, for nothing leads to it any more. */
void fsg_inode_renamed(FsgInodeTable *table, const FsgInodeKey *key, FsgInode *parent,
		       const char *name);
void fsg_inode_unlinked(FsgInodeTable *table, const FsgInodeKey *key, int take_fd);

bool fsg_inode_key_equal(const FsgInodeKey *a, const FsgInodeKey *b);
FsgInodeKey fsg_inode_key(const FsgAnchor *anchor, const struct statx *stx);

/* Copies of the hint: a parent reference to be returned with fsg_inode_unref, and the name. false when
 * there is none. */
bool fsg_inode_dup_hint(FsgInodeTable *table, FsgInode *inode, FsgInode **ret_parent,
			char **ret_name);
FsgNode *fsg_inode_node(FsgInodeTable *table, FsgInode *inode);

/* The inode's view path as far as the hints know; for messages and for judging links. The caller frees. */
char *fsg_inode_dup_path(FsgInodeTable *table, FsgInode *inode);
/* The same of an entry of it; name may be NULL. */
char *fsg_inode_dup_entry_path(FsgInodeTable *table, FsgInode *inode, const char *name);

/* Compares with the last stamp and replaces it: true when the kernel's pages are still good. Where changes by
 * others are not told, the last one has to be old enough to tell. */
bool fsg_inode_restamp(FsgInodeTable *table, FsgInode *inode, const struct statx *stx,
		       bool are_told);

/* --- of what events of the host name (watch-index.c) --- */

/* Makes the inode one that events name by id; 0: no longer. */
void fsg_inode_set_watch_id(FsgInodeTable *table, FsgInode *inode, uint64_t id);
/* How many inodes have that id, and the kernel's node ids of the first `most`. With `forget` those that are no
 * directories lose it. */
unsigned int fsg_inode_find_watched(FsgInodeTable *table, uint64_t id, bool forget,
				    uint64_t *ret_node_ids, unsigned int most);
/* The watch state of a directory, as it was set; of anything else that has an id that of the directory where it
 * was last seen, or 0. */
void fsg_inode_set_watch_state(FsgInodeTable *table, FsgInode *inode, unsigned int state);
unsigned int fsg_inode_watch_state(FsgInodeTable *table, FsgInode *inode);

/* All inodes but those of nodes, each with a reference that the caller returns. */
GPtrArray *fsg_inode_table_ref_all(FsgInodeTable *table);

/* What is known of a link's text. */
void fsg_inode_set_link_kind(FsgInodeTable *table, FsgInode *inode, FsgLinkKind kind);
FsgLinkKind fsg_inode_link_kind(FsgInodeTable *table, FsgInode *inode);

typedef struct {
	size_t inodes;
	size_t fds;
} FsgInodeStats;
void fsg_inode_table_stats(FsgInodeTable *table, FsgInodeStats *ret_stats);

/* What lookups ask of the host; the key and the reply are made from it. */
#define FSG_STATX_MASK (STATX_BASIC_STATS | STATX_BTIME)
