/* symlinks: deny, in a view that the host can see: no link of a mount is read or followed, however it is named,
 * while the link as an object, and the links that are not a mount's own, work. */
#include "lib/preflight.h"
#include "lib/view-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
	ViewFixture *view;
	char *ws;	 /* on the host */
	char *workspace; /* in the view */
} Fixture;

static void make_link(const Fixture *f, const char *text, const char *name)
{
	g_autofree char *path = g_build_filename(f->ws, name, NULL);

	assert_int_equal(symlink(text, path), 0);
}

static Fixture *set_up_with(const char *mode, const char *links)
{
	Fixture *f = g_new0(Fixture, 1);

	f->view = view_fixture_new();
	f->ws = view_fixture_path(f->view, "ws");
	f->workspace = g_build_filename(f->view->mountpoint, "workspace", NULL);
	view_fixture_mkdir(f->view, "ws");
	view_fixture_mkdir(f->view, "ws/dir");
	view_fixture_write(f->view, "ws/dir/file", "inside");
	view_fixture_mkdir(f->view, "ws/links");
	make_link(f, "../dir/file", "links/up");
	make_link(f, "same", "links/chain");
	make_link(f, "plain", "links/same");
	view_fixture_write(f->view, "ws/links/plain", "plain");
	make_link(f, "/workspace/dir", "links/absolute");
	make_link(f, "../dir", "links/dir");
	make_link(f, "nothing", "links/dangling");
	make_link(f, "loop", "links/loop");
	view_fixture_mount(f->view,
			   (const char *const[]){ "--workspace", f->ws, "--runtime", "host",
						  "--symlinks", mode, "--links", links, NULL });
	return f;
}

static void free_all(Fixture *f)
{
	view_fixture_free(f->view);
	g_free(f->ws);
	g_free(f->workspace);
	g_free(f);
}

static char *in_view(const Fixture *f, const char *name)
{
	return g_build_filename(f->workspace, name, NULL);
}

/* Every way to use a link: through its text, as the last component, as one on the way. */
static void assert_unusable(const Fixture *f, const char *name)
{
	g_autofree char *path = in_view(f, name);
	g_autofree char *below = g_build_filename(path, "file", NULL);
	g_autofree char *new = g_build_filename(path, "new", NULL);
	char text[64];
	struct stat st;

	errno = 0;
	assert_int_equal(readlink(path, text, sizeof text), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(open(path, O_RDONLY | O_CLOEXEC), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(truncate(path, 0), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(stat(below, &st), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(mkdir(new, 0755), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(chmod(path, 0600), -1);
	assert_int_equal(errno, ELOOP);
}

static const char *const all_links[] = { "links/up",	   "links/chain", "links/same",
					 "links/absolute", "links/dir",	  "links/dangling",
					 "links/loop" };

static void no_link_of_a_mount_is_used(void **state)
{
	static const char *const presentations[] = { "rewritten", "original" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(presentations); i++) {
		Fixture *f = set_up_with("deny", presentations[i]);
		g_autofree char *before = tree_snapshot(f->ws);
		g_autofree char *after = NULL;

		for (size_t k = 0; k < G_N_ELEMENTS(all_links); k++)
			assert_unusable(f, all_links[k]);
		after = tree_snapshot(f->ws);
		assert_string_equal(before, after);
		free_all(f);
	}
}

/* The twin: the same links where they are allowed. */
static void contained_links_work(void **state)
{
	Fixture *f = set_up_with("contained", "rewritten");
	static const char *const works[] = { "links/up", "links/chain", "links/same",
					     "links/absolute", "links/dir" };
	char text[4096];
	struct stat st;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(works); i++) {
		g_autofree char *path = in_view(f, works[i]);

		assert_true(readlink(path, text, sizeof text) > 0);
		assert_int_equal(stat(path, &st), 0);
	}
	free_all(f);
}

static void a_link_is_still_an_object(void **state)
{
	Fixture *f = set_up_with("deny", "rewritten");
	g_autofree char *made = in_view(f, "made");
	g_autofree char *moved = in_view(f, "moved");
	g_autofree char *second = in_view(f, "second");
	g_autofree char *on_host = g_build_filename(f->ws, "moved", NULL);
	char text[64] = "";
	struct stat st;

	(void)state;
	assert_int_equal(symlink("dir/file", made), 0);
	assert_int_equal(lstat(made, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(st.st_size, strlen("dir/file"));
	assert_unusable(f, "made");
	assert_int_equal(rename(made, moved), 0);
	assert_int_equal(readlink(on_host, text, sizeof text), strlen("dir/file"));
	assert_string_equal(text, "dir/file");
	assert_int_equal(link(moved, second), 0);
	assert_unusable(f, "second");
	assert_int_equal(unlink(second), 0);
	assert_int_equal(unlink(moved), 0);
	assert_int_equal(lstat(on_host, &st), -1);
	assert_int_equal(errno, ENOENT);
	free_all(f);
}

/* A link that takes the place of a directory in use is not followed either. */
static void an_exchanged_directory_is_no_way_around(void **state)
{
	Fixture *f = set_up_with("deny", "rewritten");
	g_autofree char *dir = in_view(f, "dir");
	g_autofree char *link = in_view(f, "links/dir");
	g_autofree char *file = in_view(f, "dir/file");
	struct stat st;

	(void)state;
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(renameat2(AT_FDCWD, dir, AT_FDCWD, link, RENAME_EXCHANGE), 0);
	assert_int_equal(stat(file, &st), -1);
	assert_int_equal(errno, ELOOP);
	free_all(f);
}

/* Of the view's own tree, and in runtime directories. */
static void the_links_that_programs_need_work(void **state)
{
	Fixture *f = set_up_with("deny", "rewritten");
	static const char *const names[] = { "bin", "lib", "etc/mtab", "etc/os-release" };
	int links = 0;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_autofree char *path = g_build_filename(f->view->mountpoint, names[i], NULL);
		char text[4096];
		struct stat st;

		if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode))
			continue;
		/* Where it leads may be outside of this view; that it is denied would be ELOOP. */
		if (readlink(path, text, sizeof text) < 0)
			assert_int_equal(errno, EACCES);
		else
			links++;
	}
	assert_true(links > 0);
	free_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_link_of_a_mount_is_used),
		cmocka_unit_test(contained_links_work),
		cmocka_unit_test(a_link_is_still_an_object),
		cmocka_unit_test(an_exchanged_directory_is_no_way_around),
		cmocka_unit_test(the_links_that_programs_need_work),
	};
	int status = preflight_require((const char *const[]){ "fuse", NULL });

	if (status != 0)
		return status;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
