/* io-util: whole reads and writes, sealed memfds, and removing trees that somebody else has shaped. */
#include "common/io-util.h"

#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

typedef struct {
	char *path;
	int fd;
} Dir;

static int set_up(void **state)
{
	Dir *dir = g_new0(Dir, 1);

	dir->path = g_dir_make_tmp("stella-io-XXXXXX", NULL);
	assert_non_null(dir->path);
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir->fd >= 0);
	*state = dir;
	return 0;
}

static int tear_down(void **state)
{
	Dir *dir = *state;

	fd_close(&dir->fd);
	assert_int_equal(io_remove_tree(AT_FDCWD, dir->path), 0);
	g_free(dir->path);
	g_free(dir);
	return 0;
}

static bool exists(const Dir *dir, const char *name)
{
	return faccessat(dir->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static size_t count_entries(const Dir *dir)
{
	GDir *listing = g_dir_open(dir->path, 0, NULL);
	size_t count = 0;

	while (g_dir_read_name(listing))
		count++;
	g_dir_close(listing);
	return count;
}

static void make_file(int dirfd, const char *name)
{
	FD_AUTO fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
}

static void a_tree_goes_with_all_kinds_of_entries(void **state)
{
	const Dir *dir = *state;

	assert_int_equal(mkdirat(dir->fd, "t", 0755), 0);
	assert_int_equal(mkdirat(dir->fd, "t/d", 0755), 0);
	assert_int_equal(mkdirat(dir->fd, "t/d/e", 0755), 0);
	assert_int_equal(mkfifoat(dir->fd, "t/d/fifo", 0644), 0);
	assert_int_equal(symlinkat("/etc", dir->fd, "t/out"), 0);
	make_file(dir->fd, "t/d/e/f");
	make_file(dir->fd, "kept");
	assert_int_equal(io_remove_tree(dir->fd, "t"), 0);
	assert_int_equal(count_entries(dir), 1);
	assert_true(exists(dir, "kept"));
	/* A single file, and what is not there. */
	assert_int_equal(io_remove_tree(dir->fd, "kept"), 0);
	assert_int_equal(io_remove_tree(dir->fd, "kept"), 0);
	assert_int_equal(count_entries(dir), 0);
}

static void a_link_is_removed_and_not_followed(void **state)
{
	const Dir *dir = *state;
	struct stat before, after;

	assert_int_equal(mkdirat(dir->fd, "outside", 0755), 0);
	make_file(dir->fd, "outside/f");
	assert_int_equal(mkdirat(dir->fd, "t", 0755), 0);
	assert_int_equal(symlinkat("../outside", dir->fd, "t/link"), 0);
	assert_int_equal(symlinkat("outside", dir->fd, "top"), 0);
	assert_int_equal(fstatat(dir->fd, "outside", &before, 0), 0);
	assert_int_equal(io_remove_tree(dir->fd, "t"), 0);
	assert_int_equal(io_remove_tree(dir->fd, "top"), 0);
	assert_true(exists(dir, "outside/f"));
	assert_int_equal(fstatat(dir->fd, "outside", &after, 0), 0);
	assert_int_equal(before.st_mode, after.st_mode);
	assert_false(exists(dir, "t"));
	assert_false(exists(dir, "top"));
}

/* Far deeper than the fds that are allowed. */
#define DEPTH 3000

static void make_deep(const Dir *dir, mode_t mode)
{
	int at = fd_dup(dir->fd);

	assert_int_equal(mkdirat(at, "t", 0755), 0);
	for (int i = 0; i < DEPTH; i++) {
		int next = openat(at, i == 0 ? "t" : "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(next >= 0);
		assert_int_equal(mkdirat(next, "d", 0755), 0);
		make_file(next, "f");
		if (i > 0)
			assert_int_equal(fchmod(at, mode), 0);
		close(at);
		at = next;
	}
	close(at);
}

static void depth_and_missing_permissions_cost_nothing(void **state)
{
	static const mode_t modes[] = { 0500, 0000 };
	const Dir *dir = *state;
	struct rlimit before, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 64;
	for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
		make_deep(dir, modes[i]);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(io_remove_tree(dir->fd, "t"), 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(count_entries(dir), 0);
	}
}

static void names_of_ours_in_the_tree_are_no_obstacle(void **state)
{
	const Dir *dir = *state;
	char name[64];

	assert_int_equal(mkdirat(dir->fd, "t", 0755), 0);
	assert_int_equal(mkdirat(dir->fd, "t/t.removing", 0755), 0);
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "t/%x", i);
		assert_int_equal(mkdirat(dir->fd, name, 0755), 0);
		snprintf(name, sizeof name, "t/%x/0", (unsigned int)i);
		assert_int_equal(mkdirat(dir->fd, name, 0755), 0);
		strcat(name, "x");
		make_file(dir->fd, name);
	}
	assert_int_equal(io_remove_tree(dir->fd, "t"), 0);
	assert_int_equal(count_entries(dir), 0);
}

static void an_interrupted_removal_is_finished_by_the_next(void **state)
{
	const Dir *dir = *state;

	assert_int_equal(mkdirat(dir->fd, "t.removing", 0700), 0);
	assert_int_equal(mkdirat(dir->fd, "t.removing/7", 0700), 0);
	assert_int_equal(mkdirat(dir->fd, "t.removing/7/x", 0700), 0);
	make_file(dir->fd, "t.removing/7/x/f");
	assert_int_equal(io_remove_tree(dir->fd, "t"), 0); /* t itself has gone already */
	assert_int_equal(count_entries(dir), 0);
}

static void a_large_directory_goes_whole(void **state)
{
	const Dir *dir = *state;
	char name[32];

	assert_int_equal(mkdirat(dir->fd, "t", 0755), 0);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "t/%d", i);
		make_file(dir->fd, name);
	}
	assert_int_equal(io_remove_tree(dir->fd, "t"), 0);
	assert_int_equal(count_entries(dir), 0);
}

static void reading_to_the_end_keeps_to_its_limit(void **state)
{
	char text[10000];
	g_autofree char *data = NULL;
	size_t size = 0;
	FD_AUTO fd = -1;

	(void)state;
	memset(text, 'x', sizeof text);
	fd = io_memfd_new("test", text, sizeof text);
	assert_true(fd >= 0);
	assert_int_equal(io_read_to_end(fd, sizeof text - 1, &data, &size), -EFBIG);
	assert_null(data);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(io_read_to_end(fd, sizeof text, &data, &size), 0);
	assert_int_equal(size, sizeof text);
	assert_memory_equal(data, text, sizeof text);
	assert_int_equal(data[size], '\0');
	/* Sealed. */
	assert_int_equal(write(fd, "y", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_tree_goes_with_all_kinds_of_entries),
		TEST(a_link_is_removed_and_not_followed),
		TEST(depth_and_missing_permissions_cost_nothing),
		TEST(names_of_ours_in_the_tree_are_no_obstacle),
		TEST(an_interrupted_removal_is_finished_by_the_next),
		TEST(a_large_directory_goes_whole),
		TEST(reading_to_the_end_keeps_to_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
