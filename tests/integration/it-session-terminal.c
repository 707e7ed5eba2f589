/* The terminal of an exec: whose it is, who can reach it, what it refuses. */
#include "executor/live-process.h"
#include "lib/preflight.h"
#include "session-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

static ExrExec *start(const Fixture *fixture, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest request = { .argv = argv,
			       .env = env,
			       .cwd = "/workspace",
			       .tty = true,
			       .rows = 31,
			       .columns = 97 };
	ExrError error = { 0 };
	ExrExec *exec = NULL;

	if (exr_exec_start(fixture->session, &request, &exec, &error) < 0)
		fail_msg("%s (%s): %s", error.code, error.stage, error.message);
	return exec;
}

/* Reads until text has come, or to the end when it is NULL; everything that came. */
static char *read_until(const ExrExec *exec, const char *text)
{
	gint64 until = g_get_monotonic_time() + PATIENCE_MS * G_TIME_SPAN_MILLISECOND;
	GString *seen = g_string_new(NULL);

	for (;;) {
		struct pollfd p = { .fd = exr_exec_stdout_fd(exec), .events = POLLIN };
		char data[4096];
		ssize_t size;

		if (text && strstr(seen->str, text))
			break;
		if (g_get_monotonic_time() > until)
			fail_msg("waited for %s; seen: %s", text ? text : "the end", seen->str);
		(void)poll(&p, 1, 100);
		size = read(p.fd, data, sizeof data);
		if (size > 0)
			g_string_append_len(seen, data, size);
		else if (size == 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return g_string_free(seen, FALSE);
}

static char *finish(ExrExec *exec, int exit_code)
{
	char *text = read_until(exec, NULL);
	ExrEnd end;

	assert_int_equal(exr_exec_finish(exec, &end), 0);
	assert_false(end.start_failed);
	assert_int_equal(end.signal, 0);
	assert_int_equal(end.exit_code, exit_code);
	exr_end_clear(&end);
	return text;
}

static void a_command_has_a_terminal_of_its_own(void **state)
{
	int host_ptys = count_entries("/dev/pts"), fds = count_entries("/proc/self/fd");
	ExrExec *exec = start(*state, "tty; readlink /proc/self/fd/[0-2]; stty size; "
				      "echo by name >/dev/tty; stat -c '%U %F' $(tty); "
				      "ps -o tty=,tpgid=,sid= -p $$; ls /dev/pts; exit 6");
	g_autofree char *text = NULL;

	assert_int_equal(count_entries("/dev/pts"), host_ptys);
	assert_int_equal(exr_exec_stderr_fd(exec), -1);
	text = finish(exec, 6);
	assert_non_null(strstr(text, "/dev/pts/0\r\n/dev/pts/0\r\n/dev/pts/0\r\n/dev/pts/0\r\n"
				     "31 97\r\nby name\r\nagent character special file\r\n"));
	assert_non_null(strstr(text, "pts/0"));
	assert_non_null(strstr(text, "0  ptmx\r\n"));
	assert_int_equal(count_entries("/proc/self/fd"), fds);
}

static void a_program_that_is_not_there_fails_to_start(void **state)
{
	const char *const argv[] = { "no-such-program", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest request = { .argv = argv, .env = env, .cwd = "/", .tty = true };
	ExrError error = { 0 };
	ExrExec *exec = NULL;
	ExrEnd end;

	assert_int_equal(exr_exec_start(((Fixture *)*state)->session, &request, &exec, &error), 0);
	assert_int_equal(exr_exec_finish(exec, &end), 0);
	assert_true(end.start_failed);
	assert_string_equal(end.error.code, "program-not-found");
	exr_end_clear(&end);
}

static void a_resize_is_told_to_the_foreground(void **state)
{
	ExrExec *exec = start(*state, "trap 'stty size; exit 5' WINCH; echo up; "
				      "while :; do sleep 0.05; done");
	const char *const argv[] = { "sleep", "100", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest without = { .argv = argv, .env = env, .cwd = "/", .stdin_null = true };
	g_autofree char *up = read_until(exec, "up"), *text = NULL;
	ExrError error = { 0 };
	ExrExec *other = NULL;
	ExrEnd end;

	assert_non_null(up);
	assert_int_equal(exr_exec_resize(exec, 44, 120), 0);
	text = finish(exec, 5);
	assert_non_null(strstr(text, "44 120\r\n"));
	assert_int_equal(exr_exec_start(((Fixture *)*state)->session, &without, &other, &error), 0);
	assert_int_equal(exr_exec_resize(other, 44, 120), -ENOTTY);
	exr_exec_kill(other);
	assert_int_equal(exr_exec_finish(other, &end), 0);
	exr_end_clear(&end);
}

/* Its slave closed by all of the command's processes, and opened again. */
static void a_terminal_that_nobody_has_open_is_not_at_its_end(void **state)
{
	ExrExec *exec =
		start(*state, "name=$(tty); exec <&- >&- 2>&-; sleep 0.3; echo back >$name");
	g_autofree char *text = finish(exec, 0);

	assert_string_equal(text, "back\r\n");
}

static void all_that_was_printed_arrives(void **state)
{
	ExrExec *exec = start(*state, "seq 200000; echo last");
	g_autofree char *text = NULL;

	g_usleep(300000); /* it is blocked by now, for nobody reads */
	text = finish(exec, 0);
	assert_true(g_str_has_suffix(text, "\r\n199999\r\n200000\r\nlast\r\n"));
	assert_int_equal(strlen(text), 1288895 + 200000 + 6);
}

static void a_started_process_can_have_one(void **state)
{
	const char *const argv[] = {
		"sh", "-c",
		"stty size; trap 'stty size' WINCH; echo up; cat; read x || echo end; exit 6", NULL
	};
	Fixture *fixture = *state;
	g_autoptr(ExrLive) live = NULL, without = NULL;
	ExrExecOptions options;
	ExrError error = { 0 };
	g_autoptr(GString) seen = g_string_new(NULL);
	bool resized = false;
	char byte;

	exr_exec_options_init(&options);
	options.argv = argv;
	options.tty = true;
	options.rows = 31;
	options.columns = 97;
	assert_int_equal(exr_live_start(fixture->session, &options, &live, &error), 0);
	assert_int_equal(exr_live_stderr(live), -1);
	assert_int_equal(write(exr_live_stdin(live), "typed\n", 6), 6);
	while (read(exr_live_stdout(live), &byte, 1) == 1) {
		g_string_append_c(seen, byte);
		if (!resized && g_str_has_suffix(seen->str, "up\r\n")) {
			resized = true;
			assert_int_equal(exr_live_resize(live, 44, 120), 0);
			exr_live_close_stdin(live);
		}
		if (g_str_has_suffix(seen->str, "44 120\r\n"))
			assert_int_equal(write(exr_live_stdout(live), "\004", 1), 1);
	}
	assert_int_equal(errno, EIO);
	assert_non_null(strstr(seen->str, "31 97\r\n"));
	assert_non_null(strstr(seen->str, "typed\r\n"));
	assert_non_null(strstr(seen->str, "44 120\r\n"));
	assert_non_null(strstr(seen->str, "end\r\n"));
	assert_int_equal(exr_live_wait(live, PATIENCE_MS, NULL)->result.exit_code, 6);
	assert_int_equal(exr_live_resize(live, 44, 120), -ESRCH);
	options.tty = false;
	assert_int_equal(exr_live_start(fixture->session, &options, &without, &error), 0);
	assert_int_equal(exr_live_resize(without, 44, 120), -ENOTTY);
}

/* All commands of a session have the same user: the permissions of a terminal keep none of them out. */
static void other_commands_cannot_reach_it(void **state)
{
	ExrExec *first = start(*state, "stty -echo; echo up; read line; echo [$line]");
	g_autofree char *up = read_until(first, "up"), *text = NULL, *second = NULL;
	RAN_AUTO piped =
		fixture_sh(*state, "ls /dev/pts; for i in 0 1 2; do "
				   "echo stolen >/dev/pts/$i && echo reached; done 2>/dev/null; "
				   "true");

	assert_non_null(up);
	assert_string_equal(piped.out, "ptmx\n");
	/* Another one with a terminal: the same name is another thing there. */
	second = finish(start(*state, "echo stolen >/dev/pts/0; ls /dev/pts"), 0);
	assert_string_equal(second, "stolen\r\n0  ptmx\r\n");
	assert_int_equal(write(exr_exec_stdin_fd(first), "typed\n", 6), 6);
	text = finish(first, 0);
	assert_non_null(strstr(text, "[typed]\r\n"));
	assert_null(strstr(text, "stolen"));
}

/* A terminal that a command makes by itself is on its own devpts as well, and /dev/ptmx that one's. */
static void commands_can_make_more_terminals(void **state)
{
	ExrExec *exec = start(*state, "script -qec 'tty; ls /dev/pts' /dev/null </dev/null");
	g_autofree char *text = finish(exec, 0);

	assert_non_null(strstr(text, "/dev/pts/1\r"));
	assert_non_null(strstr(text, "0  1  ptmx\r"));
}

static void the_number_of_terminals_has_a_bound(void **state)
{
	ExrExec *exec =
		start(*state, "bash -c 'for ((i = 0; i < 300; i++)); do exec {f}<>/dev/ptmx; done "
			      "2>/dev/null; ls /dev/pts | wc -l'");
	g_autofree char *text = finish(exec, 0);
	RAN_AUTO piped = fixture_sh(
		*state, "bash -c 'for ((i = 0; i < 300; i++)); do exec {f}<>/dev/ptmx; done "
			"2>/dev/null; ls /dev/pts | wc -l'");

	/* and ptmx */
	assert_string_equal(text, "257\r\n");
	assert_string_equal(piped.out, "257\n");
}

static void no_key_can_be_typed_by_a_command(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL), *program = NULL;
	g_autofree char *copy = g_build_filename(fixture->workspace, "probe", NULL), *text = NULL;
	gsize size;

	assert_true(g_file_get_contents(self, &program, &size, NULL));
	assert_true(g_file_set_contents_full(copy, program, (gssize)size, G_FILE_SET_CONTENTS_NONE,
					     0755, NULL));
	text = finish(start(fixture, "./probe probe"), 0);
	assert_string_equal(text, "TIOCGWINSZ 0\r\nTIOCSTI 1\r\nTIOCSTI with more bits 1\r\n"
				  "TIOCLINUX 1\r\nTIOCSETD 1\r\n");
}

static void try_ioctl(const char *name, unsigned long request, void *argument)
{
	printf("%s %d\n", name, syscall(SYS_ioctl, 0, request, argument) < 0 ? errno : 0);
}

/* Inside; a key that was typed would be read by nobody. */
static int probe(void)
{
	struct winsize size;
	char paste = 3;
	int discipline = 2;

	try_ioctl("TIOCGWINSZ", TIOCGWINSZ, &size);
	try_ioctl("TIOCSTI", TIOCSTI, &paste);
	try_ioctl("TIOCSTI with more bits", TIOCSTI | (1ul << 32), &paste);
	try_ioctl("TIOCLINUX", TIOCLINUX, &paste);
	try_ioctl("TIOCSETD", TIOCSETD, &discipline);
	return 0;
}

/* Our end is the last one: processes that wait for a key do not outlive it, whatever they ignore. */
static void the_end_of_the_exec_ends_its_processes(void **state)
{
	ExrExec *exec =
		start(*state, "trap '' HUP; setsid sleep 31415 & echo up; exec sleep 31415");
	g_autofree char *up = read_until(exec, "up");
	ExrEnd end;

	assert_non_null(up);
	exr_exec_kill(exec);
	assert_int_equal(exr_exec_finish(exec, &end), 0);
	assert_int_equal(end.signal, SIGKILL);
	assert_int_equal(count_processes("sleep 31415"), 0);
	exr_end_clear(&end);
}

int main(int argc, char **argv)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_command_has_a_terminal_of_its_own),
		TEST(a_program_that_is_not_there_fails_to_start),
		TEST(a_resize_is_told_to_the_foreground),
		TEST(a_terminal_that_nobody_has_open_is_not_at_its_end),
		TEST(all_that_was_printed_arrives),
		TEST(a_started_process_can_have_one),
		TEST(other_commands_cannot_reach_it),
		TEST(commands_can_make_more_terminals),
		TEST(the_number_of_terminals_has_a_bound),
		TEST(no_key_can_be_typed_by_a_command),
		TEST(the_end_of_the_exec_ends_its_processes),
	};
	int status;

	if (argc == 2 && strcmp(argv[1], "probe") == 0)
		return probe();
	status = preflight_require(needs);
	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
