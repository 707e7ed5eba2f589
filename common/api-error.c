/* Errors at the edge; see stella/error.h. The domain is GLib's extended kind: details travel with the error through
 * g_error_copy() and g_propagate_error(), and are freed with it. */
#include "common/api-error.h"

#include "common/errno-util.h"
#include "common/policy.h"

#include <errno.h>
#include <string.h>

/* The macro below makes of these names what GLib needs; its own code casts const away, and checks for NULL what cannot
 * be. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wnull-dereference"
typedef ApiErrorDetails StellaErrorPrivate;

static void stella_error_private_init(StellaErrorPrivate *details)
{
	memset(details, 0, sizeof *details);
}

static void stella_error_private_copy(const StellaErrorPrivate *from, StellaErrorPrivate *to)
{
	*to = (ApiErrorDetails){
		.errnum = from->errnum,
		.stage = g_strdup(from->stage),
		.hint = g_strdup(from->hint),
		.key = g_strdup(from->key),
		.path = g_strdup(from->path),
		.mount = g_strdup(from->mount),
		.reason = g_strdup(from->reason),
		.backend = g_strdup(from->backend),
		.policy = from->policy ? stella_policy_ref(from->policy) : NULL,
	};
}

static void stella_error_private_clear(StellaErrorPrivate *details)
{
	g_free(details->stage);
	g_free(details->hint);
	g_free(details->key);
	g_free(details->path);
	g_free(details->mount);
	g_free(details->reason);
	g_free(details->backend);
	stella_policy_unref(details->policy);
}

G_DEFINE_EXTENDED_ERROR(StellaError, stella_error)

static const char *const code_names[STELLA_N_ERRORS] = {
	[STELLA_ERROR_FAILED] = "failed",
	[STELLA_ERROR_INVALID_ARGUMENT] = "invalid-argument",
	[STELLA_ERROR_POLICY_INVALID] = "policy-invalid",
	[STELLA_ERROR_POLICY_INCOMPATIBLE] = "policy-incompatible",
	[STELLA_ERROR_NO_MOUNTS] = "no-mounts",
	[STELLA_ERROR_OUTSIDE_MOUNTS] = "outside-mounts",
	[STELLA_ERROR_READ_ONLY] = "read-only",
	[STELLA_ERROR_SYMLINK] = "symlink",
	[STELLA_ERROR_REFUSED] = "refused",
	[STELLA_ERROR_NOT_FOUND] = "not-found",
	[STELLA_ERROR_EXISTS] = "exists",
	[STELLA_ERROR_IO] = "io",
	[STELLA_ERROR_NO_MATCH] = "no-match",
	[STELLA_ERROR_SEVERAL_MATCHES] = "several-matches",
	[STELLA_ERROR_TOO_LARGE] = "too-large",
	[STELLA_ERROR_HOST_UNSUPPORTED] = "host-unsupported",
	[STELLA_ERROR_START_FAILED] = "start-failed",
	[STELLA_ERROR_CWD_INVALID] = "cwd-invalid",
	[STELLA_ERROR_PROGRAM_NOT_FOUND] = "program-not-found",
	[STELLA_ERROR_PROGRAM_NOT_EXECUTABLE] = "program-not-executable",
	[STELLA_ERROR_SESSION_CLOSED] = "session-closed",
	[STELLA_ERROR_ENV_REFRESH_UNSUPPORTED] = "env-refresh-unsupported",
	[STELLA_ERROR_NOT_SUPPORTED] = "not-supported",
	[STELLA_ERROR_CANCELED] = "canceled",
	[STELLA_ERROR_TIMED_OUT] = "timed-out",
};

const char *stella_error_code_name(StellaError code)
{
	return (unsigned int)code < STELLA_N_ERRORS ? code_names[code] : "unknown";
}

StellaError api_error_code_from_errno(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return STELLA_ERROR_NOT_FOUND;
	case EEXIST:
		return STELLA_ERROR_EXISTS;
	case EROFS:
		return STELLA_ERROR_READ_ONLY;
	case ELOOP:
		return STELLA_ERROR_SYMLINK;
	case EXDEV:
		return STELLA_ERROR_REFUSED;
	case EFBIG:
		return STELLA_ERROR_TOO_LARGE;
	case EINVAL:
	case ENAMETOOLONG:
		return STELLA_ERROR_INVALID_ARGUMENT;
	case ECANCELED:
		return STELLA_ERROR_CANCELED;
	case ETIMEDOUT:
		return STELLA_ERROR_TIMED_OUT;
	case ESHUTDOWN:
		return STELLA_ERROR_SESSION_CLOSED;
	default:
		return STELLA_ERROR_IO;
	}
}

ApiErrorDetails *api_error_details(GError *error)
{
	return stella_error_get_private(error);
}

void api_error_set(GError **error, StellaError code, const char *format, ...)
{
	va_list args;

	if (!error)
		return;
	va_start(args, format);
	g_propagate_error(error, g_error_new_valist(STELLA_ERROR, (int)code, format, args));
	va_end(args);
}

void api_error_set_errno(GError **error, int code, int errnum, const char *format, ...)
{
	int positive = errnum < 0 ? -errnum : errnum;
	g_autofree char *what = NULL;
	va_list args;

	if (!error)
		return;
	va_start(args, format);
	what = g_strdup_vprintf(format, args);
	va_end(args);
	api_error_set(error,
		      code == API_ERROR_BY_ERRNO ? api_error_code_from_errno(positive)
						 : (StellaError)code,
		      "%s: %s", what, errno_text(positive));
	api_error_details(*error)->errnum = positive;
}

static StellaError code_of_problem(const PathProblem *problem)
{
	switch (problem->kind) {
	case PATH_PROBLEM_INVALID:
		return STELLA_ERROR_INVALID_ARGUMENT;
	case PATH_PROBLEM_NO_MOUNTS:
		return STELLA_ERROR_NO_MOUNTS;
	case PATH_PROBLEM_OUTSIDE_MOUNTS:
		return STELLA_ERROR_OUTSIDE_MOUNTS;
	case PATH_PROBLEM_READ_ONLY:
		return STELLA_ERROR_READ_ONLY;
	case PATH_PROBLEM_SYMLINK:
		return STELLA_ERROR_SYMLINK;
	case PATH_PROBLEM_REFUSED:
		return STELLA_ERROR_REFUSED;
	case PATH_PROBLEM_IO:
		return api_error_code_from_errno(problem->errnum);
	case PATH_PROBLEM_NONE:
		break;
	}
	return STELLA_ERROR_FAILED;
}

void api_error_take_problem(GError **error, PathProblem *problem)
{
	if (error) {
		ApiErrorDetails *details;

		api_error_set(error, code_of_problem(problem), "%s", problem->message);
		details = api_error_details(*error);
		details->errnum = problem->errnum;
		details->path = g_steal_pointer(&problem->path);
		details->mount = g_steal_pointer(&problem->mount);
		if (problem->reason >= 0)
			details->reason =
				g_strdup(denial_reason_name((DenialReason)problem->reason));
	}
	path_problem_clear(problem);
}

static const ApiErrorDetails *known(const GError *error)
{
	static const ApiErrorDetails nothing;
	const ApiErrorDetails *details = NULL;

	if (error && error->domain == STELLA_ERROR)
		details = stella_error_get_private(error);
	return details ? details : &nothing;
}
#pragma GCC diagnostic pop

gboolean stella_error_is_policy_incompatible(const GError *error)
{
	return g_error_matches(error, STELLA_ERROR, STELLA_ERROR_POLICY_INCOMPATIBLE);
}

int stella_error_get_errno(const GError *error)
{
	return known(error)->errnum;
}

const char *stella_error_get_stage(const GError *error)
{
	return known(error)->stage;
}

const char *stella_error_get_hint(const GError *error)
{
	return known(error)->hint;
}

const char *stella_error_get_key(const GError *error)
{
	return known(error)->key;
}

const char *stella_error_get_path(const GError *error)
{
	return known(error)->path;
}

const char *stella_error_get_mount(const GError *error)
{
	return known(error)->mount;
}

const char *stella_error_get_reason(const GError *error)
{
	return known(error)->reason;
}

const char *stella_error_get_backend(const GError *error)
{
	return known(error)->backend;
}

StellaPolicy *stella_error_get_policy(const GError *error)
{
	return known(error)->policy;
}
