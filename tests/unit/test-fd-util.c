/* fd-util: room in the table of fds, made before it is needed. */
#include "common/fd-util.h"

#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

/* How many fds the kernel's table of this process has room for. */
static long table_size(void)
{
	g_autofree char *status = NULL;
	const char *line;

	assert_true(g_file_get_contents("/proc/self/status", &status, NULL, NULL));
	line = strstr(status, "\nFDSize:");
	assert_non_null(line);
	return strtol(line + strlen("\nFDSize:"), NULL, 10);
}

static void set_limit(rlim_t count)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = count;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The table never shrinks, so the smaller room has to be made first. */
static void room_is_made_up_to_the_limit_and_no_fd_is_left_open(void **state)
{
	int before = fd_dup(0);

	(void)state;
	assert_true(before >= 0);
	fd_close(&before);
	set_limit(512);
	assert_true(table_size() < 512);
	fd_reserve(100000);
	assert_int_equal(table_size(), 512);
	set_limit(1024);
	fd_reserve(1000);
	assert_int_equal(table_size(), 1024);
	FD_AUTO after = fd_dup(0);
	assert_true(after >= 0 && after < 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_is_made_up_to_the_limit_and_no_fd_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
