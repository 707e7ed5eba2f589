/* The events of a sandbox: their names, their fields and how grave they are, for whoever tells them: the executor's
 * sessions, and hosts that implement sessions of their own (stella/log.h). Once, so that a reader of the log
 * finds the same words whoever has written them.
 *
 * Nothing here takes a request, a policy's variables or an argument of a command: what is not handed over cannot be told.
 * Any thread at once. A text that is NULL is left out; a policy that is NULL has empty ones. */
#pragma once

#include "common/policy.h"

#include <stdint.h>

/* "sandbox.session_created": session_id, backend, network_mode, working_dir. */
void log_session_created(const char *session_id, const char *backend, const StellaPolicy *policy);

/* "sandbox.session_closed": session_id, backend, reason. */
void log_session_closed(const char *session_id, const char *backend, const char *reason);

/* "sandbox.unsupported_backend", an error: attempted_backends (", " between them), reason, network_mode, working_dir. */
void log_unsupported_backend(const StellaPolicy *policy, const char *attempted, const char *reason);

/* "sandbox.backend_skipped": one that comes earlier in the order was not taken. backend, reason, network_mode,
 * working_dir. */
void log_backend_skipped(const StellaPolicy *policy, const char *backend, const char *reason);

/* "sandbox.tools_unprepared": the trees of a session's tools could not be brought up to date. session_id, stella_home,
 * user_tools_dir, reason. */
void log_tools_unprepared(const char *session_id, const StellaPolicy *policy, const char *reason);

/* What was refused. */
typedef struct {
	const char *operation;
	const char *path;
	const char *reason;
	uint64_t count; /* 0: not told */
} LogDenial;

/* "sandbox.policy_denied": session_id, operation, path, reason, count. */
void log_policy_denied(const char *session_id, const LogDenial *denial);
/* The same event, for those of one command that are too many to be told: session_id, omitted. */
void log_policy_denied_more(const char *session_id, uint64_t omitted);
