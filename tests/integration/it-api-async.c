/* The asynchronous calls of a host agent: in its main loop, with what it gave gone already, cancelled, and at the end. */
#include "api-fixture.h"

#include "lib/preflight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CALLS 24 /* more than GLib has threads for tasks */

static StellaSession *session_of(void **state)
{
	return ((ApiFixture *)*state)->session;
}

/* With everything that it is given gone when this returns. */
static void exec_soon(StellaSession *session, const char *command, GCancellable *cancellable,
		      ApiAsync *async)
{
	g_autofree char *copy = g_strdup(command), *variable = g_strdup("A=of its own");
	g_autofree char *input = g_strdup("input"), *cwd = g_strdup("/workspace");
	const char *env[] = { variable, NULL };
	StellaExecOptions options;

	stella_exec_options_init(&options);
	options.env = env;
	options.cwd = cwd;
	options.input = input;
	options.input_size = strlen(input);
	stella_session_exec_async(session, copy, &options, cancellable, api_async_ready, async);
	memset(copy, '#', strlen(copy));
	memset(variable, '#', strlen(variable));
	memset(input, '#', strlen(input));
	memset(cwd, '#', strlen(cwd));
	memset(&options, 0xff, sizeof options);
}

static void commands_run_while_the_main_loop_does(void **state)
{
	StellaSession *session = session_of(state);
	ApiAsync calls[CALLS] = { 0 };
	g_autofree char *gate =
		g_build_filename(((ApiFixture *)*state)->dirs->workspace, "gate", NULL);

	/* All of them at once: the last one opens the gate that the others wait at. */
	for (int i = 0; i < CALLS; i++)
		exec_soon(session,
			  i < CALLS - 1 ? "until [ -e gate ]; do sleep 0.02; done; echo \"$A\"; cat"
					: ">gate; echo \"$A\"; cat",
			  NULL, &calls[i]);
	for (int i = 0; i < CALLS; i++) {
		g_autoptr(GError) error = NULL;
		g_autoptr(StellaExecResult) result =
			stella_session_exec_finish(session, api_await(&calls[i]), &error);

		assert_null(error);
		assert_string_equal(stella_exec_result_get_stdout(result, NULL),
				    "of its own\ninput");
		api_async_clear(&calls[i]);
	}
	assert_int_equal(access(gate, F_OK), 0);
}

static void options_that_make_no_sense_come_back_as_an_error(void **state)
{
	API_ASYNC_AUTO exec = { 0 }, process = { 0 };
	g_autoptr(GError) exec_error = NULL, process_error = NULL;
	StellaExecOptions options;
	StellaProcessRequest request;

	stella_exec_options_init(&options);
	options.size = 0;
	stella_session_exec_async(session_of(state), "true", &options, NULL, api_async_ready,
				  &exec);
	assert_null(exec.result); /* not before the main loop runs */
	assert_null(stella_session_exec_finish(session_of(state), api_await(&exec), &exec_error));
	api_assert_error(exec_error, STELLA_ERROR_INVALID_ARGUMENT);
	stella_process_request_init(&request);
	stella_session_start_process_async(session_of(state), &request, NULL, api_async_ready,
					   &process);
	assert_null(stella_session_start_process_finish(session_of(state), api_await(&process),
							&process_error));
	api_assert_error(process_error, STELLA_ERROR_INVALID_ARGUMENT);
}

static gboolean cancel_when_it_runs(gpointer data)
{
	GCancellable *cancellable = data;

	if (count_processes("7655201") == 0)
		return G_SOURCE_CONTINUE;
	g_cancellable_cancel(cancellable);
	return G_SOURCE_REMOVE;
}

static void a_cancel_is_a_result_here_too(void **state)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	API_ASYNC_AUTO running = { 0 }, late = { 0 };
	g_autoptr(StellaExecResult) result = NULL, late_result = NULL;

	exec_soon(session_of(state), "echo up; exec sleep 7655201", cancellable, &running);
	g_timeout_add(10, cancel_when_it_runs, cancellable);
	result = stella_session_exec_finish(session_of(state), api_await(&running), NULL);
	assert_non_null(result);
	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_CANCELED);
	assert_int_equal(count_processes("7655201"), 0);
	exec_soon(session_of(state), "true", cancellable, &late);
	late_result = stella_session_exec_finish(session_of(state), api_await(&late), NULL);
	assert_int_equal(stella_exec_result_get_ended(late_result), STELLA_ENDED_CANCELED);
}

static StellaProcess *start_soon(StellaSession *session, const char *script)
{
	API_ASYNC_AUTO started = { 0 };
	g_autofree char *copy = g_strdup(script);
	const char *args[] = { "-c", copy, NULL };
	g_autoptr(GError) error = NULL;
	StellaProcessRequest request;
	StellaProcess *process;

	stella_process_request_init(&request);
	request.path = "sh";
	request.args = args;
	stella_session_start_process_async(session, &request, NULL, api_async_ready, &started);
	memset(copy, '#', strlen(copy));
	args[0] = NULL;
	process = stella_session_start_process_finish(session, api_await(&started), &error);
	if (!process)
		fail_msg("%s: %s", script, error->message);
	return process;
}

static void a_process_is_started_waited_for_and_closed(void **state)
{
	g_autoptr(StellaProcess) process = start_soon(session_of(state), "read x; exit 6");
	g_autoptr(StellaProcess) forever = start_soon(session_of(state), "exec sleep 7655202");
	g_autoptr(GCancellable) cancelled = g_cancellable_new();
	API_ASYNC_AUTO wait = { 0 }, other = { 0 }, refused = { 0 }, closed = { 0 };
	g_autoptr(StellaExecResult) result = NULL, late = NULL;
	g_autoptr(GError) error = NULL;

	stella_process_wait_async(process, STELLA_NO_TIMEOUT, NULL, api_async_ready, &wait);
	stella_process_wait_async(forever, 100, NULL, api_async_ready, &other);
	stella_process_close_stdin(process);
	result = stella_process_wait_finish(process, api_await(&wait), NULL);
	assert_int_equal(stella_exec_result_get_exit_code(result), 6);
	late = stella_process_wait_finish(forever, api_await(&other), NULL);
	assert_int_equal(stella_exec_result_get_ended(late), STELLA_ENDED_TIMED_OUT);
	assert_int_equal(count_processes("7655202"), 0);
	g_cancellable_cancel(cancelled);
	stella_process_close_async(process, cancelled, api_async_ready, &refused);
	assert_false(stella_process_close_finish(process, api_await(&refused), &error));
	api_assert_error(error, STELLA_ERROR_CANCELED);
	assert_true(stella_process_get_stdout_fd(process) >= 0);
	stella_process_close_async(process, NULL, api_async_ready, &closed);
	assert_true(stella_process_close_finish(process, api_await(&closed), NULL));
	assert_int_equal(stella_process_get_stdout_fd(process), -1);
}

static void the_end_of_a_session_is_waited_for(void **state)
{
	StellaSession *session = session_of(state);
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	API_ASYNC_AUTO done = { 0 }, given_up = { 0 }, closed = { 0 }, again = { 0 };
	API_ASYNC_AUTO running = { 0 }, other = { 0 };
	g_autoptr(GError) error = NULL;
	g_autoptr(StellaExecResult) result = NULL;

	exec_soon(session, "exec sleep 7655203", NULL, &running);
	stella_session_wait_done_async(session, NULL, api_async_ready, &done);
	stella_session_wait_done_async(session, cancellable, api_async_ready, &other);
	stella_session_wait_done_async(session, cancellable, api_async_ready, &given_up);
	g_cancellable_cancel(cancellable);
	assert_false(stella_session_wait_done_finish(session, api_await(&given_up), &error));
	api_assert_error(error, STELLA_ERROR_CANCELED);
	assert_false(stella_session_wait_done_finish(session, api_await(&other), NULL));
	stella_session_close_async(session, NULL, api_async_ready, &closed);
	assert_true(stella_session_close_finish(session, api_await(&closed), NULL));
	assert_true(stella_session_wait_done_finish(session, api_await(&done), NULL));
	assert_false(stella_session_is_alive(session));
	stella_session_wait_done_async(session, cancellable, api_async_ready, &again);
	assert_true(stella_session_wait_done_finish(session, api_await(&again), NULL));
	/* Closed before or while it ran. */
	result = stella_session_exec_finish(session, api_await(&running), NULL);
	if (result)
		assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_CANCELED);
	assert_int_equal(count_processes("7655203"), 0);
}

static void *cancel_soon(void *cancellable)
{
	g_usleep(50000);
	g_cancellable_cancel(cancellable);
	return NULL;
}

static void waiting_for_the_end_can_be_cancelled(void **state)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	GThread *thread = g_thread_new("cancel", cancel_soon, cancellable);
	g_autoptr(GError) error = NULL;

	assert_false(stella_session_wait_done(session_of(state), cancellable, &error));
	api_assert_error(error, STELLA_ERROR_CANCELED);
	g_thread_join(thread);
	assert_true(stella_session_is_alive(session_of(state)));
}

/* A session that nobody holds but a call. */
static void a_call_keeps_its_session(void **state)
{
	ApiFixture *fixture = *state;
	StellaSession *session = fixture->session;
	API_ASYNC_AUTO running = { 0 };
	g_autofree char *sessions = g_build_filename(fixture->dirs->state, "sessions", NULL);

	exec_soon(session, "cat", NULL, &running);
	g_object_unref(g_steal_pointer(&fixture->session));
	{
		GAsyncResult *async = api_await(&running);
		g_autoptr(StellaSession) held =
			STELLA_SESSION(g_async_result_get_source_object(async));
		g_autoptr(StellaExecResult) result = stella_session_exec_finish(held, async, NULL);

		assert_string_equal(stella_exec_result_get_stdout(result, NULL), "input");
	}
	api_async_clear(&running);
	assert_int_equal(count_entries(sessions), 0);
}

static void *call_in_a_thread(void *session)
{
	bool answered;

	g_autoptr(GMainContext) context = g_main_context_new();
	API_ASYNC_AUTO async = { 0 };
	g_autoptr(StellaExecResult) result = NULL;

	g_main_context_push_thread_default(context);
	exec_soon(session, "cat", NULL, &async);
	result = stella_session_exec_finish(session, api_await(&async), NULL);
	g_main_context_pop_thread_default(context);
	answered = result != NULL;
	return GINT_TO_POINTER(answered);
}

static void the_callers_context_is_where_it_is_answered(void **state)
{
	GThread *thread = g_thread_new("caller", call_in_a_thread, session_of(state));

	/* This thread's main loop does not run. */
	assert_non_null(g_thread_join(thread));
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, api_fixture_set_up, api_fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(commands_run_while_the_main_loop_does),
		TEST(options_that_make_no_sense_come_back_as_an_error),
		TEST(a_cancel_is_a_result_here_too),
		TEST(a_process_is_started_waited_for_and_closed),
		TEST(the_end_of_a_session_is_waited_for),
		TEST(waiting_for_the_end_can_be_cancelled),
		TEST(a_call_keeps_its_session),
		TEST(the_callers_context_is_where_it_is_answered),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
