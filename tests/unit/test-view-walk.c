/* view-walk: what the walk says of where it ended, for those who make something of it: a link's text, a place, a verdict. The
 * host side and the view are those of a path resolver. */
#include "path-resolver-fixture.h"

#include "common/path-resolver-internal.h"

static ViewWalkSpace space;
static ViewWalk walk;

static int begin(void **state)
{
	set_up(state);
	space = (ViewWalkSpace){ .root = resolver->root };
	return 0;
}

/* Walks from the root, and leaves `walk` to be looked at until the next one. */
static int walk_path(const char *path, bool as_link, unsigned int flags)
{
	if (walk.places)
		view_walk_clear(&walk);
	view_walk_init(&walk, &space, flags);
	view_walk_add(&walk, path, as_link);
	return view_walk_run(&walk);
}

static int end(void **state)
{
	if (walk.places)
		view_walk_clear(&walk);
	walk = (ViewWalk){ .places = NULL };
	return tear_down(state);
}

static void path_is(const char *expected)
{
	g_autoptr(GString) path = g_string_new(NULL);

	view_walk_append_path(&walk, path);
	assert_string_equal(path->str, expected);
}

static void a_path_comes_out_without_links_and_dots(void **state)
{
	(void)state;
	put_link("dir", "ws/in");
	put_link("/user", "ws/dir/u");
	assert_int_equal(walk_path("/workspace/in/sub/../u/notes", false, 0), 0);
	path_is("/user/notes");
	assert_int_equal(walk.links, 2);
	assert_int_equal(walk_path("/", false, 0), 0);
	path_is("");
	assert_int_equal(walk_path("/opt/../..", false, 0), 0);
	path_is("");
}

static void what_is_absent_keeps_its_rest_up_to_dots(void **state)
{
	(void)state;
	assert_int_equal(walk_path("/workspace/a/b/c", false, 0), 0);
	assert_string_equal(walk.absent, "a");
	assert_true(view_walk_has_rest(&walk));
	path_is("/workspace/a/b/c");
	assert_int_equal(walk_path("/workspace/a/b/../../dir", false, 0), 0);
	path_is("/workspace/a/b/.");
	assert_int_equal(walk_path("/workspace/a/", false, 0), 0);
	assert_true(!view_walk_has_rest(&walk));
	path_is("/workspace/a/");
	assert_int_equal(walk_path("/workspace/a", false, 0), 0);
	assert_true(!view_walk_has_rest(&walk));
	assert_int_equal(walk_path("/workspace/dir/", false, 0), 0);
	assert_null(walk.absent);
	path_is("/workspace/dir");
}

static void outside_is_where_a_link_leads_that_finds_nothing_of_the_views(void **state)
{
	(void)state;
	assert_int_equal(walk_path("/etc/passwd", true, 0), -EACCES);
	assert_int_equal(walk.reason, DENIAL_SYMLINK_ESCAPE);
	assert_int_equal(walk_path("/opt/x", true, 0), -EACCES);
	/* not by who asks for it himself, and not below a mount */
	assert_int_equal(walk_path("/etc/passwd", false, 0), 0);
	assert_string_equal(walk.absent, "etc");
	assert_int_equal(walk_path("/workspace/x", true, 0), 0);
	assert_string_equal(walk.absent, "x");
	assert_int_equal(walk_path("/opt", true, 0), 0);
	assert_null(walk.absent);
	/* behind the link it is who asks again */
	put_link("/opt", "ws/opt");
	assert_int_equal(walk_path("/workspace/opt/x", false, 0), 0);
	assert_string_equal(walk.absent, "x");
	put_link("/opt/x", "ws/optx");
	assert_int_equal(walk_path("/workspace/optx", false, 0), -EACCES);
	assert_string_equal(walk.at, "/workspace/optx");
	assert_string_equal(walk.target, "/opt/x");
}

static void a_link_at_the_end_is_kept_or_followed(void **state)
{
	(void)state;
	put_link("dir", "ws/in");
	assert_int_equal(walk_path("/workspace/in", false, VIEW_WALK_KEEP_LAST), 0);
	assert_int_equal(view_walk_here(&walk)->type, S_IFLNK);
	path_is("/workspace/in");
	assert_int_equal(walk_path("/workspace/in/", false, VIEW_WALK_KEEP_LAST), 0);
	path_is("/workspace/dir");
	assert_int_equal(walk_path("/workspace/in", false, 0), 0);
	path_is("/workspace/dir");
	assert_int_equal(walk_path("/workspace/in", false, VIEW_WALK_STRICT), -ELOOP);
	assert_int_equal(walk.reason, -1);
	assert_int_equal(walk_path("/workspace/dir", false, VIEW_WALK_STRICT), 0);
}

static void the_view_tree_is_asked_before_the_host(void **state)
{
	const ViewPlace *here;

	(void)state;
	assert_int_equal(walk_path("/opt/stella/rw", false, 0), 0);
	here = view_walk_here(&walk);
	assert_true(here->is_anchor_root && here->anchor->writable);
	assert_string_equal(here->anchor->view_path, "/opt/stella/rw");
	/* met by another name it is the one that was met, and read-only is what wins */
	assert_int_equal(walk_path("/workspace/inner", false, 0), 0);
	here = view_walk_here(&walk);
	assert_true(here->is_anchor_root && !here->anchor->writable);
	assert_string_equal(here->anchor->view_path, "/inner");
	assert_int_equal(walk_path("/workspace/inner/../dir", false, 0), 0);
	assert_true(view_walk_here(&walk)->anchor->writable);
}

static void hidden_names_are_absent_and_said_to_be_hidden(void **state)
{
	static const char *const globs[] = { "secret*", "dir/sub/*.key", NULL };
	ViewNode *node = view_node_find_child(resolver->root, "workspace");

	(void)state;
	put_file("ws/secret.txt", "x");
	put_file("ws/dir/sub/a.key", "x");
	put_file("ws/dir/sub/a.txt", "x");
	assert_int_equal(walk_path("/workspace/secret.txt", false, 0), 0);
	assert_null(walk.absent);
	node->anchor->hide = globs;
	assert_int_equal(walk_path("/workspace/secret.txt", false, 0), 0);
	assert_string_equal(walk.absent, "secret.txt");
	assert_int_equal(walk.reason, DENIAL_HIDDEN);
	put_link("dir/sub/a.key", "ws/key");
	assert_int_equal(walk_path("/workspace/key", false, 0), 0);
	assert_string_equal(walk.absent, "a.key");
	assert_int_equal(walk_path("/workspace/dir/sub/a.txt", false, 0), 0);
	assert_null(walk.absent);
	assert_int_equal(walk.reason, -1);
	assert_int_equal(walk_path("/workspace/dir/secret.txt", false, 0), 0);
	assert_int_equal(walk.reason, -1); /* absent, not hidden */
}

/* However deep, two fds and those of mounts. */
static void a_deep_walk_holds_few_fds(void **state)
{
	g_autoptr(GString) path = g_string_new("/workspace");
	int before = count_fds();

	(void)state;
	for (int i = 0; i < 300; i++) {
		g_autofree char *name = NULL;

		g_string_append(path, "/d");
		name = g_strconcat("ws", path->str + strlen("/workspace"), NULL);
		assert_int_equal(mkdir(host(name), 0755), 0);
	}
	assert_int_equal(walk_path(path->str, false, 0), 0);
	assert_null(walk.absent);
	assert_true(count_fds() <= before + 2);
	for (int i = 0; i < 150; i++)
		g_string_append(path, "/..");
	assert_int_equal(walk_path(path->str, false, 0), 0);
	assert_int_equal(walk.places->len, 2 + 150);
	assert_true(view_walk_ensure_fd(&walk, walk.places->len - 1) >= 0);
	assert_true(count_fds() <= before + 3);
}

static void a_place_is_opened_again_only_as_what_it_was(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(g_mkdir_with_parents(host("ws/a/b/c/d"), 0755), 0);
	assert_int_equal(walk_path("/workspace/a/b/c/d", false, 0), 0);
	fd = view_walk_ensure_fd(&walk, 2);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_ino == view_walk_place(&walk, 2)->ino);
	/* gone, another directory, a link to what it was */
	assert_int_equal(walk_path("/workspace/a/b/c/d", false, 0), 0);
	assert_int_equal(rename(host("ws/a"), host("ws/moved")), 0);
	assert_int_equal(view_walk_ensure_fd(&walk, 2), -ESTALE);
	assert_int_equal(mkdir(host("ws/a"), 0755), 0);
	assert_int_equal(view_walk_ensure_fd(&walk, 2), -ESTALE);
	assert_int_equal(rmdir(host("ws/a")), 0);
	put_link("moved", "ws/a");
	assert_int_equal(view_walk_ensure_fd(&walk, 2), -ESTALE);
	assert_int_equal(unlink(host("ws/a")), 0);
	assert_int_equal(rename(host("ws/moved"), host("ws/a")), 0);
	assert_true(view_walk_ensure_fd(&walk, 2) >= 0);
}

typedef struct {
	GString *asked;
	const char *refuse;
} Actor;

static int act_for(void *data, const ViewAnchor *anchor)
{
	Actor *actor = data;

	g_string_append_printf(actor->asked, "%s ", anchor->view_path);
	return g_strcmp0(actor->refuse, anchor->view_path) == 0 ? -EPERM : 0;
}

static void each_look_is_by_whom_the_mount_says(void **state)
{
	Actor actor = { .asked = g_string_new(NULL) };

	(void)state;
	put_link("/user/notes", "ws/notes");
	space.act_for = act_for;
	space.data = &actor;
	assert_int_equal(walk_path("/workspace/notes", false, 0), 0);
	assert_string_equal(actor.asked->str, "/workspace /user ");
	actor.refuse = "/user";
	assert_int_equal(walk_path("/workspace/notes", false, 0), -EPERM);
	assert_int_equal(walk_path("/workspace/file", false, 0), 0);
	g_string_free(actor.asked, TRUE);
}

static void a_text_climbs_by_a_slash_in_front_or_dots(void **state)
{
	(void)state;
	assert_true(view_link_may_climb("/"));
	assert_true(view_link_may_climb("/a"));
	assert_true(view_link_may_climb(".."));
	assert_true(view_link_may_climb("a/../b"));
	assert_true(view_link_may_climb("a/.."));
	assert_false(view_link_may_climb("a"));
	assert_false(view_link_may_climb("./a/..b/...//c/"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_path_comes_out_without_links_and_dots),
		TEST(what_is_absent_keeps_its_rest_up_to_dots),
		TEST(outside_is_where_a_link_leads_that_finds_nothing_of_the_views),
		TEST(a_link_at_the_end_is_kept_or_followed),
		TEST(the_view_tree_is_asked_before_the_host),
		TEST(hidden_names_are_absent_and_said_to_be_hidden),
		TEST(a_deep_walk_holds_few_fds),
		TEST(a_place_is_opened_again_only_as_what_it_was),
		TEST(each_look_is_by_whom_the_mount_says),
		TEST(a_text_climbs_by_a_slash_in_front_or_dots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
