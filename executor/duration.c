/* Reading durations; see duration.h. Integers throughout: a binary fraction would make 0.3s 299 ms,
 * and a deadline must not depend on the locale's decimal point. */
#include "executor/duration.h"

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>

static const struct {
	const char *unit;
	int64_t ms;
} units[] = { { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 3600 * 1000 } };

/* The milliseconds of "0.<digits>" units, rounded up. */
static int64_t fraction_ms(const char *digits, size_t count, int64_t unit_ms)
{
	int64_t whole = 0, scale = 1;
	bool rest = false;

	/* Twelve digits of an hour are far below a millisecond and well within 64 bits. */
	for (size_t i = 0; i < count; i++) {
		if (i < 12) {
			whole = whole * 10 + (digits[i] - '0');
			scale *= 10;
		} else if (digits[i] != '0') {
			rest = true;
		}
	}
	/* No overflow: 10^12 times an hour's 3.6 * 10^6 fits. */
	whole *= unit_ms;
	return whole / scale + (whole % scale != 0 || rest ? 1 : 0);
}

int exr_duration_parse(const char *text, int64_t *ret_ms)
{
	size_t whole_digits = strspn(text, "0123456789"), fraction_digits = 0;
	const char *fraction = NULL, *unit = text + whole_digits;
	int64_t ms = 0;

	if (whole_digits == 0)
		return -EINVAL;
	if (*unit == '.') {
		fraction = unit + 1;
		fraction_digits = strspn(fraction, "0123456789");
		if (fraction_digits == 0)
			return -EINVAL;
		unit = fraction + fraction_digits;
	}
	for (size_t u = 0; u < G_N_ELEMENTS(units); u++) {
		if (strcmp(unit, units[u].unit) != 0)
			continue;
		for (size_t i = 0; i < whole_digits; i++)
			if (__builtin_mul_overflow(ms, 10, &ms) ||
			    __builtin_add_overflow(ms, text[i] - '0', &ms))
				return -ERANGE;
		if (__builtin_mul_overflow(ms, units[u].ms, &ms) ||
		    __builtin_add_overflow(ms, fraction_ms(fraction, fraction_digits, units[u].ms),
					   &ms) ||
		    ms > EXR_DURATION_MAX_MS)
			return -ERANGE;
		*ret_ms = ms;
		return 0;
	}
	return -EINVAL;
}
