/* What runs the commands of a session: the seam between a session as its users see it, and what it is made of.
 *
 *   fsgate  a gateway serves the view, and commands run in namespaces of their own (session-start.c): the whole policy
 *   bwrap   the same namespaces by bubblewrap, and mounts of the kernel in the place of a gateway: no denials, no changes
 *   none    processes of the caller, kept together until their end: nothing of the policy but the environment, timeouts
 *           and rlimits is enforced. Never taken unless it is asked for by name
 *   nop     runs nothing: for tests of what uses sessions
 *
 * All but nop take requests by a stella-sandbox-init over the same socket, so that everything after a session's start is
 * one code (exec.c). What a backend cannot enforce it refuses (supported), and never ignores. */
#pragma once

#include "common/policy.h"
#include "executor/error.h"
#include "executor/session.h"

struct ExrBackend {
	const char *name;
	bool isolates; /* commands reach nothing but what the policy gives them */
	/* They run with the supervisor's ids in its own namespaces: view paths are host paths, and what ends a command is
	 * hanging up on its init (exr_exec_kill). */
	bool is_plain;
	/* There is no init: what a request comes to is made up by answer. */
	bool is_pretense;
	unsigned int
		own_processes; /* of a session, beside one for each exec: limits.processes does not count them */

	/* Whether this host has what it needs, as far as can be said without trying; else *ret_reason, one line, which the
	 * caller frees. */
	bool (*available)(char **ret_reason);
	/* Whether it can do all that the policy asks for. -errno with *reterr_error (policy-incompatible, the key named). */
	int (*supported)(const StellaPolicy *policy, ExrError *reterr_error);
	/* Starts what a session consists of and waits until it takes requests. -errno with *error, and what was started is
	 * for exr_session_stop(). */
	int (*start)(ExrSession *session, ExrError *error);
	/* Of a pretense: what an exec's init would say goes into control, and *ret_pidfd is readable. 0 or -errno. */
	int (*answer)(int control);
};

extern const ExrBackend exr_backend_fsgate, exr_backend_bwrap, exr_backend_none, exr_backend_nop;

/* By name, or NULL. */
const ExrBackend *exr_backend_find(const char *name);
/* All of them, with NULL at the end; those that are taken by default come first, in their order. */
extern const ExrBackend *const exr_backends[];
/* `fsgate, bwrap, none or nop`, for a message. */
#define EXR_BACKEND_NAMES "fsgate, bwrap, none or nop"

/* Fills an error with code policy-incompatible: `backend "bwrap" cannot WHAT: KEY`. -ENOTSUP. */
int exr_backend_refuse(const ExrBackend *backend, const char *key, const char *what,
		       ExrError *reterr_error);

/* What of a policy the kernel's own mounts cannot do; cannot.what is what of `backend "x" cannot ...`. Refuses the first
 * key of them that the policy uses, or gives 0. */
int exr_backend_refuse_gateway_keys(const ExrBackend *backend, const StellaPolicy *policy,
				    ExrError *reterr_error);

/* Starts a session by the first backend of the default order that this host has and that supports the policy; config's
 * backend says nothing. One that does not start for want of something of the host (code host-unsupported) counts as not
 * there. *ret_skipped: why those before it were not taken, one line, or NULL; the caller frees. -errno
 * with *reterr_error, the first one's, when there is none. */
int exr_session_new_by_default(const ExrSessionConfig *config, ExrSession **ret_session,
			       char **ret_skipped, ExrError *reterr_error);
