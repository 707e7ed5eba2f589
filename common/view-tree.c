/* The view tree; see view-tree.h. */
#include "common/view-tree.h"

#include "common/path-util.h"

#include <string.h>

/* FNV-1a: stable over runs and machines, which lookup order is not. Bit 62 keeps these numbers away
 * from those of host file systems, and bit 63 stays clear for programs that read them as signed. */
static uint64_t ino_of_path(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return (hash & ((1ull << 62) - 1)) | 1ull << 62;
}

static void node_free(gpointer data)
{
	ViewNode *node = data;

	g_ptr_array_unref(node->children);
	g_free(node->name);
	g_free(node->target);
	g_free(node);
}

static ViewNode *node_new(ViewNode *parent, const char *name, size_t length)
{
	ViewNode *node = g_new0(ViewNode, 1);
	g_autofree char *path = NULL;

	node->name = g_strndup(name, length);
	node->parent = parent;
	node->children = g_ptr_array_new_with_free_func(node_free);
	path = view_node_dup_path(node);
	node->ino = ino_of_path(path);
	return node;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
	const ViewNode *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static ViewNode *find_child(const ViewNode *node, const char *name, size_t length)
{
	for (guint i = 0; i < node->children->len; i++) {
		ViewNode *child = g_ptr_array_index(node->children, i);

		if (strncmp(child->name, name, length) == 0 && child->name[length] == '\0')
			return child;
	}
	return NULL;
}

static ViewNode *ensure_path(ViewNode *root, const char *path)
{
	ViewNode *node = root;
	const char *name;
	size_t length;

	while ((name = path_next(&path, &length))) {
		ViewNode *child = find_child(node, name, length);

		if (!child) {
			child = node_new(node, name, length);
			g_ptr_array_add(node->children, child);
			g_ptr_array_sort(node->children, compare_names);
		}
		node = child;
	}
	return node;
}

ViewNode *view_tree_new(const ViewPlan *plan, GPtrArray *anchors)
{
	ViewNode *root = node_new(NULL, "", 0);
	guint next_anchor = 0;

	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(plan->entries, i);
		ViewNode *node = ensure_path(root, entry->view_path);

		switch (entry->kind) {
		case VIEW_ENTRY_MOUNT:
		case VIEW_ENTRY_GENERATED:
			node->kind = VIEW_NODE_MOUNT;
			node->anchor = g_ptr_array_index(anchors, next_anchor++);
			node->anchor->node = node;
			break;
		case VIEW_ENTRY_LINK:
			node->kind = VIEW_NODE_LINK;
			node->target = g_strdup(entry->target);
			break;
		case VIEW_ENTRY_POINT:
			break;
		}
	}
	return root;
}

void view_tree_free(ViewNode *root)
{
	if (root)
		node_free(root);
}

ViewNode *view_node_find_child(const ViewNode *node, const char *name)
{
	return node ? find_child(node, name, strlen(name)) : NULL;
}

char *view_node_dup_path(const ViewNode *node)
{
	GString *path = g_string_new(NULL);

	for (; node->parent; node = node->parent) {
		g_string_prepend(path, node->name);
		g_string_prepend_c(path, '/');
	}
	if (path->len == 0)
		g_string_append_c(path, '/');
	return g_string_free(path, FALSE);
}

unsigned int view_node_count_dirs(const ViewNode *node)
{
	unsigned int count = 0;

	for (guint i = 0; i < node->children->len; i++) {
		const ViewNode *child = g_ptr_array_index(node->children, i);

		if (child->kind == VIEW_NODE_DIR ||
		    (child->kind == VIEW_NODE_MOUNT && child->anchor->is_dir))
			count++;
	}
	return count;
}
