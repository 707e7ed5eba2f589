/* Errors: one domain, few codes, and what more is known of an error.
 *
 * A message is one line for a person: what was tried, on which path, quoted, and why. It names paths as the agent knows
 * them, never a host path, unless the host path is what the caller itself gave. */
#ifndef STELLA_ERROR_H
#define STELLA_ERROR_H

#include <glib.h>
#include <stella/types.h>

G_BEGIN_DECLS

typedef struct StellaPolicy StellaPolicy;

/* The domain of every GError of this library. */
#define STELLA_ERROR (stella_error_quark())

/* Codes are never renumbered; new ones are added at the end. */
typedef enum {
	/* Something that should not happen, or that no other code describes; errno says more. */
	STELLA_ERROR_FAILED = 0,
	/* What the caller gave cannot be used: an empty or over-long path, a variable without a name, a number out of
	 * range. Trying again is of no use. */
	STELLA_ERROR_INVALID_ARGUMENT = 1,
	/* The policy's structure is wrong: key and position are in the message, the key by stella_error_get_key(). */
	STELLA_ERROR_POLICY_INVALID = 2,
	/* The policy is right, but this backend, or every one that there is, cannot do what it asks for. */
	STELLA_ERROR_POLICY_INCOMPATIBLE = 3,
	/* The resolver has no mounts at all. */
	STELLA_ERROR_NO_MOUNTS = 4,
	/* No mount covers the path. */
	STELLA_ERROR_OUTSIDE_MOUNTS = 5,
	/* A change on a read-only mount, or in a directory of the view's own. */
	STELLA_ERROR_READ_ONLY = 6,
	/* A link on the way: one that leaves the view, any one where none may be followed, or too many. */
	STELLA_ERROR_SYMLINK = 7,
	/* Another rule of the view: between two mounts, a mount's own directory, a hidden name. */
	STELLA_ERROR_REFUSED = 8,
	/* There is nothing of that name. */
	STELLA_ERROR_NOT_FOUND = 9,
	/* There is something of that name, and it was not to be replaced. */
	STELLA_ERROR_EXISTS = 10,
	/* The host's answer, other than the two above: errno says which. */
	STELLA_ERROR_IO = 11,
	/* The text to be replaced is not in the file. */
	STELLA_ERROR_NO_MATCH = 12,
	/* It is there more than once. */
	STELLA_ERROR_SEVERAL_MATCHES = 13,
	/* More than the limit that the function names. */
	STELLA_ERROR_TOO_LARGE = 14,
	/* The host lacks something that a sandbox needs; stella_error_get_hint() says how to get it. */
	STELLA_ERROR_HOST_UNSUPPORTED = 15,
	/* A step of a start failed: stella_error_get_stage() and errno say which and why. */
	STELLA_ERROR_START_FAILED = 16,
	/* The working directory of a command is outside every mount, missing, or no directory. */
	STELLA_ERROR_CWD_INVALID = 17,
	/* The program is not in the view. */
	STELLA_ERROR_PROGRAM_NOT_FOUND = 18,
	/* It is, and cannot be executed. */
	STELLA_ERROR_PROGRAM_NOT_EXECUTABLE = 19,
	/* The session was closed, or has ended by itself. */
	STELLA_ERROR_SESSION_CLOSED = 20,
	/* Sessions of this kind cannot change the environment of later commands. */
	STELLA_ERROR_ENV_REFRESH_UNSUPPORTED = 21,
	/* Sessions of this kind cannot do this at all (the nop session starts no process). */
	STELLA_ERROR_NOT_SUPPORTED = 22,
	/* The caller's GCancellable was cancelled before the work was done; nothing was left half done. */
	STELLA_ERROR_CANCELED = 23,
	/* The caller's time limit was over before the work was done. */
	STELLA_ERROR_TIMED_OUT = 24,
} StellaError;

/* The number of codes, for tables over them. */
#define STELLA_N_ERRORS 25

/* The domain. Any thread at once; does not block. */
STELLA_API GQuark stella_error_quark(void);

/* A code's name as it is in JSON and in logs ("outside-mounts"), static storage; "unknown" for what is none. Any thread
 * at once. */
STELLA_API const char *stella_error_code_name(StellaError code);

/* Whether error (may be NULL) says that a backend cannot do what a policy asks for: STELLA_ERROR_POLICY_INCOMPATIBLE.
 * Any thread at once, as all functions below; none of them blocks. */
STELLA_API gboolean stella_error_is_policy_incompatible(const GError *error);

/* What is known beyond the message. All take any error, also NULL and of other domains, for which nothing is known; what
 * they give is borrowed from the error. */

/* The errno behind it (positive), or 0. */
STELLA_API int stella_error_get_errno(const GError *error);
/* The step that failed ("policy", "gateway", "mount-proc", "exec"), or NULL. */
STELLA_API const char *stella_error_get_stage(const GError *error);
/* What to do about it, one line for a person; or NULL. */
STELLA_API const char *stella_error_get_hint(const GError *error);
/* The key of the policy that is to blame ("filesystem.symlinks"), or NULL. */
STELLA_API const char *stella_error_get_key(const GError *error);
/* The view path at which the way ended, or NULL. */
STELLA_API const char *stella_error_get_path(const GError *error);
/* The view path of its mount, or NULL. */
STELLA_API const char *stella_error_get_mount(const GError *error);
/* The reason of a denial as `stella-fsgate status` names it ("read-only-mount"), or as a sentence why a policy is
 * incompatible, or why a registry has no backend for it; or NULL. */
STELLA_API const char *stella_error_get_reason(const GError *error);
/* The backend that the policy is not compatible with, or that a registry has tried in vain ("bwrap"; several, "fsgate,
 * bwrap"), or NULL. */
STELLA_API const char *stella_error_get_backend(const GError *error);
/* The policy of such an error, or NULL. Borrowed: take a reference to keep it. */
STELLA_API StellaPolicy *stella_error_get_policy(const GError *error);

G_END_DECLS

#endif
