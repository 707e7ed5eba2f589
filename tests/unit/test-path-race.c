/* path-resolver while the directories change under it. A thread that plays the host (it may rename what no agent may)
 * exchanges things; whatever is opened meanwhile has to be inside. Bounded by a count and by time; each also has to
 * see both outcomes, or it was no race. */
#include "path-resolver-fixture.h"

#include "common/syscall-wrap.h"

#include <linux/fs.h>

#define ROUNDS	   100000
#define LONG_US	   (5 * G_USEC_PER_SEC)
#define SHORT_US   (1 * G_USEC_PER_SEC)
#define WAITING_US (30 * G_USEC_PER_SEC)

/* The other thread: does `change` again and again. */
typedef struct {
	void (*change)(unsigned int round);
	GThread *thread;
	int stop; /* atomic */
} Storm;

static void *run_storm(void *data)
{
	Storm *storm = data;

	for (unsigned int round = 0; !g_atomic_int_get(&storm->stop) || round % 2; round++)
		storm->change(round);
	return NULL;
}

static void storm_begin(Storm *storm, void (*change)(unsigned int round))
{
	*storm = (Storm){ .change = change };
	storm->thread = g_thread_new("storm", run_storm, storm);
}

static void storm_end(Storm *storm)
{
	g_atomic_int_set(&storm->stop, 1);
	g_thread_join(storm->thread);
}

/* The storm has to be over before a test fails: it would go on in the next one's directories. */
static void check(Storm *storm, bool is_right, int result)
{
	if (is_right)
		return;
	storm_end(storm);
	fail_msg("the result is %d", result);
}

/* Whether there is another round: ROUNDS of them or limit_us, and longer only until both outcomes were seen. */
static bool goes_on(int round, gint64 began_us, gint64 limit_us, bool seen_both)
{
	gint64 past_us = g_get_monotonic_time() - began_us;

	if (round < ROUNDS && past_us < limit_us)
		return true;
	return !seen_both && past_us < WAITING_US;
}

static bool holds(int fd, const char *text)
{
	char got[64] = "";

	assert_true(io_read_all(fd, got, sizeof got - 1) >= 0);
	return strcmp(got, text) == 0;
}

static void swap(const char *a, const char *b)
{
	g_assert_cmpint(sys_renameat2(AT_FDCWD, host(a), AT_FDCWD, host(b), RENAME_EXCHANGE), ==,
			0);
}

static void swap_directory_and_link(unsigned int round)
{
	(void)round;
	swap("ws/dir", "ws/link");
}

static void open_while_swapped(const char *target, int refusal, gint64 limit_us)
{
	gint64 began_us = g_get_monotonic_time();
	int inside = 0, refused = 0;
	Storm storm;

	put_link(target, "ws/link");
	storm_begin(&storm, swap_directory_and_link);
	for (int i = 0; goes_on(i, began_us, limit_us, inside > 0 && refused > 0); i++) {
		FD_AUTO fd = path_resolver_open(resolver, "dir/f", O_RDONLY, 0, NULL);

		check(&storm, fd >= 0 || fd == refusal, fd);
		check(&storm, fd < 0 || holds(fd, "f"), fd);
		inside += fd >= 0;
		refused += fd < 0;
	}
	storm_end(&storm);
	assert_true(inside > 0 && refused > 0);
}

static void a_directory_swapped_for_a_link_to_the_root_never_leads_out(void **state)
{
	(void)state;
	open_while_swapped("/", -ENOENT, LONG_US); /* the view's own */
}

/* With the same names below it. */
static void a_directory_swapped_for_a_link_to_a_twin_never_leads_out(void **state)
{
	(void)state;
	open_while_swapped(host("secret"), -EACCES, SHORT_US);
}

static void a_new_file_is_never_made_outside(void **state)
{
	gint64 began_us = g_get_monotonic_time();
	int inside = 0, refused = 0;
	Storm storm;

	(void)state;
	put_link(host("secret"), "ws/link");
	storm_begin(&storm, swap_directory_and_link);
	for (int i = 0; goes_on(i, began_us, SHORT_US, inside > 0 && refused > 0); i++) {
		g_autofree char *path = g_strdup_printf("dir/new%d", i % 100);
		FD_AUTO fd = path_resolver_open(resolver, path, O_WRONLY | O_CREAT, 0644, NULL);

		check(&storm, fd >= 0 || fd == -EACCES, fd);
		inside += fd >= 0;
		refused += fd < 0;
	}
	storm_end(&storm);
	for (int i = 0; i < 100; i++) {
		g_autofree char *name = g_strdup_printf("secret/new%d", i);

		assert_false(exists(name));
	}
	assert_true(inside > 0 && refused > 0);
}

/* The name of a new file becomes a link to what must not be written. */
static void put_and_take_link(unsigned int round)
{
	/* Who is faster here does not matter. */
	if (round % 2)
		(void)unlink(host("ws/dir/name"));
	else
		(void)!symlink(host("secret/f"), host("ws/dir/name"));
}

static void a_link_that_appears_is_not_written_through(void **state)
{
	gint64 began_us = g_get_monotonic_time();
	g_autofree char *text = NULL;
	int made = 0, refused = 0;
	Storm storm;

	(void)state;
	storm_begin(&storm, put_and_take_link);
	for (int i = 0; goes_on(i, began_us, SHORT_US, made > 0 && refused > 0); i++) {
		FD_AUTO fd = path_resolver_open(resolver, "dir/name", O_WRONLY | O_CREAT | O_TRUNC,
						0644, NULL);

		/* ESTALE: each of many tries has met the link at the wrong moment. */
		check(&storm, fd >= 0 || fd == -EACCES || fd == -ESTALE, fd);
		made += fd >= 0;
		refused += fd == -EACCES;
	}
	storm_end(&storm);
	text = text_of("secret/f");
	assert_string_equal(text, "secret");
	assert_true(made > 0 && refused > 0);
}

/* "a/b/c/../../.." is the workspace, and with b moved up, by the host's "..", the directory above it. */
static void move_up_and_down(unsigned int round)
{
	const char *deep = host("ws/a/b"), *up = host("ws/b");

	g_assert_cmpint(round % 2 ? rename(up, deep) : rename(deep, up), ==, 0);
}

static void a_directory_moved_up_below_dots_never_leads_out(void **state)
{
	g_autofree char *out = g_strconcat("a/b/c/../../../../..", host("secret/f"), NULL);
	gint64 began_us = g_get_monotonic_time();
	int inside = 0, absent = 0;
	Storm storm;

	(void)state;
	assert_int_equal(g_mkdir_with_parents(host("ws/a/b/c"), 0755), 0);
	put_file("f", "outside");
	put_file("ws/f", "inside");
	storm_begin(&storm, move_up_and_down);
	for (int i = 0; goes_on(i, began_us, SHORT_US, inside > 0 && absent > 0); i++) {
		FD_AUTO fd = path_resolver_open(resolver, "a/b/c/../../../f", O_RDONLY, 0, NULL);
		FD_AUTO bad = path_resolver_open(resolver, out, O_RDONLY, 0, NULL);

		check(&storm, fd >= 0 || fd == -ENOENT, fd);
		check(&storm, bad == -ENOENT, bad);
		check(&storm, fd < 0 || holds(fd, "inside"), fd);
		inside += fd >= 0;
		absent += fd < 0;
	}
	storm_end(&storm);
	assert_true(inside > 0 && absent > 0);
}

/* What is read-only by its identity is so under every name. */
static void swap_with_read_only(unsigned int round)
{
	(void)round;
	swap("ws/dir", "ws/inner");
}

static void a_read_only_directory_under_another_name_is_not_written(void **state)
{
	gint64 began_us = g_get_monotonic_time();
	g_autofree char *text = NULL;
	int written = 0, refused = 0;
	Storm storm;

	(void)state;
	assert_int_equal(g_mkdir_with_parents(host("ws/inner/sub/x"), 0755), 0);
	assert_int_equal(g_mkdir_with_parents(host("ws/dir/sub/x"), 0755), 0);
	storm_begin(&storm, swap_with_read_only);
	for (int i = 0; goes_on(i, began_us, SHORT_US, written > 0 && refused > 0); i++) {
		FD_AUTO fd = path_resolver_open(resolver, i % 2 ? "dir/f" : "dir/sub/x/../../f",
						O_WRONLY | O_TRUNC, 0, NULL);

		check(&storm, fd >= 0 || fd == -EROFS, fd);
		written += fd >= 0;
		refused += fd < 0;
	}
	storm_end(&storm); /* after an even number of exchanges: where they were */
	text = text_of("ws/inner/f");
	assert_string_equal(text, "inner");
	assert_true(written > 0 && refused > 0);
}

static void rename_elsewhere(unsigned int round)
{
	const char *deep = host("user/a/b"), *up = host("user/b");

	g_assert_cmpint(round % 2 ? rename(up, deep) : rename(deep, up), ==, 0);
}

static void renames_elsewhere_are_no_errors(void **state)
{
	gint64 began_us = g_get_monotonic_time();
	Storm storm;

	(void)state;
	assert_int_equal(g_mkdir_with_parents(host("user/a/b"), 0755), 0);
	storm_begin(&storm, rename_elsewhere);
	for (int i = 0; goes_on(i, began_us, SHORT_US, true); i++) {
		FD_AUTO fd = path_resolver_open(resolver, "dir/sub/../../dir/f", O_RDONLY, 0, NULL);
		PathResolved resolved;
		int r;

		check(&storm, fd >= 0, fd);
		r = path_resolver_resolve(resolver, "dir/f", true, &resolved, NULL);
		check(&storm, r == 0, r);
		path_resolved_clear(&resolved);
	}
	storm_end(&storm);
}

/* A FIFO in the place of a file: it is not opened, let alone waited for. */
static void swap_file_and_fifo(unsigned int round)
{
	(void)round;
	swap("ws/dir/f", "ws/fifo");
}

static void a_file_swapped_for_a_fifo_is_not_waited_for(void **state)
{
	gint64 began_us = g_get_monotonic_time();
	int opened = 0, refused = 0;
	Storm storm;

	(void)state;
	assert_int_equal(mkfifo(host("ws/fifo"), 0666), 0);
	storm_begin(&storm, swap_file_and_fifo);
	for (int i = 0; goes_on(i, began_us, SHORT_US, opened > 0 && refused > 0); i++) {
		FD_AUTO fd =
			path_resolver_open(resolver, "dir/f", i % 2 ? O_RDONLY : O_WRONLY, 0, NULL);
		struct stat st;

		check(&storm, fd >= 0 || fd == -ENXIO, fd);
		check(&storm, fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)), fd);
		opened += fd >= 0;
		refused += fd < 0;
	}
	storm_end(&storm);
	assert_true(opened > 0 && refused > 0);
}

static void *open_often(void *data)
{
	(void)data;
	for (int i = 0; i < 2000; i++) {
		static const char *const paths[] = { "dir/f", "/user/notes", "/opt/stella/x" };
		FD_AUTO fd = path_resolver_open(resolver, paths[i % 3], O_RDONLY, 0, NULL);

		if (fd < 0)
			return GINT_TO_POINTER(1);
	}
	return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
	GThread *threads[4];
	int before = count_fds();

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		threads[i] = g_thread_new("opener", open_often, NULL);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		assert_null(g_thread_join(threads[i]));
	assert_int_equal(count_fds(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_directory_swapped_for_a_link_to_the_root_never_leads_out),
		TEST(a_directory_swapped_for_a_link_to_a_twin_never_leads_out),
		TEST(a_new_file_is_never_made_outside),
		TEST(a_link_that_appears_is_not_written_through),
		TEST(a_directory_moved_up_below_dots_never_leads_out),
		TEST(a_read_only_directory_under_another_name_is_not_written),
		TEST(renames_elsewhere_are_no_errors),
		TEST(a_file_swapped_for_a_fifo_is_not_waited_for),
		TEST(threads_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
