/* A command in a session: what it gets, how its end is told, and what it cannot reach. */
#include "lib/preflight.h"
#include "session-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int start(void **state)
{
	Fixture *fixture = fixture_new();
	sigset_t blocked;

	/* Nothing of this is the commands' business. */
	assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR && signal(SIGINT, SIG_IGN) != SIG_ERR);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
	(void)umask(077);
	assert_true(open("/", O_RDONLY | O_DIRECTORY) >= 0);
	assert_true(fcntl(open("/", O_RDONLY | O_DIRECTORY), F_DUPFD, 900) >= 900);
	fixture_start(fixture,
		      "\"network\": {\"mode\": \"disabled\"}, \"limits\": {\"open_files\": 64, "
		      "\"file_size_bytes\": 1048576, \"cpu_seconds\": 0}, ");
	*state = fixture;
	return 0;
}

static int stop(void **state)
{
	fixture_free(*state);
	return 0;
}

static void assert_exit(const Ran *ran, int code)
{
	assert_int_equal(ran->result, 0);
	if (ran->end.start_failed)
		fail_msg("%s: %s", ran->end.error.stage, ran->end.error.message);
	assert_int_equal(ran->end.signal, 0);
	assert_int_equal(ran->end.exit_code, code);
}

static void command_works_on_the_workspace(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *path = g_build_filename(fixture->workspace, "f", NULL);
	g_autofree char *text = NULL;
	RAN_AUTO ran =
		fixture_sh(fixture, "echo hi > f && cat /workspace/f && echo bad >&2; exit 3");
	struct stat st;

	assert_exit(&ran, 3);
	assert_string_equal(ran.out, "hi\n");
	assert_string_equal(ran.err, "bad\n");
	assert_true(g_file_get_contents(path, &text, NULL, NULL));
	assert_string_equal(text, "hi\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_true(ran.end.cpu_ms >= 0);
	assert_true(ran.end.max_rss_bytes > 0);
}

static void exit_and_signal_are_told_apart(void **state)
{
	static const int codes[] = { 0, 1, 125, 126, 127, 137, 255 };
	static const int signals[] = { SIGHUP, SIGTERM, SIGKILL, SIGSEGV, SIGUSR1 };

	for (size_t i = 0; i < G_N_ELEMENTS(codes); i++) {
		g_autofree char *script = g_strdup_printf("exit %d", codes[i]);
		RAN_AUTO ran = fixture_sh(*state, script);

		assert_exit(&ran, codes[i]);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
		g_autofree char *script = g_strdup_printf("kill -%d $$", signals[i]);
		RAN_AUTO ran = fixture_sh(*state, script);

		assert_false(ran.end.start_failed);
		assert_int_equal(ran.end.signal, signals[i]);
	}
}

static void stdin_is_what_was_given(void **state)
{
	const char *const argv[] = { "tr", "a-c", "x-z", NULL };
	const char *const wc[] = { "wc", "-c", NULL };
	RAN_AUTO given = fixture_run(*state, &(Run){ .argv = argv, .input = "abc" });
	RAN_AUTO null = fixture_run(*state, &(Run){ .argv = wc });

	assert_exit(&given, 0);
	assert_string_equal(given.out, "xyz");
	assert_exit(&null, 0);
	assert_string_equal(null.out, "0\n");
}

static void environment_is_exactly_the_requests(void **state)
{
	const char *const argv[] = { "env", NULL };
	RAN_AUTO ran = fixture_run(*state, &(Run){ .argv = argv });

	assert_exit(&ran, 0);
	assert_string_equal(ran.out, "PATH=/usr/local/bin:/usr/bin:/bin\nA=b c\n");
}

static void output_can_be_opened_anew(void **state)
{
	RAN_AUTO ran = fixture_sh(*state, "echo a > /dev/stdout; echo b > /dev/stderr");

	assert_exit(&ran, 0);
	assert_string_equal(ran.out, "a\n");
	assert_string_equal(ran.err, "b\n");
}

static void send_interrupt(ExrExec *exec)
{
	assert_int_equal(exr_exec_signal(exec, SIGINT), 0);
}

static void signal_reaches_the_process_group(void **state)
{
	const char *const argv[] = {
		"sh", "-c", "trap 'echo caught; exit 42' INT; echo up; sleep 30 & wait $!; wait",
		NULL
	};
	RAN_AUTO ran = fixture_run(*state, &(Run){ .argv = argv, .at_output = send_interrupt });

	assert_exit(&ran, 42);
	assert_string_equal(ran.out, "up\ncaught\n");
}

static void kill_exec(ExrExec *exec)
{
	exr_exec_kill(exec);
	exr_exec_kill(exec);
}

static void kill_finds_every_process(void **state)
{
	const char *const argv[] = {
		"sh", "-c",
		"trap '' TERM INT HUP; setsid sleep 31415 & "
		"(setsid sh -c 'trap \"\" TERM; sleep 31416; :' &) ; "
		"(sleep 31417 & kill -STOP $!) ; sleep 0.2; echo up; sleep 31418",
		NULL
	};
	RAN_AUTO ran = fixture_run(*state, &(Run){ .argv = argv, .at_output = kill_exec });

	assert_int_equal(ran.result, 0);
	assert_int_equal(ran.end.signal, SIGKILL);
	assert_string_equal(ran.out, "up\n");
	assert_int_equal(count_processes("sleep 3141"), 0);
}

static void left_over_processes_are_killed_and_counted(void **state)
{
	RAN_AUTO ran = fixture_sh(
		*state, "sleep 27182 >/dev/null & setsid sleep 27183 & sleep 0.2; exit 5");
	RAN_AUTO none = fixture_sh(*state, "sleep 0.01 & wait");
	RAN_AUTO zombies =
		fixture_sh(*state, "for i in 1 2 3 4 5; do (sleep 0.01 &); done; sleep 0.1");

	assert_exit(&ran, 5);
	assert_int_equal(ran.end.left_over_killed, 2);
	assert_int_equal(count_processes("sleep 2718"), 0);
	assert_exit(&none, 0);
	assert_int_equal(none.end.left_over_killed, 0);
	assert_exit(&zombies, 0);
	assert_int_equal(zombies.end.left_over_killed, 0);
}

static void a_start_that_fails_names_its_step(void **state)
{
	static const struct {
		const char *program, *cwd;
		const char *code, *stage;
		int errnum;
	} cases[] = {
		{ "no-such-program", NULL, "program-not-found", "exec", ENOENT },
		{ "/usr/bin/no-such-program", NULL, "program-not-found", "exec", ENOENT },
		{ "./no-such-program", NULL, "program-not-found", "exec", ENOENT },
		{ "/etc/passwd/x", NULL, "program-not-found", "exec", ENOTDIR },
		{ "", NULL, "program-not-found", "exec", ENOENT },
		{ "./plain", NULL, "program-not-executable", "exec", EACCES },
		{ "/workspace", NULL, "program-not-executable", "exec", EACCES },
		{ "./no-shebang", NULL, "program-not-executable", "exec", ENOEXEC },
		{ "./bad-shebang", NULL, "program-not-executable", "exec-interpreter", ENOENT },
		{ "./loop", NULL, "program-not-executable", "exec", ELOOP },
		{ "true", "/workspace/missing", "cwd-invalid", "cwd", ENOENT },
		{ "true", "/workspace/plain", "cwd-invalid", "cwd", ENOTDIR },
		{ "true", "/proc/1/cwd", "cwd-invalid", "cwd", EACCES },
		{ "true", "/proc/1/root", "cwd-invalid", "cwd", EACCES },
		{ "true", "/proc/self/fd/3", "cwd-invalid", "cwd", ENOTDIR },
		{ "true", "", "cwd-invalid", "cwd", ENOENT },
	};
	RAN_AUTO made =
		fixture_sh(*state, "echo x > plain; ln -s loop loop; echo text > no-shebang; "
				   "printf '#!/no/interpreter\\n' > bad-shebang; "
				   "printf '#!/bin/sh\\necho ran\\n' > good; "
				   "chmod 755 no-shebang bad-shebang good");
	const char *const good[] = { "./good", NULL };
	RAN_AUTO allowed = fixture_run(*state, &(Run){ .argv = good });

	assert_exit(&made, 0);
	assert_exit(&allowed, 0);
	assert_string_equal(allowed.out, "ran\n");
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const char *const argv[] = { cases[i].program, NULL };
		RAN_AUTO ran = fixture_run(*state, &(Run){ .argv = argv, .cwd = cases[i].cwd });

		if (!ran.end.start_failed)
			fail_msg("\"%s\" was run", cases[i].program);
		assert_string_equal(ran.end.error.code, cases[i].code);
		assert_string_equal(ran.end.error.stage, cases[i].stage);
		assert_int_equal(ran.end.error.errnum, cases[i].errnum);
		assert_non_null(ran.end.error.message);
		assert_null(strchr(ran.end.error.message, '\n'));
	}
}

static void only_three_fds_are_open(void **state)
{
	RAN_AUTO ran = fixture_sh(*state, "ls /proc/$$/fd; readlink /proc/$$/fd/*; :");

	assert_exit(&ran, 0);
	assert_true(g_str_has_prefix(ran.out, "0\n1\n2\n/dev/null\npipe:["));
}

static void no_privilege_is_left(void **state)
{
	RAN_AUTO ran = fixture_sh(
		*state, "grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp|SigBlk|SigIgn):' "
			"/proc/self/status; umask; id -u; ulimit -n; ulimit -c; hostname");

	assert_exit(&ran, 0);
	assert_string_equal(ran.out, "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\n"
				     "Groups:\t \n"
				     "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
				     "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n"
				     "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
				     "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
				     "0022\n1000\n64\n0\nsandbox\n");
}

static void file_size_limit_holds(void **state)
{
	RAN_AUTO over = fixture_sh(*state, "exec head -c 1048577 /dev/zero > big");
	RAN_AUTO exact = fixture_sh(*state, "exec head -c 1048576 /dev/zero > big");

	assert_false(over.end.start_failed);
	assert_int_equal(over.end.signal, SIGXFSZ);
	assert_exit(&exact, 0);
}

static void init_cannot_be_looked_into_or_signalled(void **state)
{
	RAN_AUTO ran = fixture_sh(
		*state, "for f in environ mem maps fd cwd root exe; do "
			"cat /proc/1/$f/. /proc/1/$f >/dev/null 2>&1 && echo read $f; "
			"readlink /proc/1/$f; done; for s in TERM KILL STOP INT; do kill -$s 1; "
			"done; cat /proc/self/environ | grep -c A=; echo alive");

	assert_exit(&ran, 0);
	assert_string_equal(ran.out, "1\nalive\n");
}

static void proc_is_the_execs_own(void **state)
{
	RAN_AUTO pids = fixture_sh(*state, "echo /proc/[0-9]*; cat /proc/1/comm; echo $$");
	RAN_AUTO masked = fixture_sh(
		*state,
		"for f in kcore keys timer_list; do test -s /proc/$f && echo $f; done; "
		"for f in sys/kernel/hostname sys/vm/drop_caches sysrq-trigger; do "
		"(echo 1 > /proc/$f) 2>/dev/null && echo wrote $f; done; "
		"ls -A /proc/acpi /proc/scsi 2>/dev/null; echo 1 > /proc/self/oom_score_adj && "
		"cat /proc/self/oom_score_adj; cat /proc/sys/kernel/hostname");

	assert_exit(&pids, 0);
	assert_string_equal(pids.out, "/proc/1 /proc/2\nstella-sandbox-\n2\n");
	assert_exit(&masked, 0);
	assert_true(g_str_has_suffix(masked.out, "1\nsandbox\n"));
	assert_null(strstr(masked.out, "wrote"));
	assert_null(strstr(masked.out, "timer_list"));
}

static void nothing_of_the_host_is_there(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *script = g_strdup_printf(
		"ls -d /root /home /mnt /srv %s 2>/dev/null; cat /etc/shadow 2>/dev/null; "
		"for f in /usr/x /etc/x /x /sys/x /dev/x /bin/x; do (: > $f) 2>/dev/null && "
		"echo wrote $f; done; for d in /tmp /var/tmp /run /dev/shm /user /workspace; do "
		": > $d/x && rm $d/x && echo $d; done",
		fixture->dir);
	RAN_AUTO ran = fixture_sh(fixture, script);

	assert_exit(&ran, 0);
	assert_string_equal(ran.out, "/tmp\n/var/tmp\n/run\n/dev/shm\n/user\n/workspace\n");
}

static void devices_are_the_harmless_ones(void **state)
{
	RAN_AUTO ran = fixture_sh(
		*state, "ls -A /dev | tr '\\n' ' '; for d in null zero full random urandom tty; do "
			"stat -c %t:%T /dev/$d; done; head -c 3 /dev/zero | wc -c; "
			"(rm /dev/null || mv /dev/null /dev/n || : > /dev/x) 2>/dev/null; "
			"test -c /dev/ptmx && echo ptmx");

	assert_exit(&ran, 0);
	assert_string_equal(ran.out, "fd full null ptmx pts random shm stderr stdin stdout tty "
				     "urandom zero 1:3\n1:5\n1:7\n1:8\n1:9\n5:0\n3\nptmx\n");
}

static void network_is_a_loopback_that_works(void **state)
{
	RAN_AUTO ran = fixture_sh(
		*state,
		"grep -c : /proc/net/dev; python3 -c \"import socket as s; l=s.socket(); "
		"l.bind(('127.0.0.1',0)); l.listen(); c=s.create_connection(l.getsockname()); "
		"l.accept()[0].send(b'x'); print(c.recv(1))\"");

	assert_exit(&ran, 0);
	assert_string_equal(ran.out, "1\nb'x'\n");
}

/* Commands share files, not processes. */
static void two_commands_run_side_by_side(void **state)
{
	Fixture *fixture = *state;
	const char *const wait[] = { "sh", "-c", "mkfifo pipe; echo 14142 > pipe; sleep 14142",
				     NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest request = { .argv = wait, .env = env, .cwd = "/workspace", .stdin_null = true };
	ExrError error = { 0 };
	ExrExec *first = NULL;
	ExrEnd end;

	assert_int_equal(exr_exec_start(fixture->session, &request, &first, &error), 0);
	{
		RAN_AUTO second = fixture_sh(fixture, "while ! test -p pipe; do sleep 0.01; done; "
						      "cat pipe; echo /proc/[0-9]*; "
						      "kill -9 -1; echo alone");

		assert_exit(&second, 0);
		assert_string_equal(second.out, "14142\n/proc/1 /proc/2\nalone\n");
	}
	assert_int_equal(exr_exec_signal(first, 0), 0);
	exr_exec_kill(first);
	assert_int_equal(exr_exec_finish(first, &end), 0);
	assert_int_equal(end.signal, SIGKILL);
	exr_end_clear(&end);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_works_on_the_workspace),
		cmocka_unit_test(exit_and_signal_are_told_apart),
		cmocka_unit_test(stdin_is_what_was_given),
		cmocka_unit_test(environment_is_exactly_the_requests),
		cmocka_unit_test(output_can_be_opened_anew),
		cmocka_unit_test(signal_reaches_the_process_group),
		cmocka_unit_test(kill_finds_every_process),
		cmocka_unit_test(left_over_processes_are_killed_and_counted),
		cmocka_unit_test(a_start_that_fails_names_its_step),
		cmocka_unit_test(only_three_fds_are_open),
		cmocka_unit_test(no_privilege_is_left),
		cmocka_unit_test(file_size_limit_holds),
		cmocka_unit_test(init_cannot_be_looked_into_or_signalled),
		cmocka_unit_test(proc_is_the_execs_own),
		cmocka_unit_test(nothing_of_the_host_is_there),
		cmocka_unit_test(devices_are_the_harmless_ones),
		cmocka_unit_test(network_is_a_loopback_that_works),
		cmocka_unit_test(two_commands_run_side_by_side),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, start, stop);
}
