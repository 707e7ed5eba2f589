/* Races against the walk: while one side exchanges a directory and a link that leads out, or moves directories
 * away, the other side opens, reads, creates and removes below that name through the view. However the
 * kernel interleaves them, nothing outside is read and nothing outside changes. Bounded by time. */
#include "lib/preflight.h"
#include "lib/view-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RACE_SECONDS 10
#define CANARY	     "outside canary"

typedef struct {
	const char *swap_dir; /* where "d" and "evil" are exchanged */
	const char *view_dir; /* where the other side works: the same directory in the view */
	atomic_bool stop;
	atomic_ulong swaps;
	atomic_ulong reads;   /* of the inside file */
	atomic_ulong escapes; /* of the outside one */
} Race;

static void *swapper(void *data)
{
	Race *race = data;
	int dir = open(race->swap_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (!atomic_load(&race->stop))
		if (renameat2(dir, "d", dir, "evil", RENAME_EXCHANGE) == 0)
			race->swaps++;
	close(dir);
	return NULL;
}

static void look(Race *race, int fd)
{
	char text[64] = "";

	if (read(fd, text, sizeof text - 1) > 0) {
		if (strcmp(text, CANARY) == 0)
			race->escapes++;
		else
			race->reads++;
	}
	close(fd);
}

/* Everything that takes a path, below the name that is being exchanged. */
static void *worker(void *data)
{
	Race *race = data;
	int dir = open(race->view_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (!atomic_load(&race->stop)) {
		int fd = openat(dir, "d/x", O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			look(race, fd);
		fd = openat(dir, "d/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0) {
			(void)!write(fd, "w", 1);
			close(fd);
		}
		(void)!fchmodat(dir, "d/x", 0600, 0);
		(void)!utimensat(dir, "d/x", NULL, 0);
		(void)!mkdirat(dir, "d/dir", 0755);
		(void)!renameat(dir, "d/new", dir, "d/newer");
		(void)!linkat(dir, "d/x", dir, "d/hard", 0);
		(void)!symlinkat("t", dir, "d/sym");
		(void)!unlinkat(dir, "d/newer", 0);
		(void)!unlinkat(dir, "d/hard", 0);
		(void)!unlinkat(dir, "d/sym", 0);
		(void)!unlinkat(dir, "d/dir", AT_REMOVEDIR);
		/* Never the canary's own name: on the inside it has to stay for the reads. */
	}
	close(dir);
	return NULL;
}

static void run_race(Race *race)
{
	const struct timespec time = { .tv_sec = RACE_SECONDS };
	pthread_t threads[3];

	pthread_create(&threads[0], NULL, swapper, race);
	pthread_create(&threads[1], NULL, worker, race);
	pthread_create(&threads[2], NULL, worker, race);
	nanosleep(&time, NULL); /* the length of the race, not a wait for an event */
	atomic_store(&race->stop, true);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		pthread_join(threads[i], NULL);
	print_message("%lu exchanges, %lu reads inside, %lu outside\n", race->swaps, race->reads,
		      race->escapes);
	assert_true(race->swaps > 100);
	assert_true(race->reads > 0); /* else the race tests nothing */
	assert_int_equal(race->escapes, 0);
}

static void exchange_race(const char *link_text, bool swap_in_view)
{
	ViewFixture *fixture = view_fixture_new();
	g_autofree char *ws = view_fixture_path(fixture, "ws");
	g_autofree char *outside = view_fixture_path(fixture, "outside");
	g_autofree char *view = g_build_filename(fixture->mountpoint, "workspace", NULL);
	g_autofree char *text = link_text ? g_strdup(link_text) : g_strdup(outside);
	g_autofree char *evil = view_fixture_path(fixture, "ws/evil");
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;
	Race race = { .swap_dir = swap_in_view ? view : ws, .view_dir = view };

	view_fixture_mkdir(fixture, "ws");
	view_fixture_mkdir(fixture, "ws/d");
	view_fixture_write(fixture, "ws/d/x", "inside");
	view_fixture_mkdir(fixture, "outside");
	view_fixture_write(fixture, "outside/x", CANARY);
	assert_int_equal(symlink(text, evil), 0);
	before = tree_snapshot(outside);
	view_fixture_mount(fixture, (const char *const[]){ "--workspace", ws, NULL });
	run_race(&race);
	after = tree_snapshot(outside);
	assert_string_equal(before, after);
	view_fixture_free(fixture);
}

static void host_swaps_directory_and_absolute_link_nothing_escapes(void **state)
{
	(void)state;
	exchange_race(NULL, false);
}

static void agent_swaps_directory_and_climbing_link_nothing_escapes(void **state)
{
	(void)state;
	exchange_race("../outside", true);
}

/* A directory that the view's user is in, moved out of the mount by the host. */
static void moved_out_directory_neither_leads_out_nor_changes(void **state)
{
	ViewFixture *fixture = view_fixture_new();
	g_autofree char *ws = view_fixture_path(fixture, "ws");
	g_autofree char *inside = view_fixture_path(fixture, "ws/a/e");
	g_autofree char *outside = view_fixture_path(fixture, "outside/e");
	g_autofree char *view = g_build_filename(fixture->mountpoint, "workspace/a/e", NULL);
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;
	struct stat st;
	int dir;

	(void)state;
	view_fixture_mkdir(fixture, "ws");
	view_fixture_mkdir(fixture, "ws/a");
	view_fixture_mkdir(fixture, "ws/a/e");
	view_fixture_write(fixture, "ws/a/e/f", "in e");
	view_fixture_mkdir(fixture, "outside");
	view_fixture_write(fixture, "outside/canary", CANARY);
	view_fixture_mount(fixture, (const char *const[]){ "--workspace", ws, NULL });
	dir = open(view, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	assert_int_equal(faccessat(dir, "f", F_OK, 0), 0);
	assert_int_equal(mkdirat(dir, "twin", 0755), 0); /* as long as it is inside, it works */

	assert_int_equal(rename(inside, outside), 0);
	before = tree_snapshot(outside);
	assert_int_equal(openat(dir, "../canary", O_RDONLY), -1);
	assert_int_equal(mkdirat(dir, "new", 0755), -1);
	assert_int_equal(errno, ESTALE);
	assert_int_equal(openat(dir, "new", O_WRONLY | O_CREAT, 0644), -1);
	assert_int_equal(errno, ESTALE);
	assert_int_equal(symlinkat("x", dir, "new"), -1);
	assert_int_equal(renameat(dir, "f", dir, "g"), -1);
	assert_int_equal(unlinkat(dir, "f", 0), -1);
	assert_int_equal(unlinkat(dir, "twin", AT_REMOVEDIR), -1);
	assert_int_equal(fstatat(dir, "../../../outside/canary", &st, 0), -1);
	after = tree_snapshot(outside);
	assert_string_equal(before, after);
	close(dir);
	view_fixture_free(fixture);
}

/* Between a lookup that found nothing and the create, the host puts a link there. */
static void planted_link_is_not_created_through(void **state)
{
	ViewFixture *fixture = view_fixture_new();
	g_autofree char *ws = view_fixture_path(fixture, "ws");
	g_autofree char *planted = view_fixture_path(fixture, "ws/new");
	g_autofree char *target = view_fixture_path(fixture, "outside/made");
	g_autofree char *name = g_build_filename(fixture->mountpoint, "workspace/new", NULL);
	g_autofree char *twin = g_build_filename(fixture->mountpoint, "workspace/twin", NULL);
	int fd;

	(void)state;
	view_fixture_mkdir(fixture, "ws");
	view_fixture_mkdir(fixture, "outside");
	view_fixture_mount(fixture, (const char *const[]){ "--workspace", ws, NULL });
	assert_int_equal(access(name, F_OK), -1); /* now the kernel knows that there is none */
	assert_int_equal(symlink(target, planted), 0);
	assert_int_equal(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(access(twin, F_OK), -1);
	fd = open(twin, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	view_fixture_free(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_swaps_directory_and_absolute_link_nothing_escapes),
		cmocka_unit_test(agent_swaps_directory_and_climbing_link_nothing_escapes),
		cmocka_unit_test(moved_out_directory_neither_leads_out_nor_changes),
		cmocka_unit_test(planted_link_is_not_created_through),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
