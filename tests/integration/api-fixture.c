/* See api-fixture.h. */
#include "api-fixture.h"

#include "executor/api-session.h"
#include "executor/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PATIENCE_S 30

ApiFixture *api_fixture_new(void)
{
	ApiFixture *fixture = g_new0(ApiFixture, 1);

	fixture->dirs = fixture_new();
	return fixture;
}

StellaSession *api_fixture_session(const StellaPolicy *policy)
{
	return api_fixture_session_by("fsgate", policy);
}

StellaSession *api_fixture_session_by(const char *backend, const StellaPolicy *policy)
{
	ExrSessionConfig config = {
		.policy = policy,
		.backend = exr_backend_find(backend),
		.temporary_user = true,
	};
	ExrSession *session = NULL;
	ExrError error = { 0 };

	if (exr_session_new(&config, &session, &error) < 0)
		fail_msg("%s (%s): %s", error.code, error.stage, error.message);
	return api_session_new(session);
}

void api_fixture_start(ApiFixture *fixture, const char *more)
{
	g_autoptr(StellaPolicy) policy = fixture_policy(fixture->dirs, more);

	fixture->session = api_fixture_session(policy);
}

void api_fixture_stop(ApiFixture *fixture)
{
	StellaSession *session = g_steal_pointer(&fixture->session);

	if (!session)
		return;
	g_object_add_weak_pointer(G_OBJECT(session), (gpointer *)&session);
	g_object_unref(session);
	assert_null(session);
}

void api_fixture_free(ApiFixture *fixture)
{
	api_fixture_stop(fixture);
	fixture_free(fixture->dirs);
	g_free(fixture);
}

int api_fixture_set_up(void **state)
{
	ApiFixture *fixture = api_fixture_new();

	api_fixture_start(fixture, "");
	*state = fixture;
	return 0;
}

int api_fixture_tear_down(void **state)
{
	api_fixture_free(*state);
	return 0;
}

StellaExecResult *api_exec(StellaSession *session, const char *command,
			   const StellaExecOptions *options)
{
	g_autoptr(GError) error = NULL;
	StellaExecResult *result = stella_session_exec(session, command, options, NULL, &error);

	if (!result)
		fail_msg("%s: %s", command, error->message);
	assert_null(error);
	return result;
}

void api_assert_out(StellaSession *session, const char *command, const StellaExecOptions *options,
		    const char *expected)
{
	g_autoptr(StellaExecResult) result = api_exec(session, command, options);
	g_autoptr(GError) error = NULL;

	if (!stella_exec_result_check(result, &error))
		fail_msg("%s: %s; %s", command, error->message,
			 stella_exec_result_get_stderr(result, NULL));
	assert_string_equal(stella_exec_result_get_stdout(result, NULL), expected);
}

void api_warm_up(StellaSession *session)
{
	for (int i = 0; i < 2; i++)
		api_assert_out(session, ":", NULL, "");
}

char *api_host_text(const ApiFixture *fixture, const char *name)
{
	g_autofree char *path = g_build_filename(fixture->dirs->workspace, name, NULL);
	char *text = NULL;

	(void)g_file_get_contents(path, &text, NULL, NULL);
	return text;
}

void api_assert_error(const GError *error, StellaError code)
{
	assert_non_null(error);
	if (!g_error_matches(error, STELLA_ERROR, (int)code))
		fail_msg("expected %s, got %s %d: %s", stella_error_code_name(code),
			 g_quark_to_string(error->domain), error->code, error->message);
}

void api_async_ready(GObject *source, GAsyncResult *result, gpointer data)
{
	ApiAsync *async = data;

	assert_ptr_equal(g_async_result_get_source_object(result), source);
	g_object_unref(source);
	assert_null(async->result);
	async->result = g_object_ref(result);
	async->thread = g_thread_self();
}

static gboolean give_up(gpointer data)
{
	(void)data;
	fail_msg("an asynchronous call has not ended");
	return G_SOURCE_REMOVE;
}

GAsyncResult *api_await(ApiAsync *async)
{
	GMainContext *context = g_main_context_ref_thread_default();
	GSource *deadline = g_timeout_source_new_seconds(PATIENCE_S);

	g_source_set_callback(deadline, give_up, NULL, NULL);
	g_source_attach(deadline, context);
	while (!async->result)
		g_main_context_iteration(context, TRUE);
	g_source_destroy(deadline);
	g_source_unref(deadline);
	g_main_context_unref(context);
	assert_ptr_equal(async->thread, g_thread_self());
	return async->result;
}

void api_async_clear(ApiAsync *async)
{
	g_clear_object(&async->result);
}
