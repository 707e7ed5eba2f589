/* The boundary of an exec: what the host changed before it starts is seen by it, however much of it the kernel
 * believed; what it wrote is on the host when its result is there. */
#include "executor/session-internal.h"
#include "lib/preflight.h"
#include "session-fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static Fixture *fixture_of(void **state)
{
	return *state;
}

static char *host_path(const Fixture *fixture, const char *name)
{
	return g_build_filename(fixture->workspace, name, NULL);
}

/* In place: the same inode, as an editor that does not replace files does it. */
static void host_write(const Fixture *fixture, const char *name, const char *text)
{
	g_autofree char *path = host_path(fixture, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

#define ROUNDS 20

static void new_content_of_the_same_size_is_seen(void **state)
{
	Fixture *fixture = fixture_of(state);

	for (int i = 0; i < ROUNDS; i++) {
		g_autofree char *text = g_strdup_printf("v%06d\n", i);

		host_write(fixture, "f", text);
		fixture_expect(fixture, "cat f", text);
	}
}

static void a_new_size_and_mode_are_seen(void **state)
{
	Fixture *fixture = fixture_of(state);
	g_autofree char *path = host_path(fixture, "f");

	host_write(fixture, "f", "short\n");
	assert_int_equal(chmod(path, 0644), 0);
	fixture_expect(fixture, "stat -c '%s %a' f", "6 644\n");
	host_write(fixture, "f", "much longer\n");
	assert_int_equal(chmod(path, 0600), 0);
	fixture_expect(fixture, "stat -c '%s %a' f; cat f", "12 600\nmuch longer\n");
}

static void a_replaced_file_is_seen(void **state)
{
	Fixture *fixture = fixture_of(state);
	g_autofree char *from = host_path(fixture, "new"), *to = host_path(fixture, "f");

	host_write(fixture, "f", "old\n");
	fixture_expect(fixture, "cat f", "old\n");
	host_write(fixture, "new", "new\n");
	assert_int_equal(rename(from, to), 0);
	fixture_expect(fixture, "cat f; ls", "new\nf\n");
}

static void new_and_deleted_files_are_seen(void **state)
{
	Fixture *fixture = fixture_of(state);
	g_autofree char *path = host_path(fixture, "g");

	for (int i = 0; i < ROUNDS; i++) {
		/* both what is there and what is missing has been looked at, and is believed */
		fixture_expect(fixture, "test -e g && echo there || echo missing; ls", "missing\n");
		host_write(fixture, "g", "g\n");
		fixture_expect(fixture, "test -e g && echo there || echo missing; ls",
			       "there\ng\n");
		assert_int_equal(unlink(path), 0);
	}
	fixture_expect(fixture, "cat g 2>/dev/null || echo missing", "missing\n");
}

static void directories_too(void **state)
{
	Fixture *fixture = fixture_of(state);
	g_autofree char *a = host_path(fixture, "a"), *b = host_path(fixture, "b");
	g_autofree char *moved = host_path(fixture, "moved");

	assert_int_equal(mkdir(a, 0755), 0);
	assert_int_equal(mkdir(b, 0755), 0);
	host_write(fixture, "a/f", "of a\n");
	host_write(fixture, "b/f", "of b\n");
	fixture_expect(fixture, "cat a/f b/f", "of a\nof b\n");
	assert_int_equal(rename(a, moved), 0);
	assert_int_equal(rename(b, a), 0);
	fixture_expect(fixture, "cat a/f moved/f; test -d b || echo no b", "of b\nof a\nno b\n");
	assert_int_equal(chmod(moved, 0700), 0);
	fixture_expect(fixture, "stat -c %a moved", "700\n");
}

/* What the view itself has moved is believed under its new name. */
static void a_name_that_the_view_has_moved_is_asked_for_again(void **state)
{
	Fixture *fixture = fixture_of(state);
	g_autofree char *path = host_path(fixture, "b");

	host_write(fixture, "a", "a\n");
	fixture_expect(fixture, "cat a; mv a b; cat b", "a\na\n");
	assert_int_equal(unlink(path), 0);
	fixture_expect(fixture, "cat b 2>/dev/null || echo missing; ls", "missing\n");
}

/* More names than are kept in mind: the exec waits, and sees it all the same. */
static void more_names_than_are_remembered_are_waited_for(void **state)
{
	Fixture *fixture = fixture_of(state);

	host_write(fixture, "first", "v1\n");
	fixture_expect(fixture,
		       "cat first; i=0; while test $i -lt 18000; do test -e n$i; i=$((i+1)); done",
		       "v1\n");
	host_write(fixture, "first", "v2\n");
	fixture_expect(fixture, "cat first", "v2\n");
}

/* The kernel tells of closed files after the process that had them has ended. */
static void what_was_written_is_on_the_host(void **state)
{
	Fixture *fixture = fixture_of(state);

	for (int i = 0; i < ROUNDS; i++) {
		g_autofree char *name = g_strdup_printf("out%d", i);
		g_autofree char *script =
			g_strdup_printf("for n in 1 2 3 4 5 6 7 8; do (exec 3>%s.$n; echo $n >&3; "
					"sleep 100) & done; "
					"while test $(cat %s.? 2>/dev/null | wc -l) -lt 8; do :; "
					"done; echo done >%s",
					name, name, name);
		g_autofree char *path = host_path(fixture, name);
		g_autofree char *text = NULL;

		fixture_expect(fixture, script, "");
		assert_true(g_file_get_contents(path, &text, NULL, NULL));
		assert_string_equal(text, "done\n");
		for (int n = 1; n <= 8; n++) {
			g_autofree char *part = g_strdup_printf("%s.%d", path, n);
			g_autofree char *expected = g_strdup_printf("%d\n", n);
			g_autofree char *got = NULL;

			assert_true(g_file_get_contents(part, &got, NULL, NULL));
			assert_string_equal(got, expected);
		}
	}
}

/* How often the gateway has the file "held" open. */
static int gateway_files(void)
{
	g_autofree char *dir = g_strdup_printf("/proc/%d/fd", (int)find_child("stella-fsgate"));
	g_autoptr(GDir) fds = g_dir_open(dir, 0, NULL);
	const char *name;
	int count = 0;

	assert_non_null(fds);
	while ((name = g_dir_read_name(fds))) {
		g_autofree char *info = g_strdup_printf("%s/../fdinfo/%s", dir, name);
		g_autofree char *link = g_build_filename(dir, name, NULL);
		g_autofree char *target = g_file_read_link(link, NULL);
		g_autofree char *text = NULL;
		const char *flags;

		/* not the O_PATH fds of its cache */
		if (target && g_str_has_suffix(target, "/held") &&
		    g_file_get_contents(info, &text, NULL, NULL) &&
		    (flags = strstr(text, "flags:")) &&
		    !(strtoul(flags + strlen("flags:"), NULL, 8) & O_PATH))
			count++;
	}
	return count;
}

static void files_are_closed_when_the_result_is_there(void **state)
{
	Fixture *fixture = fixture_of(state);

	for (int i = 0; i < ROUNDS; i++) {
		/* killed with the exec, all of them at once */
		fixture_expect(
			fixture,
			"for n in 1 2 3 4 5 6 7 8; do (exec 3>>held 4>>held 5<held; echo $n; "
			"sleep 100) & done | head -n 8 | wc -l",
			"8\n");
		assert_int_equal(gateway_files(), 0);
	}
}

/* A process that goes on beside it has files open that are none of its business. */
static void an_exec_does_not_wait_for_anothers_files(void **state)
{
	Fixture *fixture = fixture_of(state);
	const char *const holder[] = { "sh", "-c",
				       "while ! test -e go; do sleep 0.01; done; exec 3>held; "
				       "touch ready; sleep 27182",
				       NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest request = {
		.argv = holder, .env = env, .cwd = "/workspace", .stdin_null = true
	};
	ExrError error = { 0 };
	ExrExec *first = NULL;
	gint64 shortest = G_MAXINT64;
	ExrEnd end;

	assert_int_equal(exr_exec_start(fixture->session, &request, &first, &error), 0);
	fixture_expect(fixture, "touch go; while ! test -e ready; do sleep 0.01; done; echo x",
		       "x\n");
	for (int i = 0; i < ROUNDS; i++) {
		gint64 began = g_get_monotonic_time();

		fixture_expect(fixture, "echo y >f; cat f", "y\n");
		shortest = MIN(shortest, g_get_monotonic_time() - began);
	}
	/* for its own it would wait 200 ms */
	assert_true(shortest < 150 * G_TIME_SPAN_MILLISECOND);
	exr_exec_kill(first);
	assert_int_equal(exr_exec_finish(first, &end), 0);
	exr_end_clear(&end);
}

static JsonObject *row_of(JsonArray *rows, guint i)
{
	assert_true(i < json_array_get_length(rows));
	return json_array_get_object_element(rows, i);
}

/* In a sandbox a link's text is given whatever it says; what leads out is told to whoever runs it. Rows of an exec
 * count nothing from before it. */
static void refusals_of_an_exec_are_told_to_the_executor(void **state)
{
	static const struct {
		const char *key, *value;
	} escape[] = {
		{ "op", "readlink" },	   { "path", "/workspace/out" },
		{ "mount", "/workspace" }, { "reason", "symlink-escape" },
		{ "target", "/srv/x" },
	}, refused[] = {
		{ "op", "link" },
		{ "path", "/user/l" },
		{ "reason", "cross-mount" },
		{ "errno", "EXDEV" },
	};
	Fixture *fixture = fixture_of(state);
	JsonArray *rows;

	host_write(fixture, "f", "f\n");
	fixture_expect(fixture, "ln f /user/l 2>/dev/null || echo refused", "refused\n");
	{
		RAN_AUTO ran = fixture_sh(
			fixture,
			"ln -s /srv/x out; ln -s /tmp/x tmp; ln -s ../usr/bin up; ln -s f in; "
			"readlink out tmp up in; ln f /user/l 2>/dev/null || echo refused; ln f l");

		assert_string_equal(ran.out, "/srv/x\n/tmp/x\n../usr/bin\nf\nrefused\n");
		assert_non_null(ran.end.observed);
		rows = json_object_get_array_member(ran.end.observed, "denials");
		assert_int_equal(json_array_get_length(rows), 2);
		for (size_t i = 0; i < G_N_ELEMENTS(escape); i++)
			assert_string_equal(
				json_object_get_string_member(row_of(rows, 0), escape[i].key),
				escape[i].value);
		assert_true(json_object_get_null_member(row_of(rows, 0), "errno"));
		for (size_t i = 0; i < G_N_ELEMENTS(refused); i++)
			assert_string_equal(
				json_object_get_string_member(row_of(rows, 1), refused[i].key),
				refused[i].value);
		for (guint i = 0; i < 2; i++)
			assert_int_equal(json_object_get_int_member(row_of(rows, i), "count"), 1);
	}
}

/* The kernel keeps their texts. */
static void replaced_links_are_seen(void **state)
{
	Fixture *fixture = fixture_of(state);
	g_autofree char *link = host_path(fixture, "l"), *other = host_path(fixture, "other");

	for (int i = 0; i < ROUNDS; i++) {
		g_autofree char *text = g_strdup_printf("target%0*d", 1 + i % 7, i);
		g_autofree char *expected =
			g_strdup_printf("%s\n%s\n%zu\n", text, text, strlen(text));

		/* In its place, or, as likely as not with the number of the one before, after it. */
		if (i % 2 == 0) {
			assert_int_equal(symlink(text, other), 0);
			assert_int_equal(rename(other, link), 0);
		} else {
			assert_int_equal(unlink(link), 0);
			assert_int_equal(symlink(text, link), 0);
		}
		fixture_expect(fixture, "readlink l; readlink l; stat -c %s l", expected);
	}
	fixture_expect(fixture, "ln -sf f l; echo of f >f; cat l; echo of g >g; ln -sfn g l; cat l",
		       "of f\nof g\n");
}

static void expect_escape(Fixture *fixture, const char *script, int count)
{
	RAN_AUTO ran = fixture_sh(fixture, script);
	JsonArray *rows;

	assert_non_null(ran.end.observed);
	rows = json_object_get_array_member(ran.end.observed, "denials");
	if (count == 0) {
		assert_int_equal(json_array_get_length(rows), 0);
		return;
	}
	assert_string_equal(json_object_get_string_member(row_of(rows, 0), "path"),
			    "/workspace/out");
	assert_int_equal(json_object_get_int_member(row_of(rows, 0), "count"), count);
}

/* Nor are they kept from being told where they are: each look is, of each exec. */
static void each_look_at_a_link_that_leads_out_is_told(void **state)
{
	Fixture *fixture = fixture_of(state);

	expect_escape(fixture, "ln -s /srv/x out; ln -s f in", 0);
	for (int i = 0; i < ROUNDS; i++) {
		expect_escape(fixture, "readlink in; cat in; echo; readlink in", 0);
		expect_escape(fixture, "readlink out", 1);
	}
	expect_escape(fixture, "for i in 1 2 3 4 5; do readlink out; sleep 0.05; done", 5);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(new_content_of_the_same_size_is_seen),
		TEST(a_new_size_and_mode_are_seen),
		TEST(a_replaced_file_is_seen),
		TEST(replaced_links_are_seen),
		TEST(each_look_at_a_link_that_leads_out_is_told),
		TEST(new_and_deleted_files_are_seen),
		TEST(directories_too),
		TEST(a_name_that_the_view_has_moved_is_asked_for_again),
		TEST(more_names_than_are_remembered_are_waited_for),
		TEST(what_was_written_is_on_the_host),
		TEST(files_are_closed_when_the_result_is_there),
		TEST(an_exec_does_not_wait_for_anothers_files),
		TEST(refusals_of_an_exec_are_told_to_the_executor),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
