/* The bytes of a file in a view: whatever is written, by whatever call, is what every reader gets, in the view and on
 * the host; sizes, holes and positions are those of the host's file. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MODEL_SIZE (256 * 1024)

/* A file and what it has to contain. */
typedef struct {
	int fds[3]; /* the same file, opened three times; the last for appending */
	uint8_t data[MODEL_SIZE];
	size_t size;
	uint64_t random;
} Model;

static uint32_t next_random(Model *model, uint32_t below)
{
	/* Knuth's MMIX constants: the same sequence each time, so that a failure comes again. */
	model->random = model->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(model->random >> 33) % below;
}

static void model_write(Model *model, size_t at, size_t length)
{
	uint8_t byte = (uint8_t)next_random(model, 255) + 1;
	g_autofree uint8_t *bytes = g_malloc(length);

	memset(bytes, byte, length);
	assert_int_equal(pwrite(model->fds[next_random(model, 2)], bytes, length, (off_t)at),
			 length);
	memcpy(model->data + at, bytes, length);
	model->size = MAX(model->size, at + length);
}

static void model_append(Model *model, size_t length)
{
	g_autofree uint8_t *bytes = g_malloc(length);

	if (model->size + length > MODEL_SIZE)
		return;
	memset(bytes, 'a', length);
	assert_int_equal(write(model->fds[2], bytes, length), length);
	memcpy(model->data + model->size, bytes, length);
	model->size += length;
}

static void model_map_write(Model *model, size_t at, size_t length)
{
	uint8_t *map;

	if (at + length > model->size)
		return;
	map = mmap(NULL, model->size, PROT_READ | PROT_WRITE, MAP_SHARED, model->fds[0], 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memset(map + at, 'm', length);
	memset(model->data + at, 'm', length);
	/* Sometimes msync, sometimes only munmap: readers must not see the difference. */
	if (next_random(model, 2))
		assert_int_equal(msync(map, model->size, MS_SYNC), 0);
	munmap(map, model->size);
}

static void model_truncate(Model *model, size_t size)
{
	assert_int_equal(ftruncate(model->fds[0], (off_t)size), 0);
	if (size > model->size)
		memset(model->data + model->size, 0, size - model->size);
	else
		memset(model->data + size, 0, MODEL_SIZE - size);
	model->size = size;
}

static void model_fallocate(Model *model, int mode, size_t at, size_t length)
{
	assert_int_equal(fallocate(model->fds[1], mode, (off_t)at, (off_t)length), 0);
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		memset(model->data + at, 0, length);
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		model->size = MAX(model->size, at + length);
}

static void model_copy_range(Model *model, size_t from, size_t to, size_t length)
{
	off_t in = (off_t)from, out = (off_t)to;

	if (from + length > model->size || (from < to + length && to < from + length))
		return;
	while (length > 0) {
		ssize_t n = copy_file_range(model->fds[0], &in, model->fds[1], &out, length, 0);

		assert_true(n > 0);
		memcpy(model->data + out - n, model->data + in - n, (size_t)n);
		length -= (size_t)n;
	}
	model->size = MAX(model->size, (size_t)out);
}

/* As read, at once, and mapped: the three ways do not go through the same code of the kernel. */
static void model_check(const Model *model, uint32_t round)
{
	static uint8_t got[MODEL_SIZE + 1];
	struct stat st;
	void *map;

	assert_int_equal(fstat(model->fds[1], &st), 0);
	assert_int_equal(st.st_size, model->size);
	assert_int_equal(pread(model->fds[round % 2], got, sizeof got, 0), model->size);
	if (model->size == 0)
		return;
	assert_memory_equal(got, model->data, model->size);
	map = mmap(NULL, model->size, PROT_READ, MAP_SHARED, model->fds[1], 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_memory_equal(map, model->data, model->size);
	munmap(map, model->size);
}

static void model_step(Model *model)
{
	size_t at = next_random(model, MODEL_SIZE), other = next_random(model, MODEL_SIZE);
	size_t length = 1 + next_random(model, 20000);

	at = MIN(at, MODEL_SIZE - length);
	other = MIN(other, MODEL_SIZE - length);
	switch (next_random(model, 10)) {
	case 0:
		model_truncate(model, at);
		break;
	case 1:
		model_append(model, length);
		break;
	case 2:
		model_map_write(model, at, length);
		break;
	case 3:
		model_fallocate(model, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length);
		break;
	case 4:
		model_fallocate(model, FALLOC_FL_ZERO_RANGE, at, length);
		break;
	case 5:
		model_fallocate(model, next_random(model, 2) ? FALLOC_FL_KEEP_SIZE : 0, at, length);
		break;
	case 6:
		model_copy_range(model, at, other, length);
		break;
	default:
		model_write(model, at, length);
		break;
	}
}

static void every_way_to_write_is_seen_by_every_way_to_read(void **state)
{
	const Workspace *ws = *state;
	g_autofree Model *model = g_new0(Model, 1);

	model->random = 20240501;
	model->fds[0] = workspace_open(ws, "f", O_RDWR | O_CREAT);
	model->fds[1] = workspace_open(ws, "f", O_RDWR);
	model->fds[2] = workspace_open(ws, "f", O_WRONLY | O_APPEND);
	for (uint32_t round = 0; round < 1500; round++) {
		model_step(model);
		model_check(model, round);
		if (round % 50 == 0)
			workspace_assert_host(ws, "f", model->data, model->size);
	}
	for (size_t i = 0; i < 3; i++)
		close(model->fds[i]);
	workspace_assert_host(ws, "f", model->data, model->size);
}

#define RECORD	64
#define WRITERS 8
#define RECORDS 1000

static void make_record(char record[RECORD], int writer, int n)
{
	int used = snprintf(record, RECORD, "writer %d record %d ", writer, n);

	memset(record + used, '.', (size_t)(RECORD - used - 1));
	record[RECORD - 1] = '\n';
}

static void append_records(const char *path, int writer, int count)
{
	/* Made with O_APPEND, not only opened: two ways in the gateway. */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	char record[RECORD];

	for (int n = 0; n < count; n++) {
		make_record(record, writer, n);
		if (write(fd, record, RECORD) != RECORD)
			_exit(1);
	}
	_exit(fd < 0);
}

/* No record lost, none cut, each writer's in its order. */
static void assert_records(const char *path, int writers, int count)
{
	g_autofree char *content = NULL;
	char record[RECORD];
	int seen[WRITERS] = { 0 };
	gsize size;

	assert_true(g_file_get_contents(path, &content, &size, NULL));
	assert_int_equal(size, writers * count * RECORD);
	for (size_t at = 0; at < size; at += RECORD) {
		int writer = content[at + strlen("writer ")] - '0';

		assert_in_range(writer, 0, writers - 1);
		make_record(record, writer, seen[writer]++);
		assert_memory_equal(content + at, record, RECORD);
	}
}

static void appenders_lose_nothing(const Workspace *ws, int on_the_host)
{
	g_autofree char *inside = workspace_inside(ws, "log");
	g_autofree char *host = workspace_host(ws, "log");
	pid_t pids[WRITERS];

	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork_helper();
		if (pids[i] == 0)
			append_records(i < on_the_host ? host : inside, i, RECORDS);
	}
	for (int i = 0; i < WRITERS; i++) {
		int status = wait_for_child(pids[i], 60000);

		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	assert_records(host, WRITERS, RECORDS);
}

static void eight_appenders_in_the_view_lose_nothing(void **state)
{
	appenders_lose_nothing(*state, 0);
}

static void appenders_on_both_sides_lose_nothing(void **state)
{
	appenders_lose_nothing(*state, WRITERS / 2);
}

static void direct_io_writes_and_reads(void **state)
{
	const Workspace *ws = *state;
	int direct = workspace_open(ws, "f", O_RDWR | O_CREAT | O_DIRECT);
	int plain = workspace_open(ws, "f", O_RDWR);
	g_autofree char *block = g_malloc(8192);
	char *aligned = (char *)(((uintptr_t)block + 4095) & ~(uintptr_t)4095);

	assert_true(direct >= 0);
	memset(aligned, 'd', 4096);
	assert_int_equal(pwrite(direct, aligned, 4096, 4096), 4096);
	/* What the kernel has in its cache is not in the way, on either side. */
	assert_int_equal(pread(plain, aligned, 4096, 0), 4096);
	assert_int_equal(aligned[0], 0);
	assert_int_equal(pwrite(plain, "plain", 5, 0), 5);
	assert_int_equal(pread(direct, aligned, 4096, 0), 4096);
	assert_memory_equal(aligned, "plain", 5);
	assert_int_equal(pread(plain, aligned, 4096, 4096), 4096);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(aligned[i], 'd');
	memset(aligned, 'e', 4096);
	assert_int_equal(pwrite(direct, aligned, 4096, 4096), 4096);
	assert_int_equal(pread(plain, aligned, 1, 4096), 1);
	assert_int_equal(aligned[0], 'e');
	close(direct);
	close(plain);
}

/* Positions in a sparse file, seen through the view and on the host. */
static void assert_same_holes(const Workspace *ws, const char *name)
{
	g_autofree char *host_path = workspace_host(ws, name);
	int inside = workspace_open(ws, name, O_RDONLY);
	int host = open(host_path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(inside >= 0 && host >= 0);
	assert_int_equal(fstat(host, &st), 0);
	const off_t places[] = {
		0, 1, 4096, 65536, 1 << 20, st.st_size - 1, st.st_size, st.st_size + 1
	};
	for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
		for (int whence = SEEK_DATA; whence <= SEEK_HOLE; whence++) {
			off_t expected = lseek(host, places[i], whence);
			int errnum = expected < 0 ? errno : 0;

			assert_int_equal(lseek(inside, places[i], whence), expected);
			if (expected < 0)
				assert_int_equal(errno, errnum);
		}
	/* Those of SEEK_SET, CUR and END are the kernel's own: they agree with stat. */
	assert_int_equal(lseek(inside, 0, SEEK_END), st.st_size);
	close(inside);
	close(host);
}

static void holes_are_where_the_host_has_them(void **state)
{
	const Workspace *ws = *state;
	const off_t tebibyte = (off_t)1 << 40;
	int fd = workspace_open(ws, "sparse", O_RDWR | O_CREAT);

	assert_int_equal(pwrite(fd, "x", 1, 1 << 20), 1);
	assert_int_equal(pwrite(fd, "y", 1, 8 << 20), 1);
	close(fd);
	assert_same_holes(ws, "sparse");
	fd = workspace_open(ws, "empty", O_RDWR | O_CREAT);
	assert_int_equal(lseek(fd, 0, SEEK_DATA), -1);
	assert_int_equal(errno, ENXIO);
	close(fd);
	assert_same_holes(ws, "empty");
	fd = workspace_open(ws, "hole", O_RDWR | O_CREAT);
	assert_int_equal(ftruncate(fd, tebibyte), 0);
	assert_int_equal(lseek(fd, 0, SEEK_HOLE), 0);
	assert_int_equal(lseek(fd, 0, SEEK_DATA), -1);
	assert_int_equal(errno, ENXIO);
	close(fd);
	assert_same_holes(ws, "hole");
}

/* Each mode does what it does on the host, to size, room and content; what the kernel does not hand on is
 * refused. */
static void fallocate_modes_are_the_hosts(void **state)
{
	static const struct {
		int mode;
		int expected;
	} cases[] = {
		{ 0, 0 },
		{ FALLOC_FL_KEEP_SIZE, 0 },
		{ FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0 },
		{ FALLOC_FL_ZERO_RANGE, 0 },
		{ FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0 },
		{ FALLOC_FL_PUNCH_HOLE, EOPNOTSUPP }, /* without KEEP_SIZE: nowhere */
		{ FALLOC_FL_COLLAPSE_RANGE, EOPNOTSUPP },
		{ FALLOC_FL_INSERT_RANGE, EOPNOTSUPP },
		{ FALLOC_FL_UNSHARE_RANGE, EOPNOTSUPP },
		{ 0x4000, EOPNOTSUPP },
	};
	const Workspace *ws = *state;
	g_autofree char *native_path = g_build_filename(ws->native, "f", NULL);
	g_autofree char *host_path = workspace_host(ws, "f");
	char text[30000], got[65536], expected[65536];

	memset(text, 'x', sizeof text);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		int inside = workspace_open(ws, "f", O_RDWR | O_CREAT | O_TRUNC);
		int native = open(native_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		struct stat a, b;
		ssize_t size;

		assert_int_equal(write(inside, text, sizeof text), sizeof text);
		assert_int_equal(write(native, text, sizeof text), sizeof text);
		assert_int_equal(result_of(fallocate(inside, cases[i].mode, 4096, 45056)),
				 cases[i].expected);
		if (cases[i].expected == 0)
			assert_int_equal(fallocate(native, cases[i].mode, 4096, 45056), 0);
		assert_int_equal(fsync(inside), 0);
		assert_int_equal(fsync(native), 0);
		assert_int_equal(stat(host_path, &a), 0);
		assert_int_equal(fstat(native, &b), 0);
		assert_int_equal(a.st_size, b.st_size);
		assert_int_equal(a.st_blocks, b.st_blocks);
		assert_int_equal(fstat(inside, &a), 0);
		assert_int_equal(a.st_size, b.st_size);
		size = pread(native, expected, sizeof expected, 0);
		assert_int_equal(pread(inside, got, sizeof got, 0), size);
		assert_memory_equal(got, expected, size);
		close(inside);
		close(native);
	}
}

static void copy_file_range_copies_again_and_again(void **state)
{
	const Workspace *ws = *state;
	int from = workspace_open(ws, "from", O_RDWR | O_CREAT);
	int to = workspace_open(ws, "to", O_RDWR | O_CREAT);
	int outside;
	g_autofree char *outside_path = g_build_filename(ws->native, "out", NULL);
	struct stat st;
	char got[16] = "";

	assert_int_equal(write(from, "0123456789", 10), 10);
	for (int i = 0; i < 3; i++) {
		off_t in = 0;

		assert_int_equal(copy_file_range(from, &in, to, NULL, 10, 0), 10);
		/* The size is right at once, whoever asks. */
		assert_int_equal(fstat(to, &st), 0);
		assert_int_equal(st.st_size, 10 * (i + 1));
	}
	workspace_assert_host(ws, "to", "012345678901234567890123456789", 30);
	/* Out of the view and into it: another file system, by reading and writing. */
	outside = open(outside_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	for (off_t in = 0; in < 10;)
		assert_true(sendfile(outside, from, &in, 4) > 0);
	assert_int_equal(result_of(copy_file_range(from, &(off_t){ 0 }, outside, NULL, 4, 0)),
			 EXDEV);
	assert_int_equal(pread(outside, got, sizeof got, 0), 10);
	assert_memory_equal(got, "0123456789", 10);
	close(outside);
	close(from);
	close(to);
}

static void cut_and_grow(const Workspace *ws)
{
	int fd = workspace_open(ws, "f", O_RDWR);
	char full[8192];

	memset(full, 'F', sizeof full);
	for (int i = 0; i < 1500; i++)
		if (pwrite(fd, full, sizeof full, 0) != sizeof full || ftruncate(fd, 100) != 0 ||
		    ftruncate(fd, 8192) != 0 || ftruncate(fd, 0) != 0)
			_exit(1);
	_exit(0);
}

/* A reader beside one who truncates: what is read is what was written or zeros behind a cut, never older bytes
 * and never beyond the size. */
static void readers_of_a_file_that_is_cut_see_no_stale_bytes(void **state)
{
	const Workspace *ws = *state;
	int fd = workspace_open(ws, "f", O_RDWR | O_CREAT);
	pid_t cutter = fork_helper();
	int status = 0, rounds = 0;

	if (cutter == 0)
		cut_and_grow(ws);
	while (waitpid(cutter, &status, WNOHANG) == 0) {
		char got[8192];
		ssize_t n = pread(fd, got, sizeof got, 0);

		assert_in_range(n, 0, sizeof got);
		for (ssize_t i = 0; i < n; i++)
			assert_true(got[i] == 'F' || got[i] == 0);
		rounds++;
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(rounds > 0);
	workspace_assert_host(ws, "f", "", 0);
	close(fd);
}

/* Truncation comes by two requests, open and setattr; neither leaves a tail. */
static void cutting_leaves_no_tail_by_any_way(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *path = workspace_inside(ws, "f");
	int fd = workspace_open(ws, "f", O_RDWR | O_CREAT), other;

	for (int way = 0; way < 4; way++) {
		assert_int_equal(pwrite(fd, "0123456789", 10, 0), 10);
		if (way == 0)
			assert_int_equal(truncate(path, 4), 0);
		if (way == 1)
			assert_int_equal(ftruncate(fd, 4), 0);
		if (way >= 2) {
			other = workspace_open(ws, "f", (way == 2 ? O_RDWR : O_RDONLY) | O_TRUNC);
			assert_true(other >= 0);
			close(other);
			workspace_assert_host(ws, "f", "", 0);
			assert_int_equal(pwrite(fd, "0123", 4, 0), 4);
		}
		workspace_assert_host(ws, "f", "0123", 4);
		/* Growing again shows zeros, not what was there. */
		assert_int_equal(ftruncate(fd, 6), 0);
		workspace_assert_host(ws, "f", "0123\0\0", 6);
	}
	/* With no right left to open it again, who has it open may still cut it. */
	assert_int_equal(fchmod(fd, 0), 0);
	assert_int_equal(ftruncate(fd, 2), 0);
	workspace_assert_host(ws, "f", "01", 2);
	close(fd);
}

static void flags_that_are_not_the_clients_change_nothing(void **state)
{
	static const int flags[] = { O_NOATIME, O_SYNC,	     O_DSYNC, O_NONBLOCK,
				     O_NOCTTY,	O_LARGEFILE, O_ASYNC };
	const Workspace *ws = *state;
	g_autofree char *host = workspace_host(ws, "f");

	assert_true(g_file_set_contents(host, "text", 4, NULL));
	for (size_t i = 0; i < G_N_ELEMENTS(flags); i++) {
		int fd = workspace_open(ws, "f", O_RDWR | flags[i]);
		char got[8];

		assert_true(fd >= 0);
		assert_int_equal(pread(fd, got, sizeof got, 0), 4);
		assert_int_equal(pwrite(fd, "TEXT", 4, 0), 4);
		workspace_assert_host(ws, "f", "TEXT", 4);
		close(fd);
	}
}

static void room_and_names_are_the_host_file_systems(void **state)
{
	const Workspace *ws = *state;
	struct statvfs inside, host;

	assert_int_equal(statvfs(ws->inside, &inside), 0);
	assert_int_equal(statvfs(ws->host, &host), 0);
	assert_int_equal(inside.f_blocks, host.f_blocks);
	assert_int_equal(inside.f_files, host.f_files);
	assert_int_equal(inside.f_frsize, host.f_frsize);
	assert_int_equal(inside.f_namemax, 255);
	assert_true(inside.f_bavail > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_way_to_write_is_seen_by_every_way_to_read),
		TEST(eight_appenders_in_the_view_lose_nothing),
		TEST(appenders_on_both_sides_lose_nothing),
		TEST(direct_io_writes_and_reads),
		TEST(holes_are_where_the_host_has_them),
		TEST(fallocate_modes_are_the_hosts),
		TEST(copy_file_range_copies_again_and_again),
		TEST(readers_of_a_file_that_is_cut_see_no_stale_bytes),
		TEST(cutting_leaves_no_tail_by_any_way),
		TEST(flags_that_are_not_the_clients_change_nothing),
		TEST(room_and_names_are_the_host_file_systems),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
