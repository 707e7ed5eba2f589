/* One session and many threads; many sessions in one process. */
#include "executor/live-process.h"

#include "lib/preflight.h"
#include "session-fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#define THREADS	 8
#define COMMANDS 12
#define SESSIONS 12

static int make(void **state)
{
	*state = fixture_new();
	return 0;
}

static int clear(void **state)
{
	fixture_free(*state);
	return 0;
}

typedef struct {
	ExrSession *session;
	int number;
	unsigned int wrong;
	unsigned int canceled;
	GCancellable *cancellable;
} Worker;

static bool out_is(const ExrOutcome *outcome, const char *expected)
{
	return outcome->result.ended == EXR_ENDED_EXITED && outcome->result.out &&
	       strcmp(output_buffer_data(outcome->result.out, NULL), expected) == 0;
}

/* Arguments, environment, directory and input are each command's own. */
static void *run_commands(void *data)
{
	Worker *worker = data;

	for (int i = 0; i < COMMANDS; i++) {
		g_autofree char *tag = g_strdup_printf("w%d-%d", worker->number, i);
		g_autofree char *variable = g_strconcat("TAG=", tag, NULL);
		g_autofree char *dir = g_strdup_printf("d%d", worker->number);
		g_autofree char *expected =
			g_strdup_printf("%s %s %s /workspace/%s\n", tag, tag, tag, dir);
		const char *const argv[] = {
			"sh", "-c", "read x; echo \"$1 $TAG $x $(pwd)\"; exit $2",
			"sh", tag,  i % 2 ? "0" : "7",
			NULL
		};
		g_autoptr(ExrEnvList) env = exr_env_list_new();
		g_autoptr(ExrOutcome) outcome = NULL;
		g_autofree char *message = NULL;
		ExrExecOptions options;

		exr_exec_options_init(&options);
		options.argv = argv;
		options.cwd = dir;
		(void)exr_env_list_set(env, variable, NULL, &message);
		options.env = env;
		options.input = tag;
		options.input_size = strlen(tag);
		options.timeout_ms = 60000;
		outcome = exr_session_exec(worker->session, &options);
		if (!out_is(outcome, expected) || outcome->result.exit_code != (i % 2 ? 0 : 7))
			worker->wrong++;
	}
	return NULL;
}

/* Runs until it is canceled. */
static void *run_for_ever(void *data)
{
	Worker *worker = data;
	const char *const argv[] = { "sleep", "7654341", NULL };
	g_autoptr(ExrOutcome) outcome = NULL;
	ExrExecOptions options;

	exr_exec_options_init(&options);
	options.argv = argv;
	options.cancellable = worker->cancellable;
	outcome = exr_session_exec(worker->session, &options);
	worker->canceled += outcome->result.ended == EXR_ENDED_CANCELED;
	return NULL;
}

static void commands_at_the_same_time_do_not_mix(void **state)
{
	Fixture *fixture = *state;
	Worker workers[THREADS] = { 0 }, endless = { .cancellable = g_cancellable_new() };
	GThread *threads[THREADS], *other;
	int fds;

	for (int i = 0; i < THREADS; i++) {
		g_autofree char *dir = g_strdup_printf("%s/d%d", fixture->workspace, i);

		assert_int_equal(mkdir(dir, 0755), 0);
	}
	fixture_start(fixture, "");
	fixture_warm_up(fixture);
	fds = count_entries("/proc/self/fd");
	endless.session = fixture->session;
	other = g_thread_new("endless", run_for_ever, &endless);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (Worker){ .session = fixture->session, .number = i };
		threads[i] = g_thread_new("worker", run_commands, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		g_thread_join(threads[i]);
		assert_int_equal(workers[i].wrong, 0);
	}
	/* It was left alone by all of them. */
	assert_int_equal(endless.canceled, 0);
	assert_int_equal(count_processes("7654341"), 1);
	g_cancellable_cancel(endless.cancellable);
	g_thread_join(other);
	assert_int_equal(endless.canceled, 1);
	assert_true(exr_session_alive(fixture->session));
	g_object_unref(endless.cancellable);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
}

static void closing_ends_what_other_threads_run(void **state)
{
	Fixture *fixture = *state;
	Worker workers[THREADS] = { 0 };
	GThread *threads[THREADS], *closers[2];
	GThreadFunc close_session = (GThreadFunc)(void (*)(void))exr_session_close;

	fixture_start(fixture, "");
	for (int i = 0; i < THREADS; i++) {
		workers[i].session = exr_session_ref(fixture->session);
		threads[i] = g_thread_new("endless", run_for_ever, &workers[i]);
	}
	while (count_processes("7654341") < THREADS)
		g_usleep(5000);
	for (size_t i = 0; i < G_N_ELEMENTS(closers); i++)
		closers[i] = g_thread_new("close", close_session, fixture->session);
	for (size_t i = 0; i < G_N_ELEMENTS(closers); i++)
		g_thread_join(closers[i]);
	assert_int_equal(count_processes("7654341"), 0);
	assert_int_equal(count_children(), 0);
	for (int i = 0; i < THREADS; i++) {
		g_thread_join(threads[i]);
		assert_int_equal(workers[i].canceled, 1);
		exr_session_unref(workers[i].session);
	}
}

static void *run_a_session(void *data)
{
	const Fixture *fixture = data;
	g_autoptr(StellaPolicy) policy = fixture_policy(fixture, "");
	ExrSessionConfig config = { .policy = policy };
	ExrSession *session = NULL;
	ExrError error = { 0 };
	unsigned int wrong = 0;

	if (exr_session_new(&config, &session, &error) < 0) {
		fprintf(stderr, "%s (%s): %s\n", error.code, error.stage, error.message);
		exr_error_clear(&error);
		return GUINT_TO_POINTER(1000);
	}
	for (int i = 0; i < 3; i++) {
		const char *const argv[] = { "sh", "-c", "echo $$; exit 5", NULL };
		g_autoptr(ExrOutcome) outcome = NULL;
		ExrExecOptions options;

		exr_exec_options_init(&options);
		options.argv = argv;
		options.timeout_ms = 60000;
		outcome = exr_session_exec(session, &options);
		wrong += !out_is(outcome, "2\n") || outcome->result.exit_code != 5;
	}
	exr_session_free(session);
	return GUINT_TO_POINTER(wrong);
}

static void many_sessions_live_in_one_process(void **state)
{
	Fixture *fixture = *state;
	GThread *threads[SESSIONS];
	g_autofree char *sessions = g_build_filename(fixture->state, "sessions", NULL);
	int fds = count_entries("/proc/self/fd"), mounts = count_mounts();

	for (int i = 0; i < SESSIONS; i++)
		threads[i] = g_thread_new("session", run_a_session, fixture);
	for (int i = 0; i < SESSIONS; i++)
		assert_int_equal(GPOINTER_TO_UINT(g_thread_join(threads[i])), 0);
	assert_int_equal(count_children(), 0);
	assert_int_equal(count_entries(sessions), 0);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
	assert_int_equal(count_mounts(), mounts);
}

/* A thread that has started a process may end: the process goes on. */
static void *start_and_leave(void *data)
{
	Fixture *fixture = data;
	const char *const argv[] = { "cat", NULL };
	ExrExecOptions options;
	ExrError error = { 0 };
	ExrLive *live = NULL;

	exr_exec_options_init(&options);
	options.argv = argv;
	fixture_start(fixture, "");
	(void)exr_live_start(fixture->session, &options, &live, &error);
	exr_error_clear(&error);
	return live;
}

static void the_thread_that_started_it_may_end(void **state)
{
	Fixture *fixture = *state;
	ExrLive *live = g_thread_join(g_thread_new("starter", start_and_leave, fixture));

	assert_non_null(live);
	g_usleep(100 * 1000);
	assert_true(exr_session_alive(fixture->session));
	exr_live_close_stdin(live);
	assert_int_equal(exr_live_wait(live, 20000, NULL)->result.ended, EXR_ENDED_EXITED);
	exr_live_unref(live);
}

#define SHORT_THREADS  16
#define SHORT_COMMANDS 20
/* What one command needs while it starts, and some more: not enough for all of them at once. */
#define SHORT_FDS 24

typedef struct {
	ExrSession *session;
	int worked, short_of_fds, other;
} ShortWorker;

static void *run_short(void *data)
{
	ShortWorker *worker = data;

	for (int i = 0; i < SHORT_COMMANDS; i++) {
		const char *const argv[] = { "sh", "-c", "echo >>ran", NULL };
		g_autoptr(ExrOutcome) outcome = NULL;
		const ExrError *error;
		ExrExecOptions options;

		exr_exec_options_init(&options);
		options.argv = argv;
		outcome = exr_session_exec_until(worker->session, &options, -1);
		error = outcome->result.error;
		if (outcome->result.ended == EXR_ENDED_EXITED)
			worker->worked++;
		else if (error && error->errnum == EMFILE)
			worker->short_of_fds++;
		else
			g_printerr("%s\n", error ? error->message : "no error");
	}
	worker->other = SHORT_COMMANDS - worker->worked - worker->short_of_fds;
	return NULL;
}

/* A host that is out of descriptors for a moment loses the commands that it starts then, and nothing else: what is told as
 * not started has not run. */
static void being_out_of_fds_costs_no_session(void **state)
{
	Fixture *fixture = *state;
	ShortWorker workers[SHORT_THREADS];
	GThread *threads[SHORT_THREADS];
	g_autofree char *ran = g_build_filename(fixture->workspace, "ran", NULL);
	int worked = 0, short_of_fds = 0, fds;
	struct rlimit before, low;
	struct stat st;

	fixture_start(fixture, "");
	fixture_warm_up(fixture);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	fds = count_entries("/proc/self/fd");
	for (int i = 0; i < SHORT_THREADS; i++)
		workers[i] = (ShortWorker){ .session = fixture->session };
	low = before;
	low.rlim_cur = (rlim_t)fds + SHORT_FDS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (int i = 0; i < SHORT_THREADS; i++)
		threads[i] = g_thread_new("short", run_short, &workers[i]);
	for (int i = 0; i < SHORT_THREADS; i++)
		(void)g_thread_join(threads[i]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (int i = 0; i < SHORT_THREADS; i++) {
		assert_int_equal(workers[i].other, 0);
		worked += workers[i].worked;
		short_of_fds += workers[i].short_of_fds;
	}
	print_message("%d worked, %d were short of descriptors\n", worked, short_of_fds);
	assert_true(worked > 0 && short_of_fds > 0);
	assert_int_equal(stat(ran, &st), 0);
	assert_int_equal(st.st_size, worked);
	assert_true(exr_session_alive(fixture->session));
	workers[0] = (ShortWorker){ .session = fixture->session };
	(void)run_short(&workers[0]);
	assert_int_equal(workers[0].worked, SHORT_COMMANDS);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(commands_at_the_same_time_do_not_mix),
		TEST(closing_ends_what_other_threads_run),
		TEST(many_sessions_live_in_one_process),
		TEST(the_thread_that_started_it_may_end),
		TEST(being_out_of_fds_costs_no_session),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
