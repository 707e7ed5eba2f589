/* Listings tell the truth: every name once, also while names come and go; positions that hold; and for each kind of
 * entry the number that stat gives. */
#include "lib/preflight.h"
#include "lib/view-fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
	ViewFixture *view;
	char *ws;	 /* on the host */
	char *workspace; /* in the view */
} Fixture;

static Fixture *fixture_new(void)
{
	Fixture *f = g_new0(Fixture, 1);

	f->view = view_fixture_new();
	f->ws = view_fixture_path(f->view, "ws");
	f->workspace = g_build_filename(f->view->mountpoint, "workspace", NULL);
	view_fixture_mkdir(f->view, "ws");
	return f;
}

static void fixture_done(Fixture *f)
{
	view_fixture_free(f->view);
	g_free(f->ws);
	g_free(f->workspace);
	g_free(f);
}

static int open_dir(const char *root, const char *name)
{
	g_autofree char *path = g_build_filename(root, name, NULL);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Names of one file, as many as ext4 allows: what counts here is names, and these are quickly made. */
#define NAMES_OF_ONE 50000

static void make_files(int dir, int from, int to)
{
	char first[32], name[32];

	for (int i = from; i < to; i++) {
		snprintf(name, sizeof name, "file-%d", i);
		if ((i - from) % NAMES_OF_ONE == 0) {
			assert_int_equal(mknodat(dir, name, S_IFREG | 0644, 0), 0);
			strcpy(first, name);
		} else {
			assert_int_equal(linkat(dir, first, dir, name, 0), 0);
		}
	}
}

static void remove_files(int dir, int from, int to)
{
	char name[32];

	for (int i = from; i < to; i++) {
		snprintf(name, sizeof name, "file-%d", i);
		assert_int_equal(unlinkat(dir, name, 0), 0);
	}
}

/* How often each of file-0 to file-(most-1) is listed. */
typedef struct {
	unsigned char *times;
	int most;
	int others;
} Count;

static void count_name(Count *count, const char *name)
{
	int n;

	if (sscanf(name, "file-%d", &n) == 1 && n < count->most)
		count->times[n]++;
	else
		count->others++;
}

static void assert_each_once(const Count *count, int from, int to)
{
	for (int i = from; i < to; i++)
		if (count->times[i] != 1)
			fail_msg("file-%d is listed %d times", i, count->times[i]);
}

#define MANY 100000

static void each_of_many_names_is_listed_once_while_others_come_and_go(void **state)
{
	Fixture *f = fixture_new();
	Count count = { .times = g_malloc0(MANY), .most = MANY };
	struct dirent *d;
	int host, read = 0;
	DIR *dir;

	(void)state;
	view_fixture_mkdir(f->view, "ws/many");
	host = open_dir(f->ws, "many");
	make_files(host, 0, MANY);
	view_fixture_mount(f->view, (const char *const[]){ "--workspace", f->ws, NULL });
	dir = fdopendir(open_dir(f->workspace, "many"));
	assert_non_null(dir);
	while ((d = readdir(dir))) {
		count_name(&count, d->d_name);
		/* Half by the host, half through the view; in the second half of the numbers. */
		if (++read % 10000 == 0) {
			int at = MANY / 2 + read / 10000 * 1000;

			remove_files(host, at, at + 500);
			remove_files(dirfd(dir), at + 500, at + 1000);
			make_files(host, MANY + at, MANY + at + 500);
		}
	}
	closedir(dir);
	assert_each_once(&count, 0, MANY / 2);
	for (int i = MANY / 2; i < MANY; i++)
		assert_true(count.times[i] <= 1);
	close(host);
	g_free(count.times);
	fixture_done(f);
}

/* Positions that were told lead back to where they were, in any order, after names have gone, and from another
 * opening's start; in a plain directory and in one that a nested mount hangs in. */
static void positions_hold(const char *path, int most)
{
	g_autofree long *positions = g_new0(long, (gsize)most + 16);
	g_auto(GStrv) names = g_new0(char *, (gsize)most + 17);
	DIR *dir = opendir(path);
	struct dirent *d;
	int total = 0, again = 0;

	assert_non_null(dir);
	for (;;) {
		positions[total] = telldir(dir);
		if (!(d = readdir(dir)))
			break;
		names[total++] = g_strdup(d->d_name);
		assert_true(total < most + 16);
	}
	srand(1);
	for (int i = 0; i < 200; i++) {
		int n = rand() % total;

		seekdir(dir, positions[n]);
		assert_int_equal(telldir(dir), positions[n]);
		d = readdir(dir);
		assert_non_null(d);
		assert_string_equal(d->d_name, names[n]);
	}
	/* Some of those before the position go; what is behind it stays behind it. */
	remove_files(dirfd(dir), 0, most / 10);
	seekdir(dir, positions[total / 2]);
	for (again = total / 2; (d = readdir(dir)); again++) {
		while (again < total && strcmp(d->d_name, names[again]) != 0)
			again++;
		assert_true(again < total);
	}
	rewinddir(dir);
	for (again = 0; readdir(dir); again++)
		;
	assert_int_equal(again, total - most / 10);
	seekdir(dir, positions[total]);
	assert_null(readdir(dir));
	closedir(dir);
}

static void positions_lead_back(void **state)
{
	Fixture *f = fixture_new();
	g_autofree char *other = view_fixture_path(f->view, "other:/workspace/over/nested");
	g_autofree char *plain = g_build_filename(f->workspace, "plain", NULL);
	g_autofree char *over = g_build_filename(f->workspace, "over", NULL);
	int host;

	(void)state;
	view_fixture_mkdir(f->view, "other");
	view_fixture_mkdir(f->view, "ws/plain");
	view_fixture_mkdir(f->view, "ws/over");
	view_fixture_mount(f->view,
			   (const char *const[]){ "--workspace", f->ws, "--rw", other, NULL });
	host = open_dir(f->ws, "plain");
	make_files(host, 0, 3000);
	positions_hold(plain, 3000);
	close(host);
	host = open_dir(f->ws, "over");
	make_files(host, 0, 3000);
	positions_hold(over, 3000);
	close(host);
	fixture_done(f);
}

/* --- numbers --- */

typedef struct {
	char *name;
	uint64_t ino;
	int type;
} Listed;

static void listed_free(gpointer data)
{
	Listed *listed = data;

	g_free(listed->name);
	g_free(listed);
}

/* With a small buffer: only the first request of a listing is answered with attributes. */
static GPtrArray *list(int fd)
{
	GPtrArray *names = g_ptr_array_new_with_free_func(listed_free);
	char buffer[512] __attribute__((aligned(8)));
	ssize_t got;

	while ((got = getdents64(fd, buffer, sizeof buffer)) > 0)
		for (ssize_t at = 0; at < got;) {
			const struct dirent64 *d = (const void *)(buffer + at);
			Listed *listed = g_new0(Listed, 1);

			*listed = (Listed){ g_strdup(d->d_name), d->d_ino, d->d_type };
			g_ptr_array_add(names, listed);
			at += d->d_reclen;
		}
	assert_int_equal(got, 0);
	return names;
}

static void check_numbers(const char *path, bool is_root, int deep)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g_autoptr(GPtrArray) names = NULL;
	struct stat st;

	if (fd < 0)
		return; /* not ours to read */
	names = list(fd);
	for (guint i = 0; i < names->len; i++) {
		const Listed *d = g_ptr_array_index(names, i);
		g_autofree char *child = g_build_filename(path, d->name, NULL);
		bool up = strcmp(d->name, "..") == 0;

		/* Above the view is the host. */
		if (up && is_root)
			continue;
		assert_int_equal(fstatat(fd, d->name, &st, AT_SYMLINK_NOFOLLOW), 0);
		if (d->ino != st.st_ino || (mode_t)DTTOIF(d->type) != (st.st_mode & S_IFMT))
			fail_msg("%s: listed as %llu (%d), is %llu (%o)", child,
				 (unsigned long long)d->ino, d->type, (unsigned long long)st.st_ino,
				 st.st_mode);
		if (S_ISDIR(st.st_mode) && !up && strcmp(d->name, ".") != 0 && deep > 0)
			check_numbers(child, false, deep - 1);
	}
	close(fd);
}

static void make_kinds(const Fixture *f)
{
	g_autofree char *link = g_build_filename(f->ws, "link", NULL);
	g_autofree char *fifo = g_build_filename(f->ws, "fifo", NULL);
	g_autofree char *file = g_build_filename(f->ws, "file", NULL);
	g_autofree char *second = g_build_filename(f->ws, "second", NULL);

	view_fixture_write(f->view, "ws/file", "x");
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_int_equal(linkat(AT_FDCWD, file, AT_FDCWD, second, 0), 0);
	view_fixture_mkdir(f->view, "ws/dir");
	view_fixture_mkdir(f->view, "ws/dir/sub");
	view_fixture_mkdir(f->view, "ws/inner");
	view_fixture_write(f->view, "ws/inner/file", "x");
	view_fixture_mkdir(f->view, "ws/leads");
	view_fixture_mkdir(f->view, "ws/mounted");
	view_fixture_write(f->view, "ws/dir/covered", "x");
	view_fixture_mkdir(f->view, "other");
	view_fixture_write(f->view, "other/file", "x");
}

static void numbers_are_those_of_stat(void **state)
{
	Fixture *f = fixture_new();
	g_autofree char *inner = view_fixture_path(f->view, "ws/inner:/opt/inner");
	g_autofree char *nested = view_fixture_path(f->view, "other:/workspace/leads/to/nested");
	g_autofree char *single = view_fixture_path(f->view, "other/file:/workspace/dir/single");
	g_autofree char *twin = view_fixture_path(f->view, "ws/dir:/twin");
	g_autofree char *mounted = g_build_filename(f->ws, "mounted", NULL);
	g_autofree char *covered = g_build_filename(f->ws, "dir/covered", NULL);
	g_autofree char *file = view_fixture_path(f->view, "other/file");
	bool is_root = geteuid() == 0;

	(void)state;
	make_kinds(f);
	if (is_root) {
		assert_int_equal(mount("none", mounted, "tmpfs", 0, NULL), 0);
		assert_int_equal(mount(file, covered, NULL, MS_BIND, NULL), 0);
	}
	view_fixture_mount(f->view,
			   (const char *const[]){ "--workspace", f->ws, "--ro", inner, "--rw",
						  nested, "--ro", single, "--rw", twin, NULL });
	check_numbers(f->view->mountpoint, true, 6);
	/* Again, from what the kernel has by now. */
	check_numbers(f->view->mountpoint, true, 6);
	view_fixture_unmount(f->view);
	if (is_root) {
		assert_int_equal(umount2(covered, MNT_DETACH), 0);
		assert_int_equal(umount2(mounted, MNT_DETACH), 0);
	}
	fixture_done(f);
}

static void numbers_of_runtime_directories_too(void **state)
{
	Fixture *f = fixture_new();
	g_autofree char *etc = g_build_filename(f->view->mountpoint, "etc", NULL);
	g_autofree char *devices = g_build_filename(f->view->mountpoint, "sys/devices", NULL);

	(void)state;
	view_fixture_mount(
		f->view, (const char *const[]){ "--workspace", f->ws, "--runtime", "host", NULL });
	check_numbers(etc, false, 1);
	check_numbers(devices, false, 1);
	check_numbers(f->view->mountpoint, true, 0);
	fixture_done(f);
}

/* --- names and depths --- */

static void names_of_any_bytes_go_round(void **state)
{
	Fixture *f = fixture_new();
	char name[256], long_name[258];
	int host, view, found = 0;
	struct dirent *d;
	DIR *dir;

	(void)state;
	view_fixture_mount(f->view, (const char *const[]){ "--workspace", f->ws, NULL });
	host = open_dir(f->ws, ".");
	view = open_dir(f->workspace, ".");
	/* 255 bytes of which each value but NUL and '/' occurs, and some at each end. */
	for (int first = 1; first < 256; first += 10) {
		for (int i = 0; i < 255; i++) {
			name[i] = (char)((first + i - 1) % 255 + 1);
			if (name[i] == '/')
				name[i] = '-';
		}
		name[255] = '\0';
		assert_int_equal(mkdirat(view, name, 0755), 0);
		assert_int_equal(faccessat(host, name, F_OK, 0), 0);
	}
	dir = fdopendir(dup(view));
	while ((d = readdir(dir)))
		found += strlen(d->d_name) == 255;
	closedir(dir);
	assert_int_equal(found, 26);
	memset(long_name, 'x', 256);
	long_name[256] = '\0';
	assert_int_equal(mkdirat(view, long_name, 0755), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	assert_int_equal(faccessat(view, long_name, F_OK, 0), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	close(view);
	close(host);
	fixture_done(f);
}

#define DEPTH 300

static void a_tree_deeper_than_any_path_works(void **state)
{
	Fixture *f = fixture_new();
	char name[201];
	int dir, file;

	(void)state;
	memset(name, 'd', 200);
	name[200] = '\0';
	view_fixture_mount(f->view, (const char *const[]){ "--workspace", f->ws, NULL });
	dir = open_dir(f->workspace, ".");
	for (int i = 0; i < DEPTH; i++) {
		int next;

		assert_int_equal(mkdirat(dir, name, 0755), 0);
		next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(dir);
		dir = next;
	}
	file = openat(dir, "f", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_int_equal(write(file, "deep", 4), 4);
	close(file);
	assert_int_equal(renameat(dir, "f", dir, "g"), 0);
	assert_int_equal(faccessat(dir, "g", R_OK, 0), 0);
	assert_int_equal(unlinkat(dir, "g", 0), 0);
	/* The way back, removing all of it. */
	for (int i = 0; i < DEPTH; i++) {
		int up = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(up >= 0);
		close(dir);
		dir = up;
		assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
	}
	close(dir);
	fixture_done(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_many_names_is_listed_once_while_others_come_and_go),
		cmocka_unit_test(positions_lead_back),
		cmocka_unit_test(numbers_are_those_of_stat),
		cmocka_unit_test(numbers_of_runtime_directories_too),
		cmocka_unit_test(names_of_any_bytes_go_round),
		cmocka_unit_test(a_tree_deeper_than_any_path_works),
	};
	int r = preflight_require((const char *const[]){ "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
