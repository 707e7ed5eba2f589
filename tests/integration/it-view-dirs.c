/* Listings: every name once, also while names come and go; numbers and types as stat has them; positions that
 * stay right; and two host file systems below one view that use the same numbers. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STAYING	 20000 /* names that stay */
#define CHANGING 500   /* names that come and go meanwhile */

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void make_empty(int dir, const char *prefix, int n)
{
	char name[32];
	int fd;

	snprintf(name, sizeof name, "%s%d", prefix, n);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

/* On the host, which is faster, and is how a tree is found. */
static void make_staying(const Workspace *ws, int count)
{
	int dir = open_dir(ws->host);

	for (int i = 0; i < count; i++)
		make_empty(dir, "stay", i);
	close(dir);
}

/* Lists from the start; each of the staying names has to come exactly once. */
static void assert_listed_once(DIR *stream, int count)
{
	g_autofree uint8_t *seen = g_malloc0((size_t)count);
	struct dirent *entry;
	int dots = 0, total = 0;

	rewinddir(stream);
	while ((errno = 0, entry = readdir(stream))) {
		int n;

		dots += strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
		if (sscanf(entry->d_name, "stay%d", &n) != 1)
			continue;
		assert_in_range(n, 0, count - 1);
		assert_int_equal(seen[n]++, 0);
		total++;
	}
	assert_int_equal(errno, 0);
	assert_int_equal(dots, 2);
	assert_int_equal(total, count);
}

static G_GNUC_NORETURN void come_and_go(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (;;)
		for (int i = 0; i < 2 * CHANGING; i++) {
			char name[32];
			int fd;

			snprintf(name, sizeof name, "change%d", i % CHANGING);
			if (i < CHANGING &&
			    (fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) >= 0)
				close(fd);
			if (i >= CHANGING)
				(void)!unlinkat(dir, name, 0);
		}
}

static void listed_once_while_names_change(const Workspace *ws, const char *where)
{
	DIR *stream;
	pid_t changer;

	make_staying(ws, STAYING);
	changer = fork_helper();
	if (changer == 0)
		come_and_go(where);
	for (int i = 0; i < 10; i++) {
		/* A new stream and one that is wound back: two ways in the gateway. */
		stream = opendir(ws->inside);
		assert_non_null(stream);
		assert_listed_once(stream, STAYING);
		assert_listed_once(stream, STAYING);
		closedir(stream);
	}
	kill(changer, SIGKILL);
	assert_int_equal(waitpid(changer, NULL, 0), changer);
}

static void names_are_listed_once_while_the_view_changes_others(void **state)
{
	const Workspace *ws = *state;

	listed_once_while_names_change(ws, ws->inside);
}

static void names_are_listed_once_while_the_host_changes_others(void **state)
{
	const Workspace *ws = *state;

	listed_once_while_names_change(ws, ws->host);
}

/* What rm -rf does: removes while it lists. */
static void removing_while_listing_leaves_nothing(void **state)
{
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside), passes = 0, removed = 0, now;

	make_staying(ws, STAYING);
	do {
		DIR *stream = opendir(ws->inside);
		struct dirent *entry;

		now = 0;
		assert_non_null(stream);
		while ((errno = 0, entry = readdir(stream)))
			if (entry->d_name[0] != '.') {
				assert_int_equal(unlinkat(dir, entry->d_name, 0), 0);
				now++;
			}
		assert_int_equal(errno, 0);
		closedir(stream);
		removed += now;
		passes++;
	} while (now > 0);
	assert_int_equal(removed, STAYING);
	assert_in_range(passes, 1, 3);
	close(dir);
}

/* Positions, remembered and gone back to in another order. */
static void seekdir_finds_again_what_telldir_gave(void **state)
{
	enum { MARKS = 200, EVERY = 10 };
	const Workspace *ws = *state;
	char names[MARKS][256];
	long positions[MARKS];
	struct dirent *entry;
	DIR *stream;

	make_staying(ws, MARKS * EVERY);
	stream = opendir(ws->inside);
	for (int i = 0; i < MARKS; i++) {
		positions[i] = telldir(stream);
		entry = readdir(stream);
		assert_non_null(entry);
		g_strlcpy(names[i], entry->d_name, sizeof names[i]);
		for (int k = 1; k < EVERY; k++)
			assert_non_null(readdir(stream));
	}
	for (int i = 0; i < MARKS; i++) {
		int k = (i * 77) % MARKS;

		seekdir(stream, positions[k]);
		entry = readdir(stream);
		assert_non_null(entry);
		assert_string_equal(entry->d_name, names[k]);
	}
	closedir(stream);
}

static void bind_socket(int dir, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
}

static void assert_entries_agree_with_stat(const char *path, int expected)
{
	DIR *stream = opendir(path);
	struct dirent *entry;
	int count = 0;

	assert_non_null(stream);
	while ((entry = readdir(stream))) {
		struct stat st;

		assert_int_equal(fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW),
				 0);
		/* ".." of the root of a mount is the caller's business */
		if (strcmp(entry->d_name, "..") != 0)
			assert_int_equal(entry->d_ino, st.st_ino);
		assert_int_equal(DTTOIF(entry->d_type), st.st_mode & S_IFMT);
		count++;
	}
	closedir(stream);
	assert_int_equal(count, expected + 2);
}

static void numbers_and_types_of_entries_are_those_of_stat(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *sub = workspace_inside(ws, "sub");
	int dir;

	assert_int_equal(mkdir(sub, 0755), 0);
	dir = open_dir(sub);
	make_empty(dir, "file", 1);
	assert_int_equal(linkat(dir, "file1", dir, "hard", 0), 0);
	assert_int_equal(mkdirat(dir, "dir", 0755), 0);
	assert_int_equal(symlinkat("file1", dir, "link"), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, "leaves"), 0);
	assert_int_equal(mknodat(dir, "fifo", S_IFIFO | 0644, 0), 0);
	bind_socket(dir, "socket");
	close(dir);
	assert_entries_agree_with_stat(sub, 7);
	assert_entries_agree_with_stat(ws->inside, 1);
	assert_entries_agree_with_stat(ws->view->mountpoint, 1);
}

/* --- mounts --- */

/* Two file systems of the same making give the same numbers; programs that compare numbers must not take two files
 * for one. */
static void equal_numbers_of_two_file_systems_differ_in_the_view(void **state)
{
	ViewFixture *view = view_fixture_new();
	g_autofree char *a = view_fixture_path(view, "a");
	g_autofree char *b = view_fixture_path(view, "b");
	g_autofree char *ws = view_fixture_path(view, "ws");
	g_autofree char *a_mount = g_strconcat(a, ":/a", NULL);
	g_autofree char *b_mount = g_strconcat(b, ":/b", NULL);
	g_autofree char *a_file = g_build_filename(view->mountpoint, "a/f", NULL);
	g_autofree char *b_file = g_build_filename(view->mountpoint, "b/f", NULL);
	struct stat host_a, host_b, in_a, in_b;

	(void)state;
	view_fixture_mkdir(view, "ws");
	view_fixture_mkdir(view, "a");
	view_fixture_mkdir(view, "b");
	assert_int_equal(mount("none", a, "tmpfs", 0, NULL), 0);
	assert_int_equal(mount("none", b, "tmpfs", 0, NULL), 0);
	view_fixture_write(view, "a/f", "one");
	view_fixture_write(view, "b/f", "two");
	view_fixture_mount(view, (const char *const[]){ "--workspace", ws, "--rw", a_mount, "--rw",
							b_mount, NULL });
	{
		g_autofree char *path = view_fixture_path(view, "a/f");
		assert_int_equal(stat(path, &host_a), 0);
	}
	{
		g_autofree char *path = view_fixture_path(view, "b/f");
		assert_int_equal(stat(path, &host_b), 0);
	}
	assert_int_equal(host_a.st_ino, host_b.st_ino); /* else this tests nothing */
	assert_int_equal(stat(a_file, &in_a), 0);
	assert_int_equal(stat(b_file, &in_b), 0);
	assert_int_equal(in_a.st_dev, in_b.st_dev);
	assert_true(in_a.st_ino != in_b.st_ino);
	view_fixture_unmount(view);
	assert_int_equal(umount(a), 0);
	assert_int_equal(umount(b), 0);
	view_fixture_free(view);
}

/* The same numbers again from a gateway that was started anew and asked in another order. */
static void numbers_and_times_stay_over_a_restart(void **state)
{
	Workspace *ws = *state;
	const char *arguments[] = { "--workspace", ws->host, NULL };
	struct stat before[50], after;

	make_staying(ws, 50);
	for (int i = 0; i < 50; i++) {
		g_autofree char *name = g_strdup_printf("stay%d", i);
		g_autofree char *file = workspace_inside(ws, name);

		assert_int_equal(stat(file, &before[i]), 0);
	}
	view_fixture_unmount(ws->view);
	view_fixture_mount(ws->view, arguments);
	for (int i = 49; i >= 0; i--) {
		g_autofree char *name = g_strdup_printf("stay%d", i);
		g_autofree char *file = workspace_inside(ws, name);

		assert_int_equal(stat(file, &after), 0);
		assert_int_equal(after.st_ino, before[i].st_ino);
		assert_memory_equal(&after.st_ctim, &before[i].st_ctim, sizeof after.st_ctim);
		assert_memory_equal(&after.st_mtim, &before[i].st_mtim, sizeof after.st_mtim);
	}
}

/* What is mounted on the host below a mount, /proc among it, is not part of the mount. */
static void host_mounts_below_are_not_entered(void **state)
{
	static const char *const ways_out[] = { "p/self/root/etc/passwd",
						"p/1/cwd/etc/passwd",
						"p/self/fd/0",
						"p/version",
						"etc/passwd",
						"t/file" };
	ViewFixture *view = view_fixture_new();
	g_autofree char *ws = view_fixture_path(view, "ws");
	g_autofree char *inside = g_build_filename(view->mountpoint, "workspace", NULL);
	int dir;

	(void)state;
	view_fixture_mkdir(view, "ws");
	const char *const points[] = { "ws/p", "ws/etc", "ws/t" };
	const char *const sources[] = { "/proc", "/etc", NULL };
	for (size_t i = 0; i < 3; i++) {
		g_autofree char *path = view_fixture_path(view, points[i]);

		view_fixture_mkdir(view, points[i]);
		assert_int_equal(sources[i] ? mount(sources[i], path, NULL, MS_BIND | MS_REC, NULL)
					    : mount("none", path, "tmpfs", 0, NULL),
				 0);
	}
	view_fixture_write(view, "ws/t/file", "x");
	view_fixture_write(view, "ws/own", "x");
	view_fixture_mount(view, (const char *const[]){ "--workspace", ws, NULL });
	dir = open_dir(inside);
	for (size_t i = 0; i < G_N_ELEMENTS(ways_out); i++) {
		assert_int_equal(openat(dir, ways_out[i], O_RDONLY | O_CLOEXEC), -1);
		assert_int_equal(errno, ENOENT);
	}
	assert_int_equal(faccessat(dir, "own", F_OK, 0), 0);
	assert_int_equal(mkdirat(dir, "t/new", 0755), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(unlinkat(dir, "t", AT_REMOVEDIR), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(renameat(dir, "t", dir, "t2"), -1);
	assert_int_equal(errno, EBUSY);
	close(dir);
	view_fixture_unmount(view);
	for (size_t i = 0; i < 3; i++) {
		g_autofree char *path = view_fixture_path(view, points[i]);

		assert_int_equal(umount2(path, MNT_DETACH), 0);
	}
	view_fixture_free(view);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(names_are_listed_once_while_the_view_changes_others),
		TEST(names_are_listed_once_while_the_host_changes_others),
		TEST(removing_while_listing_leaves_nothing),
		TEST(seekdir_finds_again_what_telldir_gave),
		TEST(numbers_and_types_of_entries_are_those_of_stat),
		cmocka_unit_test(equal_numbers_of_two_file_systems_differ_in_the_view),
		TEST(numbers_and_times_stay_over_a_restart),
		cmocka_unit_test(host_mounts_below_are_not_entered),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
