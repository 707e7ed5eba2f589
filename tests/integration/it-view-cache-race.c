/* The host changes names, files and link counts while several threads look at them in the view: what they made the
 * kernel believe in the middle of a change must not last. After each round all that can be seen has to be
 * right within the promise of `auto`. */
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NAMES	 60
#define LOOKERS	 3
#define ROUNDS	 12
#define ROUND_MS 400

typedef struct {
	ViewFixture *view;
	char *host;
	char *here;
	int host_fd; /* O_PATH of the host's directory */
	int here_fd; /* of the view's */
	int stop;    /* atomic */
} Fixture;

static bool is_stopped(const Fixture *f)
{
	return __atomic_load_n(&f->stop, __ATOMIC_RELAXED) != 0;
}

static void name_of(unsigned int n, char name[16])
{
	snprintf(name, 16, "n%u", n % NAMES);
}

static int write_some(int dir, const char *name, unsigned int size, int flags)
{
	static const char text[64] =
		"0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopq";
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0644);

	ssize_t r;

	if (fd < 0)
		return -1; /* a directory, by now */
	r = write(fd, text + size % 30, size % 32);
	close(fd);
	return (int)r;
}

/* One change; what does not work, because of the one before, does not matter. */
static int change(int dir, unsigned int n)
{
	char a[16], b[16];

	name_of(n / 16, a);
	name_of(n / 1024, b);
	switch (n % 12) {
	case 0:
	case 1:
	case 2:
		return write_some(dir, a, n / 7, O_TRUNC);
	case 3:
		return write_some(dir, a, n / 5, 0);
	case 4:
		return renameat(dir, a, dir, b);
	case 5:
		return renameat2(dir, a, dir, b, RENAME_EXCHANGE);
	case 6:
		return linkat(dir, a, dir, b, 0);
	case 7:
		return mkdirat(dir, a, 0755);
	case 8:
		return unlinkat(dir, a, AT_REMOVEDIR);
	case 9:
		return symlinkat(b, dir, a);
	case 10:
		return fchmodat(dir, a, n & 4096 ? 0600 : 0644, 0);
	default:
		return unlinkat(dir, a, 0);
	}
}

static gpointer change_host(gpointer data)
{
	Fixture *f = data;
	unsigned int n = (unsigned int)g_get_monotonic_time();

	int done = 0;

	while (!is_stopped(f)) {
		n = n * 1664525u + 1013904223u;
		done += change(f->host_fd, n >> 8) >= 0;
	}
	return GINT_TO_POINTER(done);
}

static void add_name(GString *text, int dir, const char *name)
{
	char content[64];
	struct stat st;
	ssize_t got = 0;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		g_string_append_printf(text, "%s: %s\n", name, g_strerror(errno));
		return;
	}
	g_string_append_printf(text, "%s: %o %llu ", name, st.st_mode,
			       (unsigned long long)st.st_ino);
	if (!S_ISDIR(st.st_mode))
		g_string_append_printf(text, "%lld*%llu ", (long long)st.st_size,
				       (unsigned long long)st.st_nlink);
	if (S_ISREG(st.st_mode)) {
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0) {
			got = read(fd, content, sizeof content);
			close(fd);
		}
	} else if (S_ISLNK(st.st_mode)) {
		got = readlinkat(dir, name, content, sizeof content);
	}
	g_string_append_len(text, content, MAX(got, 0));
	g_string_append_c(text, '\n');
}

static char *look(const char *path, int dir)
{
	GString *text = g_string_new(NULL);
	DIR *stream = opendir(path);
	struct dirent *d;
	char name[16];
	bool is_listed[NAMES] = { false };

	while (stream && (d = readdir(stream)))
		if (d->d_name[0] == 'n')
			is_listed[atoi(d->d_name + 1) % NAMES] = true;
	if (stream)
		closedir(stream);
	for (unsigned int i = 0; i < NAMES; i++) {
		name_of(i, name);
		g_string_append_printf(text, "%d ", is_listed[i]);
		add_name(text, dir, name);
	}
	return g_string_free(text, FALSE);
}

static gpointer look_at_view(gpointer data)
{
	Fixture *f = data;

	while (!is_stopped(f))
		g_free(look(f->here, f->here_fd));
	return NULL;
}

/* The promise, and what a busy machine may add. */
#define PROMISE_US 2500000

static void assert_comes_right(const Fixture *f, int round)
{
	int64_t end_us = g_get_monotonic_time() + PROMISE_US;

	for (;;) {
		int64_t now_us = g_get_monotonic_time();
		g_autofree char *expected = look(f->host, f->host_fd);
		g_autofree char *seen = look(f->here, f->here_fd);

		if (strcmp(expected, seen) == 0)
			return;
		if (now_us >= end_us)
			fail_msg("round %d: expected\n%s\nseen\n%s", round, expected, seen);
		g_usleep(10000);
	}
}

static void what_is_seen_in_the_middle_does_not_last(void **state)
{
	Fixture f = { .view = view_fixture_new() };
	g_autofree char *ws = view_fixture_path(f.view, "ws");

	(void)state;
	f.host = view_fixture_path(f.view, "ws/dir");
	f.here = g_build_filename(f.view->mountpoint, "workspace/dir", NULL);
	view_fixture_mkdir(f.view, "ws");
	view_fixture_mkdir(f.view, "ws/dir");
	view_fixture_mount(f.view, (const char *const[]){ "--workspace", ws, NULL });
	f.host_fd = open(f.host, O_PATH | O_CLOEXEC);
	f.here_fd = open(f.here, O_PATH | O_CLOEXEC);
	for (int round = 0; round < ROUNDS; round++) {
		GThread *threads[LOOKERS + 1];

		f.stop = 0;
		threads[0] = g_thread_new("host", change_host, &f);
		for (int i = 1; i <= LOOKERS; i++)
			threads[i] = g_thread_new("view", look_at_view, &f);
		g_usleep(ROUND_MS * 1000);
		__atomic_store_n(&f.stop, 1, __ATOMIC_RELAXED);
		for (int i = 1; i <= LOOKERS; i++)
			g_thread_join(threads[i]);
		assert_true(GPOINTER_TO_INT(g_thread_join(threads[0])) > 10);
		assert_comes_right(&f, round);
	}
	close(f.host_fd);
	close(f.here_fd);
	g_free(f.host);
	g_free(f.here);
	view_fixture_free(f.view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_seen_in_the_middle_does_not_last),
	};
	int r = preflight_require((const char *const[]){ "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
