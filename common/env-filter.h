/* The deny list: variables of the caller that a command never inherits, even with inherit_env.
 *
 * It is applied to the inherited environment only. What a policy or a request sets by name is their
 * decision. A deny list cannot be complete, which is why inheriting is off by default. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* One row of the list. A pattern is a whole name in which each '*' stands for any bytes, none
 * included; "BASH_ENV" without one is matched exactly. */
typedef struct {
	const char *pattern;
	bool any_case; /* ASCII letters match in either case */
} EnvFilterRule;

/* The built-in list, grouped by reason in its file. Static storage. */
const EnvFilterRule *env_filter_rules(size_t *ret_count);

/* Whether name matches pattern. Takes time in proportion to both lengths multiplied, at the
 * worst. */
bool env_filter_match(const char *pattern, const char *name, bool any_case);

/* Whether the variable must not be inherited: it matches the built-in list, or one of extra
 * (patterns, NULL-terminated, case counts; NULL for none), or is no possible name ("" or with '=').
 * Any thread at once. */
bool env_filter_denied(const char *name, const char *const *extra);
