/* stella-exec with a terminal, as a person uses it: keys, sizes, job control, and a terminal that is as it
 * was afterwards, however the program ended. */
#include "common/fd-util.h"
#include "lib/preflight.h"
#include "lib/pty-driver.h"
#include "session-fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *stella_exec; /* the program's path */

static int make(void **state)
{
	Fixture *fixture = fixture_new();

	assert_int_equal(chdir(fixture->workspace), 0);
	*state = fixture;
	return 0;
}

static int clear(void **state)
{
	assert_int_equal(chdir("/"), 0);
	fixture_free(*state);
	return 0;
}

/* stella-exec with these arguments on a pty of 33 by 101; the pty's modes before. */
#define START(pty, ...)                                                                            \
	({                                                                                         \
		const char *const argv_[] = { stella_exec, __VA_ARGS__, NULL };                    \
		struct termios before_;                                                            \
		pty_start(pty, argv_, 33, 101);                                                    \
		before_ = pty_modes(pty);                                                          \
		assert_false(pty_is_raw(pty));                                                     \
		before_;                                                                           \
	})

static void expect_end(PtyDriver *pty, const struct termios *before, int status)
{
	struct termios after;

	assert_int_equal(pty_wait(pty), status);
	after = pty_modes(pty);
	assert_true(pty_same_modes(before, &after));
}

static void the_size_and_its_changes_arrive(void **state)
{
	static const char script[] = "stty size; trap 'stty size; exit 3' WINCH; echo up; "
				     "while :; do sleep 0.05; done";
	PTY_AUTO pty = { 0 };
	struct termios before = START(&pty, "run", "--tty", "--", "sh", "-c", script);

	(void)state;
	pty_expect(&pty, "33 101\r\nup\r\n");
	assert_true(pty_is_raw(&pty));
	pty_resize(&pty, 44, 120);
	pty_expect(&pty, "44 120\r\n");
	expect_end(&pty, &before, 3);
}

static void keys_reach_the_job_in_front(void **state)
{
	PTY_AUTO pty = { 0 };
	struct termios before = START(&pty, "shell");

	(void)state;
	pty_expect(&pty, "sandbox:/workspace$ ");
	/* What is expected is never what was typed, which is printed too. */
	pty_type(&pty, "sh -c 'echo up$((0)); exec sleep 100'\n");
	pty_expect(&pty, "up0\r\n");
	pty_type(&pty, "\003");
	pty_expect(&pty, "sandbox:/workspace$ ");
	pty_type(&pty, "echo =$?\n");
	pty_expect(&pty, "=130\r\n");
	pty_type(&pty, "sh -c 'echo up$((1)); exec sleep 100'\n");
	pty_expect(&pty, "up1\r\n");
	pty_type(&pty, "\034");
	pty_expect(&pty, "sandbox:/workspace$ ");
	pty_type(&pty, "echo =$?\n");
	pty_expect(&pty, "=131\r\n");
	/* Stopped, sent on behind, taken in front again. It forks nothing: a shell that is stopped between vfork and
	 * execve of a child never looks stopped. */
	pty_type(&pty,
		 "mkfifo p; bash -c 'echo up$((2)); until test -e go; do read -t 0.1 x <>p; done; "
		 "exit 9'\n");
	pty_expect(&pty, "up2\r\n");
	pty_type(&pty, "\032");
	pty_expect(&pty, "Stopped");
	pty_type(&pty, "bg\n");
	pty_expect(&pty, "&\r\n");
	pty_type(&pty, "jobs\n");
	pty_expect(&pty, "Running");
	pty_type(&pty, "touch go; fg; echo =$?\n");
	pty_expect(&pty, "=9\r\n");
	pty_expect(&pty, "sandbox:/workspace$ ");
	pty_type(&pty, "\004");
	expect_end(&pty, &before, 0);
}

static void the_shell_keeps_and_reads_nothing(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *user = g_build_filename(fixture->dir, "user", NULL);
	g_autofree char *rc = g_build_filename(user, ".bashrc", NULL);
	PTY_AUTO pty = { 0 };
	struct termios before;

	assert_int_equal(mkdir(user, 0755), 0);
	assert_true(g_file_set_contents(rc, "echo planted; PS1='root@host# '\n", -1, NULL));
	before = START(&pty, "shell", "--user-dir", user, "--setenv", "A=given", "--cwd", "/tmp");
	pty_expect(&pty, "sandbox:/tmp$ ");
	assert_null(strstr(pty.seen->str, "planted"));
	pty_type(&pty, "echo $0 [$HISTFILE] $A; exit 4\n");
	pty_expect(&pty, "bash [] given\r\n");
	expect_end(&pty, &before, 4);
	assert_int_equal(count_entries(user), 1);
}

static void another_shell_is_found_where_there_is_no_bash(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *bin = g_build_filename(fixture->workspace, "bin", NULL);
	PTY_AUTO pty = { 0 };
	struct termios before;

	assert_int_equal(mkdir(bin, 0755), 0);
	assert_int_equal(symlink("/bin/sh", "bin/sh"), 0);
	before = START(&pty, "shell", "--setenv", "PATH=/workspace/bin");
	pty_expect(&pty, "sandbox:/workspace$ ");
	pty_type(&pty, "echo [$0]; exit 3\n");
	pty_expect(&pty, "[sh]\r\n");
	expect_end(&pty, &before, 3);
}

#define LOOP "trap '' TERM; echo up; while :; do sleep 0.1; done"

static void the_terminal_is_given_back_after_every_end(void **state)
{
	static const struct {
		const char *script, *timeout;
		int sig, second, status;
	} cases[] = {
		{ "echo up; read x; exit 7", "0", 0, 0, 7 },
		/* None ends before we have looked at the terminal. */
		{ "echo up; sleep 1; kill -KILL $$", "0", 0, 0, 137 },
		{ LOOP, "2s", 0, 0, 124 },
		{ "stty raw -echo; " LOOP, "2s", 0, 0, 124 },
		{ "echo up; exec sleep 100", "0", SIGTERM, 0, 143 },
		{ "echo up; exec sleep 100", "0", SIGHUP, 0, 129 },
		{ "echo up; exec sleep 100", "0", SIGINT, 0, 130 },
		{ "echo up; exec sleep 100", "0", SIGQUIT, 0, 131 },
		{ "trap 'exit 8' INT; echo up; while :; do sleep 0.1; done", "0", SIGINT, 0, 8 },
		{ LOOP, "0", SIGTERM, SIGTERM, 143 },
		/* These end stella-exec itself, and everything with it. */
		{ LOOP, "0", SIGUSR1, 0, 128 + SIGUSR1 },
		{ LOOP, "0", SIGABRT, 0, 128 + SIGABRT },
		{ LOOP, "0", SIGALRM, 0, 128 + SIGALRM },
		{ LOOP, "0", SIGXCPU, 0, 128 + SIGXCPU },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		PTY_AUTO pty = { 0 };
		struct termios before = START(&pty, "run", "--tty", "--timeout", cases[i].timeout,
					      "--", "sh", "-c", cases[i].script);

		pty_expect(&pty, "up");
		pty_await_raw(&pty, true);
		if (cases[i].sig)
			assert_int_equal(kill(pty.pid, cases[i].sig), 0);
		else if (cases[i].status == 7)
			pty_type(&pty, "\r");
		if (cases[i].second) {
			g_usleep(100000);
			assert_int_equal(kill(pty.pid, cases[i].second), 0);
		}
		expect_end(&pty, &before, cases[i].status);
	}
}

static void what_cannot_start_leaves_the_terminal_alone(void **state)
{
	(void)state;
	{
		PTY_AUTO pty = { 0 };
		struct termios before = START(&pty, "run", "--tty", "--", "no-such-program");

		pty_expect(&pty, "stella-exec: cannot execute \"no-such-program\"");
		expect_end(&pty, &before, 127);
	}
	{
		PTY_AUTO pty = { 0 };
		struct termios before = START(&pty, "shell", "--cwd", "/no/such");

		pty_expect(&pty, "stella-exec: ");
		expect_end(&pty, &before, 125);
	}
}

/* While the sandbox is being made the terminal is as ever, and its keys are signals to us. */
static void an_interrupt_before_the_start_ends_it(void **state)
{
	(void)state;
	for (gulong i = 0; i < 10; i++) {
		PTY_AUTO pty = { 0 };
		struct termios before = START(&pty, "run", "--tty", "--", "sleep", "100");

		g_usleep(i * 8000);
		pty_type(&pty, "\003");
		expect_end(&pty, &before, 128 + SIGINT);
	}
}

/* A shell of the host's, of which stella-exec is a job. */
static void start_shell(PtyDriver *pty, const char *shell)
{
	const char *const argv[] = { shell, "-i", NULL };

	g_setenv("PS1", "host: ", TRUE);
	g_setenv("ENV", "", TRUE);
	g_setenv("HOME", "/nonexistent", TRUE);
	g_setenv("STELLA_EXEC", stella_exec, TRUE);
	pty_start(pty, argv, 24, 80);
	pty_type(pty, "PS1='ho''st: '; stty -g >before\n");
	pty_expect(pty, "host: ");
}

static void modes_are_as_before(PtyDriver *pty)
{
	pty_type(pty, "stty -g >after; cmp before after && echo sa''me\n");
	pty_expect(pty, "same");
	pty_expect(pty, "host: ");
}

static pid_t read_pid(const char *path)
{
	g_autofree char *text = NULL;

	assert_true(g_file_get_contents(path, &text, NULL, NULL));
	return (pid_t)g_ascii_strtoll(text, NULL, 10);
}

#define JOB "sh -c 'echo $$ >pid; exec $STELLA_EXEC shell'"

static void stop_and_go_on(PtyDriver *pty, int sig, unsigned short columns, bool checked)
{
	g_autofree char *size = g_strdup_printf("20 %d\r\n", (int)columns);

	pty_type(pty, JOB "\n");
	pty_expect(pty, "sandbox:/workspace$ ");
	pty_await_raw(pty, true);
	assert_int_equal(kill(read_pid("pid"), sig), 0);
	pty_expect(pty, "Stopped");
	pty_expect(pty, "host: ");
	if (checked)
		modes_are_as_before(pty);
	pty_resize(pty, 20, columns);
	pty_type(pty, "fg\n");
	pty_expect(pty, "STELLA_EXEC shell");
	pty_await_raw(pty, true);
	pty_type(pty, "stty size\r");
	pty_expect(pty, size);
	pty_type(pty, "exit 5\r");
	pty_expect(pty, "host: ");
	pty_type(pty, "echo =$?\n");
	pty_expect(pty, "=5\r\n");
	pty_expect(pty, "host: ");
	modes_are_as_before(pty);
}

/* bash puts its own modes back when a job stops, which hides what we do; others do not. */
static void a_stop_of_ours_gives_the_terminal_back_meanwhile(void **state)
{
	static const char *const shells[] = { "/bin/bash", "/bin/sh" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(shells); i++) {
		PTY_AUTO pty = { 0 };

		start_shell(&pty, shells[i]);
		stop_and_go_on(&pty, SIGTSTP, 70, true);
		/* Nobody can do anything before that one. */
		stop_and_go_on(&pty, SIGSTOP, 71, false);
	}
}

/* As /proc has it: T is stopped. */
static char state_of(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid), *text = NULL;

	assert_true(g_file_get_contents(path, &text, NULL, NULL));
	return strrchr(text, ')')[2];
}

static void a_job_in_the_background_waits_for_the_terminal(void **state)
{
	PTY_AUTO pty = { 0 };

	(void)state;
	start_shell(&pty, "/bin/bash");
	pty_type(&pty, "echo >pid\n");
	pty_expect(&pty, "host: ");
	pty_type(&pty, JOB " & \n");
	pty_expect(&pty, "host: ");
	for (int i = 0; i < 200 && (read_pid("pid") == 0 || state_of(read_pid("pid")) != 'T'); i++)
		g_usleep(100000);
	assert_int_equal(state_of(read_pid("pid")), 'T');
	assert_false(pty_is_raw(&pty));
	pty_type(&pty, "fg\n");
	pty_await_raw(&pty, true);
	pty_type(&pty, "echo in$((1))\r");
	pty_expect(&pty, "in1\r\n");
	pty_type(&pty, "exit\r");
	pty_expect(&pty, "host: ");
}

/* Started by what is not a shell, a terminal may be nobody's to manage. */
static void a_terminal_that_is_not_the_controlling_one_will_do(void **state)
{
	const char *const argv[] = {
		"/usr/bin/setsid",	   "-w", stella_exec, "run", "--tty", "--", "sh", "-c",
		"echo up; read x; exit 7", NULL
	};
	PTY_AUTO pty = { 0 };
	struct termios before;

	(void)state;
	pty_start(&pty, argv, 24, 80);
	before = pty_modes(&pty);
	pty_expect(&pty, "up");
	pty_await_raw(&pty, true);
	pty_type(&pty, "\r");
	expect_end(&pty, &before, 7);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(the_size_and_its_changes_arrive),
		TEST(keys_reach_the_job_in_front),
		TEST(the_shell_keeps_and_reads_nothing),
		TEST(another_shell_is_found_where_there_is_no_bash),
		TEST(the_terminal_is_given_back_after_every_end),
		TEST(what_cannot_start_leaves_the_terminal_alone),
		TEST(an_interrupt_before_the_start_ends_it),
		TEST(a_stop_of_ours_gives_the_terminal_back_meanwhile),
		TEST(a_job_in_the_background_waits_for_the_terminal),
		TEST(a_terminal_that_is_not_the_controlling_one_will_do),
	};
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *dir = g_path_get_dirname(self);
	int status = preflight_require(needs);

	if (status)
		return status;
	stella_exec = g_build_filename(dir, "..", "..", "executor", "stella-exec", NULL);
	g_setenv("TERM", "dumb", TRUE);
	status = cmocka_run_group_tests(tests, NULL, NULL);
	g_free(stella_exec);
	return status;
}
