/* What a session holds after many commands is what it held after a few. */
#include "common/sanitizers.h"
#include "lib/preflight.h"
#include "lib/session-usage.h"
#include "session-fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

/* Until every buffer, cache and stack that is kept has been needed. */
#define WARM_UP	 50
#define COMMANDS 300
/* A gateway that is hurried starts another thread, whose stack stays for some seconds. Two KiB kept for each command
 * would be more. */
#define NOISE_KIB 512

static int make(void **state)
{
	*state = fixture_new();
	return 0;
}

static int clear(void **state)
{
	fixture_free(*state);
	return 0;
}

/* Of every kind: one that writes a file, one with input and output, one that leaves a process, one that is not there. */
static void run_some(Fixture *fixture, int count)
{
	static const char *const scripts[] = { "echo x >f; cat f; rm f", "echo x >&2; exit 3",
					       "sleep 100 & exit 0", "exec ./no-such-program" };
	static const int codes[] = { 0, 3, 0, 127 };

	for (int i = 0; i < count; i++) {
		size_t kind = (size_t)i % G_N_ELEMENTS(scripts);
		RAN_AUTO ran = fixture_sh(fixture, scripts[kind]);

		assert_int_equal(ran.result, 0);
		assert_int_equal(ran.end.exit_code, codes[kind]);
	}
}

static void many_commands_leave_nothing_in_their_session(void **state)
{
	Fixture *fixture = *state;
	SessionUsage before, after;

	fixture_start(fixture, "");
	run_some(fixture, WARM_UP);
	session_usage_read(1, &before);
	/* The measure sees what is there: the gateway, init, and what is ready for the next command. */
	assert_int_equal(before.processes, 3);
	assert_true(before.own_kib > 0);
	if (geteuid() == 0)
		assert_true(before.fds > 10 && before.mounts > 10 && before.session_kib > 0);
	run_some(fixture, COMMANDS);
	session_usage_read(1, &after);
	assert_int_equal(after.processes, before.processes);
	assert_int_equal(after.fds, before.fds);
	assert_int_equal(after.mounts, before.mounts);
	/* A sanitizer keeps what is freed, and counts it itself at the end. */
	if (!WITH_SANITIZER)
		assert_in_range(after.own_kib, 0, before.own_kib + NOISE_KIB);
	if (!WITH_SANITIZER && before.session_kib >= 0)
		assert_in_range(after.session_kib, 0, before.session_kib + NOISE_KIB);
	fixture_stop(fixture);
}

/* 4 MiB at the most, which a sanitizer takes alone. */
static void an_idle_session_is_small(void **state)
{
	Fixture *fixture = *state;
	SessionUsage usage;

	fixture_start(fixture, "");
	run_some(fixture, 4);
	session_usage_read(1, &usage);
	if (!WITH_SANITIZER)
		assert_true(usage.session_kib < 4096);
	fixture_stop(fixture);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_commands_leave_nothing_in_their_session, make,
						clear),
		cmocka_unit_test_setup_teardown(an_idle_session_is_small, make, clear),
	};
	int status = preflight_require(needs);

	if (status != 0)
		return status;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
