/* Fuzz target: bytes as the text of a link, judged by the walk as for a view that the host can look into. A text that comes out is
 * a path below the view's root, free of "..", and free of links but the last name: walked as a path it leads to the same place.
 * One that is refused is refused as a link; and the link itself, followed, never leads out. */
#include "path-world.h"

#include "common/path-resolver-internal.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_link(const char *text, const char *name)
{
	g_autofree char *path = world_path(name);

	g_assert_cmpint(symlink(text, path), ==, 0);
}

static void fill(void)
{
	g_autofree char *deep = world_path("workspace/dir/sub/deep");
	g_autofree char *secret = world_path("../secret");

	g_assert_cmpint(g_mkdir_with_parents(deep, 0755), ==, 0);
	world_write("workspace/dir/f", "f");
	world_write("user/n", "n");
	put_link("dir", "workspace/in");
	put_link("/user", "workspace/u");
	put_link("/workspace/dir", "user/b");
	put_link("../sub/deep", "workspace/dir/d");
	put_link("..", "workspace/dir/sub/up");
	put_link("/etc", "workspace/etc");
	put_link(secret, "workspace/secret");
	put_link("loop", "workspace/loop");
	put_link("absent/x", "workspace/dangling");
}

static void check_free_of_dots(const char *path)
{
	const char *name;
	size_t length;

	while ((name = path_next(&path, &length)))
		g_assert_false(length == 2 && memcmp(name, "..", 2) == 0);
}

/* Where the text leads, said again by the path that comes out. */
static void check_result(const ViewWalk *judged, const char *path)
{
	const ViewPlace *meant = view_walk_here(judged), *found;
	PathWalk again;
	int r = path_walk_begin(world.resolver, path[0] ? path : "/", VIEW_WALK_KEEP_LAST, &again);

	g_assert_cmpint(r, ==, 0);
	found = view_walk_here(&again.walk);
	g_assert_cmpint(found->kind, ==, meant->kind);
	g_assert_cmpuint(found->dev, ==, meant->dev);
	g_assert_cmpuint(found->ino, ==, meant->ino);
	g_assert_cmpuint(again.walk.places->len, ==, judged->places->len);
	g_assert_cmpstr(again.walk.absent, ==, judged->absent);
	g_assert_cmpint(again.walk.links, ==, 0);
	path_walk_end(&again);
}

static void judge(const char *text)
{
	const ViewWalkSpace space = { .root = world.resolver->root };
	g_autoptr(GString) path = g_string_new(NULL);
	ViewWalk walk;
	int r;

	view_walk_init(&walk, &space, VIEW_WALK_KEEP_LAST);
	if (text[0] != '/')
		view_walk_add(&walk, "/workspace/dir", false);
	view_walk_add(&walk, text, true);
	r = view_walk_run(&walk);
	if (r == 0) {
		view_walk_append_path(&walk, path);
		g_assert_true(path->len == 0 || path->str[0] == '/');
		check_free_of_dots(path->str);
		check_result(&walk, path->str);
	} else {
		g_assert_true(r == -EACCES || r == -ELOOP || r == -ENOTDIR || r == -ENAMETOOLONG);
		g_assert_true((r == -EACCES || r == -ELOOP) == (walk.reason >= 0));
	}
	view_walk_clear(&walk);
}

static void follow(const char *text)
{
	g_autofree char *path = world_path("workspace/dir/link");
	PathProblem problem = { .reason = -1 };
	FD_AUTO fd = -1;

	if (symlink(text, path) != 0)
		return; /* too long, or empty */
	fd = path_resolver_open(world.resolver, "dir/link", O_RDONLY, 0, &problem);
	if (fd >= 0)
		world_check_inside(fd);
	else
		world_check_problem(fd, &problem);
	g_assert_cmpint(unlink(path), ==, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *text = g_strndup((const char *)data, size);

	world_begin(fill);
	judge(text);
	follow(text);
	world_check_text("../secret/f", "secret");
	return 0;
}
