/* The error of a start; see error.h. */
#include "executor/error.h"

#include "common/policy.h"
#include "executor/hints.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

const char *const exr_error_codes[] = {
	"policy-invalid",
	"policy-unsupported",
	"request-invalid",
	"host-unsupported",
	"limit-unenforceable",
	"state-dir-failed",
	"gateway-failed",
	"namespace-failed",
	"rootfs-failed",
	"setup-failed",
	"cwd-invalid",
	"program-not-found",
	"program-not-executable",
	"session-closed",
	"internal",
	"policy-incompatible",
	NULL,
};

void exr_error_clear(ExrError *error)
{
	g_free(error->key);
	g_free(error->hint);
	g_free(error->message);
	memset(error, 0, sizeof *error);
}

int exr_error_set(ExrError *error, const char *code, const char *stage, int errnum,
		  const char *format, ...)
{
	if (!error->code) {
		va_list args;

		va_start(args, format);
		error->message = g_strdup_vprintf(format, args);
		va_end(args);
		error->code = code;
		error->stage = stage;
		error->errnum = errnum;
	}
	return errnum > 0 ? -errnum : -EINVAL;
}

int exr_error_set_policy(ExrError *error, int r, const char *message)
{
	bool is_first = !error->code;

	r = exr_error_set(error, "policy-invalid", "policy", -r, "%s", message);
	if (is_first)
		error->key = policy_message_key(message);
	return r;
}

void exr_error_set_hint(ExrError *error, const char *format, ...)
{
	va_list args;

	if (error->hint)
		return;
	va_start(args, format);
	error->hint = g_strdup_vprintf(format, args);
	va_end(args);
}

void exr_error_set_known_hint(ExrError *error)
{
	const char *hint = error->stage ? exr_hint(error->stage, error->errnum) : NULL;

	if (hint)
		exr_error_set_hint(error, "%s", hint);
}
