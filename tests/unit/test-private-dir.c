/* private-dir: 0700 whatever was there, and nothing taken over that is not a directory of ours. */
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/private-dir.h"

#include <fcntl.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

static char *top;

static int set_up(void **state)
{
	(void)state;
	top = g_dir_make_tmp("test-private-dir-XXXXXX", NULL);
	return top ? 0 : -1;
}

static int tear_down(void **state)
{
	int r = io_remove_tree(AT_FDCWD, top);

	(void)state;
	g_free(top);
	return r;
}

static char *at_top(const char *name)
{
	return g_build_filename(top, name, NULL);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	return st.st_mode & 07777;
}

static void a_missing_directory_is_made_with_its_parents(void **state)
{
	g_autofree char *a = at_top("a");
	g_autofree char *b = at_top("a/b");
	g_autofree char *spelled = at_top("a//x/../b/./c/");
	g_autofree char *c = at_top("a/b/c");
	mode_t old = umask(0);

	(void)state;
	assert_int_equal(private_dir_ensure(spelled), 0);
	assert_int_equal(mode_of(a), 0700);
	assert_int_equal(mode_of(b), 0700);
	assert_int_equal(mode_of(c), 0700);
	assert_int_equal(private_dir_ensure(c), 0);
	umask(0777);
	assert_int_equal(rmdir(c), 0);
	assert_int_equal(private_dir_ensure(c), 0);
	assert_int_equal(mode_of(c), 0700);
	umask(old);
}

static void the_mode_of_an_existing_one_is_enforced(void **state)
{
	static const mode_t modes[] = { 0777, 01777, 02755, 01700, 02700, 0000, 0500, 0700 };
	g_autofree char *parent = at_top("parent");
	g_autofree char *dir = at_top("parent/dir");
	g_autofree char *file = at_top("parent/dir/kept");

	(void)state;
	assert_int_equal(mkdir(parent, 0755), 0);
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_true(g_file_set_contents(file, "x", 1, NULL));
	for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
		assert_int_equal(chmod(dir, modes[i]), 0);
		assert_int_equal(private_dir_ensure(dir), 0);
		assert_int_equal(mode_of(dir), 0700);
	}
	assert_int_equal(mode_of(parent), 0755); /* others on the way are left as they are */
	assert_int_equal(access(file, F_OK), 0);
}

static void a_link_in_its_place_is_refused_and_its_target_untouched(void **state)
{
	g_autofree char *target = at_top("target");
	g_autofree char *last = at_top("last");
	g_autofree char *dangling = at_top("dangling");
	g_autofree char *nowhere = at_top("nowhere");
	g_autofree char *through = at_top("last/inside");
	g_autofree char *inside = at_top("target/inside");

	(void)state;
	assert_int_equal(mkdir(target, 0755), 0);
	assert_int_equal(symlink(target, last), 0);
	assert_int_equal(symlink(nowhere, dangling), 0);
	assert_int_equal(private_dir_ensure(last), -ELOOP);
	assert_int_equal(mode_of(target), 0755);
	assert_int_equal(private_dir_ensure(dangling), -ELOOP);
	assert_int_equal(access(nowhere, F_OK), -1);
	/* On the way a link is the caller's own choice (/var/run). */
	assert_int_equal(private_dir_ensure(through), 0);
	assert_int_equal(mode_of(inside), 0700);
	assert_int_equal(mode_of(target), 0755);
}

static void what_is_no_directory_is_refused(void **state)
{
	g_autofree char *file = at_top("file");
	g_autofree char *below = at_top("file/x");
	g_autofree char *fifo = at_top("fifo");
	struct stat st;

	(void)state;
	assert_true(g_file_set_contents(file, "x", 1, NULL));
	assert_int_equal(chmod(file, 0644), 0);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_int_equal(private_dir_ensure(file), -ENOTDIR);
	assert_int_equal(private_dir_ensure(below), -ENOTDIR);
	assert_int_equal(private_dir_ensure(fifo), -ENOTDIR);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void a_path_that_names_no_place_is_refused(void **state)
{
	(void)state;
	assert_int_equal(private_dir_ensure(""), -EINVAL);
	assert_int_equal(private_dir_ensure("relative/dir"), -EINVAL);
	assert_int_equal(private_dir_ensure("/"), -EINVAL);
	assert_int_equal(private_dir_ensure("/tmp/.."), -EINVAL);
}

static void somebody_elses_directory_is_refused(void **state)
{
	g_autofree char *dir = at_top("theirs");
	FD_AUTO topfd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO fd = -1;

	(void)state;
	assert_int_equal(mkdir(dir, 0755), 0);
	/* Without root nobody can give a directory away, but its owner can be asked for wrongly. */
	assert_int_equal(private_dir_ensure_at(topfd, "theirs", geteuid() + 1, getegid()), -EPERM);
	assert_int_equal(mode_of(dir), 0755);
	if (geteuid() == 0) {
		assert_int_equal(chown(dir, 1234, 1234), 0);
		assert_int_equal(private_dir_ensure(dir), -EPERM);
		assert_int_equal(mode_of(dir), 0755);
		fd = private_dir_ensure_at(topfd, "theirs", 1234, 1234);
		assert_true(fd >= 0);
		assert_int_equal(mode_of(dir), 0700);
		assert_int_equal(chown(dir, 0, 0), 0);
	}
	assert_int_equal(private_dir_ensure(dir), 0);
	assert_int_equal(mode_of(dir), 0700);
}

static void a_new_directory_is_given_to_its_owner(void **state)
{
	g_autofree char *dir = at_top("given");
	FD_AUTO topfd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool root = geteuid() == 0;
	FD_AUTO fd = private_dir_ensure_at(topfd, "given", root ? 1234 : geteuid(),
					   root ? 4321 : getegid());
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_uid, root ? 1234 : geteuid());
	assert_int_equal(st.st_gid, root ? 4321 : getegid());
	assert_int_equal(mode_of(dir), 0700);
}

static void a_walk_without_follow_stops_at_a_link(void **state)
{
	g_autofree char *target = at_top("target");
	g_autofree char *link = at_top("link");
	g_autofree char *made = at_top("target/x");
	FD_AUTO topfd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO fd = -1;

	(void)state;
	assert_int_equal(mkdir(target, 0755), 0);
	assert_int_equal(symlink("target", link), 0);
	assert_int_equal(private_dir_walk(topfd, "link/x", false), -ELOOP);
	assert_int_equal(access(made, F_OK), -1);
	assert_int_equal(private_dir_walk(topfd, "target/../x", true), -EINVAL);
	fd = private_dir_walk(topfd, "link/x", true);
	assert_true(fd >= 0);
	assert_int_equal(mode_of(made), 0700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_missing_directory_is_made_with_its_parents,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_mode_of_an_existing_one_is_enforced, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_link_in_its_place_is_refused_and_its_target_untouched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_directory_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_path_that_names_no_place_is_refused, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(somebody_elses_directory_is_refused, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_new_directory_is_given_to_its_owner, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_walk_without_follow_stops_at_a_link, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
