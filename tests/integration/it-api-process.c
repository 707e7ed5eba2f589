/* Live processes as a host agent has them: their streams, signals and sizes, who waits for them, and what ends them. */
#include "api-fixture.h"

#include "common/io-util.h"
#include "lib/preflight.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

static StellaProcess *start_with(void **state, const char *script, StellaProcessRequest *request)
{
	ApiFixture *fixture = *state;
	const char *const args[] = { "-c", script, NULL };
	g_autoptr(GError) error = NULL;
	StellaProcess *process;

	request->path = "sh";
	request->args = args;
	process = stella_session_start_process(fixture->session, request, NULL, &error);
	if (!process)
		fail_msg("%s: %s", script, error->message);
	return process;
}

static StellaProcess *start(void **state, const char *script)
{
	StellaProcessRequest request;

	stella_process_request_init(&request);
	return start_with(state, script, &request);
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

static void assert_line(StellaProcess *process, const char *expected)
{
	g_autofree char *line = read_line(stella_process_get_stdout_fd(process));

	assert_string_equal(line, expected);
}

static void say(StellaProcess *process, const char *text)
{
	assert_int_equal(io_write_all(stella_process_get_stdin_fd(process), text, strlen(text)), 0);
}

static StellaEnded end_of(StellaProcess *process)
{
	g_autoptr(StellaExecResult) result = stella_process_wait(process, PATIENCE_MS, NULL, NULL);

	assert_non_null(result);
	return stella_exec_result_get_ended(result);
}

static void it_is_talked_to(void **state)
{
	g_autoptr(StellaProcess) process =
		start(state, "while read x; do echo \"got $x\"; done; echo end >&2; exit 4");
	g_autofree char *err = NULL;
	g_autoptr(StellaExecResult) result = NULL;

	say(process, "one\n");
	assert_line(process, "got one\n");
	stella_process_close_stdin(process);
	stella_process_close_stdin(process);
	assert_int_equal(stella_process_get_stdin_fd(process), -1);
	result = stella_process_wait(process, STELLA_NO_TIMEOUT, NULL, NULL);
	assert_int_equal(stella_exec_result_get_exit_code(result), 4);
	assert_string_equal(stella_exec_result_get_stdout(result, NULL), "");
	err = read_line(stella_process_get_stderr_fd(process));
	assert_string_equal(err, "end\n");
	assert_true(stella_process_close(process, NULL));
	assert_int_equal(stella_process_get_stdout_fd(process), -1);
}

static void its_request_is_judged_and_kept(void **state)
{
	ApiFixture *fixture = *state;
	const char *const env[] = { "A=1", NULL }, *const unset[] = { "LANG", NULL };
	StellaProcessRequest request;
	g_autoptr(StellaProcess) process = NULL, merged = NULL;

	stella_process_request_init(&request);
	request.cwd = fixture->dirs->workspace;
	request.env = env;
	request.unset_env = unset;
	process = start_with(state, "echo \"$A ${LANG-none} $(pwd)\"", &request);
	assert_line(process, "1 none /workspace\n");
	request.merge_stderr = TRUE;
	merged = start_with(state, "echo x >&2", &request);
	assert_int_equal(stella_process_get_stderr_fd(merged), -1);
	assert_line(merged, "x\n");
}

static void *wait_for(void *process)
{
	return stella_process_wait(process, PATIENCE_MS, NULL, NULL);
}

static void every_waiter_gets_the_same_answer(void **state)
{
	g_autoptr(StellaProcess) process = start(state, "read x; exit 9");
	GThread *threads[2];
	g_autoptr(StellaExecResult) last = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		threads[i] = g_thread_new("wait", wait_for, process);
	stella_process_close_stdin(process);
	last = stella_process_wait(process, PATIENCE_MS, NULL, NULL);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
		g_autoptr(StellaExecResult) result = g_thread_join(threads[i]);

		assert_ptr_equal(result, last);
	}
	assert_int_equal(stella_exec_result_get_exit_code(last), 9);
}

static void signals_reach_it_until_its_end(void **state)
{
	g_autoptr(StellaProcess) process =
		start(state, "trap 'echo usr1' USR1; echo up; while :; do sleep 0.05; done");
	g_autoptr(GError) none = NULL, many = NULL, late = NULL;

	assert_line(process, "up\n");
	assert_true(stella_process_send_signal(process, SIGUSR1, NULL));
	assert_line(process, "usr1\n");
	assert_false(stella_process_send_signal(process, 0, &none));
	api_assert_error(none, STELLA_ERROR_INVALID_ARGUMENT);
	assert_false(stella_process_send_signal(process, SIGRTMAX + 1, &many));
	api_assert_error(many, STELLA_ERROR_INVALID_ARGUMENT);
	assert_true(stella_process_send_signal(process, SIGTERM, NULL));
	assert_int_equal(end_of(process), STELLA_ENDED_SIGNALED);
	assert_false(stella_process_send_signal(process, SIGTERM, &late));
	api_assert_error(late, STELLA_ERROR_FAILED);
	assert_int_equal(stella_error_get_errno(late), ESRCH);
}

static void its_terminal_has_the_size_that_it_is_given(void **state)
{
	StellaProcessRequest request;
	g_autoptr(StellaProcess) process = NULL, pipes = start(state, "cat");
	g_autoptr(GError) error = NULL, late = NULL;

	stella_process_request_init(&request);
	request.tty = TRUE;
	request.rows = 10;
	request.columns = 20;
	process = start_with(state, "stty -echo; stty size; read x; stty size; read x", &request);
	assert_int_equal(stella_process_get_stderr_fd(process), -1);
	assert_line(process, "10 20\r\n");
	assert_true(stella_process_resize(process, 30, 40, NULL));
	say(process, "go\n");
	assert_line(process, "30 40\r\n");
	assert_false(stella_process_resize(pipes, 30, 40, &error));
	api_assert_error(error, STELLA_ERROR_FAILED);
	assert_int_equal(stella_error_get_errno(error), ENOTTY);
	/* The end of input is typed. */
	stella_process_close_stdin(process);
	assert_int_equal(end_of(process), STELLA_ENDED_EXITED);
	assert_false(stella_process_resize(process, 1, 1, &late));
	assert_int_equal(stella_error_get_errno(late), ESRCH);
}

static void *cancel_it(void *cancellable)
{
	g_cancellable_cancel(cancellable);
	return NULL;
}

static void a_waits_deadline_or_cancel_kills(void **state)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(StellaProcess) late = start(state, "setsid sleep 7655101 & exec sleep 7655101");
	g_autoptr(StellaProcess) canceled = start(state, "exec sleep 7655101");
	g_autoptr(StellaExecResult) late_result = NULL, canceled_result = NULL;
	g_autoptr(GError) error = NULL;
	GThread *thread;

	assert_null(stella_process_wait(late, -2, NULL, &error));
	api_assert_error(error, STELLA_ERROR_INVALID_ARGUMENT);
	assert_true(stella_process_get_pid(late) > 0);
	late_result = stella_process_wait(late, 0, NULL, NULL);
	assert_int_equal(stella_exec_result_get_ended(late_result), STELLA_ENDED_TIMED_OUT);
	thread = g_thread_new("cancel", cancel_it, cancellable);
	canceled_result = stella_process_wait(canceled, STELLA_NO_TIMEOUT, cancellable, NULL);
	assert_int_equal(stella_exec_result_get_ended(canceled_result), STELLA_ENDED_CANCELED);
	g_thread_join(thread);
	assert_int_equal(count_processes("7655101"), 0);
}

static void its_timeout_needs_nobody_to_wait(void **state)
{
	StellaProcessRequest request;
	g_autoptr(StellaProcess) process = NULL;
	struct pollfd end = { .events = POLLIN };

	stella_process_request_init(&request);
	request.timeout_ms = 200;
	process = start_with(state, "exec sleep 7655102", &request);
	end.fd = stella_process_get_end_fd(process);
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	assert_int_equal(end_of(process), STELLA_ENDED_TIMED_OUT);
	assert_int_equal(count_processes("7655102"), 0);
}

static void its_pid_is_the_hosts_until_its_end(void **state)
{
	g_autoptr(StellaProcess) process = start(state, "exec sleep 7655103");
	g_autoptr(GError) error = NULL;
	pid_t pid = stella_process_get_pid(process);
	struct pollfd end = { .events = POLLIN };

	assert_true(pid > 1);
	assert_int_equal(kill(pid, 0), 0);
	end.fd = stella_process_dup_pidfd(process, NULL);
	assert_true(end.fd >= 0);
	assert_int_equal(poll(&end, 1, 0), 0);
	stella_process_kill(process);
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	close(end.fd);
	assert_int_equal(end_of(process), STELLA_ENDED_CANCELED);
	assert_int_equal(stella_process_get_pid(process), -1);
	assert_int_equal(stella_process_dup_pidfd(process, &error), -1);
	assert_int_equal(stella_error_get_errno(error), ESRCH);
}

static void closing_and_dropping_kill_all_of_it(void **state)
{
	ApiFixture *fixture = *state;
	StellaProcessRequest request;
	StellaProcess *closed, *dropped;
	int fds;

	api_warm_up(fixture->session);
	fds = count_entries("/proc/self/fd");
	dropped = start(state, "echo up; setsid sleep 7655104; :");
	stella_process_request_init(&request);
	request.kill_grace_ms = 3600 * 1000;
	closed = start_with(
		state, "trap '' TERM; echo up; setsid sleep 7655104 & sleep 7655104; :", &request);
	assert_line(closed, "up\n");
	assert_line(dropped, "up\n");
	assert_true(stella_process_close(closed, NULL));
	assert_true(stella_process_close(closed, NULL));
	assert_int_equal(end_of(closed), STELLA_ENDED_CANCELED);
	g_object_unref(closed);
	g_object_unref(dropped);
	assert_int_equal(count_processes("7655104"), 0);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
}

static void a_handle_may_outlive_its_session(void **state)
{
	ApiFixture *fixture = *state;
	g_autoptr(StellaProcess) process = start(state, "echo up; exec sleep 7655105");
	g_autoptr(StellaExecResult) result = NULL;
	g_autoptr(GError) error = NULL;

	assert_line(process, "up\n");
	api_fixture_stop(fixture);
	assert_int_equal(count_processes("7655105"), 0);
	result = stella_process_wait(process, PATIENCE_MS, NULL, NULL);
	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_CANCELED);
	assert_int_equal(stella_process_get_pid(process), -1);
	assert_false(stella_process_send_signal(process, SIGTERM, &error));
	g_clear_object(&process);
	/* A result outlives everything. */
	assert_int_equal(stella_exec_result_get_exit_code(result), -1);
}

static void assert_not_started(void **state, const StellaProcessRequest *request,
			       GCancellable *cancellable, StellaError code)
{
	ApiFixture *fixture = *state;
	int fds = count_entries("/proc/self/fd");
	g_autoptr(GError) error = NULL;

	assert_null(stella_session_start_process(fixture->session, request, cancellable, &error));
	api_assert_error(error, code);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
}

static void what_cannot_be_started_is_no_process(void **state)
{
	ApiFixture *fixture = *state;
	g_autofree char *file = g_build_filename(fixture->dirs->workspace, "plain", NULL);
	const char *const args[] = { "-c", "echo run >ran", NULL };
	const char *const env[] = { "=1", NULL };
	g_autoptr(GCancellable) cancelled = g_cancellable_new();
	g_autoptr(StellaProcess) allowed = NULL;
	g_autofree char *none = NULL, *text = NULL;
	StellaProcessRequest request;

	assert_true(g_file_set_contents(file, "no program", -1, NULL));
	g_cancellable_cancel(cancelled);
	api_warm_up(fixture->session);
	stella_process_request_init(&request);
	assert_not_started(state, &request, NULL, STELLA_ERROR_INVALID_ARGUMENT);
	request.path = "no-such-program";
	assert_not_started(state, &request, NULL, STELLA_ERROR_PROGRAM_NOT_FOUND);
	request.path = "/workspace/plain";
	assert_not_started(state, &request, NULL, STELLA_ERROR_PROGRAM_NOT_EXECUTABLE);
	request.path = "sh";
	request.args = args;
	assert_not_started(state, &request, cancelled, STELLA_ERROR_CANCELED);
	request.cwd = "/outside";
	assert_not_started(state, &request, NULL, STELLA_ERROR_CWD_INVALID);
	request.cwd = "/workspace/plain";
	assert_not_started(state, &request, NULL, STELLA_ERROR_CWD_INVALID);
	request.cwd = NULL;
	request.env = env;
	assert_not_started(state, &request, NULL, STELLA_ERROR_INVALID_ARGUMENT);
	request.env = NULL;
	request.timeout_ms = -2;
	assert_not_started(state, &request, NULL, STELLA_ERROR_INVALID_ARGUMENT);
	request.timeout_ms = 0;
	none = api_host_text(fixture, "ran");
	assert_null(none);
	allowed = stella_session_start_process(fixture->session, &request, NULL, NULL);
	assert_non_null(allowed);
	assert_int_equal(end_of(allowed), STELLA_ENDED_EXITED);
	text = api_host_text(fixture, "ran");
	assert_string_equal(text, "run\n");
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, api_fixture_set_up, api_fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(it_is_talked_to),
		TEST(its_request_is_judged_and_kept),
		TEST(every_waiter_gets_the_same_answer),
		TEST(signals_reach_it_until_its_end),
		TEST(its_terminal_has_the_size_that_it_is_given),
		TEST(a_waits_deadline_or_cancel_kills),
		TEST(its_timeout_needs_nobody_to_wait),
		TEST(its_pid_is_the_hosts_until_its_end),
		TEST(closing_and_dropping_kill_all_of_it),
		TEST(a_handle_may_outlive_its_session),
		TEST(what_cannot_be_started_is_no_process),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
