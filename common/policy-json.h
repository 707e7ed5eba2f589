/* The policy as JSON text: strict reading, and writing. The reader is fuzzed: it takes any bytes.
 *
 * The text has to be one JSON object of valid UTF-8 with nothing but white space behind it. Unknown
 * and duplicate keys, wrong types, out-of-range numbers, NULs and trailing data are errors. */
#pragma once

#include "common/json.h"
#include "common/policy.h"

#include <stddef.h>

/* Reads a policy and validates it. On failure -EINVAL (-E2BIG for a text over LIMIT_POLICY_BYTES)
 * and *reterr_message is one line without a newline that names the key and its place, e.g.
 * `filesystem.mounts[2].access: expected "ro" or "rw", got "readwrite"`, or for bad syntax
 * "line 3, column 7: ...". The caller frees it. */
int policy_json_parse(const char *text, size_t size, StellaPolicy **ret_policy,
		      char **reterr_message);

/* The same for a policy inside another JSON text that has been parsed, which is then answerable for the
 * syntax: the control socket's. root is borrowed. */
int policy_json_read(JsonNode *root, StellaPolicy **ret_policy, char **reterr_message);

/* The whole policy, every key written out (runtime only when it is not the default, which has no word);
 * reading it back gives an equal policy. Pretty-printed when asked. The caller frees. */
char *policy_json_write(const StellaPolicy *policy, bool pretty);
