/* path_resolver_step: one name further gives what a walk of the whole path gives, whatever is under the name; also where the
 * directory's own path leads elsewhere by then. */
#include "path-resolver-fixture.h"

static PathPlace walked(const char *path)
{
	PathPlace place = { .fd = -1, .parent_fd = -1 };
	PathProblem problem = { .reason = -1 };

	if (path_resolver_walk(resolver, path, PATH_WALK_NOFOLLOW, &place, &problem) < 0)
		fail_msg("%s", problem.message);
	return place;
}

static bool same_object(int a, int b)
{
	struct stat one, two;

	if (a < 0 || b < 0)
		return a < 0 && b < 0;
	assert_int_equal(fstat(a, &one), 0);
	assert_int_equal(fstat(b, &two), 0);
	return one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static void assert_same_place(const PathPlace *a, const PathPlace *b)
{
	assert_true(same_object(a->fd, b->fd));
	assert_true(same_object(a->parent_fd, b->parent_fd));
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->view_path, b->view_path);
	assert_true(g_strcmp0(a->mount, b->mount) == 0);
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->is_synthetic, b->is_synthetic);
	assert_int_equal(a->is_mount_root, b->is_mount_root);
	assert_int_equal(a->writable, b->writable);
	assert_int_equal(a->read_only_reason, b->read_only_reason);
	assert_int_equal(a->pinned, b->pinned);
	assert_ptr_equal(a->anchor, b->anchor);
	assert_ptr_equal(a->node, b->node);
	assert_true(g_strcmp0(a->path_in_mount, b->path_in_mount) == 0);
}

/* Name by name along a path, each time compared with a walk of what has been gone of it. */
static void step_along(const char *path)
{
	g_auto(GStrv) names = g_strsplit(path, "/", -1);
	g_autoptr(GString) gone = g_string_new(NULL);
	PathPlace here = walked("/");

	for (char **name = names; *name; name++) {
		PathPlace next = { .fd = -1, .parent_fd = -1 }, direct, again;
		PathActing acting;

		g_string_append_printf(gone, "/%s", *name);
		assert_int_equal(path_resolver_step(resolver, &here, *name, 0, &next), 0);
		assert_int_equal(path_resolver_act_begin(&here, &acting), 0);
		assert_int_equal(
			path_resolver_step(resolver, &here, *name, PATH_WALK_ACTING, &again), 0);
		path_resolver_act_end(&acting);
		assert_same_place(&next, &again);
		path_place_clear(&again);
		direct = walked(gone->str);
		assert_same_place(&next, &direct);
		path_place_clear(&direct);
		path_place_clear(&here);
		here = next;
	}
	path_place_clear(&here);
}

static void a_step_comes_to_where_the_walk_comes(void **state)
{
	static const char *const paths[] = {
		"workspace/dir/sub",
		"workspace/dir/f",
		"workspace/inner/deep",
		"inner/deep",
		"opt/stella/rw/w",
		"opt/stella/sub",
		"note",
		"workspace/out",
		"workspace/dir/up",
		"user/notes",
		"workspace/fifo",
	};
	int fds = count_fds();

	(void)state;
	put_link(host("secret"), "ws/out");
	put_link("../..", "ws/dir/up");
	assert_int_equal(mkfifo(host("ws/fifo"), 0600), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++)
		step_along(paths[i]);
	assert_int_equal(count_fds(), fds);
}

static void what_is_no_name_or_not_there_is_no_step(void **state)
{
	static const struct {
		const char *dir, *name;
		int r;
	} cases[] = {
		{ "/workspace", "absent", -ENOENT },  { "/workspace", "..", -EINVAL },
		{ "/workspace", ".", -EINVAL },	      { "/workspace", "", -EINVAL },
		{ "/workspace", "dir/f", -EINVAL },   { "/", "absent", -ENOENT },
		{ "/workspace/file", "x", -ENOTDIR }, { "/workspace/link", "f", -ENOTDIR },
		{ "/opt", "other", -ENOENT },
	};

	(void)state;
	put_link("dir", "ws/link");
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		PathPlace dir = walked(cases[i].dir), place = { .fd = -1, .parent_fd = -1 };

		assert_int_equal(path_resolver_step(resolver, &dir, cases[i].name, 0, &place),
				 cases[i].r);
		path_place_clear(&dir);
	}
}

static void a_directory_that_was_moved_is_still_where_one_is(void **state)
{
	PathPlace dir = walked("/workspace/dir"), place = { .fd = -1, .parent_fd = -1 };

	(void)state;
	assert_int_equal(rename(host("ws/dir"), host("ws/moved")), 0);
	put_link(host("secret"), "ws/dir");
	assert_int_equal(path_resolver_step(resolver, &dir, "f", 0, &place), 0);
	path_place_clear(&dir);
	dir = walked("/workspace/moved/f");
	assert_true(same_object(dir.fd, place.fd));
	path_place_clear(&dir);
	path_place_clear(&place);
}

#define TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE(a_step_comes_to_where_the_walk_comes),
		TREE(what_is_no_name_or_not_there_is_no_step),
		TREE(a_directory_that_was_moved_is_still_where_one_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
