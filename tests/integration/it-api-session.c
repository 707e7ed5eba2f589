/* Sessions as a host agent has them: commands and their results, what is refused, and every way to end. */
#include "api-fixture.h"

#include "common/cond-util.h"
#include "common/json.h"
#include "lib/preflight.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

static StellaSession *session_of(void **state)
{
	return ((ApiFixture *)*state)->session;
}

static void a_result_tells_all_of_a_command(void **state)
{
	g_autoptr(StellaExecResult) result = api_exec(
		session_of(state),
		"echo out; echo err >&2; echo new >f; (setsid sleep 7655001 &); exit 3", NULL);
	StellaChange change;
	gsize size;

	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_EXITED);
	assert_int_equal(stella_exec_result_get_exit_code(result), 3);
	assert_int_equal(stella_exec_result_get_signal(result), 0);
	assert_null(stella_exec_result_get_error(result));
	assert_string_equal(stella_exec_result_get_stdout(result, &size), "out\n");
	assert_int_equal(size, 4);
	assert_string_equal(stella_exec_result_get_stderr(result, &size), "err\n");
	assert_int_equal(stella_exec_result_get_stdout_bytes(result), 4);
	assert_false(stella_exec_result_get_stdout_truncated(result));
	assert_null(stella_exec_result_get_stdout_spill(result));
	assert_in_range(stella_exec_result_get_duration_ms(result), 0, PATIENCE_MS);
	assert_true(stella_exec_result_get_cpu_ms(result) >= 0);
	assert_true(stella_exec_result_get_max_rss_bytes(result) > 0);
	assert_true(stella_exec_result_get_left_over_killed(result) >= 1);
	assert_int_equal(count_processes("7655001"), 0);
	assert_null(stella_exec_result_get_limits_hit(result)[0]);
	assert_string_equal(stella_exec_result_get_writable(result)[0], "/workspace");
	assert_int_equal(stella_exec_result_get_n_denials(result), 0);
	assert_int_equal(stella_exec_result_get_n_changes(result), 1);
	assert_true(stella_exec_result_get_change(result, 0, &change));
	assert_string_equal(change.path, "/workspace/f");
	assert_string_equal(change.change, "created");
	assert_null(change.from);
	assert_false(stella_exec_result_get_change(result, 1, &change));
	assert_int_equal(stella_exec_result_get_changes_dropped(result), 0);
}

static void what_the_view_refuses_is_told_and_not_done(void **state)
{
	ApiFixture *fixture = api_fixture_new();
	g_autofree char *locked = g_build_filename(fixture->dirs->dir, "locked", NULL);
	g_autofree char *file = g_build_filename(locked, "f", NULL);
	g_autofree char *text = NULL;
	g_autoptr(StellaPolicy) policy = NULL;
	g_autoptr(StellaExecResult) result = NULL;
	StellaMount mounts[] = {
		{ fixture->dirs->workspace, "/workspace", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ locked, "/locked", STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 },
	};
	StellaPolicyOptions options;
	StellaDenial denial;

	(void)state;
	assert_int_equal(mkdir(locked, 0755), 0);
	assert_true(g_file_set_contents(file, "old", -1, NULL));
	stella_policy_options_init(&options);
	options.working_dir = fixture->dirs->workspace;
	options.mounts = mounts;
	options.n_mounts = 2;
	policy = stella_policy_new(&options);
	fixture->session = api_fixture_session(policy);
	result =
		api_exec(fixture->session, "echo new >f && cat /locked/f; echo x >/locked/f", NULL);
	assert_int_not_equal(stella_exec_result_get_exit_code(result), 0);
	assert_string_equal(stella_exec_result_get_stdout(result, NULL), "old");
	assert_int_equal(stella_exec_result_get_n_denials(result), 1);
	assert_true(stella_exec_result_get_denial(result, 0, &denial));
	assert_string_equal(denial.path, "/locked/f");
	assert_string_equal(denial.mount, "/locked");
	assert_string_equal(denial.reason, "read-only-mount");
	assert_string_equal(denial.errno_name, "EROFS");
	assert_true(denial.count >= 1);
	assert_true(g_file_get_contents(file, &text, NULL, NULL));
	assert_string_equal(text, "old");
	assert_int_equal(stella_exec_result_get_n_changes(result), 1);
	api_fixture_free(fixture);
}

/* Of both the keys, in their order: what one door gives the other does. */
static char *keys_of(const char *json)
{
	g_autoptr(JsonNode) node = json_from_string(json, -1);
	GString *keys = g_string_new(NULL);
	JsonObjectIter iter;
	const char *key;

	assert_true(JSON_NODE_HOLDS_OBJECT(node));
	json_object_iter_init_ordered(&iter, json_node_get_object(node));
	while (json_object_iter_next_ordered(&iter, &key, NULL))
		g_string_append_printf(keys, "%s ", key);
	return g_string_free(keys, FALSE);
}

static void its_json_is_that_of_the_command_line(void **state)
{
	g_autoptr(StellaExecResult) result = api_exec(session_of(state), "printf '\\377'", NULL);
	g_autofree char *json = stella_exec_result_to_json(result);
	g_autofree char *program =
		g_build_filename(g_getenv("STELLA_TEST_BUILD"), "executor/stella-exec", NULL);
	char *argv[] = { program,	   (char[]){ "run" },  (char[]){ "--json" },
			 (char[]){ "--" }, (char[]){ "true" }, NULL };
	g_autofree char *other = NULL, *keys = NULL, *other_keys = NULL;

	assert_true(g_spawn_sync(((ApiFixture *)*state)->dirs->workspace, argv, NULL,
				 G_SPAWN_DEFAULT, NULL, NULL, &other, NULL, NULL, NULL));
	keys = keys_of(json);
	other_keys = keys_of(g_strchomp(other));
	assert_string_equal(keys, other_keys);
	assert_null(strchr(json, '\n'));
	assert_non_null(strstr(json, "\"stdout\": \"/w==\", \"stdout_encoding\": \"base64\""));
	assert_non_null(strstr(json, stella_session_get_id(session_of(state))));
}

static void every_option_is_the_commands(void **state)
{
	ApiFixture *fixture = *state;
	StellaSession *session = fixture->session;
	g_autofree char *sub = g_build_filename(fixture->dirs->workspace, "d", NULL);
	const char *const places[] = { "d", "/workspace/d", sub };
	const char *const env[] = { "A=1 2", "GONE=set", "B==", NULL };
	const char *const unset[] = { "GONE", "LANG", NULL };
	g_autofree char *long_command = NULL;
	StellaExecOptions options;

	assert_int_equal(mkdir(sub, 0755), 0);
	stella_exec_options_init(&options);
	api_assert_out(session, "pwd; cat", &options, "/workspace\n");
	options.cwd = "";
	api_assert_out(session, "pwd", &options, "/workspace\n");
	for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
		options.cwd = places[i];
		api_assert_out(session, "pwd", &options, "/workspace/d\n");
	}
	options.cwd = NULL;
	options.env = env;
	options.unset_env = unset;
	api_assert_out(session, "echo \"$A$B$GONE${LANG-unset}\"", &options, "1 2=setunset\n");
	options.input = "a\0b";
	options.input_size = 3;
	api_assert_out(session, "wc -c", &options, "3\n");
	options.merge_stderr = TRUE;
	api_assert_out(session, "echo 1; echo 2 >&2; echo 3", &options, "1\n2\n3\n");
	options.wait_left_over = TRUE;
	api_assert_out(session, "(sleep 0.1; echo late) & echo early", &options, "early\nlate\n");
	stella_exec_options_init(&options);
	options.tty = TRUE;
	options.rows = 12;
	options.columns = 34;
	api_assert_out(session, "stty size", &options, "12 34\r\n");
	/* Longer than what the kernel takes as one argument. */
	long_command = g_strdup_printf("x=%0*d; echo ${#x}", 300000, 7);
	api_assert_out(session, long_command, NULL, "300000\n");
	api_assert_out(session, "-x 2>/dev/null; echo no option", NULL, "no option\n");
}

static void add(const void *data, gsize size, gpointer text)
{
	g_string_append_len(text, data, (gssize)size);
}

static void sinks_are_given_what_comes(void **state)
{
	g_autoptr(GString) out = g_string_new(NULL);
	g_autoptr(GString) err = g_string_new(NULL);
	g_autoptr(StellaExecResult) result = NULL;
	StellaExecOptions options;

	stella_exec_options_init(&options);
	options.stdout_func = options.stderr_func = add;
	options.stdout_data = out;
	options.stderr_data = err;
	result = api_exec(session_of(state), "seq 3; echo x >&2", &options);
	assert_string_equal(out->str, "1\n2\n3\n");
	assert_string_equal(err->str, "x\n");
	assert_string_equal(stella_exec_result_get_stdout(result, NULL), out->str);
}

static void what_a_cap_cuts_is_told_and_kept_in_a_file(void **state)
{
	ApiFixture *fixture = *state;
	g_autoptr(StellaExecResult) result = NULL;
	g_autofree char *whole = NULL;
	const char *spill;

	api_fixture_stop(fixture);
	api_fixture_start(
		fixture, "\"limits\": {\"output_bytes\": 10, \"tail_bytes\": 4, \"spill\": true},");
	result = api_exec(fixture->session, "seq 100; echo short >&2", NULL);
	assert_true(stella_exec_result_check(result, NULL));
	assert_true(stella_exec_result_get_stdout_truncated(result));
	assert_false(stella_exec_result_get_stderr_truncated(result));
	assert_int_equal(stella_exec_result_get_stdout_bytes(result), 292);
	assert_null(stella_exec_result_get_stderr_spill(result));
	assert_string_equal(stella_exec_result_get_limits_hit(result)[0], "output_bytes");
	spill = stella_exec_result_get_stdout_spill(result);
	assert_true(g_str_has_prefix(spill, "/tmp/"));
	if (strstr(stella_exec_result_get_stdout(result, NULL), spill) == NULL)
		fail_msg("%s", stella_exec_result_get_stdout(result, NULL));
	assert_true(g_str_has_prefix(stella_exec_result_get_stdout(result, NULL), "1\n2\n3\n"));
	assert_true(g_str_has_suffix(stella_exec_result_get_stdout(result, NULL), "100\n"));
	whole = g_strdup_printf("wc -c <%s", spill);
	api_assert_out(fixture->session, whole, NULL, "292\n");
}

static void a_renamed_file_has_both_names(void **state)
{
	StellaSession *session = session_of(state);
	g_autoptr(StellaExecResult) result = NULL;
	StellaChange change;

	api_assert_out(session, "echo x >old", NULL, "");
	result = api_exec(session, "mv old new", NULL);
	assert_int_equal(stella_exec_result_get_n_changes(result), 1);
	assert_true(stella_exec_result_get_change(result, 0, &change));
	assert_string_equal(change.change, "renamed");
	assert_string_equal(change.path, "/workspace/new");
	assert_string_equal(change.from, "/workspace/old");
}

static void assert_not_run(void **state, const StellaExecOptions *options)
{
	ApiFixture *fixture = *state;
	g_autoptr(GError) error = NULL;
	g_autofree char *text = NULL;

	assert_null(stella_session_exec(fixture->session, "echo run >ran", options, NULL, &error));
	api_assert_error(error, STELLA_ERROR_INVALID_ARGUMENT);
	text = api_host_text(fixture, "ran");
	assert_null(text);
	assert_null(stella_session_exec(fixture->session, "echo run >ran", options, NULL, NULL));
}

static void options_that_make_no_sense_run_nothing(void **state)
{
	static const char *const wrong[] = { "", "A", "=1" };
	g_autofree char *huge = g_strnfill(3 * 128 * 1024, 'x');
	g_autofree char *variable = g_strconcat("A=", huge, NULL);
	const char *env[] = { NULL, NULL };
	g_autofree char *text = NULL;
	StellaExecOptions options;

	stella_exec_options_init(&options);
	for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
		env[0] = wrong[i];
		options.env = env;
		assert_not_run(state, &options);
	}
	env[0] = variable;
	assert_not_run(state, &options);
	stella_exec_options_init(&options);
	options.timeout_ms = -2;
	assert_not_run(state, &options);
	stella_exec_options_init(&options);
	options.input_size = 1;
	assert_not_run(state, &options);
	stella_exec_options_init(&options);
	options.size = 0;
	assert_not_run(state, &options);
	stella_exec_options_init(&options);
	api_assert_out(session_of(state), "echo run >ran", &options, "");
	text = api_host_text(*state, "ran");
	assert_string_equal(text, "run\n");
}

static void what_cannot_be_started_is_a_result(void **state)
{
	g_autoptr(StellaExecResult) result = NULL;
	g_autofree char *json = NULL, *text = NULL;
	const GError *error;
	StellaExecOptions options;

	stella_exec_options_init(&options);
	options.cwd = "/no/such/place";
	result = api_exec(session_of(state), "echo run >/workspace/ran", &options);
	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_START_FAILED);
	assert_int_equal(stella_exec_result_get_exit_code(result), -1);
	error = stella_exec_result_get_error(result);
	api_assert_error(error, STELLA_ERROR_CWD_INVALID);
	assert_string_equal(stella_error_get_stage(error), "cwd");
	assert_int_equal(stella_error_get_errno(error), ENOENT);
	assert_non_null(stella_error_get_hint(error));
	json = stella_exec_result_to_json(result);
	assert_non_null(strstr(json, "\"ended\": \"start_failed\""));
	text = api_host_text(*state, "ran");
	assert_null(text);
}

static void a_time_limit_is_a_result_with_the_output_so_far(void **state)
{
	g_autoptr(StellaExecResult) late = NULL, graceful = NULL;
	StellaExecOptions options;

	stella_exec_options_init(&options);
	options.timeout_ms = 300;
	late = api_exec(session_of(state), "echo so far; setsid sleep 7655002", &options);
	assert_int_equal(stella_exec_result_get_ended(late), STELLA_ENDED_TIMED_OUT);
	assert_string_equal(stella_exec_result_get_stdout(late, NULL), "so far\n");
	assert_int_equal(stella_exec_result_get_exit_code(late), -1);
	assert_int_equal(count_processes("7655002"), 0);
	options.kill_grace_ms = PATIENCE_MS;
	graceful = api_exec(session_of(state),
			    "trap 'echo bye; exit' TERM; while :; do sleep 0.05; done", &options);
	assert_int_equal(stella_exec_result_get_ended(graceful), STELLA_ENDED_TIMED_OUT);
	assert_string_equal(stella_exec_result_get_stdout(graceful, NULL), "bye\n");
	options.timeout_ms = STELLA_NO_TIMEOUT;
	api_assert_out(session_of(state), "sleep 0.4; echo in time", &options, "in time\n");
}

/* A command in another thread, which says when it runs. */
typedef struct {
	StellaSession *session; /* borrowed: the call holds it */
	GCancellable *cancellable;
	const char *command;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool runs;
	StellaExecResult *result;
	GError *error;
} Running;

static void told_that_it_runs(const void *data, gsize size, gpointer user_data)
{
	Running *running = user_data;

	(void)data;
	(void)size;
	pthread_mutex_lock(&running->lock);
	running->runs = true;
	pthread_cond_broadcast(&running->cond);
	pthread_mutex_unlock(&running->lock);
}

static void *run_it(void *data)
{
	Running *running = data;
	StellaExecOptions options;

	stella_exec_options_init(&options);
	options.stdout_func = told_that_it_runs;
	options.stdout_data = running;
	running->result = stella_session_exec(running->session, running->command, &options,
					      running->cancellable, &running->error);
	return NULL;
}

static GThread *start_running(Running *running, StellaSession *session, GCancellable *cancellable)
{
	GThread *thread;

	*running = (Running){ .session = session,
			      .cancellable = cancellable,
			      .command = "echo up; setsid sleep 7655003" };
	pthread_mutex_init(&running->lock, NULL);
	cond_init(&running->cond);
	thread = g_thread_new("run", run_it, running);
	pthread_mutex_lock(&running->lock);
	while (!running->runs)
		(void)pthread_cond_wait(&running->cond, &running->lock);
	pthread_mutex_unlock(&running->lock);
	return thread;
}

static void assert_canceled(Running *running)
{
	assert_null(running->error);
	assert_int_equal(stella_exec_result_get_ended(running->result), STELLA_ENDED_CANCELED);
	assert_string_equal(stella_exec_result_get_stdout(running->result, NULL), "up\n");
	assert_int_equal(count_processes("7655003"), 0);
	stella_exec_result_unref(running->result);
	pthread_mutex_destroy(&running->lock);
	pthread_cond_destroy(&running->cond);
}

static void a_cancel_from_another_thread_is_a_result(void **state)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(StellaExecResult) result = NULL;
	g_autofree char *text = NULL;
	Running running;
	GThread *thread = start_running(&running, session_of(state), cancellable);

	g_cancellable_cancel(cancellable);
	g_thread_join(thread);
	assert_canceled(&running);
	/* Before it has begun. */
	result = stella_session_exec(session_of(state), "echo run >ran", NULL, cancellable, NULL);
	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_CANCELED);
	text = api_host_text(*state, "ran");
	assert_null(text);
}

static void a_closed_session_refuses_and_who_ran_is_told(void **state)
{
	StellaSession *session = session_of(state);
	ApiFixture *fixture = *state;
	struct pollfd done = { .fd = stella_session_get_done_fd(session), .events = POLLIN };
	g_autoptr(GCancellable) cancelled = g_cancellable_new();
	g_autoptr(GError) error = NULL, refused = NULL, refresh = NULL, start = NULL;
	const char *const updates[] = { "A=1", NULL };
	g_autofree char *sessions = g_build_filename(fixture->dirs->state, "sessions", NULL);
	StellaProcessRequest request;
	Running running;
	GThread *thread = start_running(&running, session, NULL);

	g_cancellable_cancel(cancelled);
	assert_false(stella_session_close(session, cancelled, &error));
	api_assert_error(error, STELLA_ERROR_CANCELED);
	assert_true(stella_session_is_alive(session));
	assert_int_equal(poll(&done, 1, 0), 0);
	assert_int_equal(count_entries(sessions), 2);

	assert_true(stella_session_close(session, NULL, NULL));
	g_thread_join(thread);
	assert_canceled(&running);
	assert_int_equal(count_entries(sessions), 0);
	assert_true(stella_session_close(session, NULL, NULL));
	assert_false(stella_session_is_alive(session));
	assert_int_equal(poll(&done, 1, 0), 1);
	assert_true(stella_session_wait_done(session, cancelled, NULL));
	assert_null(stella_session_exec(session, "true", NULL, NULL, &refused));
	api_assert_error(refused, STELLA_ERROR_SESSION_CLOSED);
	assert_false(stella_session_refresh_env(session, updates, &refresh));
	api_assert_error(refresh, STELLA_ERROR_SESSION_CLOSED);
	stella_process_request_init(&request);
	request.path = "true";
	assert_null(stella_session_start_process(session, &request, NULL, &start));
	api_assert_error(start, STELLA_ERROR_SESSION_CLOSED);
	/* What is known of it stays. */
	assert_true(g_str_has_prefix(stella_session_get_id(session), "sandbox-"));
	assert_string_equal(stella_session_get_backend(session), "fsgate");
}

static void the_last_reference_closes(void **state)
{
	ApiFixture *fixture = *state;
	g_autofree char *sessions = g_build_filename(fixture->dirs->state, "sessions", NULL);
	Running running;
	GThread *thread = start_running(&running, fixture->session, NULL);

	/* The call is in the way: nothing happens under its feet. */
	g_object_unref(g_steal_pointer(&fixture->session));
	assert_int_equal(count_entries(sessions), 2);
	assert_true(count_processes("7655003") >= 1);
	kill(find_child("stella-fsgate"), SIGKILL);
	g_thread_join(thread);
	assert_int_equal(stella_exec_result_get_ended(running.result), STELLA_ENDED_START_FAILED);
	api_assert_error(stella_exec_result_get_error(running.result), STELLA_ERROR_SESSION_CLOSED);
	stella_exec_result_unref(running.result);
	assert_int_equal(count_entries(sessions), 0);
	assert_int_equal(count_children(), 0);
}

static void a_session_whose_gateway_dies_has_ended(void **state)
{
	StellaSession *session = session_of(state);
	g_autoptr(GError) error = NULL;

	kill(find_child("stella-fsgate"), SIGKILL);
	assert_true(stella_session_wait_done(session, NULL, NULL));
	assert_false(stella_session_is_alive(session));
	assert_null(stella_session_exec(session, "true", NULL, NULL, &error));
	api_assert_error(error, STELLA_ERROR_SESSION_CLOSED);
}

static void refreshed_variables_are_every_later_commands(void **state)
{
	StellaSession *session = session_of(state);
	const char *const updates[] = { "R=new", "S=1", NULL }, *const wrong[] = { "R=2", "X",
										   NULL };
	const char *const own[] = { "R=own", NULL }, *const unset[] = { "R", NULL };
	g_autoptr(GError) error = NULL;
	StellaExecOptions options;

	api_assert_out(session, "echo \"${R-none}\"", NULL, "none\n");
	assert_true(stella_session_refresh_env(session, updates, NULL));
	assert_false(stella_session_refresh_env(session, wrong, &error));
	api_assert_error(error, STELLA_ERROR_INVALID_ARGUMENT);
	api_assert_out(session, "echo $R$S", NULL, "new1\n");
	stella_exec_options_init(&options);
	options.env = own;
	api_assert_out(session, "echo $R", &options, "own\n");
	options.env = NULL;
	options.unset_env = unset;
	api_assert_out(session, "echo \"${R-none}\"", &options, "none\n");
}

static void the_policy_that_is_shown_is_the_effective_one(void **state)
{
	ApiFixture *fixture = *state;
	g_autoptr(StellaPolicy) own = NULL, shown = NULL, again = NULL;
	g_autofree char *dir = g_build_filename(fixture->dirs->workspace, "d", NULL);
	g_autofree char *json = NULL, *working_dir = NULL;
	g_autoptr(GError) error = NULL;
	StellaPolicyOptions options;
	StellaMount mount;

	api_fixture_stop(fixture);
	assert_int_equal(mkdir(dir, 0755), 0);
	stella_policy_options_init(&options);
	options.workspace_root = fixture->dirs->workspace;
	options.working_dir = dir;
	own = stella_policy_new(&options);
	fixture->session = api_fixture_session(own);
	g_clear_pointer(&own, stella_policy_unref); /* the session has its own */
	shown = stella_session_dup_policy(fixture->session);
	assert_string_equal(stella_policy_get_working_dir(shown), "/workspace/d");
	working_dir = stella_session_dup_working_dir(fixture->session);
	assert_string_equal(working_dir, "/workspace/d");
	assert_int_equal(stella_policy_get_n_mounts(shown), 2);
	for (gsize i = 0; i < 2; i++) {
		assert_true(stella_policy_get_mount(shown, i, &mount));
		if (strcmp(mount.view_path, "/workspace") == 0)
			assert_string_equal(mount.host_path, fixture->dirs->workspace);
		else
			assert_string_equal(mount.view_path, "/user");
	}
	if (!stella_policy_validate(shown, &error))
		fail_msg("%s", error->message);
	json = stella_policy_to_json(shown, FALSE);
	again = stella_policy_new_from_json(json, -1, NULL);
	assert_non_null(again);
	api_assert_out(fixture->session, "pwd", NULL, "/workspace/d\n");
}

typedef struct {
	StellaSession *session;
	int number;
	unsigned int wrong;
} Worker;

static void *work(void *data)
{
	Worker *worker = data;

	for (int i = 0; i < 10; i++) {
		g_autofree char *tag = g_strdup_printf("%d-%d", worker->number, i);
		g_autofree char *variable = g_strconcat("TAG=", tag, NULL);
		g_autofree char *expected = g_strdup_printf("%s %s", tag, tag);
		const char *const env[] = { variable, NULL };
		g_autoptr(StellaExecResult) result = NULL;
		StellaExecOptions options;

		stella_exec_options_init(&options);
		options.env = env;
		options.input = tag;
		options.input_size = strlen(tag);
		result = stella_session_exec(worker->session, "printf '%s ' \"$TAG\"; cat",
					     &options, NULL, NULL);
		if (!result || strcmp(stella_exec_result_get_stdout(result, NULL), expected) != 0)
			worker->wrong++;
	}
	return NULL;
}

static void eight_threads_use_one_session(void **state)
{
	Worker workers[8];
	GThread *threads[8];
	int fds;

	api_warm_up(session_of(state));
	fds = count_entries("/proc/self/fd");
	for (int i = 0; i < 8; i++) {
		workers[i] = (Worker){ session_of(state), i, 0 };
		threads[i] = g_thread_new("work", work, &workers[i]);
	}
	for (int i = 0; i < 8; i++) {
		g_thread_join(threads[i]);
		assert_int_equal(workers[i].wrong, 0);
	}
	assert_int_equal(count_entries("/proc/self/fd"), fds);
}

/* Until the session refuses: what it ran until then is canceled or whole. */
static void *work_until_it_is_closed(void *data)
{
	Worker *worker = data;
	GError *error = NULL;
	StellaExecResult *result;

	while ((result = stella_session_exec(worker->session, "echo x; sleep 0.02", NULL, NULL,
					     &error))) {
		StellaEnded ended = stella_exec_result_get_ended(result);

		if (ended != STELLA_ENDED_CANCELED &&
		    (ended != STELLA_ENDED_EXITED ||
		     strcmp(stella_exec_result_get_stdout(result, NULL), "x\n") != 0))
			worker->wrong++;
		worker->number++;
		stella_exec_result_unref(result);
	}
	worker->wrong += !g_error_matches(error, STELLA_ERROR, STELLA_ERROR_SESSION_CLOSED);
	g_error_free(error);
	return NULL;
}

static void closing_between_many_commands_leaves_none(void **state)
{
	Worker workers[8];
	GThread *threads[8];
	int ran = 0;

	for (int i = 0; i < 8; i++) {
		workers[i] = (Worker){ session_of(state), 0, 0 };
		threads[i] = g_thread_new("work", work_until_it_is_closed, &workers[i]);
	}
	api_assert_out(session_of(state), "sleep 0.3", NULL, "");
	assert_true(stella_session_close(session_of(state), NULL, NULL));
	for (int i = 0; i < 8; i++) {
		g_thread_join(threads[i]);
		assert_int_equal(workers[i].wrong, 0);
		ran += workers[i].number;
	}
	assert_true(ran > 0);
	assert_int_equal(count_children(), 0);
}

static void the_hosts_children_and_signals_are_its_own(void **state)
{
	struct sigaction before, after;
	siginfo_t info = { 0 };
	pid_t child = fork();

	if (child == 0)
		_exit(7);
	assert_true(child > 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(sigaction(SIGCHLD, NULL, &before), 0);
	api_assert_out(session_of(state), "echo x", NULL, "x\n");
	api_fixture_stop(*state);
	assert_int_equal(sigaction(SIGCHLD, NULL, &after), 0);
	assert_ptr_equal(before.sa_handler, after.sa_handler);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED), 0);
	assert_int_equal(info.si_status, 7);
}

static void an_id_is_new_every_time(void **state)
{
	g_autofree char *one = stella_new_session_id(), *other = stella_new_session_id();

	(void)state;
	assert_true(g_regex_match_simple("^sandbox-[0-9a-f]{16}$", one, 0, 0));
	assert_string_not_equal(one, other);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, api_fixture_set_up, api_fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_result_tells_all_of_a_command),
		cmocka_unit_test(what_the_view_refuses_is_told_and_not_done),
		TEST(its_json_is_that_of_the_command_line),
		TEST(every_option_is_the_commands),
		TEST(what_a_cap_cuts_is_told_and_kept_in_a_file),
		TEST(a_renamed_file_has_both_names),
		TEST(sinks_are_given_what_comes),
		TEST(options_that_make_no_sense_run_nothing),
		TEST(what_cannot_be_started_is_a_result),
		TEST(a_time_limit_is_a_result_with_the_output_so_far),
		TEST(a_cancel_from_another_thread_is_a_result),
		TEST(a_closed_session_refuses_and_who_ran_is_told),
		TEST(the_last_reference_closes),
		TEST(a_session_whose_gateway_dies_has_ended),
		TEST(refreshed_variables_are_every_later_commands),
		TEST(the_policy_that_is_shown_is_the_effective_one),
		TEST(eight_threads_use_one_session),
		TEST(closing_between_many_commands_leaves_none),
		TEST(the_hosts_children_and_signals_are_its_own),
		cmocka_unit_test(an_id_is_new_every_time),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
