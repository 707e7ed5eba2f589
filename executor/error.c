/* The error of a start; see error.h. */
#include "executor/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

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

void exr_error_set_hint(ExrError *error, const char *format, ...)
{
	va_list args;

	if (error->hint)
		return;
	va_start(args, format);
	error->hint = g_strdup_vprintf(format, args);
	va_end(args);
}
