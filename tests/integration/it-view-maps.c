/* Mapped files and cached pages: what one maps, another sees; what the host changes is seen within the promised time and
 * never in halves; a file cut under a map hurts who mapped it and nobody else; programs run from the view. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

/* cache: auto promises one second; the rest is for a busy machine. */
#define SEEN_MS 3000

static char *map_file(int fd, size_t size, int protection)
{
	char *map = mmap(NULL, size, protection, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	return map;
}

static void maps_and_calls_see_each_other(void **state)
{
	const Workspace *ws = *state;
	int fd = workspace_open(ws, "f", O_RDWR | O_CREAT);
	int other = workspace_open(ws, "f", O_RDWR);
	char *map, *second, got[16] = "";

	assert_int_equal(ftruncate(fd, 4096), 0);
	map = map_file(fd, 4096, PROT_READ | PROT_WRITE);
	second = map_file(other, 4096, PROT_READ | PROT_WRITE);
	memcpy(map, "mapped", 6);
	assert_memory_equal(second, "mapped", 6);
	assert_int_equal(pread(other, got, 6, 0), 6);
	assert_memory_equal(got, "mapped", 6);
	assert_int_equal(pwrite(other, "WRITTEN", 7, 0), 7);
	assert_memory_equal(map, "WRITTEN", 7);
	assert_int_equal(msync(map, 4096, MS_SYNC), 0);
	munmap(map, 4096);
	memcpy(second, "last", 4);
	/* Neither msync nor close: the pages are still owed to the file, and a reader gets them. */
	assert_int_equal(pread(fd, got, 4, 0), 4);
	assert_memory_equal(got, "last", 4);
	munmap(second, 4096);
	close(fd);
	close(other);
}

static void what_was_mapped_is_on_the_host_after_msync_and_after_close(void **state)
{
	const Workspace *ws = *state;
	int fd = workspace_open(ws, "f", O_RDWR | O_CREAT);
	char *map;

	assert_int_equal(write(fd, "0123456789", 10), 10);
	map = map_file(fd, 10, PROT_READ | PROT_WRITE);
	memcpy(map, "AB", 2);
	assert_int_equal(msync(map, 10, MS_SYNC), 0);
	workspace_assert_host(ws, "f", "AB23456789", 10);
	memcpy(map + 8, "YZ", 2);
	munmap(map, 10);
	assert_int_equal(close(fd), 0);
	workspace_assert_host(ws, "f", "AB234567YZ", 10);
}

static void a_private_map_changes_nothing(void **state)
{
	const Workspace *ws = *state;
	int fd = workspace_open(ws, "f", O_RDWR | O_CREAT);
	char *map;

	assert_int_equal(write(fd, "0123456789", 10), 10);
	map = mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memcpy(map, "private", 7);
	munmap(map, 10);
	close(fd);
	workspace_assert_host(ws, "f", "0123456789", 10);
}

/* What the host does to a file that the view has read, and what it has to be then. */
typedef enum { GROWS, SHRINKS, SAME_SIZE, REPLACED, _CHANGE_N } Change;

static const char *change_on_host(const char *path, Change change)
{
	static const char *const texts[] = {
		[GROWS] = "a text that is longer than the one before",
		[SHRINKS] = "short",
		[SAME_SIZE] = "TEXT BEFORE",
		[REPLACED] = "another file altogether",
	};
	const char *text = texts[change];
	g_autofree char *beside = g_strconcat(path, ".new", NULL);

	if (change == REPLACED) {
		assert_true(g_file_set_contents(beside, text, -1, NULL));
		assert_int_equal(rename(beside, path), 0);
	} else {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
		assert_int_equal(ftruncate(fd, (off_t)strlen(text)), 0);
		close(fd);
	}
	return text;
}

typedef struct {
	const Workspace *ws;
	const char *name;
	const char *expected;
	const char *before;
	const char *map; /* NULL: by read */
	bool broken;	 /* neither the old content nor the new */
} Look;

static bool sees_new_content(void *data)
{
	Look *look = data;
	int fd = workspace_open(look->ws, look->name, O_RDONLY);
	char got[64] = "";
	ssize_t n = read(fd, got, sizeof got - 1);
	bool is_new;

	assert_true(n >= 0);
	is_new = strcmp(got, look->expected) == 0;
	/* For the second the size may be the old one, as stat has it; but never other bytes than those of one
	 * of the two, and no NULs where there never were any. */
	if (!is_new && !g_str_has_prefix(look->expected, got) && strcmp(got, look->before) != 0)
		look->broken = true;
	look->broken |= strlen(got) != (size_t)n;
	if (is_new) {
		size_t size = strlen(look->expected);
		char *map = map_file(fd, size, PROT_READ);

		look->broken |= memcmp(map, look->expected, size) != 0;
		munmap(map, size);
	}
	close(fd);
	return is_new;
}

static void changes_on_the_host_are_seen_whole(void **state)
{
	const Workspace *ws = *state;

	for (Change change = 0; change < _CHANGE_N; change++) {
		g_autofree char *name = g_strdup_printf("f%d", (int)change);
		g_autofree char *path = workspace_host(ws, name);
		Look look = { .ws = ws, .name = name, .before = "text before" };

		assert_true(g_file_set_contents(path, look.before, -1, NULL));
		look.expected = look.before;
		assert_true(wait_until(sees_new_content, &look, SEEN_MS));
		look.expected = change_on_host(path, change);
		assert_true(wait_until(sees_new_content, &look, SEEN_MS));
		assert_false(look.broken);
	}
}

static bool map_follows(void *data)
{
	Look *look = data;
	g_autofree char *path = workspace_inside(look->ws, "f");
	struct stat st;

	assert_int_equal(stat(path, &st), 0); /* the promise: at the next open or stat */
	return memcmp(look->map, look->expected, strlen(look->expected)) == 0;
}

static void a_map_follows_the_host_at_the_next_stat(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *path = workspace_host(ws, "f");
	Look look = { .ws = ws, .expected = "TEXT BEFORE" };
	char *map;
	int fd;

	assert_true(g_file_set_contents(path, "text before", -1, NULL));
	fd = workspace_open(ws, "f", O_RDONLY);
	map = map_file(fd, 11, PROT_READ);
	assert_memory_equal(map, "text before", 11);
	look.map = map;
	(void)change_on_host(path, SAME_SIZE);
	assert_true(wait_until(map_follows, &look, SEEN_MS));
	munmap(map, 11);
	close(fd);
}

/* A writer beside it makes and renames; the reader gets, by name, exactly what the last rename put there. */
static void a_renamed_file_never_shows_its_successor(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *lock = workspace_inside(ws, "x.lock");
	g_autofree char *name = workspace_inside(ws, "x");

	for (int i = 0; i < 300; i++) {
		g_autofree char *text = g_strdup_printf("content %d", i);
		g_autofree char *next = g_strdup_printf("next %d", i);
		g_autofree char *got = NULL;
		int fd = open(lock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		char *map;

		assert_int_equal(write(fd, text, strlen(text)), strlen(text));
		close(fd);
		assert_int_equal(rename(lock, name), 0);
		fd = open(lock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		assert_int_equal(write(fd, next, strlen(next)), strlen(next));
		close(fd);
		assert_true(g_file_get_contents(name, &got, NULL, NULL));
		assert_string_equal(got, text);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		map = map_file(fd, strlen(text), PROT_READ);
		assert_memory_equal(map, text, strlen(text));
		munmap(map, strlen(text));
		close(fd);
		assert_int_equal(unlink(lock), 0);
	}
}

static void touch_what_is_gone(const Workspace *ws, int ready, int go)
{
	int fd = workspace_open(ws, "f", O_RDONLY);
	const char *map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	char byte = 0;

	signal(SIGBUS, SIG_DFL); /* cmocka's handler goes on */
	(void)!write(ready, &byte, 1);
	(void)!read(go, &byte, 1);
	byte = ((const volatile char *)map)[4096];
	_exit(byte ? 2 : 3);
}

static void a_file_cut_under_a_map_kills_only_who_touches_it(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *host = workspace_host(ws, "f");
	char text[8192], byte;
	int ready[2], go[2], status, fd;
	pid_t toucher;

	memset(text, 'x', sizeof text);
	assert_true(g_file_set_contents(host, text, sizeof text, NULL));
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	toucher = fork_helper();
	if (toucher == 0)
		touch_what_is_gone(ws, ready[1], go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(truncate(host, 0), 0);
	assert_int_equal(write(go[1], "", 1), 1);
	status = wait_for_child(toucher, 10000);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
	fd = workspace_open(ws, "other", O_WRONLY | O_CREAT); /* the gateway answers */
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
}

static int run_program(const char *path)
{
	pid_t pid = fork_helper();

	if (pid == 0) {
		execl(path, path, (char *)NULL);
		_exit(errno == ETXTBSY ? 101 : 102);
	}
	return wait_for_child(pid, 20000);
}

/* Released after close has returned: whoever runs it at once must not find it open for writing. */
static void a_program_runs_right_after_it_was_written(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *program = NULL;
	gsize size;

	assert_true(g_file_get_contents("/bin/true", &program, &size, NULL));
	for (int i = 0; i < 60; i++) {
		g_autofree char *name = g_strdup_printf("t%d", i);
		g_autofree char *path = workspace_inside(ws, name);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755), status;

		assert_int_equal(write(fd, program, size), size);
		assert_int_equal(close(fd), 0);
		status = run_program(path);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_int_equal(unlink(path), 0);
	}
}

/* The bits have no effect here; on the host they would, for whoever runs the file there. */
static void writing_takes_set_id_bits_and_capabilities_away(void **state)
{
	/* VFS_CAP_REVISION_2, effective: CAP_NET_RAW. */
	static const uint32_t capability[5] = { 0x02000001, 1 << 13, 0, 0, 0 };
	const Workspace *ws = *state;

	for (int way = 0; way < 4; way++) {
		g_autofree char *name = g_strdup_printf("suid%d", way);
		g_autofree char *path = workspace_inside(ws, name);
		g_autofree char *host = workspace_host(ws, name);
		struct stat st;
		int fd;

		assert_true(g_file_set_contents(host, "program", -1, NULL));
		assert_int_equal(
			setxattr(host, "security.capability", capability, sizeof capability, 0), 0);
		assert_int_equal(chmod(host, 06755), 0);
		fd = workspace_open(ws, name, way == 2 ? O_WRONLY | O_TRUNC : O_WRONLY);
		assert_true(fd >= 0);
		if (way == 0)
			assert_int_equal(pwrite(fd, "P", 1, 0), 1);
		if (way == 1)
			assert_int_equal(truncate(path, 3), 0);
		if (way == 3)
			assert_int_equal(fallocate(fd, 0, 0, 20), 0);
		close(fd);
		assert_int_equal(stat(host, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0755);
		assert_int_equal(getxattr(host, "security.capability", NULL, 0), -1);
		assert_int_equal(errno, ENODATA);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0755);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(maps_and_calls_see_each_other),
		TEST(what_was_mapped_is_on_the_host_after_msync_and_after_close),
		TEST(a_private_map_changes_nothing),
		TEST(changes_on_the_host_are_seen_whole),
		TEST(a_map_follows_the_host_at_the_next_stat),
		TEST(a_renamed_file_never_shows_its_successor),
		TEST(a_file_cut_under_a_map_kills_only_who_touches_it),
		TEST(a_program_runs_right_after_it_was_written),
		TEST(writing_takes_set_id_bits_and_capabilities_away),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
