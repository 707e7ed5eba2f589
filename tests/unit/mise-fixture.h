/* The tree that tests of the mise modules work on: a home with two tools, and a directory outside that
 * must never change. Every test gets a new one, and runs in the directory that holds it. */
#pragma once

#include "common/io-util.h"
#include "common/mise.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define USER	   "home/users/u1/.mise-tools"
#define TO_SYSTEM  "../../../../../.mise-tools/installs/"
#define TO_PROGRAM "../../../../bin/mise"

/* The tests work in a directory of their own, by relative names; home and user are its absolute
 * ones. */
static char *top, *home, *user, *old_dir;

static inline void make_dir(const char *path)
{
	assert_int_equal(g_mkdir_with_parents(path, 0755), 0);
}

static inline void make_file(const char *path, const char *text)
{
	assert_true(g_file_set_contents(path, text, -1, NULL));
}

static inline void make_link(const char *target, const char *path)
{
	assert_int_equal(symlink(target, path), 0);
}

static inline mode_t type_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static inline void assert_link(const char *path, const char *target)
{
	char text[4096];
	ssize_t length = readlink(path, text, sizeof text - 1);

	if (length < 0)
		fail_msg("%s: %s", path, g_strerror(errno));
	text[length] = '\0';
	assert_string_equal(text, target);
}

static inline void assert_private(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0700);
}

static inline int count_entries(const char *path)
{
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	int entries = 0;

	assert_non_null(dir);
	while (g_dir_read_name(dir))
		entries++;
	return entries;
}

static inline void prepare(int expected)
{
	assert_int_equal(ensure_user_mise_home(home, user), expected);
}

static inline int set_up(void **state)
{
	(void)state;
	old_dir = g_get_current_dir();
	top = g_dir_make_tmp("test-mise-XXXXXX", NULL);
	if (!top || chdir(top) != 0)
		return -1;
	home = g_build_filename(top, "home", NULL);
	user = g_build_filename(top, USER, NULL);
	make_dir("home/bin");
	make_file("home/bin/mise", "#!/bin/sh\n");
	make_dir("home/.mise-tools/shims");
	make_dir("home/.mise-tools/installs/node/20.1.0/bin");
	make_dir("home/.mise-tools/installs/gh/2.0");
	make_link("./20.1.0", "home/.mise-tools/installs/node/20");
	make_dir("outside/node");
	make_file("outside/file", "untouched");
	return 0;
}

static inline int tear_down(void **state)
{
	int r = chdir(old_dir);

	(void)state;
	if (r == 0)
		r = io_remove_tree(AT_FDCWD, top);
	g_free(top);
	g_free(home);
	g_free(user);
	g_free(old_dir);
	return r;
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
