/* caller-groups: texts of /proc/PID/status, and a real one. */
#include "fsgate/caller-groups.h"

#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static void texts(void **state)
{
	static const struct {
		const char *text;
		int result;
		size_t count;
		gid_t last;
	} cases[] = {
		{ "Name:\tsh\nGroups:\t4 20 2100 \nNStgid:\t1\n", 0, 3, 2100 },
		{ "Name:\tsh\nGroups:\t7\nNStgid:\t1\n", 0, 1, 7 },
		{ "Name:\tsh\nGroups:\t \nNStgid:\t1\n", 0, 0, 0 },
		{ "Name:\tsh\nGroups:\t4294967294 \n", 0, 1, 4294967294u },
		/* a name cannot hold a line end, and what looks like one is no line */
		{ "Name:\t\\nGroups:\t0 \nGroups:\t5 \n", 0, 1, 5 },
		{ "Name:\tsh\nGroups:\t4294967295 \n", -EBADMSG, 0, 0 },
		{ "Name:\tsh\nGroups:\t-1 \n", -EBADMSG, 0, 0 },
		{ "Name:\tsh\nGroups:\t5 x\n", -EBADMSG, 0, 0 },
		{ "Name:\tsh\nGroups:\t5", -EBADMSG, 0, 0 },
		{ "Name:\tsh\n", -EBADMSG, 0, 0 },
		{ "", -EBADMSG, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree gid_t *groups = NULL;
		size_t count = 0;

		if (fsg_caller_groups_parse(cases[i].text, &groups, &count) != cases[i].result)
			fail_msg("%s", cases[i].text);
		assert_int_equal(count, cases[i].count);
		if (count > 0)
			assert_int_equal(groups[count - 1], cases[i].last);
	}
}

static void ones_own_are_read(void **state)
{
	FD_AUTO proc_fd = fd_open_proc();
	g_autofree gid_t *groups = NULL;
	gid_t own[256];
	int own_count = getgroups(G_N_ELEMENTS(own), own);
	size_t count = 0;

	(void)state;
	assert_true(proc_fd >= 0);
	assert_true(own_count >= 0);
	assert_int_equal(fsg_caller_groups_read(proc_fd, gettid(), &groups, &count), 0);
	assert_int_equal(count, own_count);
	if (count > 0)
		assert_memory_equal(groups, own, count * sizeof *own);
}

static void nobody_has_none(void **state)
{
	FD_AUTO proc_fd = fd_open_proc();
	gid_t *groups = NULL;
	size_t count;

	(void)state;
	assert_int_equal(fsg_caller_groups_read(proc_fd, 0, &groups, &count), -ESRCH);
	assert_int_equal(fsg_caller_groups_read(proc_fd, -1, &groups, &count), -ESRCH);
	assert_int_equal(fsg_caller_groups_read(proc_fd, INT32_MAX, &groups, &count), -ESRCH);
	assert_null(groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(ones_own_are_read),
		cmocka_unit_test(nobody_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
