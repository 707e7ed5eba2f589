/* A source that hangs, as a network file system does: the other mounts of the view keep answering, whoever waits can be
 * killed, and when it goes on everything does. A test that failed would wait for ever; so each has an alarm. */
#include "common/program-path.h"
#include "lib/hang-fixture.h"
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

/* More than the gateway has threads. */
#define MANY 40
/* How long an answer may take at the most; it takes well below a millisecond when nothing else runs. */
#define ANSWER_MS 1000
#define KILL_MS	  2000
#define ALARM_S	  60

/* /workspace is an ordinary directory, /hung is hang-fs. */
typedef struct {
	ViewFixture *view;
	HangFs fs;
	char *hung_path; /* in the view */
	char *workspace; /* in the view */
} Hung;

static int set_up(void **state)
{
	Hung *h = g_new0(Hung, 1);
	g_autofree char *ws = NULL;
	g_autofree char *host = NULL;
	g_autofree char *mount_text = NULL;

	alarm(ALARM_S); /* its end is the end of hang-fs too, and so of every wait */
	h->view = view_fixture_new();
	ws = view_fixture_path(h->view, "ws");
	host = view_fixture_path(h->view, "host");
	mount_text = g_strconcat(host, ":/hung", NULL);
	h->hung_path = g_build_filename(h->view->mountpoint, "hung", NULL);
	h->workspace = g_build_filename(h->view->mountpoint, "workspace", NULL);
	view_fixture_mkdir(h->view, "ws");
	view_fixture_mkdir(h->view, "host");
	view_fixture_write(h->view, "ws/there", "text");
	h->fs = hang_fs_start(host);
	view_fixture_mount(h->view,
			   (const char *const[]){ "--workspace", ws, "--rw", mount_text, NULL });
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	Hung *h = *state;

	if (h->fs.pid)
		hang_fs_stop(&h->fs);
	view_fixture_free(h->view);
	g_free(h->hung_path);
	g_free(h->workspace);
	g_free(h);
	alarm(0);
	return 0;
}

/* --- those who wait --- */

static int wait_in_lookup(const char *dir)
{
	g_autofree char *path = g_build_filename(dir, "9", NULL);
	struct stat st;

	return result_of(stat(path, &st));
}

static int wait_in_open(const char *dir)
{
	g_autofree char *path = g_build_filename(dir, "8", NULL);

	return result_of(open(path, O_RDWR | O_CLOEXEC));
}

static int wait_in_listing(const char *dir)
{
	return result_of(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) || wait_in_lookup(dir);
}

static int wait_in_statfs(const char *dir)
{
	struct statvfs st;

	return result_of(statvfs(dir, &st)) || wait_in_lookup(dir);
}

static int wait_in_create(const char *dir)
{
	g_autofree char *path = g_build_filename(dir, "new", NULL);
	int error = result_of(mkdir(path, 0755));

	return error == ENOSYS || error == EOPNOTSUPP || error == EPERM ? 0 : error;
}

static int (*const ways_to_wait[])(const char *dir) = {
	wait_in_lookup, wait_in_open, wait_in_listing, wait_in_statfs, wait_in_create,
};

/* Waits with a file that was opened before; not in the table, which has no fd. */
static int wait_in_read(int fd)
{
	char byte;

	return pread(fd, &byte, 1, 0) == 1 ? 0 : errno;
}

static int wait_in_write(int fd)
{
	return pwrite(fd, "x", 1, 0) == 1 ? 0 : errno;
}

static int open_file(const Hung *h, const char *name)
{
	g_autofree char *path = g_build_filename(h->hung_path, name, NULL);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_DIRECT);

	assert_true(fd >= 0);
	return fd;
}

static void start_waiters(const Hung *h, pid_t *pids, int count)
{
	for (int i = 0; i < count; i++) {
		pids[i] = fork_helper();
		if (pids[i] == 0)
			_exit(ways_to_wait[i % (int)G_N_ELEMENTS(ways_to_wait)](h->hung_path));
	}
}

/* In the kernel's wait for an answer; by then nothing of the process's own is left to run. */
static bool all_wait(void *data)
{
	const pid_t *pids = data;

	for (; *pids; pids++) {
		g_autofree char *path = g_strdup_printf("/proc/%d/wchan", *pids);
		g_autofree char *text = NULL;

		if (!g_file_get_contents(path, &text, NULL, NULL) || strcmp(text, "0") == 0 ||
		    *text == '\0')
			return false;
	}
	return true;
}

/* --- those who do not --- */

static void assert_answers(const Hung *h)
{
	g_autofree char *there = g_build_filename(h->workspace, "there", NULL);
	g_autofree char *made = g_build_filename(h->workspace, "made", NULL);
	char text[8];
	struct stat st;

	for (int i = 0; i < 20; i++) {
		long long start = now_ms();
		int fd = open(there, O_RDWR | O_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(pread(fd, text, 4, 0), 4);
		assert_int_equal(pwrite(fd, "text", 4, 0), 4);
		close(fd);
		assert_int_equal(mkdir(made, 0755), 0);
		assert_int_equal(rmdir(made), 0);
		assert_int_equal(stat(h->workspace, &st), 0);
		assert_in_range(now_ms() - start, 0, ANSWER_MS);
	}
}

/* All first: some wait for the answer that another one has asked for. */
static void kill_and_wait(const pid_t *pids)
{
	for (size_t i = 0; pids[i]; i++)
		kill(pids[i], SIGKILL);
	for (size_t i = 0; pids[i]; i++) {
		int status = wait_for_child(pids[i], KILL_MS);

		assert_int_not_equal(status, -1);
		assert_true(WIFSIGNALED(status));
	}
}

static void one_who_waits_does_not_stop_the_other_mount(void **state)
{
	Hung *h = *state;
	pid_t pids[6] = { 0 };

	hang_fs_hang(&h->fs);
	start_waiters(h, pids, 5);
	assert_true(wait_until(all_wait, pids, 5000));
	assert_answers(h);
	hang_fs_go_on(&h->fs);
	for (int i = 0; i < 5; i++)
		assert_int_equal(wait_for_child(pids[i], 10000), 0);
	assert_answers(h);
}

/* Its server dies: nobody waits any more. */
static void the_death_of_a_hung_source_ends_all_waits(void **state)
{
	Hung *h = *state;
	pid_t pids[6] = { 0 };

	hang_fs_hang(&h->fs);
	start_waiters(h, pids, 5);
	assert_true(wait_until(all_wait, pids, 5000));
	hang_fs_stop(&h->fs);
	h->fs.pid = 0;
	for (int i = 0; i < 5; i++)
		assert_int_not_equal(wait_for_child(pids[i], 10000), -1);
	assert_answers(h);
}

static void more_who_wait_than_there_are_threads_do_not_stop_the_other_mount(void **state)
{
	Hung *h = *state;
	pid_t pids[MANY + 1] = { 0 };

	hang_fs_hang(&h->fs);
	start_waiters(h, pids, MANY);
	assert_true(wait_until(all_wait, pids, 5000));
	assert_answers(h);
	hang_fs_go_on(&h->fs);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(wait_for_child(pids[i], 10000), 0);
	assert_answers(h);
}

static void who_waits_can_be_killed(void **state)
{
	Hung *h = *state;
	pid_t pids[MANY + 1] = { 0 };

	hang_fs_hang(&h->fs);
	start_waiters(h, pids, MANY);
	assert_true(wait_until(all_wait, pids, 5000));
	kill_and_wait(pids);
	/* Nobody is told any more, but the gateway still has to get its answers. */
	assert_answers(h);
	hang_fs_go_on(&h->fs);
	assert_int_equal(wait_in_lookup(h->hung_path), 0);
	assert_answers(h);
}

static void readers_and_writers_can_be_killed(void **state)
{
	Hung *h = *state;
	int fd = open_file(h, "5");
	pid_t pids[3] = { 0 };

	hang_fs_hang(&h->fs);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork_helper();
		if (pids[i] == 0)
			_exit(i ? wait_in_read(fd) : wait_in_write(fd));
	}
	assert_true(wait_until(all_wait, pids, 5000));
	kill_and_wait(pids);
	hang_fs_go_on(&h->fs);
	assert_int_equal(wait_in_read(fd), 0);
	assert_int_equal(wait_in_write(fd), 0);
	close(fd);
}

/* How many inodes the gateway has, as it tells who asks for its status. */
static long count_inodes(const Hung *h)
{
	g_autofree char *program = program_path("stella-fsgate");
	const char *argv[] = { program, "status", "--json", h->view->mountpoint, NULL };
	g_autofree char *out = NULL;
	const char *at;

	assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL,
				 &out, NULL, NULL, NULL));
	at = strstr(out, "\"inodes\"");
	assert_non_null(at);
	at += strcspn(at, "0123456789");
	return strtol(at, NULL, 10);
}

typedef struct {
	const Hung *h;
	long inodes;
} Expected;

static bool has_so_many(void *data)
{
	const Expected *expected = data;

	return count_inodes(expected->h) == expected->inodes;
}

/* What the kernel did not take it does not give back. */
static void a_listing_that_came_too_late_leaves_nothing(void **state)
{
	Hung *h = *state;
	Expected before = { .h = h };
	pid_t pids[2] = { 0 };
	DIR *dir = opendir(h->hung_path);

	assert_non_null(dir);
	before.inodes = count_inodes(h);
	hang_fs_hang(&h->fs);
	pids[0] = fork_helper();
	if (pids[0] == 0)
		_exit(readdir(dir) == NULL);
	assert_true(wait_until(all_wait, pids, 5000));
	kill_and_wait(pids);
	hang_fs_go_on(&h->fs);
	assert_true(wait_until(has_so_many, &before, 5000));
	/* One that arrives has its names known. */
	assert_non_null(readdir(dir));
	assert_true(count_inodes(h) > before.inodes);
	closedir(dir);
}

static bool is_unmounted(void *data)
{
	const Hung *h = data;
	struct stat st, above;

	return stat(h->view->mountpoint, &st) == 0 && stat(h->view->dir, &above) == 0 &&
	       st.st_dev == above.st_dev;
}

/* The end of the view does not wait for what hangs, though the gateway's process may have to. */
static void a_view_with_a_hung_source_can_be_ended(void **state)
{
	Hung *h = *state;
	pid_t pids[6] = { 0 };

	hang_fs_hang(&h->fs);
	start_waiters(h, pids, 5);
	assert_true(wait_until(all_wait, pids, 5000));
	kill(h->view->gateway, SIGTERM);
	assert_true(wait_until(is_unmounted, h, 5000));
	for (int i = 0; i < 5; i++)
		assert_int_not_equal(wait_for_child(pids[i], KILL_MS), -1);
	hang_fs_go_on(&h->fs);
	view_fixture_unmount(h->view); /* asserts the end within its time, with status 0 */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(one_who_waits_does_not_stop_the_other_mount),
		TEST(the_death_of_a_hung_source_ends_all_waits),
		TEST(more_who_wait_than_there_are_threads_do_not_stop_the_other_mount),
		TEST(who_waits_can_be_killed),
		TEST(readers_and_writers_can_be_killed),
		TEST(a_listing_that_came_too_late_leaves_nothing),
		TEST(a_view_with_a_hung_source_can_be_ended),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
