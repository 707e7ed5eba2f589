/* A resilient session over real ones, whose gateway or init is killed: what follows finds a new session, and the files of the
 * workspace as they were; what ran has its result; nothing of the old session is left. */
#include "api-fixture.h"

#include "lib/workspace-fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS	    8
#define PATIENCE_MS 20000

typedef struct {
	ApiFixture *api; /* of its session nothing is used */
	StellaFactoryRegistry *registry;
	StellaSession *session; /* the resilient one */
	atomic_int made;
} Agent;

/* As a host does it: from what it knows now. */
static StellaSession *create(GCancellable *cancellable, gpointer user_data, GError **error)
{
	Agent *agent = user_data;
	g_autoptr(StellaPolicy) policy = fixture_policy(agent->api->dirs, "");

	atomic_fetch_add(&agent->made, 1);
	return stella_factory_registry_create_session(agent->registry, policy, cancellable, error);
}

static int set_up(void **state)
{
	Agent *agent = g_new0(Agent, 1);
	g_autoptr(StellaSession) first = NULL;
	g_autoptr(GError) error = NULL;

	agent->api = api_fixture_new();
	agent->registry = stella_factory_registry_new_default();
	first = create(NULL, agent, &error);
	if (!first)
		fail_msg("%s", error->message);
	atomic_store(&agent->made, 0);
	agent->session = STELLA_SESSION(stella_resilient_session_new(first, create, agent, NULL));
	*state = agent;
	return 0;
}

static int tear_down(void **state)
{
	Agent *agent = *state;
	g_autofree char *sessions = g_build_filename(agent->api->dirs->state, "sessions", NULL);

	g_object_unref(agent->session);
	/* the last reference has closed it: nothing of any of them is left */
	assert_int_equal(count_entries(sessions), 0);
	assert_int_equal(count_children(), 0);
	g_object_unref(agent->registry);
	api_fixture_free(agent->api);
	g_free(agent);
	return 0;
}

static void kill_and_wait(Agent *agent, const char *program)
{
	pid_t pid = find_child(program);

	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_true(stella_session_wait_done(agent->session, NULL, NULL));
}

static void a_killed_session_is_replaced(void **state)
{
	static const char *const programs[] = { "stella-fsgate", "stella-sandbox-init" };
	Agent *agent = *state;
	g_autofree char *sessions = g_build_filename(agent->api->dirs->state, "sessions", NULL);
	g_autofree char *id = g_strdup(stella_session_get_id(agent->session));
	g_autofree char *text = NULL;
	int entries = count_entries(sessions);

	api_assert_out(agent->session, "echo one >>f && cat f", NULL, "one\n");
	for (size_t i = 0; i < G_N_ELEMENTS(programs); i++) {
		g_autoptr(StellaSession) before = stella_resilient_session_dup_inner(
			STELLA_RESILIENT_SESSION(agent->session));
		g_autoptr(StellaSession) after = NULL;

		kill_and_wait(agent, programs[i]);
		assert_false(stella_session_is_alive(agent->session));
		assert_int_equal(atomic_load(&agent->made), i);
		api_assert_out(agent->session, "echo more >>f && tail -n 1 f", NULL, "more\n");
		assert_int_equal(atomic_load(&agent->made), i + 1);
		after = stella_resilient_session_dup_inner(
			STELLA_RESILIENT_SESSION(agent->session));
		assert_ptr_not_equal(before, after);
		assert_string_not_equal(stella_session_get_id(before),
					stella_session_get_id(after));
		assert_true(stella_session_is_alive(agent->session));
		/* although somebody still holds the old one */
		assert_int_equal(count_entries(sessions), entries);
	}
	assert_string_equal(stella_session_get_id(agent->session), id);
	assert_string_equal(stella_session_get_backend(agent->session), "fsgate");
	text = api_host_text(agent->api, "f");
	assert_string_equal(text, "one\nmore\nmore\n");
}

typedef struct {
	pthread_t thread;
	StellaSession *session;
	const char *command;
	StellaExecResult *result;
	GError *error;
} Command;

static void *run(void *data)
{
	Command *self = data;

	self->result = stella_session_exec(self->session, self->command, NULL, NULL, &self->error);
	return NULL;
}

static void start(Agent *agent, Command *ret_run, const char *command)
{
	*ret_run = (Command){ .session = agent->session, .command = command };
	assert_int_equal(pthread_create(&ret_run->thread, NULL, run, ret_run), 0);
}

static void finish(Command *self)
{
	assert_int_equal(pthread_join(self->thread, NULL), 0);
	if (!self->result)
		fail_msg("%s", self->error->message);
}

static void many_threads_have_one_made(void **state)
{
	Agent *agent = *state;
	Command runs[THREADS];
	g_autofree char *text = NULL;

	kill_and_wait(agent, "stella-fsgate");
	for (int i = 0; i < THREADS; i++)
		start(agent, &runs[i], "echo x >>f; echo done");
	for (int i = 0; i < THREADS; i++) {
		finish(&runs[i]);
		assert_string_equal(stella_exec_result_get_stdout(runs[i].result, NULL), "done\n");
		stella_exec_result_unref(runs[i].result);
	}
	assert_int_equal(atomic_load(&agent->made), 1);
	text = api_host_text(agent->api, "f");
	assert_int_equal(strlen(text), 2 * THREADS);
}

static bool has_begun(void *api)
{
	g_autofree char *text = api_host_text(api, "begun");

	return text && *text;
}

static void what_ran_has_its_result_and_is_not_repeated(void **state)
{
	Agent *agent = *state;
	/* held to the end: a last reference that goes in one thread after another's is no race, but looks like one */
	g_autoptr(StellaSession) held =
		stella_resilient_session_dup_inner(STELLA_RESILIENT_SESSION(agent->session));
	g_autofree char *text = NULL;
	Command running;

	assert_non_null(held);
	/* what goes on needs nothing of the view, or it would end by itself with that */
	start(agent, &running, "echo x >>begun; while :; do :; done");
	assert_true(wait_until(has_begun, agent->api, PATIENCE_MS));
	kill_and_wait(agent, "stella-fsgate");
	api_assert_out(agent->session, "echo after", NULL, "after\n");
	finish(&running);
	/* its sandbox died under it, or it was killed with what was left of that */
	if (stella_exec_result_get_ended(running.result) != STELLA_ENDED_START_FAILED &&
	    stella_exec_result_get_ended(running.result) != STELLA_ENDED_CANCELED) {
		g_autofree char *json = stella_exec_result_to_json(running.result);

		fail_msg("%s", json);
	}
	stella_exec_result_unref(running.result);
	text = api_host_text(agent->api, "begun");
	assert_string_equal(text, "x\n");
	assert_int_equal(atomic_load(&agent->made), 1);
}

static void processes_and_paths_find_a_new_one_too(void **state)
{
	Agent *agent = *state;
	g_autofree char *expected = g_build_filename(agent->api->dirs->workspace, "p", NULL);
	g_autofree char *path = NULL;
	g_autoptr(StellaProcess) process = NULL;
	g_autoptr(StellaExecResult) result = NULL;
	StellaProcessRequest request;

	kill_and_wait(agent, "stella-fsgate");
	path = stella_session_resolve(agent->session, "p", NULL);
	assert_string_equal(path, expected);
	assert_int_equal(atomic_load(&agent->made), 1);
	kill_and_wait(agent, "stella-fsgate");
	stella_process_request_init(&request);
	request.path = "true";
	process = stella_session_start_process(agent->session, &request, NULL, NULL);
	assert_non_null(process);
	assert_int_equal(atomic_load(&agent->made), 2);
	result = stella_process_wait(process, PATIENCE_MS, NULL, NULL);
	assert_int_equal(stella_exec_result_get_exit_code(result), 0);
	assert_true(stella_process_close(process, NULL));
}

static void what_lies_over_the_environment_is_a_commands(void **state)
{
	Agent *agent = *state;
	g_autofree char *tools =
		g_strdup_printf("MISE_DATA_DIR=%s/tools", agent->api->dirs->workspace);
	const char *const updates[] = { "A=over", "HOME=/tmp", tools, NULL };
	const char *const unset[] = { "A", NULL }, *const env[] = { "HOME=/own", NULL };
	StellaExecOptions options;

	assert_true(stella_session_refresh_env(agent->session, updates, NULL));
	/* host paths in MISE_* are view paths to a command, whatever layer they come from */
	api_assert_out(agent->session, "echo $A $HOME $MISE_DATA_DIR", NULL,
		       "over /tmp /workspace/tools\n");
	stella_exec_options_init(&options);
	options.unset_env = unset;
	options.env = env;
	api_assert_out(agent->session, "echo ${A-none} $HOME", &options, "none /own\n");
	kill_and_wait(agent, "stella-fsgate");
	api_assert_out(agent->session, "echo ${A-none} $HOME", NULL, "none /workspace\n");
}

static void what_is_closed_stays_closed(void **state)
{
	Agent *agent = *state;
	g_autoptr(GError) error = NULL;

	assert_true(stella_session_close(agent->session, NULL, NULL));
	assert_int_equal(count_children(), 0);
	assert_null(stella_session_exec(agent->session, "touch ran", NULL, NULL, &error));
	api_assert_error(error, STELLA_ERROR_SESSION_CLOSED);
	assert_null(api_host_text(agent->api, "ran"));
	assert_int_equal(atomic_load(&agent->made), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_killed_session_is_replaced),
		CASE(many_threads_have_one_made),
		CASE(what_ran_has_its_result_and_is_not_repeated),
		CASE(processes_and_paths_find_a_new_one_too),
		CASE(what_lies_over_the_environment_is_a_commands),
		CASE(what_is_closed_stays_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
