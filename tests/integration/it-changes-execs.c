/* What the end of an exec tells, each exec its own: whatever its processes are, however many run at once, however much
 * they do, and what is open then. */
#include "exec-told.h"
#include "lib/preflight.h"

#include "common/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

/* --- who it is --- */

/* A process that hides as well as it can: not to be looked at, of another session, whose parent has gone. */
static void hide_and_work(int peer)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid == 0) {
		MUST(setsid() > 0);
		pid = fork();
		MUST(pid >= 0);
		if (pid > 0)
			_exit(0);
		MUST(prctl(PR_SET_DUMPABLE, 0) == 0);
		step_make("workspace/hidden");
		step_refused(unlink("ro/f"), EROFS);
		MUST(write(peer, "", 1) == 1);
		_exit(0);
	}
	MUST(waitpid(pid, NULL, 0) == pid);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Started as a program there, like any command: what only forks here can be looked at by nobody of the sandbox's. */
static void hide(int peer)
{
	g_autofree char *number = g_strdup_printf("%d", peer);

	execl("/proc/self/exe", "it-changes-execs", "hide", number, (char *)NULL);
	_exit(1);
}

static void processes_that_hide_are_known(void **state)
{
	told_expect_exec(*state, hide, "created /workspace/hidden",
			 "unlink /ro/f read-only-mount EROFS /ro 1");
}

/* Waits for a name to work on, until it is empty; says that it has. */
static void work_on_names(int peer)
{
	char name[64], path[128];

	for (;;) {
		ssize_t size = recv(peer, name, sizeof name - 1, 0);

		MUST(size >= 0);
		name[size] = '\0';
		if (size == 0 || name[0] == '.')
			return;
		snprintf(path, sizeof path, "workspace/%s", name);
		step_make(path);
		snprintf(path, sizeof path, "ro/%s", name);
		step_refused(mkdir(path, 0755), EROFS);
		step_refused(unlink("ro/f"), EROFS);
		MUST(send(peer, name, 1, 0) == 1);
	}
}

static void let_work(MiniExec *exec, const char *name)
{
	char byte;

	assert_true(send(mini_exec_peer(exec), name, strlen(name), 0) > 0);
	if (name[0] != '.')
		assert_int_equal(recv(mini_exec_peer(exec), &byte, 1, 0), 1);
}

#define AT_ONCE 16

static void execs_at_once_have_each_its_own(void **state)
{
	MiniExec *execs[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		execs[i] = mini_exec_start(*state, work_on_names);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < AT_ONCE; i++) {
			g_autofree char *name = g_strdup_printf("x%d.%d", i, round);

			let_work(execs[i], name);
		}
	/* in another order than they began */
	for (int n = 0; n < AT_ONCE; n++) {
		int i = n * 5 % AT_ONCE;
		g_autofree char *changes =
			g_strdup_printf("created /workspace/x%d.0, created /workspace/x%d.1, "
					"created /workspace/x%d.2",
					i, i, i);
		g_autofree char *denials =
			g_strdup_printf("mkdir /ro/x%d.0 read-only-mount EROFS /ro 1, "
					"mkdir /ro/x%d.1 read-only-mount EROFS /ro 1, "
					"mkdir /ro/x%d.2 read-only-mount EROFS /ro 1, "
					"unlink /ro/f read-only-mount EROFS /ro 3",
					i, i, i);
		g_autoptr(JsonObject) answer = NULL;

		let_work(execs[i], ".");
		answer = mini_exec_end(execs[i], TRUE);
		told_expect(answer, changes, denials);
	}
}

static void make_and_refuse(int peer)
{
	(void)peer;
	step_put("workspace/same", O_CREAT | O_TRUNC, "x");
	step_refused(unlink("ro/f"), EROFS);
}

/* The kernel gives the numbers of namespaces and of processes again. */
static void nothing_is_left_for_the_next(void **state)
{
	told_expect_exec(*state, make_and_refuse, "created /workspace/same",
			 "unlink /ro/f read-only-mount EROFS /ro 1");
	for (int i = 0; i < 50; i++)
		told_expect_exec(*state, make_and_refuse, "modified /workspace/same",
				 "unlink /ro/f read-only-mount EROFS /ro 1");
}

/* Not known is another thing than nothing. */
static void who_does_not_say_which_is_told_nothing(void **state)
{
	g_autoptr(JsonObject) answer =
		mini_exec_end(mini_exec_start(*state, make_and_refuse), FALSE);
	static const char *const keys[] = { "denials", "denials_dropped", "changes",
					    "changes_dropped", "changes_incomplete" };

	assert_true(told_flag(answer, "caught_up"));
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		assert_false(json_object_has_member(answer, keys[i]));
}

/* --- bounds --- */

static void only_look(int peer)
{
	int fd = open("workspace/old", O_RDONLY | O_CLOEXEC);

	(void)peer;
	MUST(fd >= 0);
	MUST(close(fd) == 0);
}

static void flood(int peer)
{
	char path[64];

	(void)peer;
	for (int i = 0; i < 2000; i++) {
		snprintf(path, sizeof path, "ro/d%d", i);
		step_refused(mkdir(path, 0755), EROFS);
	}
}

static guint count_rows(JsonObject *answer, const char *name)
{
	return json_array_get_length(json_object_get_array_member(answer, name));
}

static void a_flood_pushes_out_no_others(void **state)
{
	MiniExec *quiet = mini_exec_start(*state, work_on_names);
	g_autoptr(JsonObject) of_loud = NULL;
	g_autoptr(JsonObject) of_quiet = NULL;

	let_work(quiet, "q");
	of_loud = mini_exec_end(mini_exec_start(*state, flood), TRUE);
	let_work(quiet, ".");
	of_quiet = mini_exec_end(quiet, TRUE);
	told_expect(of_quiet, "created /workspace/q",
		    "mkdir /ro/q read-only-mount EROFS /ro 1, unlink /ro/f read-only-mount EROFS "
		    "/ro 1");
	assert_true(count_rows(of_loud, "denials") > LIMIT_DENIALS / 2);
	assert_int_equal(count_rows(of_loud, "denials") +
				 json_object_get_int_member(of_loud, "denials_dropped"),
			 2000);
}

static void make_many(int peer)
{
	char path[64];

	(void)peer;
	for (int i = 0; i < LIMIT_CHANGES + 500; i++) {
		snprintf(path, sizeof path, "workspace/m%04d", i);
		step_make(path);
		MUST(chmod(path, 0600) == 0);
	}
}

static void more_changes_than_fit_are_counted(void **state)
{
	g_autoptr(JsonObject) answer = mini_exec_end(mini_exec_start(*state, make_many), TRUE);

	assert_int_equal(count_rows(answer, "changes"), LIMIT_CHANGES);
	assert_int_equal(json_object_get_int_member(answer, "changes_dropped"), 500);
	assert_false(told_flag(answer, "changes_incomplete"));
}

/* --- files that are open at the end --- */

static void send_fd(int peer, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof control.space };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	MUST(sendmsg(peer, &message, 0) == 1);
}

static int receive_fd(int peer)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof control.space };
	int fd;

	assert_int_equal(recvmsg(peer, &message, MSG_CMSG_CLOEXEC), 1);
	assert_int_equal(message.msg_controllen, CMSG_SPACE(sizeof fd));
	memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
	return fd;
}

/* What it wrote, and what it only has open. */
static void give_away(int peer)
{
	int fd = open("workspace/old", O_WRONLY | O_CLOEXEC);

	MUST(fd >= 0 && write(fd, "new", 3) == 3);
	send_fd(peer, fd);
	fd = open("workspace/other", O_WRONLY | O_CLOEXEC);
	MUST(fd >= 0);
	send_fd(peer, fd);
}

static void a_file_that_stays_open_is_looked_at(void **state)
{
	MiniExec *exec = mini_exec_start(*state, give_away);
	int written = receive_fd(mini_exec_peer(exec)), held = receive_fd(mini_exec_peer(exec));
	g_autoptr(JsonObject) answer = NULL;
	g_autofree char *changes = NULL;
	gint64 began;

	mini_exec_wait(exec);
	began = g_get_monotonic_time();
	answer = mini_exec_end(exec, TRUE);
	assert_true(g_get_monotonic_time() - began < 2 * G_TIME_SPAN_SECOND);
	changes = told_changes(answer);
	assert_string_equal(changes, "modified /workspace/old");
	assert_true(told_flag(answer, "changes_incomplete"));
	assert_false(told_flag(answer, "caught_up"));
	/* what comes later is nobody's: the next one has nothing of it */
	assert_int_equal(write(held, "x", 1), 1);
	close(written);
	close(held);
	told_expect_exec(*state, only_look, "", "");
}

/* The same, closed in time. */
static void a_file_that_is_closed_meanwhile_is_waited_for(void **state)
{
	MiniExec *exec = mini_exec_start(*state, give_away);
	int written = receive_fd(mini_exec_peer(exec)), held = receive_fd(mini_exec_peer(exec));
	g_autoptr(JsonObject) answer = NULL;

	mini_exec_wait(exec);
	close(written);
	close(held);
	answer = mini_exec_end(exec, TRUE);
	told_expect(answer, "modified /workspace/old", "");
}

static void write_and_wait(int peer)
{
	int fd = open("workspace/old", O_WRONLY | O_CLOEXEC);

	MUST(fd >= 0 && write(fd, "new", 3) == 3);
	MUST(open("workspace/made", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) >= 0);
	MUST(write(peer, "", 1) == 1);
	for (;;)
		pause();
}

static void what_a_killed_exec_wrote_is_told(void **state)
{
	for (int i = 0; i < 10; i++) {
		MiniExec *exec = mini_exec_start(*state, write_and_wait);
		g_autoptr(JsonObject) answer = NULL;
		char byte;

		assert_int_equal(recv(mini_exec_peer(exec), &byte, 1, 0), 1);
		mini_exec_kill(exec);
		answer = mini_exec_end(exec, TRUE);
		told_expect(answer,
			    i == 0 ? "created /workspace/made, modified /workspace/old"
				   : "modified /workspace/old",
			    "");
		g_usleep(20000);
	}
}

static void take_away_while_open(int peer)
{
	int fd = open("workspace/old", O_RDWR | O_CLOEXEC), other;

	(void)peer;
	MUST(fd >= 0 && write(fd, "new", 3) == 3);
	MUST(unlink("workspace/old") == 0);
	MUST(close(fd) == 0);
	/* another way to the same: it has moved when it is closed */
	other = open("workspace/other", O_RDWR | O_CLOEXEC);
	MUST(other >= 0 && write(other, "new", 3) == 3);
	MUST(rename("workspace/other", "workspace/moved") == 0);
	MUST(close(other) == 0);
}

static void what_goes_while_it_is_open_has_gone(void **state)
{
	told_expect_exec(
		*state, take_away_while_open,
		"renamed /workspace/moved from /workspace/other, modified /workspace/moved, "
		"deleted /workspace/old",
		"");
}

int main(int argc, char **argv)
{
	static const char *const needs[] = { "fuse", "userns", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, told_start, told_stop)
	const struct CMUnitTest tests[] = {
		TEST(processes_that_hide_are_known),
		TEST(execs_at_once_have_each_its_own),
		TEST(nothing_is_left_for_the_next),
		TEST(who_does_not_say_which_is_told_nothing),
		TEST(a_flood_pushes_out_no_others),
		TEST(more_changes_than_fit_are_counted),
		TEST(a_file_that_stays_open_is_looked_at),
		TEST(a_file_that_is_closed_meanwhile_is_waited_for),
		TEST(what_a_killed_exec_wrote_is_told),
		TEST(what_goes_while_it_is_open_has_gone),
	};
	int status;

	if (argc == 3 && strcmp(argv[1], "hide") == 0) {
		hide_and_work(atoi(argv[2]));
		return 0;
	}
	status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
