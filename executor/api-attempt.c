/* See api-attempt.h. */
#include "executor/api-attempt.h"

#include "common/api-error.h"

ApiAttempt *api_attempt_new(void)
{
	ApiAttempt *attempt = g_new0(ApiAttempt, 1);

	attempt->refs = 1;
	attempt->maker = pthread_self();
	attempt->cancellable = g_cancellable_new();
	return attempt;
}

ApiAttempt *api_attempt_ref(ApiAttempt *attempt)
{
	g_atomic_int_inc(&attempt->refs);
	return attempt;
}

void api_attempt_unref(ApiAttempt *attempt)
{
	if (!attempt || !g_atomic_int_dec_and_test(&attempt->refs))
		return;
	g_clear_object(&attempt->cancellable);
	g_clear_object(&attempt->made);
	g_clear_error(&attempt->error);
	g_free(attempt);
}

static void cancel_too(GCancellable *cancellable, gpointer data)
{
	(void)cancellable;
	g_cancellable_cancel(data);
}

/* A creator of GIO's own functions says a cancel in their words. */
static GError *whole_error(GError *take_given)
{
	g_autoptr(GError) given = take_given;
	GError *error = NULL;

	if (!given)
		api_error_set(&error, STELLA_ERROR_FAILED,
			      "the creator gave no session, and does not say why");
	else if (g_error_matches(given, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		api_error_set(&error, STELLA_ERROR_CANCELED, "%s", given->message);
	return error ? error : g_steal_pointer(&given);
}

StellaSession *api_attempt_make(ApiAttempt *attempt, StellaSessionCreator creator,
				gpointer user_data, GCancellable *cancellable, GError **ret_error)
{
	g_autoptr(GError) given = NULL;
	StellaSession *session;
	gulong handler = 0;

	if (cancellable)
		handler = g_cancellable_connect(cancellable, G_CALLBACK(cancel_too),
						g_object_ref(attempt->cancellable), g_object_unref);
	session = creator(attempt->cancellable, user_data, &given);
	if (handler)
		g_cancellable_disconnect(cancellable, handler);
	if (!session)
		*ret_error = whole_error(g_steal_pointer(&given));
	return session;
}
