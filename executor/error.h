/* Why something could not be started: the `error` object of a result, and the one line on stderr. */
#pragma once

#include <glib.h>

/* code: one word of the published, closed list in executor/README.md ("program-not-found",
 * "policy-invalid", "gateway-failed", "namespace-failed", ...). stage: the step that failed ("policy",
 * "gateway", "uid-map", "mount-proc", "seccomp", "exec", ...). Both static storage. The rest is owned;
 * key and hint may be NULL. */
typedef struct {
	const char *code;
	const char *stage;
	int errnum; /* positive, or 0 */
	char *key;
	char *hint;
	char *message; /* one line: what, on which path, why; no program name in front */
} ExrError;

/* Frees the strings and empties it. */
void exr_error_clear(ExrError *error);

/* Fills an error that is empty; an error that is already set is kept (the first cause counts).
 * Returns -errnum, or -EINVAL when errnum is 0, so that it can be the last word of a function. */
int exr_error_set(ExrError *error, const char *code, const char *stage, int errnum,
		  const char *format, ...) G_GNUC_PRINTF(5, 6);
void exr_error_set_hint(ExrError *error, const char *format, ...) G_GNUC_PRINTF(2, 3);
