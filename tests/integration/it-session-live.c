/* Started processes: live streams, waits from many threads, and every way to end. */
#include "executor/live-process.h"

#include "common/io-util.h"
#include "lib/preflight.h"
#include "session-fixture.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 10000

static int make(void **state)
{
	Fixture *fixture = fixture_new();

	fixture_start(fixture, "");
	*state = fixture;
	return 0;
}

static int clear(void **state)
{
	fixture_free(*state);
	return 0;
}

static ExrLive *start_with(Fixture *fixture, const char *script, ExrExecOptions *options)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	ExrError error = { 0 };
	ExrLive *live = NULL;

	options->argv = argv;
	if (exr_live_start(fixture->session, options, &live, &error) < 0)
		fail_msg("%s (%s): %s", error.code, error.stage, error.message);
	return live;
}

static ExrLive *start(Fixture *fixture, const char *script)
{
	ExrExecOptions options;

	exr_exec_options_init(&options);
	return start_with(fixture, script, &options);
}

/* One line, or what there was before the end; bounded. */
static char *read_line(int fd)
{
	GString *line = g_string_new(NULL);
	char c = 0;

	while (c != '\n') {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		if (read(fd, &c, 1) != 1)
			break;
		g_string_append_c(line, c);
	}
	return g_string_free(line, FALSE);
}

static void assert_line(int fd, const char *expected)
{
	g_autofree char *line = read_line(fd);

	assert_string_equal(line, expected);
}

static void say(const ExrLive *live, const char *text)
{
	assert_int_equal(io_write_all(exr_live_stdin(live), text, strlen(text)), 0);
}

static void a_process_is_talked_to_while_it_runs(void **state)
{
	g_autoptr(ExrLive) live = start(
		*state, "while read line; do echo \"got $line\"; echo \"err $line\" >&2; done; "
			"echo end; exit 3");
	const ExrOutcome *outcome;

	say(live, "one\n");
	assert_line(exr_live_stdout(live), "got one\n");
	assert_line(exr_live_stderr(live), "err one\n");
	say(live, "two\n");
	assert_line(exr_live_stdout(live), "got two\n");
	exr_live_close_stdin(live);
	exr_live_close_stdin(live);
	assert_int_equal(exr_live_stdin(live), -1);
	outcome = exr_live_wait(live, PATIENCE_MS, NULL);
	assert_int_equal(outcome->result.ended, EXR_ENDED_EXITED);
	assert_int_equal(outcome->result.exit_code, 3);
	/* What it has written is there after its end. */
	assert_line(exr_live_stdout(live), "end\n");
	assert_line(exr_live_stdout(live), "");
	assert_int_equal(exr_live_signal(live, SIGTERM), -ESRCH);
}

/* The program that pid names, as the host sees it. */
static char *command_line_of(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/cmdline", (int)pid);
	char *text = NULL;

	(void)g_file_get_contents(path, &text, NULL, NULL);
	return text;
}

static void its_pid_is_the_hosts(void **state)
{
	g_autoptr(ExrLive) live = start(*state, "echo up; exec sleep 7654331");
	g_autofree char *command = NULL;
	struct pollfd end = { .events = POLLIN };
	int pidfd;

	assert_line(exr_live_stdout(live), "up\n");
	for (int i = 0; i < 200 && g_strcmp0(command, "sleep") != 0; i++) {
		g_free(command);
		command = command_line_of(exr_live_pid(live));
		g_usleep(5000);
	}
	assert_string_equal(command, "sleep");
	pidfd = exr_live_dup_pidfd(live);
	assert_true(pidfd >= 0);
	end.fd = pidfd;
	assert_int_equal(poll(&end, 1, 0), 0);
	assert_int_equal(exr_live_signal(live, SIGTERM), 0);
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	close(pidfd);
	end.fd = exr_live_end_fd(live);
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	assert_int_equal(exr_live_wait(live, 0, NULL)->result.signal, SIGTERM);
	assert_int_equal(exr_live_pid(live), -1);
}

static void *wait_for(void *live)
{
	return (void *)(uintptr_t)exr_live_wait(live, PATIENCE_MS, NULL);
}

static void every_waiter_gets_the_same_answer(void **state)
{
	g_autoptr(ExrLive) live = start(*state, "read x; exit 9");
	GThread *threads[4];

	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		threads[i] = g_thread_new("wait", wait_for, live);
	exr_live_close_stdin(live);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
		const ExrOutcome *outcome = g_thread_join(threads[i]);

		assert_ptr_equal(outcome, exr_live_wait(live, 0, NULL));
		assert_int_equal(outcome->result.exit_code, 9);
	}
}

static void a_waits_deadline_or_cancel_kills(void **state)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(ExrLive) late = start(*state, "setsid sleep 7654332 & exec sleep 7654332");
	g_autoptr(ExrLive) canceled = start(*state, "exec sleep 7654332");

	assert_int_equal(exr_live_wait(late, 200, NULL)->result.ended, EXR_ENDED_TIMED_OUT);
	g_cancellable_cancel(cancellable);
	assert_int_equal(exr_live_wait(canceled, EXR_NO_TIMEOUT, cancellable)->result.ended,
			 EXR_ENDED_CANCELED);
	assert_int_equal(count_processes("7654332"), 0);
}

static void its_own_timeout_needs_nobody_to_wait(void **state)
{
	ExrExecOptions options;
	g_autoptr(ExrLive) live = NULL;
	struct pollfd end = { .events = POLLIN };

	exr_exec_options_init(&options);
	options.timeout_ms = 200;
	live = start_with(*state, "exec sleep 7654333", &options);
	end.fd = exr_live_end_fd(live);
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	assert_int_equal(exr_live_wait(live, 0, NULL)->result.ended, EXR_ENDED_TIMED_OUT);
	assert_int_equal(count_processes("7654333"), 0);
}

static int fds_when_warm(Fixture *fixture)
{
	fixture_warm_up(fixture);
	return count_entries("/proc/self/fd");
}

static void closing_kills_whatever_it_started(void **state)
{
	int fds = fds_when_warm(*state);
	ExrLive *closed =
		start(*state, "setsid sleep 7654334 & sleep 7654334 & exec sleep 7654334");
	ExrLive *dropped = start(*state, "exec sleep 7654334");

	exr_live_close(closed);
	exr_live_close(closed);
	assert_int_equal(exr_live_wait(closed, 0, NULL)->result.ended, EXR_ENDED_CANCELED);
	/* The other one is alive: it may still be the shell. */
	for (int i = 0; i < 400 && count_processes("7654334") != 1; i++)
		g_usleep(5000);
	assert_int_equal(count_processes("7654334"), 1);
	exr_live_unref(closed);
	exr_live_unref(dropped);
	assert_int_equal(count_processes("7654334"), 0);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
}

/* It ignores SIGTERM, so that a grace is what its timeouts wait for. */
static ExrLive *start_stubborn(Fixture *fixture, const char *marker)
{
	g_autofree char *script =
		g_strdup_printf("trap '' TERM; echo up; while :; do sleep %s; done", marker);
	ExrExecOptions options;
	ExrLive *live;

	exr_exec_options_init(&options);
	options.kill_grace_ms = 3600 * 1000;
	live = start_with(fixture, script, &options);
	assert_line(exr_live_stdout(live), "up\n");
	return live;
}

static void killing_and_closing_wait_for_no_grace(void **state)
{
	g_autoptr(ExrLive) killed = start_stubborn(*state, "7654336");
	g_autoptr(ExrLive) closed = start_stubborn(*state, "7654336");
	g_autoptr(ExrLive) stopped = start_stubborn(*state, "7654336");
	struct pollfd end = { .fd = exr_live_end_fd(stopped), .events = POLLIN };

	exr_live_kill(killed);
	assert_int_equal(exr_live_wait(killed, EXR_NO_TIMEOUT, NULL)->result.ended,
			 EXR_ENDED_CANCELED);
	assert_int_equal(exr_live_close(closed), 0);
	assert_int_equal(exr_live_wait(closed, 0, NULL)->result.ended, EXR_ENDED_CANCELED);
	/* The grace itself holds, until somebody kills. */
	exr_live_stop(stopped);
	assert_int_equal(poll(&end, 1, 300), 0);
	exr_live_kill(stopped);
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	assert_int_equal(exr_live_wait(stopped, 0, NULL)->result.ended, EXR_ENDED_CANCELED);
	assert_int_equal(count_processes("7654336"), 0);
}

static void it_lives_across_other_commands_and_not_across_its_session(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(ExrLive) live = start(fixture, "echo ready >f; read x; echo $x");
	g_autoptr(ExrLive) forever = start(fixture, "exec sleep 7654335");
	RAN_AUTO ran = fixture_sh(
		fixture, "until [ -e f ]; do sleep 0.01; done; cat f; ls /proc | grep -c '^[0-9]'");

	assert_string_equal(ran.out, "ready\n4\n"); /* sh, ls, grep and their init */
	say(live, "x\n");
	assert_line(exr_live_stdout(live), "x\n");
	assert_int_equal(exr_live_wait(live, PATIENCE_MS, NULL)->result.exit_code, 0);
	exr_session_close(fixture->session);
	assert_int_equal(exr_live_wait(forever, PATIENCE_MS, NULL)->result.ended,
			 EXR_ENDED_CANCELED);
	assert_int_equal(count_processes("7654335"), 0);
}

static void output_that_nobody_reads_makes_it_wait(void **state)
{
	g_autoptr(ExrLive) live =
		start(*state, "head -c 300000 /dev/zero | tr '\\0' x; echo done >&2");
	char data[4096];
	size_t total = 0;
	ssize_t got;
	struct pollfd err = { .fd = exr_live_stderr(live), .events = POLLIN };

	assert_int_equal(poll(&err, 1, 300), 0);
	while ((got = read(exr_live_stdout(live), data, sizeof data)) > 0)
		total += (size_t)got;
	assert_int_equal(total, 300000);
	assert_line(exr_live_stderr(live), "done\n");
}

static void a_program_that_is_not_there_is_no_process(void **state)
{
	Fixture *fixture = *state;
	static const char *const missing[] = { "no-such-program", NULL };
	static const char *const interpreter[] = { "/workspace/script", NULL };
	int fds = fds_when_warm(fixture);
	RAN_AUTO ran = fixture_sh(fixture, "printf '#!/no/such\\n' >script; chmod +x script");
	ExrExecOptions options;
	ExrLive *live = NULL;
	ExrError error = { 0 };

	exr_exec_options_init(&options);
	options.argv = missing;
	assert_int_equal(exr_live_start(fixture->session, &options, &live, &error), -ENOENT);
	assert_string_equal(error.code, "program-not-found");
	exr_error_clear(&error);
	options.argv = interpreter;
	assert_int_equal(exr_live_start(fixture->session, &options, &live, &error), -ENOENT);
	assert_string_equal(error.stage, "exec-interpreter");
	exr_error_clear(&error);
	assert_null(live);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
	assert_int_equal(ran.end.exit_code, 0);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(a_process_is_talked_to_while_it_runs),
		TEST(its_pid_is_the_hosts),
		TEST(every_waiter_gets_the_same_answer),
		TEST(a_waits_deadline_or_cancel_kills),
		TEST(its_own_timeout_needs_nobody_to_wait),
		TEST(closing_kills_whatever_it_started),
		TEST(killing_and_closing_wait_for_no_grace),
		TEST(it_lives_across_other_commands_and_not_across_its_session),
		TEST(output_that_nobody_reads_makes_it_wait),
		TEST(a_program_that_is_not_there_is_no_process),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
