/* What happens to a mount when its host directory is removed, replaced, unmounted, made read-only, full, or dead: the
 * view keeps to what was mounted, tells the host's own errors, and its other mounts go on. */
#include "lib/hang-fixture.h"
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include "common/fd-util.h"
#include "common/io-util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The mounts: /workspace, which nothing happens to, and /data, which is host directory data. */
typedef struct {
	ViewFixture *view;
	char *host;   /* of /data */
	int data;     /* /data in the view */
	bool mounted; /* there is a file system of its own on host */
} Source;

static void start(Source *s)
{
	g_autofree char *ws = view_fixture_path(s->view, "ws");
	g_autofree char *mount_text = g_strconcat(s->host, ":/data", NULL);
	g_autofree char *inside = g_build_filename(s->view->mountpoint, "data", NULL);

	view_fixture_mount(s->view,
			   (const char *const[]){ "--workspace", ws, "--rw", mount_text, NULL });
	s->data = open(inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->data >= 0);
}

static Source source_new(const char *tmpfs_options)
{
	Source s = { .view = view_fixture_new(), .data = -1 };

	s.host = view_fixture_path(s.view, "data");
	view_fixture_mkdir(s.view, "ws");
	view_fixture_mkdir(s.view, "data");
	view_fixture_mkdir(s.view, "outside");
	view_fixture_write(s.view, "outside/f", "outside");
	if (tmpfs_options) {
		assert_int_equal(mount("none", s.host, "tmpfs", 0, tmpfs_options), 0);
		s.mounted = true;
	}
	return s;
}

static void source_free(Source *s)
{
	close(s->data);
	view_fixture_unmount(s->view);
	if (s->mounted)
		assert_int_equal(umount(s->host), 0);
	view_fixture_free(s->view);
	g_free(s->host);
}

static void assert_other_mount_works(const Source *s)
{
	g_autofree char *path = g_build_filename(s->view->mountpoint, "workspace", "other", NULL);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

static int make_file(int dir, const char *name, const char *text)
{
	FD_AUTO fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return errno;
	return write(fd, text, strlen(text)) < 0 ? errno : 0;
}

static void assert_file(int dir, const char *name, const char *expected)
{
	FD_AUTO fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) >= 0);
	assert_string_equal(text, expected);
}

static void a_removed_source_is_an_empty_directory_that_takes_nothing(void **state)
{
	Source s = source_new(NULL);
	g_autofree char *again = g_build_filename(s.host, "new", NULL);

	(void)state;
	view_fixture_write(s.view, "data/f", "text");
	start(&s);
	assert_file(s.data, "f", "text");
	assert_int_equal(io_remove_tree(AT_FDCWD, s.host), 0);
	assert_int_equal(make_file(s.data, "g", "text"), ENOENT);
	assert_int_equal(result_of(mkdirat(s.data, "d", 0755)), ENOENT);
	/* A directory that is made in its place is another one. */
	assert_int_equal(mkdir(s.host, 0755), 0);
	assert_int_equal(make_file(s.data, "new", "text"), ENOENT);
	assert_int_equal(access(again, F_OK), -1);
	assert_other_mount_works(&s);
	source_free(&s);
}

static void a_replaced_source_is_still_what_was_mounted(void **state)
{
	static const char *const replacements[] = { "link", "directory" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(replacements); i++) {
		Source s = source_new(NULL);
		g_autofree char *old = view_fixture_path(s.view, "old");
		g_autofree char *outside = view_fixture_path(s.view, "outside");
		g_autofree char *made = view_fixture_path(s.view, "old/made");
		g_autofree char *before = NULL;
		g_autofree char *after = NULL;

		view_fixture_write(s.view, "data/f", "inside");
		start(&s);
		assert_int_equal(rename(s.host, old), 0);
		if (i == 0)
			assert_int_equal(symlink(outside, s.host), 0);
		else
			assert_int_equal(mkdir(s.host, 0755), 0);
		before = tree_snapshot(outside);
		g_autofree char *in_place = i == 1 ? tree_snapshot(s.host) : NULL;
		assert_file(s.data, "f", "inside");
		assert_int_equal(make_file(s.data, "made", "text"), 0);
		assert_int_equal(access(made, F_OK), 0);
		after = tree_snapshot(outside);
		assert_string_equal(before, after);
		if (i == 1) {
			g_autofree char *now = tree_snapshot(s.host);
			assert_string_equal(now, in_place);
		}
		assert_other_mount_works(&s);
		source_free(&s);
	}
}

static void an_unmounted_source_serves_on(void **state)
{
	Source s = source_new("size=1m");

	(void)state;
	view_fixture_write(s.view, "data/f", "on the tmpfs");
	start(&s);
	assert_int_equal(umount(s.host), 0);
	s.mounted = false;
	view_fixture_write(s.view, "data/below", "what the mount had covered");
	assert_file(s.data, "f", "on the tmpfs");
	assert_int_equal(make_file(s.data, "g", "text"), 0);
	assert_int_equal(result_of(faccessat(s.data, "below", F_OK, 0)), ENOENT);
	assert_other_mount_works(&s);
	source_free(&s);
}

/* Files are closed a moment after close() has returned, and one that is open for writing is in the way. */
static bool remount_read_only(void *data)
{
	const Source *s = data;

	return mount(NULL, s->host, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0;
}

static void a_source_that_becomes_read_only_says_so(void **state)
{
	Source s = source_new("size=1m");

	(void)state;
	view_fixture_write(s.view, "data/f", "text");
	start(&s);
	assert_int_equal(make_file(s.data, "g", "text"), 0);
	assert_true(wait_until(remount_read_only, &s, 3000));
	assert_int_equal(make_file(s.data, "h", "text"), EROFS);
	assert_int_equal(result_of(unlinkat(s.data, "f", 0)), EROFS);
	assert_file(s.data, "f", "text");
	assert_other_mount_works(&s);
	assert_int_equal(mount(NULL, s.host, NULL, MS_REMOUNT, NULL), 0);
	assert_int_equal(unlinkat(s.data, "f", 0), 0);
	source_free(&s);
}

/* --- no room --- */

/* Writes until it fails: the bytes written; *ret_errno says why. */
static off_t fill_up(int fd, int *ret_errno)
{
	char block[16384];
	off_t size = 0;

	memset(block, 'x', sizeof block);
	for (;;) {
		ssize_t n = pwrite(fd, block, sizeof block, size);

		if (n <= 0) {
			*ret_errno = n < 0 ? errno : 0;
			return size;
		}
		size += n;
	}
}

/* The room of a removed file comes back when the gateway has been told that nobody has it any more. */
static bool is_empty(void *data)
{
	const Source *s = data;
	struct statvfs st;

	assert_int_equal(statvfs(s->host, &st), 0);
	return st.f_bfree == st.f_blocks;
}

static void a_full_source_gives_enospc_and_recovers(void **state)
{
	Source s = source_new("size=1m");
	int fd, errnum;
	off_t size;
	struct stat st;

	(void)state;
	start(&s);
	for (int round = 0; round < 3; round++) {
		fd = openat(s.data, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		size = fill_up(fd, &errnum);
		assert_int_equal(errnum, ENOSPC);
		assert_in_range(size, 900 * 1024, 1024 * 1024);
		/* What was acknowledged is there, and no more. */
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, size);
		assert_int_equal(fsync(fd), 0);
		assert_int_equal(result_of(fallocate(fd, 0, size, 1 << 20)), ENOSPC);
		assert_file(s.data, "big",
			    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
		assert_other_mount_works(&s);
		close(fd);
		assert_int_equal(unlinkat(s.data, "big", 0), 0);
		assert_true(wait_until(is_empty, &s, 3000));
	}
	assert_int_equal(make_file(s.data, "small", "text"), 0);
	source_free(&s);
}

static bool can_make_directory(void *data)
{
	const Source *s = data;

	return mkdirat(s->data, "d", 0755) == 0;
}

static void a_source_without_free_inodes_gives_enospc_and_recovers(void **state)
{
	Source s = source_new("size=10m,nr_inodes=50");
	int made = 0, error = 0;

	(void)state;
	start(&s);
	for (; made < 100 && error == 0; made += error == 0) {
		char name[16];

		snprintf(name, sizeof name, "f%d", made);
		error = make_file(s.data, name, "x");
	}
	assert_int_equal(error, ENOSPC);
	assert_in_range(made, 30, 50);
	assert_int_equal(result_of(mkdirat(s.data, "d", 0755)), ENOSPC);
	assert_int_equal(result_of(symlinkat("x", s.data, "l")), ENOSPC);
	assert_other_mount_works(&s);
	assert_int_equal(unlinkat(s.data, "f0", 0), 0);
	assert_true(wait_until(can_make_directory, &s, 3000));
	source_free(&s);
}

/* Pages that find no room when they are written back: an error at msync or fsync, never a silent loss, and no end of
 * the gateway. */
/* A child that writes all of the mapping. */
static pid_t fill_map(char *map, size_t size)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGBUS, SIG_DFL); /* cmocka's says that the test failed */
		memset(map, 'm', size);
		_exit(0);
	}
	return child;
}

static void a_map_without_room_is_told_so(void **state)
{
	enum { SIZE = 4 << 20 };
	Source s = source_new("size=1m");
	bool told = false;
	char *map;
	int fd, status;

	(void)state;
	start(&s);
	fd = openat(s.data, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	/* With passthrough the pages are the host's: SIGBUS at the first that has no room, as there. */
	assert_int_equal(waitpid(fill_map(map, SIZE), &status, 0) > 0, 1);
	told = WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
	assert_true(told || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	if (!told) {
		told |= msync(map, SIZE, MS_SYNC) != 0;
		told |= fsync(fd) != 0;
		assert_true(errno == ENOSPC || errno == EIO);
	}
	assert_true(told);
	munmap(map, SIZE);
	close(fd);
	assert_int_equal(unlinkat(s.data, "sparse", 0), 0);
	assert_other_mount_works(&s);
	assert_int_equal(make_file(s.data, "small", "text"), 0);
	source_free(&s);
}

/* --- a server that dies --- */

static void a_dead_source_gives_errors_and_the_rest_goes_on(void **state)
{
	Source s = source_new(NULL);
	HangFs fs = hang_fs_start(s.host);
	struct stat st;
	int fd;

	(void)state;
	start(&s);
	fd = openat(s.data, "0", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_file(s.data, "1", "hello");
	hang_fs_stop(&fs);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_true(errno == EIO || errno == ENOTCONN);
	assert_int_equal(openat(s.data, "2", O_RDONLY | O_CLOEXEC), -1);
	assert_true(errno == EIO || errno == ENOTCONN);
	assert_true(fstatat(s.data, "3", &st, 0) < 0);
	close(fd);
	assert_other_mount_works(&s);
	source_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_removed_source_is_an_empty_directory_that_takes_nothing),
		cmocka_unit_test(a_replaced_source_is_still_what_was_mounted),
		cmocka_unit_test(an_unmounted_source_serves_on),
		cmocka_unit_test(a_source_that_becomes_read_only_says_so),
		cmocka_unit_test(a_full_source_gives_enospc_and_recovers),
		cmocka_unit_test(a_source_without_free_inodes_gives_enospc_and_recovers),
		cmocka_unit_test(a_map_without_room_is_told_so),
		cmocka_unit_test(a_dead_source_gives_errors_and_the_rest_goes_on),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
