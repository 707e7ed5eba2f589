/* See log-events.h. */
#include "common/log-events.h"

#include "common/log.h"

#include <inttypes.h>

static const char *network_of(const StellaPolicy *policy)
{
	return policy ? policy_network_name(policy->network_mode) : "";
}

static const char *directory_of(const StellaPolicy *policy)
{
	return policy ? policy->working_dir : "";
}

void log_session_created(const char *session_id, const char *backend, const StellaPolicy *policy)
{
	const LogField fields[] = {
		{ "session_id", session_id },
		{ "backend", backend },
		{ "network_mode", network_of(policy) },
		{ "working_dir", directory_of(policy) },
	};

	log_event(LOG_INFO, "sandbox.session_created", fields, G_N_ELEMENTS(fields));
}

void log_session_closed(const char *session_id, const char *backend, const char *reason)
{
	const LogField fields[] = {
		{ "session_id", session_id },
		{ "backend", backend },
		{ "reason", reason },
	};

	log_event(LOG_INFO, "sandbox.session_closed", fields, G_N_ELEMENTS(fields));
}

void log_unsupported_backend(const StellaPolicy *policy, const char *attempted, const char *reason)
{
	const LogField fields[] = {
		{ "attempted_backends", attempted },
		{ "reason", reason },
		{ "network_mode", network_of(policy) },
		{ "working_dir", directory_of(policy) },
	};

	log_event(LOG_ERROR, "sandbox.unsupported_backend", fields, G_N_ELEMENTS(fields));
}

void log_backend_skipped(const StellaPolicy *policy, const char *backend, const char *reason)
{
	const LogField fields[] = {
		{ "backend", backend },
		{ "reason", reason },
		{ "network_mode", network_of(policy) },
		{ "working_dir", directory_of(policy) },
	};

	log_event(LOG_INFO, "sandbox.backend_skipped", fields, G_N_ELEMENTS(fields));
}

void log_tools_unprepared(const char *session_id, const StellaPolicy *policy, const char *reason)
{
	const LogField fields[] = {
		{ "session_id", session_id },
		{ "stella_home", policy->stella_home },
		{ "user_tools_dir", policy->user_tools_dir[0] ? policy->user_tools_dir : NULL },
		{ "reason", reason },
	};

	log_event(LOG_INFO, "sandbox.tools_unprepared", fields, G_N_ELEMENTS(fields));
}

void log_policy_denied(const char *session_id, const LogDenial *denial)
{
	g_autofree char *count =
		denial->count > 0 ? g_strdup_printf("%" PRIu64, denial->count) : NULL;
	const LogField fields[] = {
		{ "session_id", session_id }, { "operation", denial->operation },
		{ "path", denial->path },     { "reason", denial->reason },
		{ "count", count },
	};

	log_event(LOG_INFO, "sandbox.policy_denied", fields, G_N_ELEMENTS(fields));
}

void log_policy_denied_more(const char *session_id, uint64_t omitted)
{
	g_autofree char *count = g_strdup_printf("%" PRIu64, omitted);
	const LogField fields[] = { { "session_id", session_id }, { "omitted", count } };

	log_event(LOG_INFO, "sandbox.policy_denied", fields, G_N_ELEMENTS(fields));
}
