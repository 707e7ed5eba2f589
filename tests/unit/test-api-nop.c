/* api-nop, and the factory of that name: a session that runs nothing does nothing but what stella/session.h says of it. */
#include "stella/factory.h"
#include "stella/session.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state)
{
	*state = stella_session_new_nop();
	return 0;
}

static int tear_down(void **state)
{
	g_object_unref(*state);
	return 0;
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

static void it_has_an_id_a_backend_and_a_policy(void **state)
{
	StellaSession *session = *state;
	g_autoptr(StellaSession) other = stella_session_new_nop();
	g_autoptr(StellaPolicy) policy = stella_session_dup_policy(session);
	g_autofree char *dir = stella_session_dup_working_dir(session);
	const char *id = stella_session_get_id(session);

	assert_true(g_str_has_prefix(id, "sandbox-"));
	assert_int_equal(strlen(id), strlen("sandbox-") + 16);
	assert_string_not_equal(id, stella_session_get_id(other));
	assert_string_equal(stella_session_get_backend(session), "nop");
	assert_true(stella_policy_validate(policy, NULL));
	assert_int_equal(stella_policy_get_network_mode(policy), STELLA_NETWORK_ALLOW_ALL);
	assert_string_equal(dir, "/workspace");
}

static void a_command_exits_with_0_and_says_nothing(void **state)
{
	StellaSession *session = *state;
	g_autoptr(StellaExecResult) result =
		stella_session_exec(session, "echo out; exit 3", NULL, NULL, NULL);
	gsize size = 1;

	assert_non_null(result);
	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_EXITED);
	assert_int_equal(stella_exec_result_get_exit_code(result), 0);
	assert_string_equal(stella_exec_result_get_stdout(result, &size), "");
	assert_int_equal(size, 0);
	assert_string_equal(stella_exec_result_get_stderr(result, &size), "");
	assert_int_equal(size, 0);
	assert_true(stella_exec_result_check(result, NULL));
	/* what it cannot know it does not claim */
	assert_int_equal(stella_exec_result_get_n_denials(result), -1);
	assert_int_equal(stella_exec_result_get_n_changes(result), -1);
}

static void a_command_of_who_has_cancelled_is_canceled(void **state)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(StellaExecResult) result = NULL;

	g_cancellable_cancel(cancellable);
	result = stella_session_exec(*state, "true", NULL, cancellable, NULL);
	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_CANCELED);
	assert_true(stella_session_is_alive(*state));
}

static void options_that_make_no_sense_are_refused_as_everywhere(void **state)
{
	g_autoptr(GError) error = NULL;
	StellaExecOptions options;

	stella_exec_options_init(&options);
	options.timeout_ms = -2;
	assert_null(stella_session_exec(*state, "true", &options, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_INVALID_ARGUMENT));
}

static void no_process_is_started(void **state)
{
	g_autoptr(GError) error = NULL;
	StellaProcessRequest request;

	stella_process_request_init(&request);
	request.path = "true";
	assert_null(stella_session_start_process(*state, &request, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED));
}

static void a_path_leads_to_itself(void **state)
{
	g_autofree char *read = stella_session_resolve(*state, "/any/../path", NULL);
	g_autofree char *write = stella_session_resolve_write(*state, "b", NULL);

	assert_string_equal(read, "/any/../path");
	assert_string_equal(write, "b");
}

static void nothing_else_is_there(void **state)
{
	static const char *const updates[] = { "A=1", NULL };
	g_autoptr(GError) error = NULL;

	assert_int_equal(stella_session_open(*state, "/etc/passwd", O_RDONLY, 0, &error), -1);
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED));
	g_clear_error(&error);
	assert_null(stella_session_dup_resolver(*state, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED));
	g_clear_error(&error);
	assert_null(stella_session_dup_files(*state, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED));
	g_clear_error(&error);
	assert_false(stella_session_refresh_env(*state, updates, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_ENV_REFRESH_UNSUPPORTED));
}

static void it_lives_until_it_is_closed(void **state)
{
	StellaSession *session = *state;
	g_autoptr(GError) error = NULL;
	StellaProcessRequest request;
	int fd = stella_session_get_done_fd(session);

	assert_true(stella_session_is_alive(session));
	assert_true(fd >= 0);
	assert_false(is_readable(fd));
	assert_true(stella_session_close(session, NULL, NULL));
	assert_true(stella_session_close(session, NULL, NULL));
	assert_false(stella_session_is_alive(session));
	assert_true(is_readable(fd));
	assert_true(stella_session_wait_done(session, NULL, NULL));
	assert_null(stella_session_exec(session, "true", NULL, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_SESSION_CLOSED));
	g_clear_error(&error);
	stella_process_request_init(&request);
	request.path = "true";
	assert_null(stella_session_start_process(session, &request, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_SESSION_CLOSED));
}

/* What the log was told, an event and a space each. */
static GString *events;

static GLogWriterOutput keep(GLogLevelFlags level, const GLogField *fields, gsize count,
			     gpointer data)
{
	(void)level;
	(void)data;
	for (gsize i = 0; i < count; i++)
		if (strcmp(fields[i].key, "STELLA_EVENT") == 0 ||
		    strcmp(fields[i].key, "STELLA_BACKEND") == 0)
			g_string_append_printf(events, "%s ", (const char *)fields[i].value);
	return G_LOG_WRITER_HANDLED;
}

static void the_log_is_told_of_its_life_once(void **state)
{
	StellaSession *session;

	(void)state;
	g_string_truncate(events, 0);
	session = stella_session_new_nop();
	assert_true(stella_session_close(session, NULL, NULL));
	assert_true(stella_session_close(session, NULL, NULL));
	g_object_unref(session);
	assert_string_equal(events->str, "sandbox.session_created nop sandbox.session_closed nop ");
	g_string_truncate(events, 0);
	g_object_unref(stella_session_new_nop());
	assert_string_equal(events->str, "sandbox.session_created nop sandbox.session_closed nop ");
}

static StellaPolicy *new_policy(StellaNetworkMode mode, gint64 network_timeout_ms)
{
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.workspace_root = "/srv/ws";
	options.working_dir = "/workspace/src";
	options.network_mode = mode;
	options.network_timeout_ms = network_timeout_ms;
	return stella_policy_new(&options);
}

static void the_factory_makes_them_of_any_policy(void **state)
{
	g_autoptr(StellaFactory) factory = stella_factory_new_nop();
	g_autoptr(StellaPolicy) policy = new_policy(STELLA_NETWORK_DISABLED, 0);
	g_autoptr(StellaSession) session = NULL;
	g_autoptr(StellaPolicy) effective = NULL;
	g_autofree char *dir = NULL;

	(void)state;
	assert_string_equal(stella_factory_get_name(factory), "nop");
	assert_true(stella_factory_is_available(factory, NULL));
	assert_true(stella_factory_check_policy(factory, policy, NULL));
	session = stella_factory_create_session(factory, policy, NULL, NULL);
	assert_non_null(session);
	assert_string_equal(stella_session_get_backend(session), "nop");
	dir = stella_session_dup_working_dir(session);
	assert_string_equal(dir, "/workspace/src");
	/* nothing is kept from the network there, and its policy says so; the caller's is as it was */
	effective = stella_session_dup_policy(session);
	assert_int_equal(stella_policy_get_network_mode(effective), STELLA_NETWORK_ALLOW_ALL);
	assert_int_equal(stella_policy_get_network_mode(policy), STELLA_NETWORK_DISABLED);
}

static void but_none_with_a_timeout_of_the_network(void **state)
{
	g_autoptr(StellaFactory) factory = stella_factory_new_nop();
	g_autoptr(StellaPolicy) policy = new_policy(STELLA_NETWORK_ALLOW_ALL, 1);
	g_autoptr(GError) error = NULL;

	(void)state;
	assert_null(stella_factory_create_session(factory, policy, NULL, &error));
	assert_true(stella_error_is_policy_incompatible(error));
	assert_string_equal(stella_error_get_key(error), "network.timeout_ms");
	assert_string_equal(stella_error_get_backend(error), "nop");
	assert_ptr_equal(stella_error_get_policy(error), policy);
	assert_non_null(stella_error_get_reason(error));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_has_an_id_a_backend_and_a_policy),
		CASE(a_command_exits_with_0_and_says_nothing),
		CASE(a_command_of_who_has_cancelled_is_canceled),
		CASE(options_that_make_no_sense_are_refused_as_everywhere),
		CASE(no_process_is_started),
		CASE(a_path_leads_to_itself),
		CASE(nothing_else_is_there),
		CASE(it_lives_until_it_is_closed),
		cmocka_unit_test(the_log_is_told_of_its_life_once),
		cmocka_unit_test(the_factory_makes_them_of_any_policy),
		cmocka_unit_test(but_none_with_a_timeout_of_the_network),
	};
	int failed;

	events = g_string_new(NULL);
	g_log_set_writer_func(keep, NULL, NULL);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	g_string_free(events, TRUE);
	return failed;
}
