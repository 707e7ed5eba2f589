/* Races about names: a parent that is moved, and a file that is replaced, by rename or by a hard link, while others
 * create, open, read and write below; and the directory of a mount, replaced on the host. However the kernel interleaves
 * them, a file is whole, nothing is made outside, and what was acknowledged can be found. Bounded by time. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RACE_SECONDS 10
#define CANARY	     "outside canary"
#define BLOCK	     4096

typedef struct {
	const char *changer; /* the directory in which names are changed */
	const char *worker;  /* the same directory in the view */
	atomic_bool stop;
	atomic_ulong changes;
	atomic_ulong done;     /* by workers, with success */
	atomic_ulong escapes;  /* what was never to be seen */
	atomic_int unexpected; /* an errno that no caller expects */
} Race;

typedef void *(*Body)(void *race);

static void run(Race *race, Body change, Body work)
{
	const struct timespec time = { .tv_sec = RACE_SECONDS };
	pthread_t threads[3];

	pthread_create(&threads[0], NULL, change, race);
	pthread_create(&threads[1], NULL, work, race);
	pthread_create(&threads[2], NULL, work, race);
	nanosleep(&time, NULL); /* the length of the race, not a wait for an event */
	atomic_store(&race->stop, true);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		pthread_join(threads[i], NULL);
	print_message("%lu changes, %lu done, %lu wrong, unexpected %d\n", race->changes,
		      race->done, race->escapes, race->unexpected);
	assert_true(race->changes > 100);
	assert_true(race->done > 100); /* else the race tests nothing */
	assert_int_equal(race->escapes, 0);
	assert_int_equal(race->unexpected, 0);
}

/* What a name that is being changed may answer with. */
static void note_error(Race *race)
{
	static const int expected[] = { ENOENT, ENOTDIR, ESTALE, EEXIST, ELOOP, EACCES };

	for (size_t i = 0; i < G_N_ELEMENTS(expected); i++)
		if (errno == expected[i])
			return;
	atomic_store(&race->unexpected, errno);
}

static int open_changer(const Race *race)
{
	return open(race->changer, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int open_worker(const Race *race)
{
	return open(race->worker, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* --- a parent that is moved while files are made in it --- */

static void *move_parent(void *data)
{
	Race *race = data;
	int dir = open_changer(race);

	while (!atomic_load(&race->stop)) {
		race->changes += renameat(dir, "a/p", dir, "b/p") == 0;
		race->changes += renameat(dir, "b/p", dir, "a/p") == 0;
	}
	close(dir);
	return NULL;
}

static void *make_in_parent(void *data)
{
	static atomic_uint number;
	Race *race = data;
	int dir = open_worker(race);

	while (!atomic_load(&race->stop)) {
		unsigned int n = atomic_fetch_add(&number, 1);
		char path[64], text[32], got[32] = "";
		int fd;

		/* On one side or the other; each file has its own number as its content. */
		snprintf(path, sizeof path, "%c/p/f%u", n % 2 ? 'a' : 'b', n);
		snprintf(text, sizeof text, "%u", n);
		fd = openat(dir, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0) {
			note_error(race);
			continue;
		}
		if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
		    pread(fd, got, sizeof got - 1, 0) < 0 || strcmp(got, text) != 0)
			race->escapes++;
		close(fd);
		race->done++;
		if (unlinkat(dir, path, 0) != 0)
			note_error(race);
	}
	close(dir);
	return NULL;
}

static void parent_race(const Workspace *ws, bool in_view)
{
	Race race = { .changer = in_view ? ws->inside : ws->host, .worker = ws->inside };
	static const char *const dirs[] = { "a", "b", "a/p" };

	for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
		g_autofree char *path = workspace_host(ws, dirs[i]);

		assert_int_equal(mkdir(path, 0755), 0);
	}
	run(&race, move_parent, make_in_parent);
}

static void files_are_made_while_the_host_moves_their_parent(void **state)
{
	parent_race(*state, false);
}

static void files_are_made_while_the_agent_moves_their_parent(void **state)
{
	parent_race(*state, true);
}

/* --- what was just made is exchanged for something of another type --- */

static void *exchange_made(void *data)
{
	Race *race = data;
	int dir = open_changer(race);

	close(openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	while (!atomic_load(&race->stop))
		race->changes += renameat2(dir, "made0", dir, "file", RENAME_EXCHANGE) == 0 ||
				 renameat2(dir, "made1", dir, "file", RENAME_EXCHANGE) == 0;
	close(dir);
	return NULL;
}

static void *make_and_remove(void *data)
{
	static atomic_uint number;
	Race *race = data;
	unsigned int n = atomic_fetch_add(&number, 1) % 2;
	const char *name = n ? "made1" : "made0";
	int dir = open_worker(race);

	while (!atomic_load(&race->stop)) {
		if ((n ? mkdirat(dir, name, 0755) : symlinkat("nowhere", dir, name)) == 0)
			race->done++;
		else
			note_error(race);
		if (unlinkat(dir, name, 0) != 0)
			(void)!unlinkat(dir, name, AT_REMOVEDIR); /* whatever it is now */
	}
	close(dir);
	return NULL;
}

/* A name that holds something else than was made is no error that no caller expects. */
static void what_was_made_is_exchanged_by_the_host(void **state)
{
	const Workspace *ws = *state;
	Race race = { .changer = ws->host, .worker = ws->inside };

	run(&race, exchange_made, make_and_remove);
}

/* --- a file that is replaced while others open it --- */

/* A block of one letter, under the name of a file that everybody opens: by rename and by hard link in turn. */
static void *replace_file(void *data)
{
	Race *race = data;
	int dir = open_changer(race);
	char block[BLOCK];

	for (unsigned int n = 0; !atomic_load(&race->stop); n++) {
		int fd = openat(dir, "next", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		memset(block, 'a' + (int)(n % 26), sizeof block);
		if (fd < 0 || write(fd, block, sizeof block) != sizeof block)
			race->escapes++;
		close(fd);
		if (n % 2) {
			(void)!unlinkat(dir, "hard", 0);
			(void)!linkat(dir, "next", dir, "hard", 0);
			race->changes += renameat(dir, "hard", dir, "f") == 0;
			(void)!unlinkat(dir, "next", 0);
		} else {
			race->changes += renameat(dir, "next", dir, "f") == 0;
		}
	}
	close(dir);
	return NULL;
}

static bool is_whole(const char *block, ssize_t size)
{
	if (size != BLOCK)
		return false;
	for (ssize_t i = 1; i < size; i++)
		if (block[i] != block[0])
			return false;
	return true;
}

static void *read_file(void *data)
{
	Race *race = data;
	int dir = open_worker(race);
	char block[BLOCK + 1];

	while (!atomic_load(&race->stop)) {
		int fd = openat(dir, "f", O_RDONLY | O_CLOEXEC);
		struct stat a, b;

		if (fd < 0) {
			note_error(race);
			continue;
		}
		/* One file, from open to close: its name may be another's by now. */
		if (fstat(fd, &a) != 0 || !is_whole(block, pread(fd, block, sizeof block, 0)) ||
		    fstat(fd, &b) != 0 || a.st_ino != b.st_ino)
			race->escapes++;
		close(fd);
		race->done++;
	}
	close(dir);
	return NULL;
}

static void replace_race(const Workspace *ws, bool in_view)
{
	Race race = { .changer = in_view ? ws->inside : ws->host, .worker = ws->inside };
	g_autofree char *path = workspace_host(ws, "f");
	g_autofree char *block = g_strnfill(BLOCK, 'a');

	assert_true(g_file_set_contents(path, block, BLOCK, NULL));
	run(&race, replace_file, read_file);
}

static void files_are_whole_while_the_host_replaces_them(void **state)
{
	replace_race(*state, false);
}

static void files_are_whole_while_the_agent_replaces_them(void **state)
{
	replace_race(*state, true);
}

/* --- the directory of the mount itself --- */

static void *replace_root(void *data)
{
	Race *race = data;
	int dir = open_changer(race);

	while (!atomic_load(&race->stop))
		race->changes += renameat2(dir, "ws", dir, "evil", RENAME_EXCHANGE) == 0;
	/* as it was, for what comes after */
	if (race->changes % 2)
		(void)!renameat2(dir, "ws", dir, "evil", RENAME_EXCHANGE);
	close(dir);
	return NULL;
}

static void *use_root(void *data)
{
	Race *race = data;
	char text[32];

	while (!atomic_load(&race->stop)) {
		int dir = open(race->worker, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int fd = dir < 0 ? -1 : openat(dir, "x", O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

		text[MAX(n, 0)] = '\0';
		if (fd < 0)
			note_error(race);
		else if (strcmp(text, CANARY) == 0)
			race->escapes++;
		else
			race->done++;
		if (fd >= 0)
			close(fd);
		fd = dir < 0 ? -1 : openat(dir, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0)
			close(fd);
		(void)!renameat(dir, "new", dir, "newer");
		(void)!mkdirat(dir, "dir", 0755);
		(void)!unlinkat(dir, "dir", AT_REMOVEDIR);
		if (dir >= 0)
			close(dir);
	}
	return NULL;
}

static void root_race(const Workspace *ws, bool with_link)
{
	Race race = { .changer = ws->view->dir, .worker = ws->inside };
	g_autofree char *outside = view_fixture_path(ws->view, "outside");
	g_autofree char *evil = view_fixture_path(ws->view, "evil");
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;

	view_fixture_write(ws->view, "ws/x", "inside");
	view_fixture_mkdir(ws->view, with_link ? "outside" : "evil");
	view_fixture_write(ws->view, with_link ? "outside/x" : "evil/x", CANARY);
	if (with_link)
		assert_int_equal(symlink(outside, evil), 0);
	before = tree_snapshot(with_link ? outside : evil);
	run(&race, replace_root, use_root);
	after = tree_snapshot(with_link ? outside : evil);
	if (with_link)
		assert_string_equal(before, after);
	else /* its own ctime is that of the renames */
		assert_string_equal(strchr(before, '\n'), strchr(after, '\n'));
}

static void a_mounted_directory_is_exchanged_for_a_link(void **state)
{
	root_race(*state, true);
}

static void a_mounted_directory_is_exchanged_for_another(void **state)
{
	root_race(*state, false);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(files_are_made_while_the_host_moves_their_parent),
		TEST(files_are_made_while_the_agent_moves_their_parent),
		TEST(what_was_made_is_exchanged_by_the_host),
		TEST(files_are_whole_while_the_host_replaces_them),
		TEST(files_are_whole_while_the_agent_replaces_them),
		TEST(a_mounted_directory_is_exchanged_for_a_link),
		TEST(a_mounted_directory_is_exchanged_for_another),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
