/* Durations as a person writes them on a command line. */
#pragma once

#include <stdint.h>

/* The longest one: its microseconds still fit, and are never added to a clock without saturating. */
#define EXR_DURATION_MAX_MS (INT64_MAX / 1000)

/* "500ms", "10s", "5m", "1h", "0.5s"; a bare number is seconds. Digits, at most one point with digits
 * on both sides, and a unit; no sign, no space, no exponent. What is finer than a millisecond is
 * rounded up, so that only zero gives 0. 0; -EINVAL for what is no duration; -ERANGE beyond
 * EXR_DURATION_MAX_MS. */
int exr_duration_parse(const char *text, int64_t *ret_ms);
