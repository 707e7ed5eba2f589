/* stella/mise.h and stella/host-env.h as a host agent has them: what the functions give, who owns it, and which error tells
 * what. What the preparation does to trees is in test-mise-home.c. */
#include <stella/stella.h>

#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define STANDARD                                                                                   \
	"/run/current-system/sw/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static char *top, *home, *tools;

static char *below(const char *path)
{
	return g_build_filename(top, path, NULL);
}

static void make_dir(const char *path)
{
	g_autofree char *whole = below(path);

	assert_int_equal(g_mkdir_with_parents(whole, 0755), 0);
}

static void make_file(const char *path)
{
	g_autofree char *whole = below(path);

	assert_true(g_file_set_contents(whole, "x", -1, NULL));
}

static void make_link(const char *target, const char *path)
{
	g_autofree char *whole = below(path);

	assert_int_equal(symlink(target, whole), 0);
}

static void assert_link(const char *path, const char *target)
{
	g_autofree char *whole = below(path);
	g_autofree char *text = g_file_read_link(whole, NULL);

	assert_non_null(text);
	assert_string_equal(text, target);
}

static mode_t mode_of(const char *path)
{
	g_autofree char *whole = below(path);
	struct stat st;

	return lstat(whole, &st) == 0 ? st.st_mode : 0;
}

static int set_up(void **state)
{
	(void)state;
	top = g_dir_make_tmp("test-api-host-XXXXXX", NULL);
	if (!top)
		return -1;
	home = below("home");
	tools = below("home/users/u1/.mise-tools");
	make_dir("home/bin");
	make_file("home/bin/mise");
	make_dir("home/.mise-tools/shims");
	make_dir("home/.mise-tools/installs/node/20.1.0");
	make_link("/abs/mise", "home/.mise-tools/shims/node");
	return 0;
}

static int tear_down(void **state)
{
	int r = io_remove_tree(AT_FDCWD, top);

	(void)state;
	g_free(top);
	g_free(home);
	g_free(tools);
	return r;
}

static void take_equal(char *take_text, const char *expected)
{
	g_autofree char *text = take_text;

	assert_string_equal(text, expected);
}

/* That one failed so, with a message of one line that holds text. */
static void take_error(gboolean ok, GError *take_error, StellaError code, int errnum,
		       const char *text)
{
	g_autoptr(GError) error = take_error;

	assert_false(ok);
	assert_true(g_error_matches(error, STELLA_ERROR, (int)code));
	assert_int_equal(stella_error_get_errno(error), errnum);
	assert_non_null(strstr(error->message, text));
	assert_null(strchr(error->message, '\n'));
}

static void names_of_the_trees(void **state)
{
	(void)state;
	take_equal(stella_mise_tools_dir("/h"), "/h/.mise-tools");
	take_equal(stella_mise_tools_dir(""), "");
	take_equal(stella_mise_shims_dir("/h/"), "/h/.mise-tools/shims");
	take_equal(stella_mise_shims_dir(""), "");
	take_equal(stella_mise_user_tools_dir("/h", "users", "group-42"),
		   "/h/users/group-42/.mise-tools");
	take_equal(stella_mise_user_tools_dir("/h", "groups", "u1"), "");
	take_equal(stella_mise_user_tools_dir("/h", "users", "../u1"), "");
	take_equal(stella_mise_user_tools_dir("/h", "users", ""), "");
	take_equal(stella_mise_user_tools_dir("", "users", "u1"), "");
	take_equal(stella_mise_user_shims_dir("/t"), "/t/shims");
	take_equal(stella_mise_user_shims_dir(""), "");
	assert_string_equal(stella_home_sandbox_dirs()[0], "bin");
	assert_string_equal(stella_home_sandbox_dirs()[1], ".mise-tools");
	assert_null(stella_home_sandbox_dirs()[2]);
}

static void a_data_dir_is_a_users_or_none(void **state)
{
	(void)state;
	take_equal(stella_per_user_mise_data_dir(NULL, "/h"), "");
	take_equal(stella_per_user_mise_data_dir(LIST("A=1", "MISE_DATA=/x"), "/h"), "");
	take_equal(stella_per_user_mise_data_dir(LIST("MISE_DATA_DIR="), "/h"), "");
	take_equal(stella_per_user_mise_data_dir(LIST("MISE_DATA_DIR=/h//.mise-tools/"), "/h"), "");
	take_equal(stella_per_user_mise_data_dir(LIST("A=1", "MISE_DATA_DIR=/u/=t"), "/h"),
		   "/u/=t");
	take_equal(stella_per_user_mise_data_dir(LIST("MISE_DATA_DIR=/a", "MISE_DATA_DIR=/b"), ""),
		   "/a");
}

static void the_path_is_this_processes(void **state)
{
	g_autofree char *old = g_strdup(g_getenv("PATH"));

	(void)state;
	g_setenv("PATH", "/home/me/bin:/usr/games::.:/usr/bin", TRUE);
	take_equal(stella_host_env_build_path("/h", "/h/users/u1/.mise-tools/shims"),
		   "/h/users/u1/.mise-tools/shims:/h/.mise-tools/shims:/h/bin:/usr/games:/usr/bin:"
		   "/run/current-system/sw/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/"
		   "bin");
	assert_string_equal(g_getenv("PATH"), "/home/me/bin:/usr/games::.:/usr/bin");
	g_unsetenv("PATH");
	take_equal(stella_host_env_build_path("", ""), STANDARD);
	if (old)
		g_setenv("PATH", old, TRUE);
}

static void entries_of_the_path_are_judged(void **state)
{
	(void)state;
	assert_true(stella_host_env_path_allowed("/usr/bin", ""));
	assert_true(stella_host_env_path_allowed("/h/bin", "/h/bin"));
	assert_false(stella_host_env_path_allowed("/h/bin", ""));
	assert_false(stella_host_env_path_allowed("/usrx", "/h/bin"));
	assert_false(stella_host_env_path_allowed("", ""));
}

static void variables_are_copied_into_a_list_that_is_given_back(void **state)
{
	g_auto(GStrv) env = NULL;
	g_auto(GStrv) old = g_get_environ();

	(void)state;
	for (char **entry = old; *entry; entry++) {
		g_auto(GStrv) parts = g_strsplit(*entry, "=", 2);

		g_unsetenv(parts[0]);
	}
	env = stella_host_env_copy(NULL);
	assert_non_null(env);
	assert_null(env[0]);
	g_setenv("TERM", "xterm", TRUE);
	g_setenv("TZ", "", TRUE);
	g_setenv("no_proxy", "a=b", TRUE);
	g_setenv("GITHUB_TOKEN", "secret", TRUE);
	env = g_environ_setenv(env, "TERM", "before", TRUE);
	env = g_environ_setenv(env, "TZ", "kept", TRUE);
	env = g_environ_setenv(env, "OWN", "own", TRUE);
	env = stella_host_env_copy(env);
	assert_int_equal(g_strv_length(env), 4);
	assert_string_equal(g_environ_getenv(env, "TERM"), "xterm");
	assert_string_equal(g_environ_getenv(env, "TZ"), "kept");
	assert_string_equal(g_environ_getenv(env, "OWN"), "own");
	assert_string_equal(g_environ_getenv(env, "no_proxy"), "a=b");
	for (char **entry = old; *entry; entry++) {
		g_auto(GStrv) parts = g_strsplit(*entry, "=", 2);

		g_setenv(parts[0], parts[1] ? parts[1] : "", TRUE);
	}
}

static void trees_are_prepared(void **state)
{
	GError *error = NULL;

	(void)state;
	assert_true(stella_relink_system_mise_shims(home, &error));
	assert_null(error);
	assert_link("home/.mise-tools/shims/node", "../../bin/mise");
	assert_true(stella_relink_system_mise_shims("", NULL));
	assert_true(stella_relink_system_mise_shims("/nonexistent/home", NULL));
	assert_true(stella_ensure_user_mise_home(home, "", NULL));
	assert_int_equal(mode_of("home/users"), 0);
	assert_true(stella_ensure_user_mise_home(home, tools, &error));
	assert_link("home/users/u1/.mise-tools/installs/node/20.1.0",
		    "../../../../../.mise-tools/installs/node/20.1.0");
	assert_int_equal(mode_of("home/users/u1/.mise-tools"), S_IFDIR | 0700);
	assert_true(stella_ensure_mise_shims("", "", &error));
	assert_true(stella_ensure_mise_shims(home, tools, &error));
	assert_null(error);
}

static void what_cannot_be_prepared_is_told(void **state)
{
	g_autofree char *odd = below("odd\nname");
	GError *error = NULL;
	gboolean ok;

	(void)state;
	ok = stella_relink_system_mise_shims("relative", &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_INVALID_ARGUMENT, EINVAL,
		   "\"relative\"");
	ok = stella_ensure_user_mise_home(home, home, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_INVALID_ARGUMENT, EINVAL, home);
	ok = stella_ensure_user_mise_home("/nonexistent/home", tools, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_NOT_FOUND, ENOENT, tools);
	assert_int_equal(mode_of("home/users"), 0);
	make_file("odd\nname");
	ok = stella_ensure_user_mise_home("", odd, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_IO, ENOTDIR, "odd\\x0aname\"");
	make_dir("home/users");
	make_link("../../outside", "home/users/u1");
	ok = stella_ensure_user_mise_home(home, tools, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_SYMLINK, ELOOP, tools);
	/* without anybody to tell */
	assert_false(stella_ensure_user_mise_home(home, tools, NULL));
}

static void both_trees_are_tried_and_the_first_error_told(void **state)
{
	g_autofree char *shims = below("home/.mise-tools/shims");
	GError *error = NULL;
	gboolean ok;

	(void)state;
	assert_int_equal(io_remove_tree(AT_FDCWD, shims), 0);
	make_link("../../outside", "home/.mise-tools/shims");
	ok = stella_ensure_mise_shims(home, tools, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_SYMLINK, ELOOP, home);
	assert_int_equal(mode_of("home/users/u1/.mise-tools/shims"), S_IFDIR | 0700);
	ok = stella_ensure_mise_shims(home, home, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_SYMLINK, ELOOP, home);
	ok = stella_ensure_mise_shims("", "relative", &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_INVALID_ARGUMENT, EINVAL, "relative");
	assert_false(stella_ensure_mise_shims(home, tools, NULL));
}

static void a_tree_beyond_the_cap_is_told_as_such(void **state)
{
	g_autofree char *program = below("home/bin/mise");
	GError *error = NULL;
	gboolean ok;
	int dir;

	(void)state;
	make_dir("home/users/u1/.mise-tools/shims");
	{
		g_autofree char *shims = below("home/users/u1/.mise-tools/shims");

		dir = open(shims, O_PATH | O_CLOEXEC);
	}
	for (int i = 0; i < 16384 + 1; i++) {
		char name[32];

		g_snprintf(name, sizeof name, "%d", i);
		assert_int_equal(linkat(AT_FDCWD, program, dir, name, 0), 0);
	}
	close(dir);
	ok = stella_ensure_user_mise_home(home, tools, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_TOO_LARGE, E2BIG, tools);
}

static void a_private_directory_is_made_or_closed(void **state)
{
	g_autofree char *new = below("a/b/c/");
	g_autofree char *link = below("link");
	g_autofree char *file = below("file");
	g_autofree char *under = below("file/x");
	GError *error = NULL;
	gboolean ok;

	(void)state;
	assert_true(stella_ensure_private_dir(new, &error));
	assert_int_equal(mode_of("a"), S_IFDIR | 0700);
	assert_int_equal(mode_of("a/b/c"), S_IFDIR | 0700);
	make_file("a/b/c/kept");
	{
		g_autofree char *dir = below("a/b/c");

		assert_int_equal(chmod(dir, 0777), 0);
	}
	assert_true(stella_ensure_private_dir(new, &error));
	assert_int_equal(mode_of("a/b/c"), S_IFDIR | 0700);
	assert_int_equal(mode_of("a/b/c/kept") & S_IFMT, S_IFREG);
	assert_null(error);

	make_dir("outside");
	make_link("outside", "link");
	ok = stella_ensure_private_dir(link, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_SYMLINK, ELOOP, link);
	assert_int_equal(mode_of("outside"), S_IFDIR | 0755);
	make_file("file");
	ok = stella_ensure_private_dir(file, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_IO, ENOTDIR, file);
	ok = stella_ensure_private_dir(under, &error);
	take_error(ok, g_steal_pointer(&error), STELLA_ERROR_IO, ENOTDIR, under);
	for (size_t i = 0; i < 3; i++) {
		ok = stella_ensure_private_dir(((const char *[]){ "", "rel", "/" })[i], &error);
		take_error(ok, g_steal_pointer(&error), STELLA_ERROR_INVALID_ARGUMENT, EINVAL,
			   "private directory");
	}
	assert_false(stella_ensure_private_dir("", NULL));
}

#define API_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_trees),
		cmocka_unit_test(a_data_dir_is_a_users_or_none),
		cmocka_unit_test(the_path_is_this_processes),
		cmocka_unit_test(entries_of_the_path_are_judged),
		cmocka_unit_test(variables_are_copied_into_a_list_that_is_given_back),
		API_TEST(trees_are_prepared),
		API_TEST(what_cannot_be_prepared_is_told),
		API_TEST(both_trees_are_tried_and_the_first_error_told),
		API_TEST(a_tree_beyond_the_cap_is_told_as_such),
		API_TEST(a_private_directory_is_made_or_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
