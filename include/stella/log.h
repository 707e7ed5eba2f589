/* What sessions tell the log: GLib's structured log, domain "stella-sandbox", with the event as STELLA_EVENT, each field as STELLA_<NAME>,
 * and all of it in one line as MESSAGE. What is called info below has G_LOG_LEVEL_INFO, which GLib prints only if asked to; what
 * is called error has PRIORITY 3 and G_LOG_LEVEL_MESSAGE, for G_LOG_LEVEL_ERROR ends a program. The sessions of this library call
 * these themselves; a host that implements a session or a factory of its own calls them for it.
 *
 * No variable of an environment and no argument of a command is ever told. Any thread at once; the host's log writer is
 * called, and blocks as it does. NULL counts as "". */
#ifndef STELLA_LOG_H
#define STELLA_LOG_H

#include <glib.h>
#include <stella/policy.h>
#include <stella/types.h>

G_BEGIN_DECLS

/* "sandbox.session_created", info: session_id, backend, network_mode, working_dir. */
STELLA_API void stella_log_session_created(const char *session_id, const char *backend,
					   const StellaPolicy *policy);
/* "sandbox.session_closed", info: session_id, backend, reason ("closed", "ended", "failed"). */
STELLA_API void stella_log_session_closed(const char *session_id, const char *backend,
					  const char *reason);
/* "sandbox.unsupported_backend", error: attempted_backends (NULL-terminated), reason, network_mode, working_dir. */
STELLA_API void stella_log_unsupported_backend(const StellaPolicy *policy,
					       const char *const *attempted, const char *reason);
/* "sandbox.policy_denied", info: session_id, operation, path (of the view), reason. */
STELLA_API void stella_log_policy_denied(const char *session_id, const char *operation,
					 const char *path, const char *reason);

G_END_DECLS

#endif
