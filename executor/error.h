/* Why something could not be started: the `error` object of a result, and the one line on stderr. */
#pragma once

#include <glib.h>

/* The published, closed list of codes, ending with NULL; README.md says what each means, and
 * result.schema.json repeats it. A word is never changed; new ones are added at the end. */
extern const char *const exr_error_codes[];

/* code: one word of that list. stage: the step that failed ("policy",
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
/* "policy-invalid" at stage "policy", for what policy.h and view-plan.h say: r is what they returned, and the key is the one
 * that the message begins with. The same return. */
int exr_error_set_policy(ExrError *error, int r, const char *message);
void exr_error_set_hint(ExrError *error, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The hint for its stage and errno, if there is one and it has none yet; see hints.h. */
void exr_error_set_known_hint(ExrError *error);
