/* What the host changes is seen in the view within what the cache mode promises, for each kind of change and each
 * mode; what the view itself changes is right at once, also where a directory is mounted twice. Each change is
 * made after the view has been looked at twice, so that there is something to be wrong about. */
#include "lib/preflight.h"
#include "lib/view-fixture.h"
#include "view-changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
	ViewFixture *view;
	char *ws;	 /* on the host */
	char *workspace; /* in the view */
	char *twin;	 /* the same directory, at another place of the view, or NULL */
} Fixture;

/* TWIN stands for the workspace at /twin. */
#define TWIN "TWIN"

static Fixture *fixture_with(const char *const *options)
{
	g_autoptr(GPtrArray) arguments = g_ptr_array_new();
	g_autofree char *twin = NULL;
	Fixture *f = g_new0(Fixture, 1);

	f->view = view_fixture_new();
	f->ws = view_fixture_path(f->view, "ws");
	f->workspace = g_build_filename(f->view->mountpoint, "workspace", NULL);
	f->twin = g_build_filename(f->view->mountpoint, "twin", NULL);
	view_fixture_mkdir(f->view, "ws");
	g_ptr_array_add(arguments, (char *)(uintptr_t) "--workspace");
	g_ptr_array_add(arguments, f->ws);
	twin = g_strconcat(f->ws, ":/twin", NULL);
	for (; *options; options++)
		g_ptr_array_add(arguments,
				strcmp(*options, TWIN) == 0 ? twin : (char *)(uintptr_t)*options);
	g_ptr_array_add(arguments, NULL);
	view_fixture_mount(f->view, (const char *const *)arguments->pdata);
	return f;
}

static void fixture_done(Fixture *f)
{
	view_fixture_free(f->view);
	g_free(f->ws);
	g_free(f->workspace);
	g_free(f->twin);
	g_free(f);
}

/* Looks until it is as expected, for the time of the promise at the most. The machine may be busy: what is late by
 * that alone is forgiven. */
#define LATE_S 1.0

static void assert_seen(const char *what, const char *expected, const char *root, double promise_s)
{
	int64_t end_us = g_get_monotonic_time() + (int64_t)((promise_s + LATE_S) * 1e6);

	for (;;) {
		int64_t now_us = g_get_monotonic_time();
		g_autofree char *seen = view_changes_look(root);

		if (strcmp(seen, expected) == 0)
			return;
		if (promise_s == 0 || now_us >= end_us)
			fail_msg("%s: expected\n%s\nseen\n%s", what, expected, seen);
		g_usleep(5000);
	}
}

/* A new directory for each change, so that nothing of the last one is left to be believed. */
static char *new_ground(const Fixture *f, const char *name)
{
	char *host = g_build_filename(f->ws, name, NULL);

	view_changes_mkdir(f->ws, name);
	view_changes_make_tree(host);
	return host;
}

/* `from` is where changes are made and `to` where they are looked for: the host's directory, the view's, or its
 * twin. */
static void each_change_is_seen(const Fixture *f, const char *from, const char *to,
				double promise_s)
{
	for (size_t i = 0; i < view_changes_count; i++) {
		g_autofree char *name = g_strdup_printf("%s-%zu", to == f->twin ? "t" : "c", i);
		g_autofree char *host = new_ground(f, name);
		g_autofree char *there = g_build_filename(from, name, NULL);
		g_autofree char *here = g_build_filename(to, name, NULL);
		g_autofree char *before = view_changes_look(host);
		g_autofree char *after = NULL;

		assert_seen(view_changes[i].name, before, here, promise_s);
		/* Once more, for what is believed only when it has been asked twice. */
		assert_seen(view_changes[i].name, before, here, promise_s);
		view_changes[i].make(there);
		after = view_changes_look(host);
		assert_string_not_equal(before, after);
		assert_seen(view_changes[i].name, after, here, promise_s);
	}
}

static void strict_sees_each_change_at_once(void **state)
{
	Fixture *f = fixture_with((const char *const[]){ "--cache", "strict", NULL });

	(void)state;
	each_change_is_seen(f, f->ws, f->workspace, 0);
	fixture_done(f);
}

static void auto_sees_each_change_within_a_second(void **state)
{
	Fixture *f = fixture_with((const char *const[]){ "--cache", "auto", NULL });

	(void)state;
	each_change_is_seen(f, f->ws, f->workspace, 1);
	fixture_done(f);
}

/* It is what `exclusive` means that it asks no more: else it would be no mode of its own. */
static void exclusive_does_not_look_again(void **state)
{
	Fixture *f = fixture_with((const char *const[]){ "--cache", "exclusive", NULL });
	g_autofree char *path = g_build_filename(f->workspace, "new", NULL);
	g_autofree char *host = g_build_filename(f->ws, "new", NULL);
	struct stat st;

	(void)state;
	assert_int_equal(stat(path, &st), -1);
	view_changes_write(f->ws, "new", "x", O_EXCL);
	g_usleep(1200000);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(errno, ENOENT);
	/* The host decides all the same what happens when the name is made. */
	assert_int_equal(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(stat(host, &st), 0);
	fixture_done(f);
}

static const char *const modes[] = { "strict", "auto", "exclusive" };

static void own_changes_are_right_at_once_in_every_mode(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
		Fixture *f = fixture_with((const char *const[]){ "--cache", modes[i], NULL });

		each_change_is_seen(f, f->workspace, f->workspace, 0);
		fixture_done(f);
	}
}

static void own_changes_are_seen_where_it_is_mounted_twice(void **state)
{
	static const char *const access[] = { "--rw", "--ro" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(modes); i++)
		for (size_t k = 0; k < G_N_ELEMENTS(access); k++) {
			Fixture *f = fixture_with((const char *const[]){ "--cache", modes[i],
									 access[k], TWIN, NULL });

			each_change_is_seen(f, f->workspace, f->twin, i == 0 ? 0 : 1);
			fixture_done(f);
		}
}

/* --- files that are open while they change --- */

static void assert_read(const char *what, int fd, const char *expected, double promise_s)
{
	int64_t end_us = g_get_monotonic_time() + (int64_t)((promise_s + LATE_S) * 1e6);

	for (;;) {
		int64_t now_us = g_get_monotonic_time();
		char text[64] = "";
		ssize_t got = pread(fd, text, sizeof text - 1, 0);
		struct stat st;

		assert_true(got >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		if (strcmp(text, expected) == 0 && st.st_size == (off_t)strlen(expected))
			return;
		if (promise_s == 0 || now_us >= end_us)
			fail_msg("%s: expected \"%s\", read \"%s\", size %lld", what, expected,
				 text, (long long)st.st_size);
		g_usleep(5000);
	}
}

static void open_files_follow(const char *mode, double promise_s)
{
	Fixture *f = fixture_with((const char *const[]){ "--cache", mode, NULL });
	g_autofree char *path = g_build_filename(f->workspace, "f", NULL);
	g_autofree char *host = g_build_filename(f->ws, "f", NULL);
	int fd;

	view_changes_write(f->ws, "f", "12345", O_EXCL);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_read("before", fd, "12345", 0);
	assert_read("before", fd, "12345", 0);
	g_usleep(20000); /* the host's times have to move */
	view_changes_write(f->ws, "f", "678", O_APPEND);
	assert_read("after more was added", fd, "12345678", promise_s);
	g_usleep(20000);
	view_changes_write(f->ws, "f", "abcdefgh", 0);
	assert_read("after a rewrite", fd, "abcdefgh", promise_s);
	g_usleep(20000);
	assert_int_equal(truncate(host, 2), 0);
	assert_read("after a truncation", fd, "ab", promise_s);
	close(fd);
	fixture_done(f);
}

static void open_files_follow_the_host(void **state)
{
	(void)state;
	open_files_follow("strict", 0);
	open_files_follow("auto", 1);
}

/* --- the thread that reads events --- */

/* Of the gateway; 0 when it has none. */
static pid_t find_thread_now(pid_t gateway, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/task", gateway);
	DIR *dir = opendir(path);
	struct dirent *d;
	pid_t found = 0;

	while (dir && (d = readdir(dir))) {
		g_autofree char *comm = g_build_filename(path, d->d_name, "comm", NULL);
		g_autofree char *text = NULL;

		if (g_file_get_contents(comm, &text, NULL, NULL) &&
		    strcmp(g_strchomp(text), name) == 0)
			found = (pid_t)atoi(d->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* A thread has its name a moment after it was made. 0: this machine has no such events. */
static pid_t find_watch(const Fixture *f)
{
	int group = fanotify_init(FAN_REPORT_DFID_NAME_TARGET | FAN_CLOEXEC, O_RDONLY);
	pid_t thread = 0;

	if (group < 0)
		return 0;
	close(group);
	for (int i = 0;
	     i < 1000 && (thread = find_thread_now(f->view->gateway, "fsgate-watch")) == 0; i++)
		g_usleep(5000);
	assert_int_not_equal(thread, 0);
	return thread;
}

static void stop_thread(pid_t thread)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SEIZE, thread, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
	assert_int_equal(waitpid(thread, &status, __WALL), thread);
}

static void continue_thread(pid_t thread)
{
	assert_int_equal(ptrace(PTRACE_DETACH, thread, NULL, NULL), 0);
}

static void make_change(const char *name, const char *root)
{
	for (size_t i = 0; i < view_changes_count; i++)
		if (strcmp(view_changes[i].name, name) == 0) {
			view_changes[i].make(root);
			return;
		}
	fail_msg("no change \"%s\"", name);
}

/* More than the queue of events holds. */
#define FLOOD 20000

static void an_overflow_of_events_loses_nothing(void **state)
{
	Fixture *f = fixture_with((const char *const[]){ "--cache", "auto", NULL });
	pid_t thread = find_watch(f);
	g_autofree char *host = new_ground(f, "c");
	g_autofree char *here = g_build_filename(f->workspace, "c", NULL);
	g_autofree char *flood = g_build_filename(f->ws, "flood", NULL);
	g_autofree char *seen = g_build_filename(f->workspace, "flood", NULL);
	g_autofree char *before = view_changes_look(host);
	g_autofree char *after = NULL;
	char name[32];
	int dir;

	(void)state;
	view_changes_mkdir(f->ws, "flood");
	assert_seen("before", before, here, 1);
	g_free(view_changes_look(seen)); /* so that it is watched */
	if (thread != 0)
		stop_thread(thread);
	dir = open(flood, O_PATH | O_CLOEXEC);
	for (int i = 0; i < FLOOD; i++) {
		snprintf(name, sizeof name, "%d", i);
		assert_int_equal(mknodat(dir, name, S_IFREG | 0644, 0), 0);
	}
	close(dir);
	/* No event of these finds room. */
	make_change("create", host);
	make_change("rewrite with the same size", host);
	make_change("replace a directory", host);
	make_change("one name less", host);
	if (thread != 0)
		continue_thread(thread);
	after = view_changes_look(host);
	assert_seen("after an overflow", after, here, 1);
	fixture_done(f);
}

static void a_hung_reader_of_events_holds_nobody_up(void **state)
{
	Fixture *f = fixture_with((const char *const[]){ "--cache", "auto", NULL });
	pid_t thread = find_watch(f);
	g_autofree char *host = new_ground(f, "c");
	g_autofree char *here = g_build_filename(f->workspace, "c", NULL);

	(void)state;
	if (thread != 0)
		stop_thread(thread);
	alarm(20);
	for (size_t i = 0; i < view_changes_count; i++) {
		g_autofree char *name = g_strdup_printf("hung-%zu", i);
		g_autofree char *ground = new_ground(f, name);
		g_autofree char *there = g_build_filename(f->workspace, name, NULL);
		g_autofree char *after = NULL;

		g_free(view_changes_look(there));
		view_changes[i].make(there);
		after = view_changes_look(ground);
		assert_seen(view_changes[i].name, after, there, 0);
	}
	alarm(0);
	make_change("append", host);
	if (thread != 0)
		continue_thread(thread);
	g_autofree char *after = view_changes_look(host);
	assert_seen("after it went on", after, here, 1);
	fixture_done(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict_sees_each_change_at_once),
		cmocka_unit_test(auto_sees_each_change_within_a_second),
		cmocka_unit_test(exclusive_does_not_look_again),
		cmocka_unit_test(own_changes_are_right_at_once_in_every_mode),
		cmocka_unit_test(own_changes_are_seen_where_it_is_mounted_twice),
		cmocka_unit_test(open_files_follow_the_host),
		cmocka_unit_test(an_overflow_of_events_loses_nothing),
		cmocka_unit_test(a_hung_reader_of_events_holds_nobody_up),
	};
	int r = preflight_require((const char *const[]){ "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
