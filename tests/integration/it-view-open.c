/* The ways in which one file can be open at once: handed to the kernel, through the gateway, for appending, with
 * O_DIRECT, without a name. The kernel takes no mixture (EIO), which no program may ever see. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const int ways[] = {
	O_RDONLY,	   O_RDWR,	     O_WRONLY, O_RDWR | O_APPEND, O_WRONLY | O_APPEND,
	O_RDWR | O_DIRECT, O_RDWR | O_TRUNC,
};
#define N_WAYS G_N_ELEMENTS(ways)

/* Every order of three: what the first decided, the second meets, and the third after the first has gone. */
static void every_order_of_ways_opens_and_works(void **state)
{
	const Workspace *ws = *state;
	_Alignas(4096) static char page[4096];

	memset(page, 'p', sizeof page);
	for (size_t i = 0; i < N_WAYS * N_WAYS * N_WAYS; i++) {
		int first = workspace_open(ws, "f", ways[i % N_WAYS] | O_CREAT);
		int second = workspace_open(ws, "f", ways[i / N_WAYS % N_WAYS]);
		int third;

		assert_true(first >= 0 && second >= 0);
		close(first);
		third = workspace_open(ws, "f", ways[i / N_WAYS / N_WAYS]);
		assert_true(third >= 0);
		if ((ways[i / N_WAYS / N_WAYS] & O_ACCMODE) != O_RDONLY) {
			assert_int_equal(ftruncate(third, 0), 0);
			assert_int_equal(write(third, page, sizeof page), sizeof page);
			workspace_assert_host(ws, "f", page, sizeof page);
		}
		close(second);
		close(third);
	}
}

typedef struct {
	const Workspace *ws;
	unsigned int seed;
	int error; /* the first that no file system gives for this */
} Opener;

#define ROUNDS 4000

static void *open_again_and_again(void *data)
{
	Opener *opener = data;
	char text[4];

	for (int i = 0; i < ROUNDS && !opener->error; i++) {
		int way = ways[(unsigned int)rand_r(&opener->seed) % N_WAYS];
		int fd = workspace_open(opener->ws, "g", way & ~O_DIRECT);

		if (fd < 0) {
			opener->error = errno;
			break;
		}
		if ((way & O_ACCMODE) != O_WRONLY && pread(fd, text, sizeof text, 0) < 0)
			opener->error = errno;
		if ((way & O_ACCMODE) != O_RDONLY && pwrite(fd, "text", 4, 0) != 4)
			opener->error = errno;
		close(fd);
	}
	return NULL;
}

static void opening_by_many_at_once_never_fails(void **state)
{
	const Workspace *ws = *state;
	Opener openers[4];
	pthread_t threads[G_N_ELEMENTS(openers)];
	int fd = workspace_open(ws, "g", O_RDWR | O_CREAT);

	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < G_N_ELEMENTS(openers); i++) {
		openers[i] = (Opener){ .ws = ws, .seed = (unsigned int)i };
		assert_int_equal(
			pthread_create(&threads[i], NULL, open_again_and_again, &openers[i]), 0);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(openers); i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(openers[i].error, 0);
	}
}

/* What the host writes is in the open file and in its mapping, without opening again, and the reverse. On a gateway
 * without passthrough the mapping follows at the next open or stat (SPEC), so only that is asked for there. */
static void both_sides_see_one_file(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *host_path = workspace_host(ws, "shared");
	int fd = workspace_open(ws, "shared", O_RDWR | O_CREAT), host;
	char *map, text[5] = { 0 };
	struct stat st;

	assert_int_equal(write(fd, "0000", 4), 4);
	map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_memory_equal(map, "0000", 4);
	host = open(host_path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(host, "1111", 4, 0), 4);
	assert_int_equal(fstat(fd, &st), 0);
	close(workspace_open(ws, "shared", O_RDONLY));
	assert_int_equal(pread(fd, text, 4, 0), 4);
	assert_string_equal(text, "1111");
	assert_memory_equal(map, "1111", 4);
	memcpy(map, "2222", 4);
	assert_int_equal(msync(map, 4, MS_SYNC), 0);
	assert_int_equal(pread(host, text, 4, 0), 4);
	assert_string_equal(text, "2222");
	munmap(map, 4);
	close(host);
	close(fd);
}

static void unnamed_file_that_is_exclusive_stays_unnamed(void **state)
{
	const Workspace *ws = *state;
	int fd = open(ws->inside, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	g_autofree char *name = workspace_inside(ws, "never");
	g_autofree char *host = workspace_host(ws, "never");
	char path[32];

	if (fd < 0) {
		assert_int_equal(errno, EOPNOTSUPP);
		return;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	assert_int_equal(linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(access(host, F_OK), -1);
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_order_of_ways_opens_and_works),
		TEST(opening_by_many_at_once_never_fails),
		TEST(both_sides_see_one_file),
		TEST(unnamed_file_that_is_exclusive_stays_unnamed),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
