/* task: what procfs says of processes that live, are ending, or are not there. */
#include "fsgate/task.h"

#include "common/fd-util.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t start_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_NAME, "a) b (c 1 2");
		for (;;)
			pause();
	}
	return child;
}

static void living_process_is_not_dying(void **state)
{
	FD_AUTO tasks = fsg_tasks_open();
	pid_t child = start_child();

	(void)state;
	assert_true(tasks >= 0);
	assert_true(child > 0);
	assert_false(fsg_task_is_dying(tasks, (uint32_t)child));
	assert_false(fsg_task_is_dying(tasks, (uint32_t)getpid()));
	/* A stopped one lives, and so does one with another signal pending. */
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_false(fsg_task_is_dying(tasks, (uint32_t)child));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void ended_process_is_dying(void **state)
{
	FD_AUTO tasks = fsg_tasks_open();
	pid_t child = start_child();
	siginfo_t info;

	(void)state;
	assert_int_equal(kill(child, SIGKILL), 0);
	/* Ended, not yet reaped. */
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(fsg_task_is_dying(tasks, (uint32_t)child));
	assert_int_equal(waitpid(child, NULL, 0), child);
	/* Not there: perhaps only hidden. */
	assert_false(fsg_task_is_dying(tasks, (uint32_t)child));
}

static void nothing_found_out_is_not_dying(void **state)
{
	(void)state;
	assert_false(fsg_task_is_dying(-1, (uint32_t)getpid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(living_process_is_not_dying),
		cmocka_unit_test(ended_process_is_dying),
		cmocka_unit_test(nothing_found_out_is_not_dying),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
