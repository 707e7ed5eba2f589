/* api-resilient: what is handed on, when a new session is made, and what lies over its environment. With many threads:
 * test-api-resilient-threads.c. */
#include "resilient-fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void a_live_session_is_used_as_it_is(void **state)
{
	Resilient *resilient = *state;
	g_autofree char *dir = stella_session_dup_working_dir(resilient->session);
	g_autoptr(StellaPolicy) policy = stella_session_dup_policy(resilient->session);
	g_autoptr(StellaSession) inner =
		stella_resilient_session_dup_inner(STELLA_RESILIENT_SESSION(resilient->session));

	expect_exec(resilient->session, "sandbox-first");
	assert_string_equal(stella_session_get_id(resilient->session), "sandbox-first");
	assert_string_equal(stella_session_get_backend(resilient->session), "fake");
	assert_string_equal(dir, "/workspace/sandbox-first");
	assert_ptr_equal(policy, resilient->first->policy);
	assert_ptr_equal(inner, resilient->first);
	assert_true(stella_session_is_alive(resilient->session));
	assert_int_equal(atomic_load(&resilient->calls), 0);
}

static void a_dead_one_is_replaced(void **state)
{
	Resilient *resilient = *state;
	g_autofree char *dir = NULL;

	fake_session_die(resilient->first);
	assert_false(stella_session_is_alive(resilient->session));
	expect_exec(resilient->session, "sandbox-made1");
	expect_exec(resilient->session, "sandbox-made1");
	assert_int_equal(atomic_load(&resilient->calls), 1);
	assert_true(stella_session_is_alive(resilient->session));
	/* what was left of the dead one is gone, and nothing was run there */
	assert_true(atomic_load(&resilient->first->closes) > 0);
	assert_int_equal(atomic_load(&resilient->first->execs), 0);
	dir = stella_session_dup_working_dir(resilient->session);
	assert_string_equal(dir, "/workspace/sandbox-made1");
	assert_string_equal(stella_session_get_id(resilient->session), "sandbox-first");
	/* and again */
	fake_session_die(resilient_last_made(resilient));
	expect_exec(resilient->session, "sandbox-made2");
	assert_int_equal(atomic_load(&resilient->calls), 2);
}

/* Each is a way to use a session; TRUE: as a session that fakes all of it answers. */
static gboolean use_exec(StellaSession *session)
{
	g_autoptr(StellaExecResult) result = stella_session_exec(session, "x", NULL, NULL, NULL);

	return result != NULL;
}

static gboolean use_start_process(StellaSession *session)
{
	g_autoptr(GError) error = NULL;
	StellaProcessRequest request;

	stella_process_request_init(&request);
	request.path = "x";
	assert_null(stella_session_start_process(session, &request, NULL, &error));
	return g_error_matches(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED);
}

static gboolean use_resolve(StellaSession *session)
{
	g_autofree char *path = stella_session_resolve(session, "p", NULL);

	return path && g_str_has_suffix(path, ":p");
}

static gboolean use_resolve_write(StellaSession *session)
{
	g_autofree char *path = stella_session_resolve_write(session, "p", NULL);

	return path && g_str_has_suffix(path, ":p");
}

static gboolean use_open(StellaSession *session)
{
	g_autoptr(GError) error = NULL;

	return stella_session_open(session, "p", 0, 0, &error) == -1 &&
	       g_error_matches(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED);
}

static gboolean use_resolver(StellaSession *session)
{
	g_autoptr(GError) error = NULL;

	return !stella_session_dup_resolver(session, &error) &&
	       g_error_matches(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED);
}

static gboolean use_files(StellaSession *session)
{
	g_autoptr(GError) error = NULL;

	return !stella_session_dup_files(session, &error) &&
	       g_error_matches(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED);
}

static gboolean (*const uses[])(StellaSession *session) = {
	use_exec, use_start_process, use_resolve, use_resolve_write,
	use_open, use_resolver,	     use_files,
};

static void each_use_replaces_a_dead_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(uses); i++) {
		Resilient *resilient;
		void *own = NULL;

		resilient_set_up(&own);
		resilient = own;
		assert_true(uses[i](resilient->session));
		assert_int_equal(atomic_load(&resilient->calls), 0);
		fake_session_die(resilient->first);
		assert_true(uses[i](resilient->session));
		assert_int_equal(atomic_load(&resilient->calls), 1);
		resilient_tear_down(&own);
	}
}

static void no_use_replaces_one_that_was_closed(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(uses); i++) {
		Resilient *resilient;
		void *own = NULL;

		resilient_set_up(&own);
		resilient = own;
		assert_true(stella_session_close(resilient->session, NULL, NULL));
		assert_false(uses[i](resilient->session));
		assert_int_equal(atomic_load(&resilient->calls), 0);
		resilient_tear_down(&own);
	}
}

static void who_only_looks_replaces_nothing(void **state)
{
	static const char *const updates[] = { "A=1", NULL };
	Resilient *resilient = *state;
	g_autoptr(StellaPolicy) policy = NULL;
	g_autoptr(StellaSession) inner = NULL;
	g_autofree char *dir = NULL;

	fake_session_die(resilient->first);
	policy = stella_session_dup_policy(resilient->session);
	dir = stella_session_dup_working_dir(resilient->session);
	inner = stella_resilient_session_dup_inner(STELLA_RESILIENT_SESSION(resilient->session));
	assert_non_null(policy);
	assert_string_equal(dir, "/workspace/sandbox-first");
	assert_ptr_equal(inner, resilient->first);
	assert_false(stella_session_is_alive(resilient->session));
	assert_true(is_readable(stella_session_get_done_fd(resilient->session)));
	assert_string_equal(stella_session_get_id(resilient->session), "sandbox-first");
	assert_string_equal(stella_session_get_backend(resilient->session), "fake");
	assert_true(stella_session_refresh_env(resilient->session, updates, NULL));
	assert_int_equal(atomic_load(&resilient->calls), 0);
}

static void what_is_closed_stays_closed(void **state)
{
	static const char *const updates[] = { "A=1", NULL };
	Resilient *resilient = *state;
	g_autoptr(GError) error = NULL;

	assert_true(stella_session_close(resilient->session, NULL, NULL));
	assert_true(stella_session_close(resilient->session, NULL, NULL));
	assert_false(stella_session_is_alive(resilient->session));
	assert_true(is_readable(stella_session_get_done_fd(resilient->session)));
	assert_true(atomic_load(&resilient->first->closes) > 0);
	expect_no_exec(resilient->session, STELLA_ERROR_SESSION_CLOSED);
	assert_false(stella_session_refresh_env(resilient->session, updates, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_SESSION_CLOSED));
	assert_int_equal(atomic_load(&resilient->calls), 0);
}

static void the_end_of_the_inner_one_by_its_owner_is_a_death(void **state)
{
	Resilient *resilient = *state;

	assert_true(stella_session_close(STELLA_SESSION(resilient->first), NULL, NULL));
	expect_exec(resilient->session, "sandbox-made1");
}

static void the_done_fd_follows_the_present_session(void **state)
{
	Resilient *resilient = *state;
	int fd = stella_session_get_done_fd(resilient->session);

	assert_true(fd >= 0);
	assert_false(is_readable(fd));
	fake_session_die(resilient->first);
	assert_true(is_readable(fd));
	assert_true(stella_session_wait_done(resilient->session, NULL, NULL));
	expect_exec(resilient->session, "sandbox-made1");
	assert_int_equal(stella_session_get_done_fd(resilient->session), fd);
	assert_false(is_readable(fd));
	fake_session_die(resilient_last_made(resilient));
	assert_true(is_readable(fd));
	expect_exec(resilient->session, "sandbox-made2");
	assert_false(is_readable(fd));
	assert_true(stella_session_close(resilient->session, NULL, NULL));
	assert_true(is_readable(fd));
}

static void a_failure_is_returned_and_tried_anew(void **state)
{
	Resilient *resilient = *state;
	g_autoptr(GError) error = NULL;

	fake_session_die(resilient->first);
	atomic_store(&resilient->fails, true);
	assert_null(stella_session_exec(resilient->session, "x", NULL, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_START_FAILED));
	assert_string_equal(error->message, "no sandbox 1");
	expect_no_exec(resilient->session, STELLA_ERROR_START_FAILED);
	assert_int_equal(atomic_load(&resilient->calls), 2);
	atomic_store(&resilient->fails, false);
	expect_exec(resilient->session, "sandbox-made3");
}

static void a_creator_that_says_nothing_has_failed(void **state)
{
	Resilient *resilient = *state;

	fake_session_die(resilient->first);
	atomic_store(&resilient->says_nothing, true);
	expect_no_exec(resilient->session, STELLA_ERROR_FAILED);
	assert_int_equal(atomic_load(&resilient->calls), 1);
}

static void a_creator_that_makes_dead_ones_is_called_once_a_use(void **state)
{
	Resilient *resilient = *state;

	fake_session_die(resilient->first);
	atomic_store(&resilient->makes_dead, true);
	expect_no_exec(resilient->session, STELLA_ERROR_SESSION_CLOSED);
	assert_int_equal(atomic_load(&resilient->calls), 1);
	expect_no_exec(resilient->session, STELLA_ERROR_SESSION_CLOSED);
	assert_int_equal(atomic_load(&resilient->calls), 2);
}

static void a_creator_that_waits_for_itself_is_refused(void **state)
{
	Resilient *resilient = *state;

	fake_session_die(resilient->first);
	atomic_store(&resilient->asks_itself, true);
	expect_exec(resilient->session, "sandbox-made1");
	assert_true(g_error_matches(resilient->own_answer, STELLA_ERROR, STELLA_ERROR_FAILED));
}

/* It lived when it was asked, and did not take the command: so nothing was run there. */
static void one_that_dies_before_it_takes_a_command_is_replaced(void **state)
{
	Resilient *resilient = *state;

	resilient->first->dies_at_exec = true;
	expect_exec(resilient->session, "sandbox-made1");
	assert_int_equal(atomic_load(&resilient->first->execs), 0);
	assert_int_equal(atomic_load(&resilient->calls), 1);
	resilient_last_made(resilient)->dies_at_exec = true;
	assert_true(use_start_process(resilient->session));
	assert_int_equal(atomic_load(&resilient->calls), 2);
}

static void one_that_lives_and_refuses_is_not_replaced(void **state)
{
	Resilient *resilient = *state;

	resilient->first->refuses_execs = true;
	expect_no_exec(resilient->session, STELLA_ERROR_SESSION_CLOSED);
	assert_int_equal(atomic_load(&resilient->calls), 0);
}

static void who_has_cancelled_already_makes_nothing(void **state)
{
	Resilient *resilient = *state;
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(StellaExecResult) result = NULL;
	g_autoptr(GError) error = NULL;
	StellaProcessRequest request;

	fake_session_die(resilient->first);
	g_cancellable_cancel(cancellable);
	result = stella_session_exec(resilient->session, "x", NULL, cancellable, NULL);
	assert_non_null(result);
	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_CANCELED);
	stella_process_request_init(&request);
	request.path = "x";
	assert_null(
		stella_session_start_process(resilient->session, &request, cancellable, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_CANCELED));
	assert_int_equal(atomic_load(&resilient->calls), 0);
}

static void the_last_reference_closes(void **state)
{
	Resilient *resilient = *state;
	FakeSession *other = fake_session_new("other");
	StellaSessionCreator creator = resilient_creator;
	StellaResilientSession *session =
		stella_resilient_session_new(STELLA_SESSION(other), creator, resilient, NULL);

	assert_int_equal(atomic_load(&other->closes), 0);
	g_object_unref(session);
	assert_true(atomic_load(&other->closes) > 0);
	assert_int_equal(atomic_load(&resilient->calls), 0);
	g_object_unref(other);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, resilient_set_up, resilient_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_live_session_is_used_as_it_is),
		CASE(a_dead_one_is_replaced),
		cmocka_unit_test(each_use_replaces_a_dead_one),
		cmocka_unit_test(no_use_replaces_one_that_was_closed),
		CASE(who_only_looks_replaces_nothing),
		CASE(what_is_closed_stays_closed),
		CASE(the_end_of_the_inner_one_by_its_owner_is_a_death),
		CASE(the_done_fd_follows_the_present_session),
		CASE(a_failure_is_returned_and_tried_anew),
		CASE(a_creator_that_says_nothing_has_failed),
		CASE(a_creator_that_makes_dead_ones_is_called_once_a_use),
		CASE(a_creator_that_waits_for_itself_is_refused),
		CASE(one_that_dies_before_it_takes_a_command_is_replaced),
		CASE(one_that_lives_and_refuses_is_not_replaced),
		CASE(who_has_cancelled_already_makes_nothing),
		CASE(the_last_reference_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
