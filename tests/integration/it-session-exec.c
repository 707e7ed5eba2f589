/* Commands of a session as a host agent runs them: what is in the result, for every way to end. */
#include "executor/live-process.h"

#include "lib/preflight.h"
#include "session-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int make(void **state)
{
	Fixture *fixture = fixture_new();

	fixture_start(fixture, "\"limits\": {\"output_bytes\": 4194304},");
	*state = fixture;
	return 0;
}

static int clear(void **state)
{
	fixture_free(*state);
	return 0;
}

typedef struct {
	ExrExecOptions options;
	const char *argv[4];
} Command;

static void command_init(Command *command, const char *script)
{
	exr_exec_options_init(&command->options);
	command->argv[0] = "sh";
	command->argv[1] = "-c";
	command->argv[2] = script;
	command->argv[3] = NULL;
	command->options.argv = command->argv;
	/* No test waits for ever. */
	command->options.timeout_ms = 20000;
}

static ExrOutcome *run(Fixture *fixture, Command *command)
{
	return exr_session_exec(fixture->session, &command->options);
}

static ExrOutcome *run_script(Fixture *fixture, const char *script)
{
	Command command;

	command_init(&command, script);
	return run(fixture, &command);
}

static void assert_out(const ExrOutcome *outcome, const char *out, const char *err)
{
	assert_non_null(outcome->result.out);
	assert_string_equal(output_buffer_data(outcome->result.out, NULL), out);
	assert_string_equal(output_buffer_data(outcome->result.err, NULL), err);
}

static void assert_exited(const ExrOutcome *outcome, int code)
{
	if (outcome->result.error)
		fail_msg("%s: %s", outcome->result.error->stage, outcome->result.error->message);
	assert_int_equal(outcome->result.ended, EXR_ENDED_EXITED);
	assert_int_equal(outcome->result.exit_code, code);
}

static void an_end_is_told_with_its_output(void **state)
{
	g_autoptr(ExrOutcome) first = run_script(*state, "echo out; echo err >&2; exit 3");
	g_autoptr(ExrOutcome) second = run_script(*state, "kill -9 $$");
	g_autoptr(ExrOutcome) third = run_script(*state, "exit 137");
	g_autoptr(GString) json = exr_result_to_json(&first->result);

	assert_exited(first, 3);
	assert_out(first, "out\n", "err\n");
	assert_true(first->result.exec_id > 0);
	assert_true(first->result.cpu_ms >= 0);
	assert_true(first->result.max_rss_bytes > 0);
	assert_int_equal(first->result.left_over_killed, 0);
	assert_non_null(first->result.session_id);
	assert_non_null(strstr(json->str, "\"stdout\": \"out\\n\""));
	assert_int_equal(second->result.ended, EXR_ENDED_SIGNALED);
	assert_int_equal(second->result.signal, SIGKILL);
	assert_int_equal(second->result.exec_id, first->result.exec_id + 1);
	assert_exited(third, 137);
}

static void append(const void *data, size_t size, void *text)
{
	g_string_append_len(text, data, (gssize)size);
}

/* The first piece is there long before the end: the command waits for the file that its arrival makes. */
static void release(const void *data, size_t size, void *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)data;
	(void)size;
	assert_true(fd >= 0);
	close(fd);
}

static void sinks_stream_beside_the_capture(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *go = g_build_filename(fixture->workspace, "go", NULL);
	g_autoptr(GString) err = g_string_new(NULL);
	g_autoptr(ExrOutcome) outcome = NULL;
	Command command;

	command_init(&command, "echo first; echo e >&2; until [ -e go ]; do sleep 0.02; done; "
			       "echo second; rm go");
	command.options.out.sink = release;
	command.options.out.sink_data = go;
	command.options.err.sink = append;
	command.options.err.sink_data = err;
	outcome = run(fixture, &command);
	assert_exited(outcome, 0);
	assert_out(outcome, "first\nsecond\n", "e\n");
	assert_string_equal(err->str, "e\n");
	(void)unlink(go);
}

static void merged_streams_keep_their_order(void **state)
{
	g_autoptr(ExrOutcome) outcome = NULL;
	Command command;

	command_init(&command, "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done");
	command.options.merge_stderr = true;
	outcome = run(*state, &command);
	assert_exited(outcome, 0);
	assert_out(outcome, "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n", "");
}

/* Everything that ever hid is dead when the result is there. */
static void a_timeout_kills_all_and_keeps_the_output(void **state)
{
	static const char script[] =
		"echo early; setsid sleep 7654321 & (setsid sh -c 'sleep 7654321 & wait' &); "
		"(trap '' TERM INT HUP; sleep 7654321) & kill -STOP $$; echo never";
	g_autoptr(ExrOutcome) outcome = NULL;
	Command command;

	command_init(&command, script);
	command.options.timeout_ms = 400;
	outcome = run(*state, &command);
	assert_int_equal(outcome->result.ended, EXR_ENDED_TIMED_OUT);
	assert_out(outcome, "early\n", "");
	assert_true(outcome->result.duration_ms >= 400);
	assert_int_equal(count_processes("7654321"), 0);
}

static void a_grace_lets_a_command_say_goodbye(void **state)
{
	static const char polite[] = "trap 'echo bye; exit 0' TERM; echo up; "
				     "while :; do sleep 0.02; done";
	static const char deaf[] = "trap '' TERM; echo up; while :; do sleep 0.02; done";
	Command command;

	{
		g_autoptr(ExrOutcome) outcome = NULL;

		command_init(&command, polite);
		command.options.timeout_ms = 500;
		command.options.kill_grace_ms = 15000;
		outcome = run(*state, &command);
		assert_int_equal(outcome->result.ended, EXR_ENDED_TIMED_OUT);
		/* The shell says on stderr that its sleep was terminated too. */
		assert_string_equal(output_buffer_data(outcome->result.out, NULL), "up\nbye\n");
		assert_true(outcome->result.duration_ms < 15000);
	}
	{
		g_autoptr(ExrOutcome) outcome = NULL;

		command_init(&command, polite);
		command.options.timeout_ms = 500;
		outcome = run(*state, &command);
		assert_int_equal(outcome->result.ended, EXR_ENDED_TIMED_OUT);
		assert_out(outcome, "up\n", "");
	}
	{
		g_autoptr(ExrOutcome) outcome = NULL;

		command_init(&command, deaf);
		command.options.timeout_ms = 300;
		command.options.kill_grace_ms = 300;
		outcome = run(*state, &command);
		assert_int_equal(outcome->result.ended, EXR_ENDED_TIMED_OUT);
		assert_true(outcome->result.duration_ms >= 600);
	}
}

static void cancel_at_output(const void *data, size_t size, void *cancellable)
{
	(void)data;
	(void)size;
	g_cancellable_cancel(cancellable);
}

static void a_cancel_kills_and_keeps_the_output(void **state)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(ExrOutcome) outcome = NULL, refused = NULL;
	Command command;

	command_init(&command, "echo early; exec sleep 7654322");
	command.options.cancellable = cancellable;
	command.options.out.sink = cancel_at_output;
	command.options.out.sink_data = cancellable;
	outcome = run(*state, &command);
	assert_int_equal(outcome->result.ended, EXR_ENDED_CANCELED);
	assert_out(outcome, "early\n", "");
	assert_int_equal(count_processes("7654322"), 0);
	/* One that is cancelled already runs nothing. */
	command.argv[2] = "touch ran";
	refused = run(*state, &command);
	assert_int_equal(refused->result.ended, EXR_ENDED_CANCELED);
	assert_int_equal(refused->result.exec_id, 0);
}

static void input_of_any_size_is_given_or_left(void **state)
{
	size_t size = 3 << 20;
	g_autofree char *data = g_malloc(size);
	g_autoptr(ExrOutcome) counted = NULL, ignored = NULL, none = NULL;
	Command command;

	memset(data, 'x', size);
	(void)signal(SIGPIPE, SIG_DFL);
	command_init(&command, "cat");
	command.options.input = data;
	command.options.input_size = size;
	counted = run(*state, &command);
	assert_exited(counted, 0);
	assert_int_equal(output_buffer_total(counted->result.out), size);
	command.argv[2] = "exec <&-; sleep 0.1; echo done";
	ignored = run(*state, &command);
	assert_exited(ignored, 0);
	assert_out(ignored, "done\n", "");
	none = run_script(*state, "wc -c");
	assert_out(none, "0\n", "");
}

static void left_over_processes_are_killed_or_waited_for(void **state)
{
	g_autoptr(ExrOutcome) killed =
		run_script(*state, "sleep 7654323 & setsid -f sleep 7654323; echo hi; exit 4");
	g_autoptr(ExrOutcome) waited = NULL;
	g_autoptr(ExrOutcome) expired = NULL;
	Command command;

	assert_exited(killed, 4);
	assert_out(killed, "hi\n", "");
	assert_int_equal(killed->result.left_over_killed, 2);
	assert_true(killed->result.duration_ms < 5000);
	assert_int_equal(count_processes("7654323"), 0);

	command_init(&command,
		     "(sleep 0.3; setsid sh -c 'sleep 0.3; echo late') & echo hi; exit 4");
	command.options.wait_left_over = true;
	waited = run(*state, &command);
	assert_exited(waited, 4);
	assert_out(waited, "hi\nlate\n", "");
	assert_int_equal(waited->result.left_over_killed, 0);

	command.argv[2] = "sleep 7654324 & echo hi";
	command.options.timeout_ms = 300;
	expired = run(*state, &command);
	assert_int_equal(expired->result.ended, EXR_ENDED_TIMED_OUT);
	assert_out(expired, "hi\n", "");
	assert_int_equal(count_processes("7654324"), 0);
}

static void the_end_is_the_commands_not_that_of_its_output(void **state)
{
	g_autoptr(ExrOutcome) closed = run_script(*state, "exec >&- 2>&-; sleep 0.4; exit 5");
	g_autoptr(ExrOutcome) held = run_script(*state, "sleep 300 9>&1 & exec 9>&1; echo hi");

	assert_exited(closed, 5);
	assert_true(closed->result.duration_ms >= 400);
	assert_exited(held, 0);
	assert_out(held, "hi\n", "");
	assert_true(held->result.duration_ms < 5000);
}

static void a_start_that_fails_says_where(void **state)
{
	static const struct {
		const char *program, *cwd, *code, *stage;
		int errnum;
	} cases[] = {
		{ "no-such-program", NULL, "program-not-found", "exec", ENOENT },
		{ "/workspace/plain", NULL, "program-not-executable", "exec", EACCES },
		{ "/workspace/script", NULL, "program-not-executable", "exec-interpreter", ENOENT },
		{ "/workspace", NULL, "program-not-executable", "exec", EACCES },
		{ "true", "missing", "cwd-invalid", "cwd", ENOENT },
		{ "true", "/srv/elsewhere", "cwd-invalid", "cwd", ENOENT },
		{ "true", "plain", "cwd-invalid", "cwd", ENOTDIR },
	};
	g_autoptr(ExrOutcome) made = run_script(
		*state, "echo x >plain; printf '#!/no/interpreter\\n' >script; chmod +x script");

	assert_exited(made, 0);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(ExrOutcome) outcome = NULL;
		Command command;

		command_init(&command, NULL);
		command.argv[0] = cases[i].program;
		command.argv[1] = NULL;
		command.options.cwd = cases[i].cwd;
		outcome = run(*state, &command);
		assert_int_equal(outcome->result.ended, EXR_ENDED_START_FAILED);
		assert_string_equal(outcome->result.error->code, cases[i].code);
		assert_string_equal(outcome->result.error->stage, cases[i].stage);
		assert_int_equal(outcome->result.error->errnum, cases[i].errnum);
	}
}

static void refreshed_variables_are_seen_by_later_commands(void **state)
{
	Fixture *fixture = *state;
	static const char *const first[] = { "A=1", "B=2", NULL };
	static const char *const second[] = { "B=3", NULL };
	static const char *const bad[] = { "C=4", "=5", NULL };
	static const char show[] = "echo ${A-none} ${B-none} ${C-none}";
	g_autoptr(ExrEnvList) own = exr_env_list_new();
	g_autoptr(ExrOutcome) before = run_script(fixture, show);
	g_autoptr(ExrOutcome) after = NULL, request = NULL;
	g_autofree char *message = NULL;
	ExrError error = { 0 };
	Command command;

	assert_out(before, "none none none\n", "");
	assert_int_equal(exr_session_refresh_env(fixture->session, first, &error), 0);
	assert_int_equal(exr_session_refresh_env(fixture->session, second, &error), 0);
	assert_int_equal(exr_session_refresh_env(fixture->session, bad, &error), -EINVAL);
	assert_string_equal(error.code, "request-invalid");
	exr_error_clear(&error);
	after = run_script(fixture, show);
	assert_out(after, "1 3 none\n", "");
	assert_int_equal(exr_env_list_set(own, "A=own", NULL, &message), 0);
	command_init(&command, show);
	command.options.env = own;
	request = run(fixture, &command);
	assert_out(request, "own 3 none\n", "");
}

typedef struct {
	GMainLoop *loop;
	ExrOutcome *outcome;
} Async;

static void on_done(GObject *source, GAsyncResult *result, void *data)
{
	Async *async = data;

	(void)source;
	async->outcome = exr_session_exec_finish(result);
	g_main_loop_quit(async->loop);
}

static void the_asynchronous_twin_gives_the_same(void **state)
{
	Fixture *fixture = *state;
	Async async = { .loop = g_main_loop_new(NULL, FALSE) };
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autofree char *script = g_strdup("echo async; cat; exit 6");
	g_autofree char *input = g_strdup("typed\n");
	Command command;

	command_init(&command, script);
	command.options.input = input;
	command.options.input_size = strlen(input);
	exr_session_exec_async(fixture->session, &command.options, on_done, &async);
	/* The options are copied. */
	memset(script, 'x', strlen(script));
	memset(input, 'x', strlen(input));
	memset(&command, 0xff, sizeof command);
	g_main_loop_run(async.loop);
	assert_exited(async.outcome, 6);
	assert_out(async.outcome, "async\ntyped\n", "");
	exr_outcome_free(async.outcome);

	command_init(&command, "exec sleep 7654325");
	command.options.cancellable = cancellable;
	exr_session_exec_async(fixture->session, &command.options, on_done, &async);
	g_cancellable_cancel(cancellable);
	g_main_loop_run(async.loop);
	assert_int_equal(async.outcome->result.ended, EXR_ENDED_CANCELED);
	exr_outcome_free(async.outcome);
	g_main_loop_unref(async.loop);
}

/* Set-up itself needs descriptors: the limit comes after it. */
static void few_open_files_are_enough_to_start(void **state)
{
	Fixture *fixture = *state;

	fixture_stop(fixture);
	fixture_start(fixture, "\"limits\": {\"open_files\": 4},");
	{
		g_autoptr(ExrOutcome) outcome = run_script(fixture, "ulimit -n");

		assert_exited(outcome, 0);
		assert_out(outcome, "4\n", "");
	}
}

/* Another command that was given its end of the pipe, through the files that both can write, goes on writing. */
static void output_ends_with_the_command_whoever_else_writes(void **state)
{
	Fixture *fixture = *state;
	static const char flood[] = "import array, os, socket, sys\n"
				    "s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); "
				    "s.listen(); print('ready', flush=True)\n"
				    "c, _ = s.accept()\n"
				    "_, d, _, _ = c.recvmsg(1, socket.CMSG_SPACE(4))\n"
				    "fd = array.array('i', d[0][2])[0]\n"
				    "import time; end = time.time() + 20\n"
				    "while time.time() < end: os.write(fd, b'x' * 65536)\n";
	static const char give[] = "import array, socket, sys, time\n"
				   "c = socket.socket(socket.AF_UNIX)\n"
				   "for i in range(500):\n"
				   "  try: c.connect('/tmp/s'); break\n"
				   "  except OSError: time.sleep(0.02)\n"
				   "c.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "
				   "array.array('i', [1]))])\n"
				   "time.sleep(0.3)\n";
	const char *const writer[] = { "python3", "-c", flood, NULL };
	ExrExecOptions options;
	ExrLive *live = NULL;
	ExrError error = { 0 };
	g_autoptr(ExrOutcome) outcome = NULL;

	exr_exec_options_init(&options);
	options.argv = writer;
	assert_int_equal(exr_live_start(fixture->session, &options, &live, &error), 0);
	options.argv = (const char *const[]){ "python3", "-c", give, NULL };
	options.timeout_ms = 15000;
	outcome = exr_session_exec(fixture->session, &options);
	assert_exited(outcome, 0);
	assert_true(outcome->result.duration_ms < 10000);
	exr_live_unref(live);
}

/* Limits are the streams' own, and what is thrown away is counted. */
static void output_past_the_cap_is_counted_and_thrown_away(void **state)
{
	g_autoptr(ExrOutcome) outcome =
		run_script(*state, "head -c 9000000 /dev/zero | tr '\\0' o & "
				   "head -c 4194304 /dev/zero | tr '\\0' e >&2; wait; exit 7");
	size_t size = 0;

	assert_exited(outcome, 7);
	(void)output_buffer_data(outcome->result.out, &size);
	assert_int_equal(size, 4194304);
	assert_int_equal(output_buffer_total(outcome->result.out), 9000000);
	assert_true(output_buffer_truncated(outcome->result.out));
	(void)output_buffer_data(outcome->result.err, &size);
	assert_int_equal(size, 4194304);
	assert_false(output_buffer_truncated(outcome->result.err));
}

/* A host that ignores SIGCHLD, and has more descriptors open than select() knows. */
static void the_host_may_be_as_it_likes(void **state)
{
	Fixture *fixture = *state;
	int fds[2000];
	void (*old)(int) = signal(SIGCHLD, SIG_IGN);

	for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
		fds[i] = open("/dev/null", O_RDONLY); /* not close-on-exec, on purpose */
		assert_true(fds[i] >= 0);
	}
	fixture_stop(fixture);
	fixture_start(fixture, "\"limits\": {\"output_bytes\": 4194304},");
	for (int i = 0; i < 3; i++) {
		g_autoptr(ExrOutcome) outcome =
			run_script(fixture, "ls /proc/self/fd | wc -l; exit 8");

		assert_exited(outcome, 8);
		assert_out(outcome, "4\n", ""); /* with ls's own */
	}
	for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
		close(fds[i]);
	(void)signal(SIGCHLD, old);
}

static void a_closed_session_refuses(void **state)
{
	Fixture *fixture = *state;
	static const char *const updates[] = { "A=1", NULL };
	ExrSession *session = exr_session_ref(fixture->session);
	ExrError error = { 0 };
	g_autoptr(ExrOutcome) outcome = NULL;

	assert_true(exr_session_alive(session));
	exr_session_close(session);
	exr_session_close(session);
	assert_false(exr_session_alive(session));
	outcome = run_script(fixture, "touch ran");
	assert_int_equal(outcome->result.ended, EXR_ENDED_START_FAILED);
	assert_string_equal(outcome->result.error->code, "session-closed");
	assert_int_equal(exr_session_refresh_env(session, updates, &error), -ESHUTDOWN);
	exr_error_clear(&error);
	exr_session_unref(session);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(an_end_is_told_with_its_output),
		TEST(sinks_stream_beside_the_capture),
		TEST(merged_streams_keep_their_order),
		TEST(a_timeout_kills_all_and_keeps_the_output),
		TEST(a_grace_lets_a_command_say_goodbye),
		TEST(a_cancel_kills_and_keeps_the_output),
		TEST(input_of_any_size_is_given_or_left),
		TEST(left_over_processes_are_killed_or_waited_for),
		TEST(the_end_is_the_commands_not_that_of_its_output),
		TEST(a_start_that_fails_says_where),
		TEST(refreshed_variables_are_seen_by_later_commands),
		TEST(the_asynchronous_twin_gives_the_same),
		TEST(few_open_files_are_enough_to_start),
		TEST(output_ends_with_the_command_whoever_else_writes),
		TEST(output_past_the_cap_is_counted_and_thrown_away),
		TEST(the_host_may_be_as_it_likes),
		TEST(a_closed_session_refuses),
	};

	int status = preflight_require(needs);

	if (status != 0)
		return status;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
