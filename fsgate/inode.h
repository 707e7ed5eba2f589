/* An inode: one object that the kernel knows by a node id.
 *
 * Identity is (anchor, device, inode number, birth time, kind), not a path: hard links are one inode of their
 * mount, and a rename on the host needs no bookkeeping. The birth time tells a new file from a deleted
 * one whose number it got. Parent and name are a hint: where the object was last seen, so that its
 * O_PATH fd, which is only cached, can be opened again; what is found there has to have the same
 * identity.
 *
 * Two counters that must never be mixed: `lookups` belongs to the kernel, which takes one for each entry
 * that we gave it and returns them with FORGET; `refs` are our own pointers. The inode goes when both are
 * zero. Which fields may be touched by whom is said at each. */
#pragma once

#include "fsgate/anchor.h"
#include "fsgate/view-tree.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* What an inode is served from. */
typedef enum {
	FSG_INODE_HOST,	     /* an object below an anchor */
	FSG_INODE_SYNTHETIC, /* a DIR or LINK node of the view tree */
	FSG_INODE_BLOCKED,   /* a host mount point below an anchor: an empty read-only stand-in */
} FsgInodeKind;

/* In the number of a BLOCKED inode: it stands in for a directory of ours, not for a host mount. */
#define FSG_INO_PRIVATE (1ull << 60)

typedef struct {
	unsigned int anchor_id;
	uint64_t dev;
	uint64_t ino;
	int64_t birth_sec; /* 0 where the host's file system has none */
	uint32_t birth_nsec;
	mode_t type; /* S_IFMT: a number that was given to another kind of object is another inode */
} FsgInodeKey;

/* What was true of a file when it was last opened: if it still is, the kernel may keep its pages. */
typedef struct {
	uint64_t size;
	struct timespec mtime, ctime;
	bool settled; /* the times were old enough that a later change must have moved them */
} FsgStamp;

typedef enum {
	FSG_LINK_UNKNOWN,
	FSG_LINK_STAYS,	 /* below its own directory, whatever happens: given out as it is */
	FSG_LINK_CLIMBS, /* absolute, or with ".." */
} FsgLinkKind;

typedef struct FsgFile FsgFile;

/* A view that was searched has a million of these: fields that are small stand together. */
struct FsgInode {
	/* constant */
	FsgInodeKey key;   /* first: the table's keys are its values then, and take no room */
	FsgAnchor *anchor; /* HOST, BLOCKED */
	FsgInodeKind kind;
	mode_t type; /* S_IFMT of its mode */
	/* under the table's lock */
	uint64_t lookups;
	unsigned int refs;
	unsigned int watch_state; /* of a directory: whether it is watched (watch.h) */
	FsgFile *files;		  /* open ones: who has one may use the object wherever it is */
	FsgInode *parent;	  /* a reference; NULL for roots of anchors and for nodes */
	char *name;
	FsgNode *node;	       /* the tree node laid over it, or whose form it is; or NULL */
	int fd;		       /* O_PATH, or -1 when it is not cached */
	unsigned int fd_users; /* calls that are using fd now */
	FsgInode *lru_prev, *lru_next; /* among the cached and not pinned */
	bool fd_pinned;	  /* must not be closed: an anchor's root, or unlinked and still in use */
	bool fd_borrowed; /* it is the anchor's own, which never closes (then pinned too) */
	FsgLinkKind link_kind : 8; /* of a link, whose text never changes */
	/* under passthrough's lock: how many have it open in which way */
	int32_t backing_id;
	unsigned int passed_opens, cached_opens;
	FsgStamp *stamp; /* NULL until it was opened, which most never are; owned */
	/* By which name events of the host call it (watch.h), 0 when they need not be told apart. */
	uint64_t watch_id;
	FsgInode *watch_next;
};

/* Whether anything may be changed in it. */
static inline bool fsg_inode_is_writable(const FsgInode *inode)
{
	return inode->kind == FSG_INODE_HOST && inode->anchor->writable;
}

/* Whether no server has to be asked about it (local-fs.h). */
static inline bool fsg_inode_is_local(const FsgInode *inode)
{
	return inode->anchor && inode->anchor->is_local && inode->key.dev == inode->anchor->dev;
}
