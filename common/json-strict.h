/* Whether a text is JSON as RFC 8259 has it, and the tree of one that is.
 *
 * Lenient parsers take comments, single quotes, assignments, numbers like 0x10 and whatever stands behind the
 * first value, saturate large numbers, and recurse as deep as the text asks. What passes here has none of
 * that. */
#pragma once

#include "common/json.h"

#include <stdbool.h>
#include <stddef.h>

/* Checks that text is one object of valid UTF-8 with nothing but white space around it, no NUL in it
 * (also not as \u0000), no lone surrogate, no integer beyond 64 bits, and at most max_depth levels of
 * { and [. text needs no NUL at its end. 0; -EINVAL with *reterr_message "line 3, column 7: ...", where
 * columns count characters from 1. The caller frees it. */
int json_strict_check(const char *text, size_t size, int max_depth, char **reterr_message);

/* The same check, then the tree, in which no object has a key twice: "filesystem.mounts[2].access: given
 * twice". The caller frees *ret_root with json_node_unref(). */
int json_strict_parse(const char *text, size_t size, int max_depth, JsonNode **ret_root,
		      char **reterr_message);
