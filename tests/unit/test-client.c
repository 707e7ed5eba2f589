/* client: which pid namespace a task is in. */
#include "fsgate/client.h"

#include "fsgate/task.h"
#include "lib/preflight.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static FsgClients *clients_new(void)
{
	FsgClients *clients = fsg_clients_new();

	fsg_clients_set_tasks(clients, fsg_tasks_open());
	assert_true(fsg_clients_are_known(clients));
	return clients;
}

static uint64_t own_namespace(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	return st.st_ino;
}

/* A child that waits to be killed, in new namespaces or in ours. Not fork() and unshare(): a process with threads, as
 * ThreadSanitizer makes one of each, may not leave its user namespace. */
static pid_t child_new(unsigned long namespaces)
{
	pid_t pid = (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, NULL, NULL, NULL, NULL);

	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void tasks_of_one_namespace_are_of_one_exec(void **state)
{
	FsgClients *clients = clients_new();
	pid_t child = child_new(0);

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fsg_client_pid_namespace(clients, getpid()), own_namespace());
		assert_int_equal(fsg_client_pid_namespace(clients, child), own_namespace());
	}
	child_end(child);
	fsg_clients_free(clients);
}

/* As the owner of the user namespace that it is in, which an ordinary user is too. */
static void another_namespace_is_told_apart(void **state)
{
	FsgClients *clients = clients_new();
	pid_t child = child_new(CLONE_NEWUSER | CLONE_NEWPID);
	pid_t other = child_new(CLONE_NEWUSER | CLONE_NEWPID);
	uint64_t of_child = fsg_client_pid_namespace(clients, child);

	(void)state;
	assert_int_not_equal(of_child, 0);
	assert_int_not_equal(of_child, own_namespace());
	assert_int_not_equal(fsg_client_pid_namespace(clients, other), 0);
	assert_int_not_equal(fsg_client_pid_namespace(clients, other), of_child);
	assert_int_equal(fsg_client_pid_namespace(clients, child), of_child);
	child_end(child);
	child_end(other);
	fsg_clients_free(clients);
}

static void who_has_gone_is_not_known(void **state)
{
	FsgClients *clients = clients_new();
	pid_t child = child_new(0);

	(void)state;
	assert_int_equal(fsg_client_pid_namespace(clients, child), own_namespace());
	child_end(child);
	/* kept for a moment, but not over the end of an exec */
	fsg_clients_forget(clients);
	assert_int_equal(fsg_client_pid_namespace(clients, child), 0);
	fsg_clients_free(clients);
}

static void an_answer_is_kept_for_a_moment_only(void **state)
{
	FsgClients *clients = clients_new();
	pid_t child = child_new(0);

	(void)state;
	assert_int_equal(fsg_client_pid_namespace(clients, child), own_namespace());
	child_end(child);
	usleep(200 * 1000);
	assert_int_equal(fsg_client_pid_namespace(clients, child), 0);
	fsg_clients_free(clients);
}

static void without_a_procfs_nobody_is_known(void **state)
{
	FsgClients *clients = fsg_clients_new();

	(void)state;
	assert_false(fsg_clients_are_known(clients));
	assert_false(fsg_clients_are_known(NULL));
	assert_int_equal(fsg_client_pid_namespace(clients, getpid()), 0);
	assert_int_equal(fsg_client_pid_namespace(NULL, getpid()), 0);
	fsg_clients_set_tasks(clients, fsg_tasks_open());
	assert_int_equal(fsg_client_pid_namespace(clients, 0), 0);
	fsg_clients_forget(NULL);
	fsg_clients_free(clients);
	fsg_clients_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_of_one_namespace_are_of_one_exec),
		cmocka_unit_test(another_namespace_is_told_apart),
		cmocka_unit_test(who_has_gone_is_not_known),
		cmocka_unit_test(an_answer_is_kept_for_a_moment_only),
		cmocka_unit_test(without_a_procfs_nobody_is_known),
	};

	static const char *const needs[] = { "userns", NULL };
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
