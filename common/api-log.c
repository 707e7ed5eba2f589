/* The log at the edge; see stella/log.h. What an event is called and which fields it has is log-events.c's, as for the
 * sessions of this library; here NULL becomes "", for a host's record keeps its fields whatever it knows. */
#include "stella/log.h"

#include "common/log-events.h"

static const char *text(const char *given)
{
	return given ? given : "";
}

void stella_log_session_created(const char *session_id, const char *backend,
				const StellaPolicy *policy)
{
	log_session_created(text(session_id), text(backend), policy);
}

void stella_log_session_closed(const char *session_id, const char *backend, const char *reason)
{
	log_session_closed(text(session_id), text(backend), text(reason));
}

void stella_log_unsupported_backend(const StellaPolicy *policy, const char *const *attempted,
				    const char *reason)
{
	static const char *const none[] = { NULL };
	g_autofree char *joined =
		g_strjoinv(", ", (char **)(uintptr_t)(attempted ? attempted : none));

	log_unsupported_backend(policy, joined, text(reason));
}

void stella_log_policy_denied(const char *session_id, const char *operation, const char *path,
			      const char *reason)
{
	const LogDenial denial = {
		.operation = text(operation),
		.path = text(path),
		.reason = text(reason),
	};

	log_policy_denied(text(session_id), &denial);
}
