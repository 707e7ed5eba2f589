/* view-tree: nodes, order, link counts and stable numbers from a plan. */
#include "fsgate/view-tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
	ViewPlan plan;
	GPtrArray *anchors;
	FsgNode *root;
} Fixture;

static void add(Fixture *f, ViewEntryKind kind, const char *path, bool is_dir)
{
	ViewEntry *entry = g_new0(ViewEntry, 1);

	entry->kind = kind;
	entry->view_path = g_strdup(path);
	entry->target = kind == VIEW_ENTRY_LINK ? g_strdup("usr/bin") : NULL;
	g_ptr_array_add(f->plan.entries, entry);
	if (kind == VIEW_ENTRY_MOUNT || kind == VIEW_ENTRY_GENERATED) {
		FsgAnchor *anchor = g_new0(FsgAnchor, 1);

		anchor->is_dir = is_dir;
		anchor->view_path = entry->view_path;
		g_ptr_array_add(f->anchors, anchor);
	}
}

static void free_entry(gpointer data)
{
	ViewEntry *entry = data;

	g_free(entry->view_path);
	g_free(entry->target);
	g_free(entry);
}

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);

	f->plan.entries = g_ptr_array_new_with_free_func(free_entry);
	f->anchors = g_ptr_array_new_with_free_func(g_free);
	add(f, VIEW_ENTRY_LINK, "/bin", false);
	add(f, VIEW_ENTRY_GENERATED, "/etc/passwd", false);
	add(f, VIEW_ENTRY_MOUNT, "/opt/stella", true);
	add(f, VIEW_ENTRY_MOUNT, "/opt/stella/agent-skills", true);
	add(f, VIEW_ENTRY_MOUNT, "/opt/stella/note", false);
	add(f, VIEW_ENTRY_POINT, "/proc", true);
	add(f, VIEW_ENTRY_MOUNT, "/workspace", true);
	f->root = fsg_view_tree_new(&f->plan, f->anchors);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	fsg_view_tree_free(f->root);
	g_ptr_array_unref(f->anchors);
	g_ptr_array_unref(f->plan.entries);
	g_free(f);
	return 0;
}

static FsgNode *find(const Fixture *f, const char *first, const char *second, const char *third)
{
	FsgNode *node = fsg_node_find_child(f->root, first);

	if (second)
		node = fsg_node_find_child(node, second);
	return third ? fsg_node_find_child(node, third) : node;
}

static void every_entry_has_its_node(void **state)
{
	const Fixture *f = *state;

	assert_int_equal(find(f, "bin", NULL, NULL)->kind, FSG_NODE_LINK);
	assert_string_equal(find(f, "bin", NULL, NULL)->target, "usr/bin");
	assert_int_equal(find(f, "opt", NULL, NULL)->kind, FSG_NODE_DIR);
	assert_int_equal(find(f, "proc", NULL, NULL)->kind, FSG_NODE_DIR);
	assert_int_equal(find(f, "opt", "stella", "agent-skills")->kind, FSG_NODE_MOUNT);
	/* Each with its own anchor, and the anchor knows its node. */
	for (guint i = 0; i < f->anchors->len; i++) {
		const FsgAnchor *anchor = g_ptr_array_index(f->anchors, i);
		g_autofree char *path = fsg_node_dup_path(anchor->node);

		assert_ptr_equal(anchor->node->anchor, anchor);
		assert_string_equal(path, anchor->view_path);
	}
	assert_null(find(f, "opt", "stella-evil", NULL));
	assert_null(find(f, "op", NULL, NULL));
	assert_null(fsg_node_find_child(NULL, "x"));
}

static void children_are_sorted_and_directories_counted(void **state)
{
	const Fixture *f = *state;
	const char *before = "";

	for (guint i = 0; i < f->root->children->len; i++) {
		const FsgNode *child = g_ptr_array_index(f->root->children, i);

		assert_true(strcmp(before, child->name) < 0);
		before = child->name;
	}
	assert_int_equal(f->root->children->len, 5);
	assert_int_equal(fsg_node_count_dirs(f->root), 4); /* not the link */
	assert_int_equal(fsg_node_count_dirs(find(f, "opt", "stella", NULL)), 1);
}

static void numbers_depend_on_the_path_alone(void **state)
{
	Fixture *f = *state;
	FsgNode *again = fsg_view_tree_new(&f->plan, f->anchors);

	assert_int_equal(again->ino, f->root->ino);
	assert_int_equal(fsg_node_find_child(again, "opt")->ino, find(f, "opt", NULL, NULL)->ino);
	assert_int_not_equal(find(f, "opt", NULL, NULL)->ino, find(f, "etc", NULL, NULL)->ino);
	/* The anchors now hang on the second tree. */
	fsg_view_tree_free(f->root);
	f->root = again;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_entry_has_its_node),
		TEST(children_are_sorted_and_directories_counted),
		TEST(numbers_depend_on_the_path_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
