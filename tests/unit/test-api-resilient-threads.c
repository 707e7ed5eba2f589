/* api-resilient: many threads at once, a creator that hangs, and the end of all meanwhile. Nothing here waits for time to
 * pass: gates hold threads until the test has seen them there. */
#include "resilient-fixture.h"

#include "executor/api-inner.h"
#include "lib/workspace-fixture.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define THREADS 16

/* All of them have found it dead before the first of them is answered so. */
static void let_find_it_dead_together(Resilient *resilient, Call **calls)
{
	Gate *gate = gate_new();

	resilient->first->alive_gate = gate;
	fake_session_die(resilient->first);
	for (int i = 0; i < THREADS; i++)
		calls[i] = call_start(resilient->session, NULL);
	gate_await(gate, THREADS);
	gate_open(gate);
	for (int i = 0; i < THREADS; i++)
		call_join(calls[i]);
	resilient->first->alive_gate = NULL;
	gate_free(gate);
}

static void who_find_it_dead_together_have_one_made(void **state)
{
	Resilient *resilient = *state;
	Call *calls[THREADS];

	let_find_it_dead_together(resilient, calls);
	for (int i = 0; i < THREADS; i++) {
		assert_string_equal(calls[i]->out, "sandbox-made1");
		call_free(calls[i]);
	}
	assert_int_equal(atomic_load(&resilient->calls), 1);
	assert_int_equal(atomic_load(&resilient_last_made(resilient)->execs), THREADS);
}

static void a_failure_is_that_of_all_who_found_it_dead(void **state)
{
	Resilient *resilient = *state;
	Call *calls[THREADS];

	atomic_store(&resilient->fails, true);
	let_find_it_dead_together(resilient, calls);
	for (int i = 0; i < THREADS; i++) {
		assert_true(
			g_error_matches(calls[i]->error, STELLA_ERROR, STELLA_ERROR_START_FAILED));
		assert_string_equal(calls[i]->error->message, "no sandbox 1");
		call_free(calls[i]);
	}
	assert_int_equal(atomic_load(&resilient->calls), 1);
	atomic_store(&resilient->fails, false);
	expect_exec(resilient->session, "sandbox-made2");
}

/* The creator is at work, in the thread of the call that is given back, and is held there. */
static Call *hang(Resilient *resilient, GCancellable *cancellable)
{
	Call *call;

	resilient->gate = gate_new();
	fake_session_die(resilient->first);
	call = call_start(resilient->session, cancellable);
	gate_await(resilient->gate, 1);
	return call;
}

static void let_go(Resilient *resilient)
{
	gate_open(resilient->gate);
}

static void drop_gate(Resilient *resilient)
{
	gate_free(resilient->gate);
	resilient->gate = NULL;
}

static void who_comes_while_it_is_made_gets_that_one(void **state)
{
	Resilient *resilient = *state;
	Call *maker = hang(resilient, NULL);
	Call *others[THREADS];

	for (int i = 0; i < THREADS; i++)
		others[i] = call_start(resilient->session, NULL);
	let_go(resilient);
	call_end_with(maker, "sandbox-made1");
	for (int i = 0; i < THREADS; i++)
		call_end_with(others[i], "sandbox-made1");
	assert_int_equal(atomic_load(&resilient->calls), 1);
	drop_gate(resilient);
}

static void who_only_looks_does_not_wait_for_a_hung_creator(void **state)
{
	static const char *const updates[] = { "A=1", NULL };
	Resilient *resilient = *state;
	Call *maker = hang(resilient, NULL);
	g_autoptr(StellaPolicy) policy = stella_session_dup_policy(resilient->session);
	g_autofree char *dir = stella_session_dup_working_dir(resilient->session);
	g_autoptr(StellaSession) inner =
		stella_resilient_session_dup_inner(STELLA_RESILIENT_SESSION(resilient->session));

	assert_non_null(policy);
	assert_string_equal(dir, "/workspace/sandbox-first");
	assert_ptr_equal(inner, resilient->first);
	assert_false(stella_session_is_alive(resilient->session));
	assert_true(is_readable(stella_session_get_done_fd(resilient->session)));
	assert_string_equal(stella_session_get_id(resilient->session), "sandbox-first");
	assert_string_equal(stella_session_get_backend(resilient->session), "fake");
	assert_true(stella_session_wait_done(resilient->session, NULL, NULL));
	assert_true(stella_session_refresh_env(resilient->session, updates, NULL));
	/* it hangs still */
	assert_int_equal(atomic_load(&resilient->at_once), 1);
	let_go(resilient);
	call_end_with(maker, "sandbox-made1\nA=1");
	drop_gate(resilient);
}

static void who_waits_can_cancel(void **state)
{
	Resilient *resilient = *state;
	Call *maker = hang(resilient, NULL);
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	Call *waiter = call_start(resilient->session, cancellable);

	g_cancellable_cancel(cancellable);
	call_join(waiter);
	/* it has not waited for the creator, and has not ended it */
	assert_int_equal(atomic_load(&resilient->at_once), 1);
	assert_null(waiter->error);
	assert_int_equal(waiter->ended, STELLA_ENDED_CANCELED);
	call_free(waiter);
	let_go(resilient);
	call_end_with(maker, "sandbox-made1");
	assert_int_equal(atomic_load(&resilient_last_made(resilient)->execs), 1);
	drop_gate(resilient);
}

static void the_cancel_of_who_makes_it_is_no_failure_of_others(void **state)
{
	Resilient *resilient = *state;
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	Call *maker = hang(resilient, cancellable);
	Call *waiter = call_start(resilient->session, NULL);

	g_cancellable_cancel(cancellable);
	call_join(maker);
	assert_null(maker->error);
	assert_int_equal(maker->ended, STELLA_ENDED_CANCELED);
	call_free(maker);
	/* now the other one makes it */
	gate_await(resilient->gate, 2);
	let_go(resilient);
	call_end_with(waiter, "sandbox-made2");
	assert_int_equal(atomic_load(&resilient->calls), 2);
	drop_gate(resilient);
}

static void what_was_made_in_spite_of_a_cancel_is_kept(void **state)
{
	Resilient *resilient = *state;
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	Call *maker;

	atomic_store(&resilient->ignores_cancel, true);
	maker = hang(resilient, cancellable);
	g_cancellable_cancel(cancellable);
	let_go(resilient);
	call_end_canceled(maker);
	expect_exec(resilient->session, "sandbox-made1");
	assert_int_equal(atomic_load(&resilient->calls), 1);
	drop_gate(resilient);
}

static void a_close_ends_the_creator(void **state)
{
	Resilient *resilient = *state;
	Call *maker = hang(resilient, NULL);
	Call *waiter = call_start(resilient->session, NULL);

	/* nobody opens the gate: it is the cancel that lets the creator go */
	assert_true(stella_session_close(resilient->session, NULL, NULL));
	assert_int_equal(atomic_load(&resilient->at_once), 0);
	call_end_failed(maker, STELLA_ERROR_SESSION_CLOSED);
	call_end_failed(waiter, STELLA_ERROR_SESSION_CLOSED);
	expect_no_exec(resilient->session, STELLA_ERROR_SESSION_CLOSED);
	assert_int_equal(atomic_load(&resilient->calls), 1);
	drop_gate(resilient);
}

static void *close_it(void *session)
{
	return GINT_TO_POINTER(stella_session_close(session, NULL, NULL));
}

static bool refuses_updates(void *session)
{
	static const char *const updates[] = { "A=1", NULL };

	return !stella_session_refresh_env(session, updates, NULL);
}

static void what_is_made_after_the_close_is_closed_at_once(void **state)
{
	Resilient *resilient = *state;
	pthread_t closer;
	void *closed = NULL;
	Call *maker;

	atomic_store(&resilient->ignores_cancel, true);
	maker = hang(resilient, NULL);
	assert_int_equal(pthread_create(&closer, NULL, close_it, resilient->session), 0);
	assert_true(wait_until(refuses_updates, resilient->session, 20000));
	let_go(resilient);
	assert_int_equal(pthread_join(closer, &closed), 0);
	/* when the close has returned, not only later */
	assert_true(atomic_load(&resilient_last_made(resilient)->closes) > 0);
	assert_true(GPOINTER_TO_INT(closed));
	assert_int_equal(atomic_load(&resilient_last_made(resilient)->execs), 0);
	assert_false(stella_session_is_alive(resilient->session));
	call_end_failed(maker, STELLA_ERROR_SESSION_CLOSED);
	drop_gate(resilient);
}

static void *get_live(void *inner)
{
	ApiPresent present = API_NO_PRESENT;

	if (!api_inner_get_live(inner, NULL, &present, NULL))
		return NULL;
	api_present_clear(&present);
	return inner;
}

/* A close does not wait for ever for a creator that hears nothing. */
static void a_close_has_a_deadline(void **state)
{
	Resilient *resilient = *state;
	g_autoptr(GError) error = NULL;
	pthread_t thread;
	void *got = resilient;
	ApiInner *inner;

	resilient->gate = gate_new();
	atomic_store(&resilient->ignores_cancel, true);
	fake_session_die(resilient->first);
	inner = api_inner_new(STELLA_SESSION(resilient->first), resilient_creator, resilient, NULL);
	assert_int_equal(pthread_create(&thread, NULL, get_live, inner), 0);
	gate_await(resilient->gate, 1);
	assert_false(api_inner_close(inner, 20, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_TIMED_OUT));
	let_go(resilient);
	assert_int_equal(pthread_join(thread, &got), 0);
	assert_null(got);
	assert_true(atomic_load(&resilient_last_made(resilient)->closes) > 0);
	assert_true(api_inner_close(inner, 20, NULL));
	api_inner_free(inner);
	drop_gate(resilient);
}

static void a_command_that_runs_is_not_repeated(void **state)
{
	Resilient *resilient = *state;
	Gate *gate = gate_new();
	Call *running;

	resilient->first->exec_gate = gate;
	running = call_start(resilient->session, NULL);
	gate_await(gate, 1);
	fake_session_die(resilient->first);
	expect_exec(resilient->session, "sandbox-made1");
	gate_open(gate);
	call_end_with(running, "sandbox-first");
	assert_int_equal(atomic_load(&resilient->first->execs), 1);
	assert_int_equal(atomic_load(&resilient_last_made(resilient)->execs), 1);
	gate_free(gate);
}

/* Whoever comes first; but nothing is made for it. */
static void a_command_and_a_close_at_the_same_time(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		void *own = NULL;
		Resilient *resilient;
		Call *call;

		resilient_set_up(&own);
		resilient = own;
		call = call_start(resilient->session, NULL);
		assert_true(stella_session_close(resilient->session, NULL, NULL));
		call_join(call);
		if (call->out)
			assert_string_equal(call->out, "sandbox-first");
		else
			assert_true(g_error_matches(call->error, STELLA_ERROR,
						    STELLA_ERROR_SESSION_CLOSED));
		call_free(call);
		assert_int_equal(atomic_load(&resilient->calls), 0);
		resilient_tear_down(&own);
	}
}

typedef struct {
	pthread_t thread;
	StellaSession *session;
	int results, lost, other;
} Worker;

#define ROUNDS 200

static void *work(void *data)
{
	Worker *worker = data;

	for (int i = 0; i < ROUNDS; i++) {
		g_autoptr(GError) error = NULL;
		g_autoptr(StellaExecResult) result =
			stella_session_exec(worker->session, "x", NULL, NULL, &error);

		if (result)
			worker->results++;
		else if (g_error_matches(error, STELLA_ERROR, STELLA_ERROR_SESSION_CLOSED))
			worker->lost++; /* it died twice under one call */
		else
			worker->other++;
	}
	return NULL;
}

static void sessions_that_die_all_the_time_are_replaced(void **state)
{
	Resilient *resilient = *state;
	Worker workers[8] = { 0 };
	int results = 0, kills = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(workers); i++) {
		workers[i].session = resilient->session;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (; kills < 100; kills++) {
		g_autoptr(StellaSession) inner = stella_resilient_session_dup_inner(
			STELLA_RESILIENT_SESSION(resilient->session));

		fake_session_die(FAKE_SESSION(inner));
		sched_yield();
	}
	for (size_t i = 0; i < G_N_ELEMENTS(workers); i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		assert_int_equal(workers[i].other, 0);
		results += workers[i].results;
	}
	assert_true(results > 0);
	assert_true(atomic_load(&resilient->calls) <= kills);
	/* and all is well afterwards */
	{
		g_autoptr(StellaExecResult) result =
			stella_session_exec(resilient->session, "x", NULL, NULL, NULL);

		assert_non_null(result);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, resilient_set_up, resilient_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_find_it_dead_together_have_one_made),
		CASE(a_failure_is_that_of_all_who_found_it_dead),
		CASE(who_comes_while_it_is_made_gets_that_one),
		CASE(who_only_looks_does_not_wait_for_a_hung_creator),
		CASE(who_waits_can_cancel),
		CASE(the_cancel_of_who_makes_it_is_no_failure_of_others),
		CASE(what_was_made_in_spite_of_a_cancel_is_kept),
		CASE(a_close_ends_the_creator),
		CASE(what_is_made_after_the_close_is_closed_at_once),
		CASE(a_close_has_a_deadline),
		CASE(a_command_that_runs_is_not_repeated),
		cmocka_unit_test(a_command_and_a_close_at_the_same_time),
		CASE(sessions_that_die_all_the_time_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
