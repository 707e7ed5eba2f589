/* Well-known paths and values that host agents, and what they have stored, rely on: none may ever change. */
#include "stella/stella.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void well_known_paths_are_what_they_were(void **state)
{
	(void)state;
	assert_string_equal(STELLA_MOUNT_WORKSPACE, "/workspace");
	assert_string_equal(STELLA_MOUNT_USER_DATA, "/user");
	assert_string_equal(STELLA_MOUNT_STELLA_HOME, "/opt/stella");
	assert_string_equal(STELLA_MOUNT_AGENT_SKILLS, "/opt/stella/agent-skills");
	assert_string_equal(STELLA_MOUNT_SYSTEM_DB_SKILLS, "/opt/stella/db-skills");
}

static void numbers_are_what_they_were(void **state)
{
	(void)state;
	assert_true(STELLA_MAX_EXEC_OUTPUT_BYTES == 10485760);
	assert_int_equal(STELLA_MOUNT_READ_ONLY, 0);
	assert_int_equal(STELLA_MOUNT_READ_WRITE, 1);
	assert_int_equal(STELLA_NETWORK_ALLOW_ALL, 0);
	assert_int_equal(STELLA_NETWORK_DISABLED, 1);
	assert_int_equal(STELLA_ENDED_START_FAILED, 4);
	assert_int_equal(STELLA_ERROR_TIMED_OUT, STELLA_N_ERRORS - 1);
}

static void words_of_the_format_have_their_names(void **state)
{
	(void)state;
	assert_string_equal(stella_mount_access_name(STELLA_MOUNT_READ_ONLY), "ro");
	assert_string_equal(stella_mount_access_name(STELLA_MOUNT_READ_WRITE), "rw");
	assert_null(stella_mount_access_name((StellaMountAccess)99));
	assert_string_equal(stella_network_mode_name(STELLA_NETWORK_ALLOW_ALL), "allow_all");
	assert_string_equal(stella_network_mode_name(STELLA_NETWORK_DISABLED), "disabled");
	assert_null(stella_network_mode_name((StellaNetworkMode)-1));
}

/* The headers' numbers and the build's text are written in two places. */
static void the_library_has_the_version_of_its_headers(void **state)
{
	g_autofree char *headers = g_strdup_printf("%d.%d.%d", STELLA_VERSION_MAJOR,
						   STELLA_VERSION_MINOR, STELLA_VERSION_PATCH);

	(void)state;
	assert_string_equal(stella_version(), headers);
	assert_ptr_equal(stella_version(), stella_version());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(well_known_paths_are_what_they_were),
		cmocka_unit_test(numbers_are_what_they_were),
		cmocka_unit_test(words_of_the_format_have_their_names),
		cmocka_unit_test(the_library_has_the_version_of_its_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
