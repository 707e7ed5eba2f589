/* A session that outlives its backend: when the inner one has died, the next use makes a new one.
 *
 * It is a StellaSession. exec, start_process, resolve, resolve_write, open, dup_resolver and dup_files recreate a dead inner session, once,
 * however many threads find it dead at the same time; policy, working directory, alive, done and id never do, and never
 * block. A recreation that fails is that call's error, and is tried anew by the next one. After stella_session_close() it
 * stays closed. Any thread at once. */
#ifndef STELLA_RESILIENT_SESSION_H
#define STELLA_RESILIENT_SESSION_H

#include <stella/session.h>

G_BEGIN_DECLS

#define STELLA_TYPE_RESILIENT_SESSION (stella_resilient_session_get_type())
STELLA_API G_DECLARE_FINAL_TYPE(StellaResilientSession, stella_resilient_session, STELLA,
				RESILIENT_SESSION, GObject)

	/* Makes a new inner session from the host's current state, or gives NULL with *error set. Called from any thread that uses
 * the session, one call at a time; may block. The caller gets the reference. */
	typedef StellaSession *(*StellaSessionCreator)(GCancellable *cancellable,
						       gpointer user_data, GError **error);

/* Wraps session, of which it takes a reference of its own. destroy (may be NULL) is called with user_data when the wrapper
 * goes. Never NULL.
 *
 * stella_session_refresh_env() of it is an overlay that the wrapper keeps: it works on any backend, loses to a command's own
 * variables, shows in the policy, and is forgotten on recreation, for the creator builds from current state. */
STELLA_API StellaResilientSession *stella_resilient_session_new(StellaSession *session,
								StellaSessionCreator creator,
								gpointer user_data,
								GDestroyNotify destroy);

/* The present inner session, dead or not; the caller owns a reference. Does not block. */
STELLA_API StellaSession *stella_resilient_session_dup_inner(StellaResilientSession *session);

G_END_DECLS

#endif
