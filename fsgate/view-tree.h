/* The view tree: the directories, mounts and links that the view has by its plan, whatever the host's
 * directories hold. Built once, never changed, read without locks.
 *
 *   /                 DIR
 *   ├── workspace     MOUNT   -> anchor
 *   ├── opt           DIR             exists only to lead to a mount
 *   │   └── stella    MOUNT   -> anchor
 *   │       └── agent-skills  MOUNT   nested: shown in its parent's listing, hides what the host has
 *   └── bin           LINK    usr/bin
 *
 * A DIR node below a MOUNT (a directory on the way to a deeper mount) is laid over the host directory of
 * that name if there is one, else it is synthetic. */
#pragma once

#include "fsgate/anchor.h"

#include <stdint.h>

typedef enum {
	FSG_NODE_DIR,
	FSG_NODE_MOUNT,
	FSG_NODE_LINK,
} FsgNodeKind;

typedef struct FsgInode FsgInode;

struct FsgNode {
	FsgNodeKind kind;
	char *name;	     /* "" for the root */
	FsgNode *parent;     /* NULL for the root; borrowed */
	GPtrArray *children; /* FsgNode, by name in byte order; owned */
	FsgAnchor *anchor;   /* MOUNT; borrowed */
	char *target;	     /* LINK */
	uint64_t ino;	     /* stable: a hash of the view path */
	FsgInode *inode;     /* the node's own inode: MOUNT, LINK, and DIR in its synthetic form */
};

/* Builds the tree over the plan and its anchors (same order as the plan's MOUNT and GENERATED
 * entries). */
FsgNode *fsg_view_tree_new(const ViewPlan *plan, GPtrArray *anchors);
void fsg_view_tree_free(FsgNode *root); /* NULL is allowed */

/* The child of that name, or NULL. node may be NULL. */
FsgNode *fsg_node_find_child(const FsgNode *node, const char *name);

/* The node's view path. The caller frees. */
char *fsg_node_dup_path(const FsgNode *node);

/* How many of its children are directories: what a synthetic directory's link count is 2 more than. */
unsigned int fsg_node_count_dirs(const FsgNode *node);
