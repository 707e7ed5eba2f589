/* See session-log.h. The events are log-events.c's; here is which of them is told, and how many. */
#include "executor/session-log.h"

#include "common/errno-util.h"
#include "common/limits.h"
#include "common/log-events.h"
#include "executor/backend.h"

void exr_log_session_created(const ExrSession *session)
{
	log_session_created(exr_session_id(session), exr_session_backend(session)->name,
			    exr_session_policy(session));
}

void exr_log_session_closed(const ExrSession *session, const char *reason)
{
	log_session_closed(exr_session_id(session), exr_session_backend(session)->name, reason);
}

void exr_log_unsupported(const StellaPolicy *policy, const char *backends, const ExrError *error)
{
	static const char *const codes[] = { "policy-unsupported", "policy-incompatible",
					     "host-unsupported", "namespace-failed", NULL };

	if (error->code && g_strv_contains(codes, error->code))
		log_unsupported_backend(policy, backends, error->message);
}

void exr_log_tools_unprepared(const ExrSession *session, int errnum)
{
	log_tools_unprepared(exr_session_id(session), exr_session_policy(session),
			     errno_text(errnum));
}

void exr_log_skipped(const StellaPolicy *policy, const char *backend, const char *reason)
{
	log_backend_skipped(policy, backend, reason);
}

static void log_denial(const char *session_id, const ExrDenial *denial)
{
	const LogDenial told = {
		.operation = denial->op,
		.path = denial->path,
		.reason = denial->reason,
		.count = denial->count,
	};

	log_policy_denied(session_id, &told);
}

void exr_log_denials(const char *session_id, const ExrObserved *observed)
{
	uint64_t omitted = observed->denials_dropped;
	guint told = 0;

	for (guint i = 0; observed->denials && i < observed->denials->len; i++) {
		const ExrDenial *denial = observed->denials->pdata[i];

		if (!denial->errnum_name)
			continue; /* recorded, but not refused */
		if (told++ < LIMIT_DENIALS_LOGGED)
			log_denial(session_id, denial);
		else
			omitted += denial->count;
	}
	if (omitted > 0)
		log_policy_denied_more(session_id, omitted);
}
