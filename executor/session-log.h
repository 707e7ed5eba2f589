/* What a session tells the log (common/log.h): five events, none of which holds what an environment or an argument
 * does. */
#pragma once

#include "executor/observed.h"
#include "executor/session.h"

/* "sandbox.session_created" and, once a session of which that was told ends, "sandbox.session_closed" with a
 * reason: "closed"; "ended", when its gateway or its init had ended by itself; "failed", when one did not answer or
 * something did not die. */
void exr_log_session_created(const ExrSession *session);
void exr_log_session_closed(const ExrSession *session, const char *reason);

/* "sandbox.unsupported_backend", if error is about that: the host or this build cannot run what the policy asks for.
 * backends are those that were tried, ", " between them. */
void exr_log_unsupported(const StellaPolicy *policy, const char *backends, const ExrError *error);
/* "sandbox.backend_skipped": it would have come first, but is not there or does not support the policy. */
void exr_log_skipped(const StellaPolicy *policy, const char *backend, const char *reason);

/* "sandbox.tools_unprepared": the tool trees of a session could not be brought up to date (errnum); it runs with
 * them as they are. */
void exr_log_tools_unprepared(const ExrSession *session, int errnum);

/* "sandbox.policy_denied", one a row (operation, path and reason, counted), at most LIMIT_DENIALS_LOGGED for one
 * command and then one that says how many more there were ("omitted"). */
void exr_log_denials(const char *session_id, const ExrObserved *observed);
