/* Many files, with the least number of fds that a gateway accepts (a hard limit of 1,024): looking up never fails for
 * want of them, opening does only beyond a budget and with its own error, and works again afterwards; neither
 * fds nor memory grow with what was looked at. */
#include "common/sanitizers.h"
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FD_LIMIT	 1024
#define FILES		 30000
#define FILES_A_DIR	 500
#define OPENERS		 4 /* each has a limit of its own */
#define OPEN_EACH	 500
#define INODE_BYTES_MOST 1024 /* README: what an idle inode may cost, with room for the allocator */

/* Sanitizers keep what was freed, and put space around what was not. */
#define MEMORY_IS_OURS (!WITH_SANITIZER)

/* Files that come and go: so many at once, so often, before memory is looked at and after. */
#define AT_ONCE		3000
#define WARM_UP_ROUNDS	(MEMORY_IS_OURS ? 20 : 2)
#define ROUNDS		(MEMORY_IS_OURS ? 60 : 3)
#define LOST_BYTES_MOST ((size_t)16)

static void make_tree(const Workspace *ws)
{
	for (int i = 0; i < FILES / FILES_A_DIR; i++) {
		g_autofree char *name = g_strdup_printf("d%d", i);
		g_autofree char *path = workspace_host(ws, name);
		int dir;

		assert_int_equal(mkdir(path, 0755), 0);
		dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (int k = 0; k < FILES_A_DIR; k++) {
			char file[32];

			snprintf(file, sizeof file, "f%d", k);
			assert_int_equal(mknodat(dir, file, S_IFREG | 0644, 0), 0);
		}
		close(dir);
	}
}

static int count_gateway_fds(const Workspace *ws)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/fd", ws->view->gateway);
	DIR *dir = opendir(path);
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* Of the gateway, in bytes: what it has in memory of its own. */
static size_t gateway_memory(const Workspace *ws)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", ws->view->gateway);
	g_autofree char *text = NULL;
	const char *line;

	assert_true(g_file_get_contents(path, &text, NULL, NULL));
	line = strstr(text, "RssAnon:");
	assert_non_null(line);
	return strtoul(line + strlen("RssAnon:"), NULL, 10) * 1024;
}

static int look_at_all(const Workspace *ws, int *ret_fds_most)
{
	int failed = 0;

	*ret_fds_most = 0;
	for (int i = 0; i < FILES; i++) {
		g_autofree char *name =
			g_strdup_printf("d%d/f%d", i / FILES_A_DIR, i % FILES_A_DIR);
		g_autofree char *path = workspace_inside(ws, name);
		struct stat st;

		failed += stat(path, &st) != 0;
		if (i % 1000 == 0)
			*ret_fds_most = MAX(*ret_fds_most, count_gateway_fds(ws));
	}
	return failed;
}

static void thirty_thousand_files_are_found_with_few_fds_and_little_memory(void **state)
{
	const Workspace *ws = *state;
	size_t before, after;
	int fds;

	make_tree(ws);
	before = gateway_memory(ws);
	assert_int_equal(look_at_all(ws, &fds), 0);
	after = gateway_memory(ws);
	print_message("%d fds at the most, %zu bytes an inode\n", fds, (after - before) / FILES);
	assert_in_range(fds, 1, FD_LIMIT / 2);
	if (MEMORY_IS_OURS)
		assert_in_range((after - before) / FILES, 0, INODE_BYTES_MOST);
	/* And again, when most of their fds have been closed meanwhile. */
	assert_int_equal(look_at_all(ws, &fds), 0);
	assert_in_range(fds, 1, FD_LIMIT / 2);
}

/* Makes and removes AT_ONCE files, "rounds" times over. */
static void come_and_go(int dir, int rounds)
{
	for (int pass = 0; pass < rounds * 2; pass++)
		for (int i = 0; i < AT_ONCE; i++) {
			char name[32];

			snprintf(name, sizeof name, "f%d", i);
			assert_int_equal(pass % 2 ? unlinkat(dir, name, 0)
						  : mknodat(dir, name, S_IFREG | 0644, 0),
					 0);
		}
}

/*
 * Files that come and go leave nothing behind. The allocator's own keep is
 * no leak: it grows by 1 to 2 MiB, less with every round, until each thread's
 * arena has seen its worst moment. So the files are many enough that the
 * smallest block that malloc hands out (32 bytes), lost once a file, is
 * twice as much as that.
 */
static void memory_does_not_grow_with_what_was_removed(void **state)
{
	const Workspace *ws = *state;
	int dir = open(ws->inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t before, after;

	come_and_go(dir, WARM_UP_ROUNDS);
	before = gateway_memory(ws);
	come_and_go(dir, ROUNDS);
	after = gateway_memory(ws);
	print_message("%zu KiB, then %zu KiB\n", before / 1024, after / 1024);
	if (MEMORY_IS_OURS)
		assert_true(after < before + LOST_BYTES_MOST * AT_ONCE * ROUNDS);
	close(dir);
}

/* --- open files --- */

typedef struct {
	int opened;
	int refused; /* with ENFILE */
	int other;   /* refused in some other way */
} Count;

/* Opens OPEN_EACH files and keeps them until it is told to end. */
static G_GNUC_NORETURN void hold_files(const Workspace *ws, int which, int report, int end)
{
	Count count = { 0 };
	char byte;

	for (int i = 0; i < OPEN_EACH; i++) {
		g_autofree char *name = g_strdup_printf("h%d", which * OPEN_EACH + i);

		if (workspace_open(ws, name, O_RDWR) >= 0)
			count.opened++;
		else if (errno == ENFILE)
			count.refused++;
		else
			count.other++;
	}
	(void)!write(report, &count, sizeof count);
	(void)!read(end, &byte, 1);
	_exit(0);
}

static void make_held_files(const Workspace *ws)
{
	for (int i = 0; i < OPENERS * OPEN_EACH; i++) {
		g_autofree char *name = g_strdup_printf("h%d", i);
		g_autofree char *path = workspace_host(ws, name);

		assert_int_equal(mknod(path, S_IFREG | 0644, 0), 0);
	}
}

static void assert_works_at_the_limit(const Workspace *ws)
{
	int dir = open(ws->inside, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	assert_true(dir >= 0);
	for (int i = 0; i < OPENERS * OPEN_EACH; i++) {
		char name[32];

		snprintf(name, sizeof name, "h%d", i);
		assert_int_equal(fstatat(dir, name, &st, 0), 0);
	}
	/* Names are made, moved and removed without any open file. */
	assert_int_equal(mkdirat(dir, "made", 0755), 0);
	assert_int_equal(mknodat(dir, "made/f", S_IFREG | 0644, 0), 0);
	assert_int_equal(renameat(dir, "made/f", dir, "made/g"), 0);
	assert_int_equal(fchmodat(dir, "made/g", 0600, 0), 0);
	assert_int_equal(symlinkat("g", dir, "made/l"), 0);
	assert_int_equal(fstatat(dir, "made/l", &st, 0), 0);
	assert_int_equal(unlinkat(dir, "made/g", 0), 0);
	/* What has to be opened is refused for the one reason there is. */
	assert_int_equal(result_of(openat(dir, "new", O_WRONLY | O_CREAT, 0644)), ENFILE);
	assert_int_equal(result_of(fstatat(dir, "new", &st, 0)), ENOENT);
	assert_int_equal(result_of(openat(dir, "made", O_RDONLY | O_DIRECTORY)), ENFILE);
	close(dir);
}

static bool can_open(void *data)
{
	int fd = workspace_open(data, "h0", O_RDWR);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void opens_beyond_the_budget_are_refused_and_work_again(void **state)
{
	Workspace *ws = *state;
	int report[2], end[2], opened = 0, refused = 0;
	pid_t holders[OPENERS];

	make_held_files(ws);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(pipe2(report, O_CLOEXEC), 0);
		assert_int_equal(pipe2(end, O_CLOEXEC), 0);
		opened = refused = 0;
		for (int i = 0; i < OPENERS; i++) {
			Count count;

			holders[i] = fork_helper();
			if (holders[i] == 0) {
				close(end[1]);
				hold_files(ws, i, report[1], end[0]);
			}
			assert_int_equal(read(report[0], &count, sizeof count), sizeof count);
			assert_int_equal(count.other, 0);
			opened += count.opened;
			refused += count.refused;
		}
		print_message("%d open, %d refused\n", opened, refused);
		assert_int_equal(opened + refused, OPENERS * OPEN_EACH);
		assert_in_range(opened, FD_LIMIT / 4, FD_LIMIT);
		assert_true(count_gateway_fds(ws) < FD_LIMIT);
		if (round == 0)
			assert_works_at_the_limit(ws);
		close(end[1]);
		for (int i = 0; i < OPENERS; i++)
			assert_int_equal(wait_for_child(holders[i], 10000), 0);
		assert_true(wait_until(can_open, ws, 5000));
		close(report[0]);
		close(report[1]);
		close(end[0]);
	}
}

/* Closing is told to the gateway after close() has returned: many that open and close at once must not pile up. */
static G_GNUC_NORETURN void open_and_close(const Workspace *ws, int which)
{
	for (int i = 0; i < 5000; i++) {
		g_autofree char *name =
			g_strdup_printf("h%d", (which * 5000 + i * 7) % (OPENERS * OPEN_EACH));
		int fd = workspace_open(ws, name, O_RDWR);

		if (fd < 0)
			_exit(errno);
		close(fd);
	}
	_exit(0);
}

static void opening_and_closing_fast_never_runs_out(void **state)
{
	const Workspace *ws = *state;
	pid_t pids[OPENERS];
	int most = 0;

	make_held_files(ws);
	for (int i = 0; i < OPENERS; i++) {
		pids[i] = fork_helper();
		if (pids[i] == 0)
			open_and_close(ws, i);
	}
	for (int i = 0; i < OPENERS; i++) {
		int status;

		while ((status = wait_for_child(pids[i], 20)) == -1)
			most = MAX(most, count_gateway_fds(ws));
		assert_int_equal(status, 0);
	}
	print_message("%d fds at the most\n", most);
	assert_true(most < FD_LIMIT);
}

int main(void)
{
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, workspace_set_up_tmpfs, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(thirty_thousand_files_are_found_with_few_fds_and_little_memory),
		TEST(memory_does_not_grow_with_what_was_removed),
		TEST(opens_beyond_the_budget_are_refused_and_work_again),
		TEST(opening_and_closing_fast_never_runs_out),
	};
	const struct rlimit limit = { FD_LIMIT, FD_LIMIT };
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	setrlimit(RLIMIT_NOFILE, &limit);
	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
