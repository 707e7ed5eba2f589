/* duration: what counts as one on a command line. */
#include "executor/duration.h"

#include <errno.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void durations_are_read_exactly(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "500ms", 500 },
		{ "10s", 10000 },
		{ "5m", 300000 },
		{ "1h", 3600000 },
		{ "7", 7000 },
		{ "0", 0 },
		{ "0ms", 0 },
		{ "0.0", 0 },
		{ "0.5s", 500 },
		{ "0.5", 500 },
		{ "0.3s", 300 },
		{ "1.5m", 90000 },
		{ "0.1h", 360000 },
		{ "00010", 10000 },
		{ "0.1ms", 1 },
		{ "1.0000000000000000000000001ms", 2 },
		{ "1.0000000000000000000000000ms", 1 },
		{ "0.000000001", 1 },
		{ "2147483648", 2147483648000 },
		{ "9223372036854775ms", EXR_DURATION_MAX_MS },
		{ "9223372036854.775s", EXR_DURATION_MAX_MS },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		int64_t ms = -1;

		assert_int_equal(exr_duration_parse(cases[i].text, &ms), 0);
		assert_int_equal(ms, cases[i].ms);
	}
}

static void what_is_no_duration_is_refused(void **state)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ "", -EINVAL },
		{ "s", -EINVAL },
		{ "ms", -EINVAL },
		{ ".5", -EINVAL },
		{ "1.", -EINVAL },
		{ "1.s", -EINVAL },
		{ "1.2.3", -EINVAL },
		{ "-1", -EINVAL },
		{ "+1", -EINVAL },
		{ " 1", -EINVAL },
		{ "1 ", -EINVAL },
		{ "1 s", -EINVAL },
		{ "1d", -EINVAL },
		{ "1S", -EINVAL },
		{ "1sec", -EINVAL },
		{ "1e3", -EINVAL },
		{ "0x10", -EINVAL },
		{ "1,5", -EINVAL },
		{ "inf", -EINVAL },
		{ "9223372036854776ms", -ERANGE },
		{ "9223372036854.7751s", -ERANGE },
		{ "9223372036854775807", -ERANGE },
		{ "9223372036854775808", -ERANGE },
		{ "99999999999999999999999999ms", -ERANGE },
		{ "9223372036854775807h", -ERANGE },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		int64_t ms = -1;

		assert_int_equal(exr_duration_parse(cases[i].text, &ms), cases[i].result);
		assert_int_equal(ms, -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_read_exactly),
		cmocka_unit_test(what_is_no_duration_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
