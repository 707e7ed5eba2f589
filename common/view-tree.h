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

#include "common/view-anchor.h"

#include <stdint.h>

typedef enum {
	VIEW_NODE_DIR,
	VIEW_NODE_MOUNT,
	VIEW_NODE_LINK,
} ViewNodeKind;

struct ViewNode {
	ViewNodeKind kind;
	char *name;		/* "" for the root */
	ViewNode *parent;	/* NULL for the root; borrowed */
	GPtrArray *children;	/* ViewNode, by name in byte order; owned */
	ViewAnchor *anchor;	/* MOUNT; borrowed */
	char *target;		/* LINK */
	uint64_t ino;		/* stable: a hash of the view path */
	struct FsgInode *inode; /* the gateway's: MOUNT, LINK, and DIR in its synthetic form */
};

/* Builds the tree over the plan and its anchors (same order as the plan's MOUNT and GENERATED
 * entries). */
ViewNode *view_tree_new(const ViewPlan *plan, GPtrArray *anchors);
void view_tree_free(ViewNode *root); /* NULL is allowed */

/* The child of that name, or NULL. node may be NULL. */
ViewNode *view_node_find_child(const ViewNode *node, const char *name);

/* The node's view path. The caller frees. */
char *view_node_dup_path(const ViewNode *node);

/* How many of its children are directories: what a synthetic directory's link count is 2 more than. */
unsigned int view_node_count_dirs(const ViewNode *node);
