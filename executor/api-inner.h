/* The inner session of a resilient one: the present one, the making of the next, and the variables that lie over it. For
 * api-resilient.c only.
 *
 * Any thread at once. What is not said to block does not, also while a new session is being made and that hangs. */
#pragma once

#include "stella/resilient-session.h"

typedef struct ApiInner ApiInner;

/* With a reference of its own of session. */
ApiInner *api_inner_new(StellaSession *session, StellaSessionCreator creator, gpointer user_data,
			GDestroyNotify destroy);
/* Closes the session. */
void api_inner_free(ApiInner *inner);

/* A session with what lies over its environment. Owned: api_present_clear(). */
typedef struct {
	StellaSession *session;
	char **overlay;	 /* NAME=value; or NULL */
	gboolean is_new; /* it was made while its caller waited */
} ApiPresent;

#define API_NO_PRESENT                                                                             \
	{                                                                                          \
		NULL, NULL, FALSE                                                                  \
	}
void api_present_clear(ApiPresent *present);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ApiPresent, api_present_clear)

/* The present session, dead or not. */
void api_inner_get(ApiInner *inner, ApiPresent *ret_present);

/* The present session when it lives, else a new one in its place, which is made once for all who ask meanwhile; blocks for
 * that. At most one is made for this call: what it gives may have died again. FALSE with STELLA_ERROR_SESSION_CLOSED,
 * STELLA_ERROR_CANCELED, or what the creator said. */
gboolean api_inner_get_live(ApiInner *inner, GCancellable *cancellable, ApiPresent *ret_present,
			    GError **error);

/* Puts updates over what lies there. FALSE with STELLA_ERROR_SESSION_CLOSED. */
gboolean api_inner_overlay(ApiInner *inner, const char *const *updates, GError **error);

/* For good. Blocks for the end of the session, and for a creator that is at work, which is cancelled: as long as
 * patience_ms; then FALSE with STELLA_ERROR_TIMED_OUT, and what it makes is closed when it comes. */
#define API_INNER_PATIENCE_MS 5000
gboolean api_inner_close(ApiInner *inner, gint64 patience_ms, GError **error);
gboolean api_inner_is_closed(ApiInner *inner);

/* Readable while the present session is dead or all of it closed; -1 when that cannot be seen of this session. */
int api_inner_done_fd(ApiInner *inner);
