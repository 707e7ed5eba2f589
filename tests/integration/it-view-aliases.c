/* One host directory at several places of a view, and mounts within mounts: each place has its own access, by every
 * way to it; and what is mounted, or leads to a mount, cannot be moved aside. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

/* outer/ is mounted at /outer (rw) and /twin (rw) and /outer-ro (ro); outer/way/ro at /ro (ro), and below it
 * outer/way/ro/rw at /rw (rw). The mount /workspace is apart from all. */
typedef struct {
	ViewFixture *view;
	char *outer; /* on the host */
	int root;    /* of the view */
} Aliases;

static int set_up(void **state)
{
	static const char *const mounts[][3] = {
		{ "--rw", "outer", "/outer" },	      { "--rw", "outer", "/twin" },
		{ "--ro", "outer", "/outer-ro" },     { "--ro", "outer/way/ro", "/ro" },
		{ "--rw", "outer/way/ro/rw", "/rw" },
	};
	Aliases *a = g_new0(Aliases, 1);
	g_autoptr(GPtrArray) arguments = g_ptr_array_new_with_free_func(g_free);

	a->view = view_fixture_new();
	a->outer = view_fixture_path(a->view, "outer");
	static const char *const dirs[] = { "ws",	    "outer",	       "outer/way",
					    "outer/way/ro", "outer/way/ro/rw", "outer/way/ro/sub",
					    "outer/free" };
	for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++)
		view_fixture_mkdir(a->view, dirs[i]);
	view_fixture_write(a->view, "outer/f", "writable");
	view_fixture_write(a->view, "outer/way/ro/f", "read-only");
	view_fixture_write(a->view, "outer/way/ro/rw/f", "writable again");
	g_ptr_array_add(arguments, g_strdup("--workspace"));
	g_ptr_array_add(arguments, view_fixture_path(a->view, "ws"));
	for (size_t i = 0; i < G_N_ELEMENTS(mounts); i++) {
		g_autofree char *host = view_fixture_path(a->view, mounts[i][1]);

		g_ptr_array_add(arguments, g_strdup(mounts[i][0]));
		g_ptr_array_add(arguments, g_strconcat(host, ":", mounts[i][2], NULL));
	}
	g_ptr_array_add(arguments, NULL);
	view_fixture_mount(a->view, (const char *const *)arguments->pdata);
	a->root = open(a->view->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(a->root >= 0);
	*state = a;
	return 0;
}

static int tear_down(void **state)
{
	Aliases *a = *state;

	close(a->root);
	view_fixture_free(a->view);
	g_free(a->outer);
	g_free(a);
	return 0;
}

/* Every path by which the view reaches a host file, and whether it may be written there. */
static const struct {
	const char *path;
	int expected;
} ways[] = {
	{ "outer/f", 0 },
	{ "twin/f", 0 },
	{ "outer-ro/f", EROFS },
	{ "ro/f", EROFS },
	{ "outer/way/ro/f", EROFS },
	{ "twin/way/ro/f", EROFS },
	{ "outer-ro/way/ro/f", EROFS },
	{ "rw/f", 0 },
	{ "ro/rw/f", EROFS },
	{ "outer/way/ro/rw/f", EROFS },
	{ "twin/way/ro/rw/f", EROFS },
	{ "outer-ro/way/ro/rw/f", EROFS },
	{ "outer/free/../f", 0 },
	{ "ro/sub/../../outer/f", 0 },
	{ "rw/../ro/f", EROFS },
};

static void each_way_to_a_file_has_its_own_access(void **state)
{
	const Aliases *a = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
		g_autofree char *before = tree_snapshot(a->outer);
		g_autofree char *after = NULL;
		int reading = openat(a->root, ways[i].path, O_RDONLY | O_CLOEXEC);
		int opath = openat(a->root, ways[i].path, O_PATH | O_CLOEXEC);
		int writing = openat(a->root, ways[i].path, O_WRONLY | O_CLOEXEC);
		int errnum = errno;
		char proc[32];

		assert_true(reading >= 0 && opath >= 0);
		if ((writing < 0 ? errnum : 0) != ways[i].expected)
			print_message("%s: %d\n", ways[i].path, writing < 0 ? errnum : 0);
		assert_int_equal(writing < 0 ? errnum : 0, ways[i].expected);
		/* Some other path of the same host file is writable: this one's fds are not. */
		snprintf(proc, sizeof proc, "/proc/self/fd/%d", opath);
		assert_int_equal(result_of(chmod(proc, 0644)), ways[i].expected);
		assert_int_equal(result_of(truncate(proc, 3)), ways[i].expected);
		assert_int_equal(result_of(fchmod(reading, 0644)), ways[i].expected);
		assert_int_equal(result_of(futimens(reading, NULL)), ways[i].expected);
		after = tree_snapshot(a->outer);
		if (ways[i].expected)
			assert_string_equal(before, after);
		else
			assert_string_not_equal(before, after);
		close(reading);
		close(opath);
		if (writing >= 0)
			close(writing);
	}
}

/* Another case is another name, which there is none of: no second way in. */
static void names_of_mounts_are_exact(void **state)
{
	static const char *const names[] = { "RO/f",	  "Outer/f", "ro /f", "ro./f",
					     "outer-r/f", "oute/f",  "rw\\f", "%6futer/f" };
	const Aliases *a = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		assert_int_equal(result_of(openat(a->root, names[i], O_RDONLY)), ENOENT);
	assert_int_equal(faccessat(a->root, "ro//./f", F_OK, 0), 0);
}

/* A new name for a read-only file would be a writable file. */
static void read_only_files_get_no_second_name(void **state)
{
	static const char *const sources[] = { "ro/f", "outer/way/ro/f", "outer-ro/f", "ro/rw/f" };
	static const char *const targets[] = { "outer/new", "twin/new", "rw/new", "workspace/new" };
	const Aliases *a = *state;
	g_autofree char *before = tree_snapshot(a->outer);
	g_autofree char *after = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(sources); i++)
		for (size_t k = 0; k < G_N_ELEMENTS(targets); k++) {
			int reading = openat(a->root, sources[i], O_RDONLY | O_CLOEXEC);
			int opath = openat(a->root, sources[i], O_PATH | O_CLOEXEC);
			char proc[32];

			snprintf(proc, sizeof proc, "/proc/self/fd/%d", reading);
			assert_int_equal(
				result_of(linkat(a->root, sources[i], a->root, targets[k], 0)),
				EXDEV);
			assert_int_equal(result_of(linkat(AT_FDCWD, proc, a->root, targets[k],
							  AT_SYMLINK_FOLLOW)),
					 EXDEV);
			assert_int_equal(
				result_of(linkat(opath, "", a->root, targets[k], AT_EMPTY_PATH)),
				EXDEV);
			assert_true(renameat(a->root, sources[i], a->root, targets[k]) < 0);
			assert_true(errno == EROFS || errno == EXDEV);
			assert_true(renameat2(a->root, sources[i], a->root, "outer/f",
					      RENAME_EXCHANGE) < 0);
			close(reading);
			close(opath);
		}
	after = tree_snapshot(a->outer);
	assert_string_equal(before, after);
	assert_int_equal(linkat(a->root, "outer/f", a->root, "outer/new", 0), 0);
}

/* Sharing blocks is a change of the target; so are flags, of whatever fd. */
static void ioctls_change_nothing(void **state)
{
	static const char *const paths[] = { "ro/f", "outer/f" };
	const Aliases *a = *state;
	g_autofree char *before = tree_snapshot(a->outer);
	g_autofree char *after = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
		int fd = openat(a->root, paths[i], O_RDONLY | O_CLOEXEC);
		int other = openat(a->root, "rw/f", O_RDONLY | O_CLOEXEC);
		g_autofree struct file_dedupe_range *same =
			g_malloc0(sizeof *same + sizeof same->info[0]);
		struct fsxattr attributes = { .fsx_xflags = FS_XFLAG_IMMUTABLE };
		int flags = FS_IMMUTABLE_FL, version = 7;

		assert_true(ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0);
		assert_int_equal(errno, i == 0 ? EROFS : EPERM);
		assert_true(ioctl(fd, FS_IOC_FSSETXATTR, &attributes) < 0);
		assert_int_equal(errno, i == 0 ? EROFS : EOPNOTSUPP);
		assert_true(ioctl(fd, FS_IOC_SETVERSION, &version) < 0);
		assert_true(ioctl(fd, FICLONE, other) < 0);
		same->src_length = 4;
		same->dest_count = 1;
		same->info[0].dest_fd = fd;
		if (ioctl(other, FIDEDUPERANGE, same) == 0)
			assert_true(same->info[0].status < 0);
		close(fd);
		close(other);
	}
	after = tree_snapshot(a->outer);
	assert_string_equal(before, after);
}

/* --- what is mounted stays where it is --- */

static void mounts_and_what_leads_to_them_cannot_be_moved(void **state)
{
	static const char *const pinned[] = { "outer/way", "outer/way/ro", "twin/way",
					      "twin/way/ro", "outer/way/ro/rw" };
	const Aliases *a = *state;
	g_autofree char *before = tree_snapshot(a->outer);
	g_autofree char *after = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(pinned); i++) {
		const char *to = g_str_has_prefix(pinned[i], "twin") ? "twin/aside" : "outer/aside";
		const char *other =
			g_str_has_prefix(pinned[i], "twin") ? "twin/free" : "outer/free";
		int error = result_of(renameat(a->root, pinned[i], a->root, to));

		assert_true(error == EBUSY || error == EROFS || error == EXDEV);
		error = result_of(renameat2(a->root, pinned[i], a->root, other, RENAME_EXCHANGE));
		assert_true(error == EBUSY || error == EROFS || error == EXDEV);
		error = result_of(renameat2(a->root, other, a->root, pinned[i], RENAME_EXCHANGE));
		assert_true(error == EBUSY || error == EROFS || error == EXDEV);
		error = result_of(renameat(a->root, other, a->root, pinned[i]));
		assert_true(error == EBUSY || error == EROFS || error == EXDEV);
		error = result_of(unlinkat(a->root, pinned[i], AT_REMOVEDIR));
		assert_true(error == EBUSY || error == EROFS);
	}
	/* The places themselves, from the root of the view. */
	static const char *const places[] = { "outer", "ro", "rw", "workspace" };
	for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
		int error = result_of(renameat(a->root, places[i], a->root, "elsewhere"));

		assert_true(error == EBUSY || error == EROFS);
		error = result_of(unlinkat(a->root, places[i], AT_REMOVEDIR));
		assert_true(error == EBUSY || error == EROFS);
		error = result_of(renameat(a->root, "twin/free", a->root, places[i]));
		assert_true(error == EBUSY || error == EROFS || error == EXDEV);
	}
	after = tree_snapshot(a->outer);
	assert_string_equal(before, after);
	assert_int_equal(renameat(a->root, "outer/free", a->root, "outer/freed"), 0);
}

/* Every kind, whole or not at all. */
static void nothing_moves_between_mounts(void **state)
{
	const Aliases *a = *state;
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;
	static const char *const kinds[] = { "file", "dir", "link", "fifo" };

	assert_int_equal(mknodat(a->root, "outer/file", S_IFREG | 0644, 0), 0);
	assert_int_equal(mkdirat(a->root, "outer/dir", 0755), 0);
	assert_int_equal(mkdirat(a->root, "outer/dir/below", 0755), 0);
	assert_int_equal(symlinkat("file", a->root, "outer/link"), 0);
	assert_int_equal(mknodat(a->root, "outer/fifo", S_IFIFO | 0644, 0), 0);
	before = tree_snapshot(a->outer);
	for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
		g_autofree char *from = g_strconcat("outer/", kinds[i], NULL);
		static const struct {
			const char *to;
			int expected;
		} targets[] = {
			/* /twin is the same host directory, and another mount all the same */
			{ "workspace/x", EXDEV }, { "rw/x", EXDEV },	   { "twin/x", EXDEV },
			{ "ro/x", EROFS },	  { "outer-ro/x", EROFS },
		};

		for (size_t k = 0; k < G_N_ELEMENTS(targets); k++) {
			assert_int_equal(result_of(renameat(a->root, from, a->root, targets[k].to)),
					 targets[k].expected);
			if (strcmp(kinds[i], "dir") != 0)
				assert_int_equal(
					result_of(linkat(a->root, from, a->root, targets[k].to, 0)),
					targets[k].expected);
		}
	}
	after = tree_snapshot(a->outer);
	assert_string_equal(before, after);
}

/* What lies on the host where a mount is laid over it. */
static void what_a_mount_covers_cannot_be_reached(void **state)
{
	ViewFixture *view = view_fixture_new();
	g_autofree char *ws = view_fixture_path(view, "ws");
	g_autofree char *covered = view_fixture_path(view, "ws/covered");
	g_autofree char *nested = view_fixture_path(view, "nested");
	g_autofree char *mount = g_strconcat(nested, ":/workspace/covered", NULL);
	g_autofree char *inside = g_build_filename(view->mountpoint, "workspace", NULL);
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;
	char text[16] = "";
	struct statvfs a, b;
	int dir, below, fd;

	(void)state;
	view_fixture_mkdir(view, "ws");
	view_fixture_mkdir(view, "ws/covered");
	view_fixture_write(view, "ws/covered/secret", "covered");
	view_fixture_write(view, "ws/covered/f", "covered");
	view_fixture_mkdir(view, "nested");
	view_fixture_write(view, "nested/f", "nested");
	before = tree_snapshot(covered);
	view_fixture_mount(view, (const char *const[]){ "--workspace", ws, "--rw", mount, NULL });
	dir = open(inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	below = openat(dir, "covered", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0 && below >= 0);
	fd = openat(below, "../covered/f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof text - 1), 6);
	assert_string_equal(text, "nested");
	close(fd);
	assert_int_equal(result_of(openat(dir, "covered/secret", O_RDONLY)), ENOENT);
	assert_int_equal(result_of(openat(below, "../covered/secret", O_RDONLY)), ENOENT);
	assert_int_equal(result_of(renameat(dir, "covered", dir, "moved")), EBUSY);
	assert_int_equal(result_of(unlinkat(dir, "covered", AT_REMOVEDIR)), EBUSY);
	assert_int_equal(result_of(mkdirat(dir, "covered", 0755)), EEXIST);
	assert_int_equal(mkdirat(below, "new", 0755), 0);
	assert_int_equal(fstatvfs(below, &a), 0);
	assert_int_equal(statvfs(nested, &b), 0);
	assert_int_equal(a.f_blocks, b.f_blocks);
	after = tree_snapshot(covered);
	assert_string_equal(before, after);
	close(below);
	close(dir);
	view_fixture_free(view);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_way_to_a_file_has_its_own_access),
		TEST(names_of_mounts_are_exact),
		TEST(read_only_files_get_no_second_name),
		TEST(ioctls_change_nothing),
		TEST(mounts_and_what_leads_to_them_cannot_be_moved),
		TEST(nothing_moves_between_mounts),
		cmocka_unit_test(what_a_mount_covers_cannot_be_reached),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
