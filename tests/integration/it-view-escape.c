/* Ways out of a view that host processes can see, each tried with every call that takes a path: links that are absolute,
 * climb, or do either in several steps, as the last component and as one on the way, near the root and far down. Nothing
 * outside is read, made, changed or even looked at long enough to leave a time. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#define CANARY "outside canary"

/* What leads to OUT, the outside directory on the host. In the text, %O is its path and %U climbs to the host's root from
 * where the link is. */
static const char *const ways_out[] = {
	"%O",
	"%U%O",
	"/%O",
	"%O/.",
	"%O/../outside",
	"./%U%O",
	"stays/%U../../../../../../../..%O",
	"/proc/self/root%O",
	"/proc/1/root%O",
	"/proc/self/cwd/%U%O",
	"/workspace/%U%O",
	"/workspace/../../../../../../../../..%O",
};

static char *expand(const char *text, const char *out, int depth)
{
	g_autofree char *climb = g_malloc0(3 * (size_t)(depth + 12) + 1);
	g_autofree char *once = NULL;
	g_auto(GStrv) parts = NULL;

	for (int i = 0; i < depth + 12; i++)
		memcpy(climb + (ptrdiff_t)3 * i, "../", 3);
	parts = g_strsplit(text, "%U", -1);
	once = g_strjoinv(climb, parts);
	g_strfreev(g_steal_pointer(&parts));
	parts = g_strsplit(once, "%O", -1);
	return g_strjoinv(out, parts);
}

static int open_and_close(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Every call that takes a path, through the link `l`, which leads to the outside directory: none works. */
static void assert_leads_nowhere(int dir, const char *text)
{
	char buffer[64];
	struct stat st;
	int errors[] = {
		open_and_close(dir, "l/secret", O_RDONLY),
		open_and_close(dir, "l/secret", O_WRONLY | O_TRUNC),
		open_and_close(dir, "l/secret", O_PATH),
		open_and_close(dir, "l/new", O_WRONLY | O_CREAT),
		open_and_close(dir, "l/new", O_WRONLY | O_CREAT | O_EXCL),
		open_and_close(dir, "l", O_RDONLY | O_DIRECTORY),
		open_and_close(dir, "l", O_RDONLY),
		open_and_close(dir, "file-link", O_RDONLY),
		open_and_close(dir, "file-link", O_RDWR | O_CREAT | O_TRUNC),
		open_and_close(dir, "new-link", O_WRONLY | O_CREAT),
		result_of(fstatat(dir, "l/secret", &st, 0)),
		result_of(fstatat(dir, "l", &st, 0)),
		result_of(faccessat(dir, "l/secret", R_OK, 0)),
		result_of(mkdirat(dir, "l/new", 0755)),
		result_of(mknodat(dir, "l/new", S_IFIFO | 0644, 0)),
		result_of(symlinkat("x", dir, "l/new")),
		result_of(linkat(dir, "own", dir, "l/new", 0)),
		result_of(linkat(dir, "l/secret", dir, "new", 0)),
		result_of(linkat(dir, "file-link", dir, "new", AT_SYMLINK_FOLLOW)),
		result_of(renameat(dir, "own", dir, "l/new")),
		result_of(renameat(dir, "l/secret", dir, "new")),
		result_of(unlinkat(dir, "l/secret", 0)),
		result_of(unlinkat(dir, "l/sub", AT_REMOVEDIR)),
		result_of(fchmodat(dir, "l/secret", 0600, 0)),
		result_of(fchmodat(dir, "file-link", 0600, 0)),
		result_of(fchownat(dir, "file-link", 1, 1, 0)),
		result_of(utimensat(dir, "file-link", NULL, 0)),
		result_of(readlinkat(dir, "l/link", buffer, sizeof buffer)),
	};

	for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
		/* Missing is an answer too: what the text means in the view may just not be there. */
		if (errors[i] != EACCES && errors[i] != ENOENT)
			print_message("%s: call %zu: %d\n", text, i, errors[i]);
		assert_true(errors[i] == EACCES || errors[i] == ENOENT);
	}
}

/* Down `depth` directories, made on the way. */
static int descend(const Workspace *ws, const char *name, int depth)
{
	g_autofree char *start = workspace_inside(ws, name);
	int dir;

	assert_int_equal(mkdir(start, 0755), 0);
	dir = open(start, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 1; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(dir, "d", 0755), 0);
		next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(dir);
		dir = next;
	}
	return dir;
}

static void make_links(int dir, const char *text)
{
	g_autofree char *file = g_strconcat(text, "/secret", NULL);
	g_autofree char *missing = g_strconcat(text, "/new", NULL);

	assert_int_equal(symlinkat(text, dir, "l"), 0);
	assert_int_equal(symlinkat(file, dir, "file-link"), 0);
	assert_int_equal(symlinkat(missing, dir, "new-link"), 0);
	assert_int_equal(mkdirat(dir, "stays", 0755), 0);
	assert_int_equal(mknodat(dir, "own", S_IFREG | 0644, 0), 0);
}

static char *make_outside(const Workspace *ws)
{
	g_autofree char *link = view_fixture_path(ws->view, "outside/link");

	view_fixture_mkdir(ws->view, "outside");
	view_fixture_mkdir(ws->view, "outside/sub");
	view_fixture_write(ws->view, "outside/secret", CANARY);
	assert_int_equal(symlink("secret", link), 0);
	return view_fixture_path(ws->view, "outside");
}

/* Times of access included. */
static char *outside_snapshot(const char *outside)
{
	g_autofree char *tree = tree_snapshot(outside);
	g_autofree char *secret = g_build_filename(outside, "secret", NULL);
	struct stat dir, file;

	assert_int_equal(stat(outside, &dir), 0);
	assert_int_equal(stat(secret, &file), 0);
	return g_strdup_printf("%s %ld.%09ld %ld.%09ld", tree, (long)dir.st_atim.tv_sec,
			       dir.st_atim.tv_nsec, (long)file.st_atim.tv_sec,
			       file.st_atim.tv_nsec);
}

static void no_link_leads_out_by_any_call(void **state)
{
	static const int depths[] = { 1, 3, 20 };
	const Workspace *ws = *state;
	g_autofree char *outside = make_outside(ws);
	/* The second: reading may change a time once. */
	g_autofree char *first = outside_snapshot(outside);
	g_autofree char *before = outside_snapshot(outside);
	g_autofree char *after = NULL;

	for (size_t d = 0; d < G_N_ELEMENTS(depths); d++)
		for (size_t i = 0; i < G_N_ELEMENTS(ways_out); i++) {
			g_autofree char *text = expand(ways_out[i], outside, depths[d]);
			g_autofree char *name = g_strdup_printf("%d-%zu", depths[d], i);
			int dir = descend(ws, name, depths[d]);
			char shown[4096] = "";

			make_links(dir, text);
			assert_leads_nowhere(dir, text);
			assert_true(readlinkat(dir, "l", shown, sizeof shown) < 0 ||
				    g_str_has_prefix(shown, ws->view->mountpoint));
			/* What is done to the link itself works. */
			assert_int_equal(renameat(dir, "l", dir, "l2"), 0);
			assert_int_equal(unlinkat(dir, "l2", 0), 0);
			close(dir);
		}
	after = outside_snapshot(outside);
	assert_string_equal(before, after);
	assert_true(strlen(first) > 0);
}

/* Each step by itself stays inside; all of them together do not. */
static void no_chain_of_links_leads_out(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *outside = make_outside(ws);
	g_autofree char *text = expand("%U%O", outside, 3);
	g_autofree char *before = outside_snapshot(outside);
	g_autofree char *after = NULL;
	int dir = descend(ws, "start", 3);

	/* a -> b -> c -> out, with directories on the way that are links as well */
	make_links(dir, "a");
	assert_int_equal(symlinkat("b/.", dir, "a"), 0);
	assert_int_equal(symlinkat("stays/../c", dir, "b"), 0);
	assert_int_equal(symlinkat(text, dir, "c"), 0);
	assert_leads_nowhere(dir, "a chain");
	/* The twin: the same chain to a place inside. */
	assert_int_equal(unlinkat(dir, "c", 0), 0);
	assert_int_equal(symlinkat("stays", dir, "c"), 0);
	assert_int_equal(open_and_close(dir, "a/new", O_WRONLY | O_CREAT), 0);
	assert_int_equal(open_and_close(dir, "stays/new", O_RDONLY), 0);
	/* A directory on the way that becomes a link after it was looked up. */
	assert_int_equal(unlinkat(dir, "stays/new", 0), 0);
	assert_int_equal(unlinkat(dir, "stays", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat(outside, dir, "stays"), 0);
	assert_int_equal(open_and_close(dir, "a/secret", O_RDONLY), EACCES);
	close(dir);
	after = outside_snapshot(outside);
	assert_string_equal(before, after);
}

/* By "..", without any link. */
static void dots_do_not_climb_over_the_root(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *outside = make_outside(ws);
	int dir = open(ws->inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat above, root;
	int up;

	/* Above the mount is the view's root, and above that what the caller's kernel has there. */
	up = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(up >= 0);
	assert_int_equal(fstat(up, &above), 0);
	assert_int_equal(stat(ws->view->mountpoint, &root), 0);
	assert_int_equal(above.st_ino, root.st_ino);
	assert_int_equal(above.st_dev, root.st_dev);
	assert_int_equal(access(outside, F_OK), 0);
	assert_int_equal(result_of(faccessat(up, "outside", F_OK, 0)), ENOENT);
	assert_int_equal(result_of(faccessat(dir, "../ws", F_OK, 0)), ENOENT);
	assert_int_equal(result_of(mkdirat(dir, "../new", 0755)), EROFS);
	close(up);
	close(dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(no_link_leads_out_by_any_call),
		TEST(no_chain_of_links_leads_out),
		TEST(dots_do_not_climb_over_the_root),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
