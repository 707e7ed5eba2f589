/* The view tree (common/view-tree.h) by the gateway's names. */
#pragma once

#include "common/view-tree.h"
#include "fsgate/anchor.h"

typedef ViewNode FsgNode;
typedef struct FsgInode FsgInode;

#define FSG_NODE_DIR   VIEW_NODE_DIR
#define FSG_NODE_MOUNT VIEW_NODE_MOUNT
#define FSG_NODE_LINK  VIEW_NODE_LINK

#define fsg_view_tree_new   view_tree_new
#define fsg_view_tree_free  view_tree_free
#define fsg_node_find_child view_node_find_child
#define fsg_node_dup_path   view_node_dup_path
#define fsg_node_count_dirs view_node_count_dirs
