/* See resilient-fixture.h. */
#include "resilient-fixture.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static FakeSession *make(Resilient *resilient, int number)
{
	g_autofree char *name = g_strdup_printf("made%d", number);
	FakeSession *made = fake_session_new(name);

	if (atomic_load(&resilient->makes_dead))
		fake_session_die(made);
	pthread_mutex_lock(&resilient->lock);
	g_ptr_array_add(resilient->made, g_object_ref(made));
	pthread_mutex_unlock(&resilient->lock);
	return made;
}

static void ask_itself(Resilient *resilient)
{
	StellaExecResult *result =
		stella_session_exec(resilient->session, "x", NULL, NULL, &resilient->own_answer);

	stella_exec_result_unref(result);
}

static StellaSession *create(Resilient *resilient, GCancellable *cancellable, GError **error)
{
	int number = atomic_fetch_add(&resilient->calls, 1) + 1;
	bool ignores = atomic_load(&resilient->ignores_cancel);

	if (atomic_load(&resilient->asks_itself))
		ask_itself(resilient);
	if (resilient->gate)
		gate_pass(resilient->gate, ignores ? NULL : cancellable);
	if (!ignores && g_cancellable_set_error_if_cancelled(cancellable, error))
		return NULL;
	if (atomic_load(&resilient->says_nothing))
		return NULL;
	if (atomic_load(&resilient->fails)) {
		g_set_error(error, STELLA_ERROR, STELLA_ERROR_START_FAILED, "no sandbox %d",
			    number);
		return NULL;
	}
	return STELLA_SESSION(make(resilient, number));
}

StellaSession *resilient_creator(GCancellable *cancellable, gpointer user_data, GError **error)
{
	Resilient *resilient = user_data;
	StellaSession *session;

	if (atomic_fetch_add(&resilient->at_once, 1) > 0)
		atomic_store(&resilient->overlapped, true);
	session = create(resilient, cancellable, error);
	atomic_fetch_sub(&resilient->at_once, 1);
	return session;
}

static void destroyed(gpointer data)
{
	Resilient *resilient = data;

	atomic_fetch_add(&resilient->destroyed, 1);
}

int resilient_set_up(void **state)
{
	Resilient *resilient = g_new0(Resilient, 1);

	pthread_mutex_init(&resilient->lock, NULL);
	resilient->made = g_ptr_array_new_with_free_func(g_object_unref);
	resilient->first = fake_session_new("first");
	resilient->session = STELLA_SESSION(stella_resilient_session_new(
		STELLA_SESSION(resilient->first), resilient_creator, resilient, destroyed));
	*state = resilient;
	return 0;
}

int resilient_tear_down(void **state)
{
	Resilient *resilient = *state;

	g_clear_object(&resilient->session);
	assert_int_equal(atomic_load(&resilient->destroyed), 1);
	assert_false(atomic_load(&resilient->overlapped));
	g_clear_object(&resilient->first);
	g_ptr_array_unref(resilient->made);
	g_clear_error(&resilient->own_answer);
	pthread_mutex_destroy(&resilient->lock);
	g_free(resilient);
	return 0;
}

FakeSession *resilient_last_made(Resilient *resilient)
{
	FakeSession *last;

	pthread_mutex_lock(&resilient->lock);
	last = resilient->made->len > 0 ? resilient->made->pdata[resilient->made->len - 1] : NULL;
	pthread_mutex_unlock(&resilient->lock);
	assert_non_null(last);
	return last;
}

static void *run(void *data)
{
	Call *call = data;
	g_autoptr(StellaExecResult) result =
		stella_session_exec(call->session, "x", NULL, call->cancellable, &call->error);

	if (result) {
		call->out = g_strdup(stella_exec_result_get_stdout(result, NULL));
		call->ended = stella_exec_result_get_ended(result);
	}
	return NULL;
}

Call *call_start(StellaSession *session, GCancellable *cancellable)
{
	Call *call = g_new0(Call, 1);

	call->session = g_object_ref(session);
	call->cancellable = cancellable ? g_object_ref(cancellable) : NULL;
	assert_int_equal(pthread_create(&call->thread, NULL, run, call), 0);
	return call;
}

void call_join(Call *call)
{
	assert_int_equal(pthread_join(call->thread, NULL), 0);
}

void call_free(Call *call)
{
	g_object_unref(call->session);
	g_clear_object(&call->cancellable);
	g_free(call->out);
	g_clear_error(&call->error);
	g_free(call);
}

void call_end_with(Call *take_call, const char *out)
{
	call_join(take_call);
	if (take_call->error)
		fail_msg("%s", take_call->error->message);
	assert_string_equal(take_call->out, out);
	assert_int_equal(take_call->ended, STELLA_ENDED_EXITED);
	call_free(take_call);
}

void call_end_failed(Call *take_call, StellaError code)
{
	call_join(take_call);
	assert_null(take_call->out);
	assert_true(g_error_matches(take_call->error, STELLA_ERROR, (int)code));
	call_free(take_call);
}

void call_end_canceled(Call *take_call)
{
	call_join(take_call);
	assert_null(take_call->error);
	assert_non_null(take_call->out);
	assert_int_equal(take_call->ended, STELLA_ENDED_CANCELED);
	call_free(take_call);
}

void expect_exec(StellaSession *session, const char *out)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(StellaExecResult) result = stella_session_exec(session, "x", NULL, NULL, &error);

	if (!result)
		fail_msg("%s", error->message);
	assert_string_equal(stella_exec_result_get_stdout(result, NULL), out);
}

void expect_no_exec(StellaSession *session, StellaError code)
{
	g_autoptr(GError) error = NULL;

	assert_null(stella_session_exec(session, "x", NULL, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, (int)code));
}

bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}
