/* What the end of an exec tells: what it changed, and what it was refused. Who it was, how much is told and what is
 * open at its end: it-changes-execs.c. */
#include "exec-told.h"
#include "lib/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

/* --- one exec --- */

static void make_everything(int peer)
{
	int fd;

	(void)peer;
	step_make("workspace/a");
	MUST(mkdir("workspace/d", 0755) == 0);
	step_make("workspace/d/f");
	MUST(symlink("f", "workspace/d/l") == 0);
	MUST(mkfifo("workspace/fifo", 0644) == 0);
	MUST(link("workspace/a", "workspace/hard") == 0);
	MUST(mknod("workspace/node", S_IFREG | 0644, 0) == 0);
	fd = open("workspace", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
	if (fd >= 0) { /* kernels that ask */
		char path[32];

		MUST(write(fd, "t", 1) == 1);
		MUST(fchmod(fd, 0600) == 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		MUST(linkat(AT_FDCWD, path, AT_FDCWD, "workspace/tmpfile", AT_SYMLINK_FOLLOW) == 0);
		MUST(close(fd) == 0);
	} else {
		step_make("workspace/tmpfile");
	}
	step_make("workspace/passing");
	MUST(chmod("workspace/passing", 0600) == 0);
	MUST(unlink("workspace/passing") == 0);
}

static void what_is_made_is_created(void **state)
{
	MiniSession *session = *state;

	told_expect_exec(
		session, make_everything,
		"created /workspace/a, created /workspace/d, created /workspace/d/f, "
		"created /workspace/d/l, created /workspace/fifo, created /workspace/hard, "
		"created /workspace/node, created /workspace/tmpfile",
		"");
	assert_true(mini_session_has(session, "ws/d/f"));
	assert_false(mini_session_has(session, "ws/passing"));
}

/* Each way alone, on a file of its own. */
static void by_append(int peer)
{
	(void)peer;
	step_put("workspace/old", O_APPEND, "more\n");
}

static void by_truncating_open(int peer)
{
	(void)peer;
	step_put("workspace/old", O_TRUNC, "");
}

static void by_overwriting(int peer)
{
	(void)peer;
	step_put("workspace/old", 0, "OLD\n");
}

static void by_truncate(int peer)
{
	(void)peer;
	MUST(truncate("workspace/old", 1) == 0);
}

static void by_chmod(int peer)
{
	(void)peer;
	MUST(chmod("workspace/old", 0600) == 0);
}

static void by_times(int peer)
{
	const struct timespec times[2] = { { 1, 0 }, { 2, 0 } };

	(void)peer;
	MUST(utimensat(AT_FDCWD, "workspace/old", times, 0) == 0);
}

static void by_xattr(int peer)
{
	(void)peer;
	MUST(setxattr("workspace/old", "user.x", "y", 1, 0) == 0 || errno == EOPNOTSUPP);
	if (errno == EOPNOTSUPP) /* the host's file system has none */
		MUST(chmod("workspace/old", 0600) == 0);
}

static void by_mapping(int peer)
{
	int fd = open("workspace/old", O_RDWR | O_CLOEXEC);
	char *map;

	(void)peer;
	MUST(fd >= 0);
	map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(map != MAP_FAILED);
	MUST(close(fd) == 0);
	map[0] = 'O';
	MUST(munmap(map, 4) == 0);
}

static void by_fallocate(int peer)
{
	int fd = open("workspace/old", O_RDWR | O_CLOEXEC);

	(void)peer;
	MUST(fd >= 0 && fallocate(fd, 0, 0, 65536) == 0 && close(fd) == 0);
}

static void by_replacing(int peer)
{
	(void)peer;
	step_make("workspace/.old.tmp");
	MUST(rename("workspace/.old.tmp", "workspace/old") == 0);
}

static void by_making_it_anew(int peer)
{
	(void)peer;
	MUST(unlink("workspace/old") == 0);
	step_make("workspace/old");
}

/* What the file looks like before has to be told from after even within the granularity of times, so some come first
 * that change nothing. */
static void what_is_written_is_modified(void **state)
{
	static const MiniBody ways[] = {
		by_append,    by_truncating_open, by_overwriting,    by_truncate,
		by_chmod,     by_times,		  by_xattr,	     by_mapping,
		by_fallocate, by_replacing,	  by_making_it_anew,
	};
	MiniSession *session = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
		mini_session_write(session, "ws/old", "old\n");
		g_usleep(20000);
		print_message("way %u\n", (unsigned int)i);
		told_expect_exec(session, ways[i], "modified /workspace/old", "");
	}
}

static void only_look(int peer)
{
	char data[16];
	struct stat st;
	int fd = open("workspace/old", O_RDONLY | O_CLOEXEC);

	(void)peer;
	MUST(fd >= 0 && read(fd, data, sizeof data) == 4 && close(fd) == 0);
	fd = open("workspace/old", O_RDWR | O_CLOEXEC);
	MUST(fd >= 0 && read(fd, data, sizeof data) == 4 && close(fd) == 0);
	fd = open("workspace/old", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	MUST(fd >= 0 && close(fd) == 0);
	MUST(stat("workspace/other", &st) == 0);
	MUST(access("workspace/old", W_OK) == 0);
	fd = open("workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(fd >= 0 && close(fd) == 0);
	step_refused(open("workspace/missing", O_RDWR | O_CLOEXEC), ENOENT);
	step_refused(mkdir("workspace/old", 0755), EEXIST);
}

static void looking_changes_nothing(void **state)
{
	told_expect_exec(*state, only_look, "", "");
}

static void go_and_move(int peer)
{
	(void)peer;
	MUST(unlink("workspace/third") == 0);
	MUST(rename("workspace/old", "workspace/b") == 0);
	MUST(rename("workspace/b", "workspace/c") == 0);
	MUST(mkdir("workspace/d", 0755) == 0);
	step_make("workspace/d/f");
	MUST(rename("workspace/d", "workspace/e") == 0);
	MUST(rename("workspace/other", "workspace/e/other") == 0);
}

static void move_back(int peer)
{
	(void)peer;
	MUST(rename("workspace/e", "workspace/g") == 0);
	step_put("workspace/g/f", O_APPEND, "x");
	MUST(unlink("workspace/g/other") == 0);
	MUST(syscall(SYS_renameat2, AT_FDCWD, "workspace/c", AT_FDCWD, "workspace/g/f", 2) == 0);
}

static void names_that_go_and_move_are_told(void **state)
{
	told_expect_exec(
		*state, go_and_move,
		"renamed /workspace/c from /workspace/old, created /workspace/e, "
		"created /workspace/e/f, renamed /workspace/e/other from /workspace/other, "
		"deleted /workspace/third",
		"");
	told_expect_exec(*state, move_back,
			 "renamed /workspace/c from /workspace/e/f, modified /workspace/c, "
			 "deleted /workspace/e/other, renamed /workspace/g from /workspace/e, "
			 "renamed /workspace/g/f from /workspace/c",
			 "");
}

static void go_everywhere(int peer)
{
	(void)peer;
	step_make("workspace/in/ner/f");
	step_make("user/f");
	step_make("again/g");
	MUST(rename("again/f", "again/h") == 0);
}

/* By the way it was reached. */
static void mounts_of_every_kind_have_their_paths(void **state)
{
	MiniSession *session = *state;

	told_expect_exec(session, go_everywhere,
			 "created /again/g, renamed /again/h from /again/f, created /user/f, "
			 "created /workspace/in/ner/f",
			 "");
	assert_true(mini_session_has(session, "inner/f"));
	assert_true(mini_session_has(session, "user/h"));
}

static void make_odd_names(int peer)
{
	(void)peer;
	step_make("workspace/\xff");
	step_make("workspace/\n\"");
	step_refused(mkdir("ro/\xff", 0755), EROFS);
}

static void names_that_are_no_text_are_coded(void **state)
{
	g_autofree char *coded = g_base64_encode((const guchar *)"/workspace/\xff", 12);
	g_autofree char *denied = g_base64_encode((const guchar *)"/ro/\xff", 5);
	g_autofree char *changes = g_strdup_printf("created /workspace/\n\", created %s", coded);
	g_autofree char *denials = g_strdup_printf("mkdir %s read-only-mount EROFS /ro 1", denied);

	told_expect_exec(*state, make_odd_names, changes, denials);
}

static void try_what_is_refused(int peer)
{
	(void)peer;
	for (int i = 0; i < 3; i++)
		step_refused(open("ro/f", O_WRONLY | O_CLOEXEC), EROFS);
	step_refused(open("ro/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), EROFS);
	step_refused(rename("workspace/old", "user/old"), EXDEV);
	step_refused(unlink("ro/f"), EROFS);
}

static void what_is_refused_is_told_and_counted(void **state)
{
	told_expect_exec(
		*state, try_what_is_refused, "",
		"open /ro/f read-only-mount EROFS /ro 3, create /ro/new read-only-mount EROFS /ro "
		"1, "
		"rename /workspace/old cross-mount EXDEV /workspace 1, "
		"unlink /ro/f read-only-mount EROFS /ro 1");
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, told_start, told_stop)
	const struct CMUnitTest tests[] = {
		TEST(what_is_made_is_created),
		TEST(what_is_written_is_modified),
		TEST(looking_changes_nothing),
		TEST(names_that_go_and_move_are_told),
		TEST(mounts_of_every_kind_have_their_paths),
		TEST(names_that_are_no_text_are_coded),
		TEST(what_is_refused_is_told_and_counted),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
