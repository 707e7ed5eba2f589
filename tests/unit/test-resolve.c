/* resolve: one step of the walk. The suite runs this test a second time with openat2 made to fail: the
 * verdicts have to be the same. */
#include "common/resolve.h"

#include "common/fd-util.h"
#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

typedef struct {
	char *path;
	int fd;
	int stop; /* atomic */
} Tree;

static int set_up(void **state)
{
	Tree *tree = g_new0(Tree, 1);

	tree->path = g_dir_make_tmp("stella-resolve-XXXXXX", NULL);
	assert_non_null(tree->path);
	tree->fd = open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(tree->fd >= 0);
	assert_int_equal(mkdirat(tree->fd, "dir", 0755), 0);
	assert_int_equal(mkdirat(tree->fd, "dir/sub", 0755), 0);
	assert_int_equal(mkfifoat(tree->fd, "fifo", 0644), 0);
	assert_int_equal(symlinkat("/etc", tree->fd, "out"), 0);
	assert_int_equal(symlinkat("dir", tree->fd, "in"), 0);
	assert_int_equal(symlinkat("nowhere", tree->fd, "dangling"), 0);
	*state = tree;
	return 0;
}

static int tear_down(void **state)
{
	Tree *tree = *state;

	fd_close(&tree->fd);
	assert_int_equal(io_remove_tree(AT_FDCWD, tree->path), 0);
	g_free(tree->path);
	g_free(tree);
	return 0;
}

static void what_is_no_single_name_is_refused(void **state)
{
	static const struct {
		const char *name;
		int result;
	} cases[] = {
		{ "", -EINVAL },	{ ".", -EINVAL },    { "..", -EINVAL },
		{ "dir/sub", -EINVAL }, { "/etc", -EINVAL }, { "../x", -EINVAL },
		{ "dir/", -EINVAL },
	};
	const Tree *tree = *state;
	char longest[257];

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
		assert_int_equal(resolve_child(tree->fd, cases[i].name, false), cases[i].result);
	memset(longest, 'n', sizeof longest);
	longest[256] = '\0';
	assert_int_equal(resolve_child(tree->fd, longest, false), -ENAMETOOLONG);
	longest[255] = '\0';
	assert_int_equal(resolve_child(tree->fd, longest, false), -ENOENT);
}

static void the_entry_itself_is_opened_whatever_it_is(void **state)
{
	static const struct {
		const char *name;
		mode_t type;
	} cases[] = {
		{ "dir", S_IFDIR }, { "fifo", S_IFIFO },     { "out", S_IFLNK },
		{ "in", S_IFLNK },  { "dangling", S_IFLNK },
	};
	const Tree *tree = *state;
	struct stat st;

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		FD_AUTO fd = resolve_child(tree->fd, cases[i].name, false);

		assert_true(fd >= 3);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & S_IFMT, cases[i].type);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(fd, F_GETFL) & O_PATH);
	}
	assert_int_equal(resolve_child(tree->fd, "absent", false), -ENOENT);
}

/* Whatever the name: a look gives what opening would give, and opens nothing. */
static void a_look_gives_the_verdict_of_opening(void **state)
{
	static const char *const names[] = {
		"", ".", "..", "dir/sub", "dir", "fifo", "out", "in", "dangling", "absent",
	};
	const Tree *tree = *state;
	uint64_t mount;

	assert_int_equal(resolve_mount_id(tree->fd, &mount), 0);
	assert_true(mount != RESOLVE_ANY_MOUNT);
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		FD_AUTO fd = resolve_child(tree->fd, names[i], false);
		struct statx stx;
		struct stat st;
		int r = resolve_stat_child(tree->fd, names[i], STATX_BASIC_STATS, mount, &stx);

		assert_int_equal(r, MIN(fd, 0));
		if (fd >= 0) {
			assert_int_equal(fstat(fd, &st), 0);
			assert_int_equal(stx.stx_ino, st.st_ino);
			assert_int_equal(stx.stx_mode, st.st_mode);
		}
	}
}

static void a_look_crosses_a_mount_only_when_asked(void **state)
{
	FD_AUTO root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statx stx;
	uint64_t mount;

	(void)state;
	assert_int_equal(resolve_mount_id(root, &mount), 0);
	assert_int_equal(resolve_stat_child(root, "proc", STATX_BASIC_STATS, mount, &stx), -EXDEV);
	assert_int_equal(
		resolve_stat_child(root, "proc", STATX_BASIC_STATS, RESOLVE_ANY_MOUNT, &stx), 0);
}

static void a_link_is_no_directory_to_walk_on_from(void **state)
{
	const Tree *tree = *state;
	FD_AUTO link = resolve_child(tree->fd, "in", false);

	assert_int_equal(resolve_child(link, "sub", false), -ENOTDIR);
}

static void a_mount_is_crossed_only_when_asked(void **state)
{
	FD_AUTO root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO crossed = resolve_child(root, "proc", true);

	(void)state;
	assert_int_equal(resolve_child(root, "proc", false), -EXDEV);
	assert_true(crossed >= 0);
}

static void *move_to_and_fro(void *data)
{
	Tree *tree = data;

	while (!g_atomic_int_get(&tree->stop))
		if (renameat(tree->fd, "dir/sub", tree->fd, "sub") == 0)
			(void)!renameat(tree->fd, "sub", tree->fd, "dir/sub");
	return NULL;
}

/* The kernel says EXDEV of it too, now and then. */
static void what_is_moved_away_meanwhile_is_no_mount(void **state)
{
	Tree *tree = *state;
	FD_AUTO dir = openat(tree->fd, "dir", O_PATH | O_DIRECTORY | O_CLOEXEC);
	GThread *thread = g_thread_new("mover", move_to_and_fro, tree);
	int found = 0, absent = 0, others = 0;

	/* On a busy machine the other thread may not have its turn for a while. */
	for (int i = 0; i < 20000 || ((found == 0 || absent == 0) && i < 20000000); i++) {
		/* Where mounts are crossed, too. */
		FD_AUTO fd = resolve_child(dir, "sub", i % 2 == 0);

		found += fd >= 0;
		absent += fd == -ENOENT;
		others += fd < 0 && fd != -ENOENT;
	}
	g_atomic_int_set(&tree->stop, 1);
	g_thread_join(thread);
	(void)!renameat(tree->fd, "sub", tree->fd, "dir/sub"); /* where it was not left there */
	assert_int_equal(others, 0);
	assert_true(found > 0 && absent > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_single_name_is_refused),
		cmocka_unit_test(the_entry_itself_is_opened_whatever_it_is),
		cmocka_unit_test(a_link_is_no_directory_to_walk_on_from),
		cmocka_unit_test(a_mount_is_crossed_only_when_asked),
		cmocka_unit_test(a_look_gives_the_verdict_of_opening),
		cmocka_unit_test(a_look_crosses_a_mount_only_when_asked),
		cmocka_unit_test(what_is_moved_away_meanwhile_is_no_mount),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
