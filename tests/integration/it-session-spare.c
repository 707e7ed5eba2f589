/* What a session keeps ready for its next command: when it is there, what it is, and that no command is the worse for
 * what becomes of it. */
#include "executor/session-internal.h"
#include "lib/hang-fixture.h"
#include "lib/preflight.h"
#include "session-fixture.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_US (10 * G_USEC_PER_SEC)
/* For what is not to come. */
#define A_WHILE_US (200 * 1000)

static char *read_proc(pid_t pid, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int)pid, name);
	char *text;

	return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

/* Init's only child, or 0. One that was killed may be there for a moment, if its last request hangs. */
static pid_t find_spare(const Fixture *fixture)
{
	g_autofree char *name =
		g_strdup_printf("task/%d/children", (int)fixture->session->init.pid);
	g_autofree char *text = read_proc(fixture->session->init.pid, name);
	g_auto(GStrv) pids = g_strsplit(text ? text : "", " ", 2);

	/* each number is followed by a space */
	return pids[0] && (!pids[1] || !*pids[1]) ? atoi(pids[0]) : 0;
}

/* The line of its status, without the name; NULL: there is none. */
static char *status_of(pid_t pid, const char *name)
{
	g_autofree char *text = read_proc(pid, "status"), *key = g_strdup_printf("\n%s:\t", name);
	const char *at = text ? strstr(text, key) : NULL;

	return at ? g_strndup(at + strlen(key), strcspn(at + strlen(key), "\n")) : NULL;
}

/* Which system call it waits in. */
static bool waits_in_poll(pid_t pid)
{
	g_autofree char *text = read_proc(pid, "syscall");
	int number = text ? atoi(text) : -1;

#ifdef SYS_poll
	return number == SYS_poll;
#else
	return number == SYS_ppoll;
#endif
}

/* Ready: it waits for a request under the filter. */
static bool is_ready(pid_t pid)
{
	g_autofree char *state = status_of(pid, "State"), *seccomp = status_of(pid, "Seccomp");

	return state && seccomp && state[0] == 'S' && strcmp(seccomp, "2") == 0 &&
	       waits_in_poll(pid);
}

static pid_t await_spare(const Fixture *fixture)
{
	gint64 until = g_get_monotonic_time() + PATIENCE_US;
	pid_t pid;

	while ((pid = find_spare(fixture)) == 0 || !is_ready(pid)) {
		assert_true(g_get_monotonic_time() < until);
		g_usleep(1000);
	}
	return pid;
}

static void a_session_of_one_command_has_none(void **state)
{
	Fixture *fixture = *state;

	fixture_expect(fixture, "echo 1", "1\n");
	g_usleep(A_WHILE_US);
	assert_int_equal(find_spare(fixture), 0);
	fixture_expect(fixture, "echo 2", "2\n");
	assert_true(await_spare(fixture) > 0);
}

/* The next command's init is the very process, and the next one's another. */
static void each_command_gets_a_new_one(void **state)
{
	Fixture *fixture = *state;
	pid_t last = 0;

	fixture_warm_up(fixture);
	for (int i = 0; i < 10; i++) {
		pid_t spare = await_spare(fixture);
		g_autofree char *text = g_strdup_printf("%d\n", i);
		g_autofree char *script = g_strdup_printf(
			"echo %d; test ! -e f || exit 1; ls /proc | grep -c '^[0-9]'; "
			">/tmp/of-$$; ls /tmp | wc -l",
			i);
		g_autofree char *expected = g_strdup_printf("%s4\n%d\n", text, 1);

		assert_int_not_equal(spare, last);
		/* Its init, the shell, ls and grep; and nothing of what others have left but files. */
		fixture_expect(fixture, script, expected);
		fixture_expect(fixture, "rm /tmp/of-*", "");
		assert_int_not_equal(kill(spare, 0), 0);
		last = spare;
	}
}

/* As a command's process is, but for what is its own to give up. */
static void it_has_nothing_to_lose(void **state)
{
	static const struct {
		const char *name, *value;
	} rows[] = {
		{ "CapEff", "0000000000000000" },
		{ "CapPrm", "0000000000000000" },
		{ "CapInh", "0000000000000000" },
		{ "CapBnd", "0000000000000000" },
		{ "CapAmb", "0000000000000000" },
		{ "NoNewPrivs", "1" },
		{ "Seccomp", "2" },
	};
	Fixture *fixture = *state;
	pid_t spare;

	fixture_warm_up(fixture);
	spare = await_spare(fixture);
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autofree char *value = status_of(spare, rows[i].name);

		assert_string_equal(value, rows[i].value);
	}
}

/* No command sees it, and it sees none: their pids and mounts are not its own. */
static void no_command_has_a_way_to_it(void **state)
{
	Fixture *fixture = *state;

	fixture_warm_up(fixture);
	(void)await_spare(fixture);
	{
		/* One that runs while there is a spare. */
		RAN_AUTO ran = fixture_sh(
			fixture, "sleep 0.3; cat /proc/[0-9]*/comm | sort | uniq -c | "
				 "grep -c stella; kill -9 -1 2>/dev/null; echo still here");

		assert_string_equal(ran.out, "1\nstill here\n");
	}
	fixture_expect(fixture, "echo and so is the session", "and so is the session\n");
}

/* Its files in /proc belong to a command's user where that is 0, and none can be written to by any way. */
static void no_command_writes_to_what_proc_has_of_it(void **state)
{
	static const char script[] =
		"n=0; for b in /proc/1 /proc/self/../1 /proc/self/root/proc/1 /proc/1/task/1; do "
		"for f in autogroup oom_score_adj clear_refs coredump_filter sched; do "
		"if [ -e $b/$f ]; then n=$((n+1)); (echo 7 >$b/$f) 2>/dev/null && echo $b/$f; fi; "
		"done; done; test $n -gt 4 && echo tried; cat /proc/1/oom_score_adj; "
		"sh -c 'echo 7 >/proc/$$/oom_score_adj && cat /proc/$$/oom_score_adj'";
	static const char *const users[] = { "agent", "root" };
	Fixture *fixture = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(users); i++) {
		g_autofree char *more =
			g_strdup_printf("\"process\": {\"user\": \"%s\"}, ", users[i]);

		fixture_stop(fixture);
		fixture_start(fixture, more);
		fixture_warm_up(fixture);
		/* What is one's own can be. */
		fixture_expect(fixture, script, "tried\n0\n7\n");
	}
}

static void one_that_is_gone_costs_nothing(void **state)
{
	Fixture *fixture = *state;

	fixture_warm_up(fixture);
	for (int i = 0; i < 5; i++) {
		pid_t spare = await_spare(fixture);

		assert_int_equal(kill(spare, SIGKILL), 0);
		while (kill(spare, 0) == 0)
			g_usleep(1000);
		fixture_expect(fixture, "echo works", "works\n");
	}
	assert_true(exr_session_alive(fixture->session));
}

/* What it was sent is lost with it: it is told that nothing was started. */
static void one_that_goes_with_a_request_has_not_run_it(void **state)
{
	static const char *const argv[] = { "touch", "ran", NULL };
	static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	Fixture *fixture = *state;
	g_autofree char *path = g_build_filename(fixture->workspace, "ran", NULL);
	ExrRequest request = { .argv = argv, .env = env, .cwd = "/workspace", .stdin_null = true };

	fixture_warm_up(fixture);
	for (int i = 0; i < 10; i++) {
		pid_t spare = await_spare(fixture);
		ExrError error = { 0 };
		ExrExec *exec = NULL;
		ExrEnd end;

		/* What is stopped does not read. */
		assert_int_equal(kill(spare, SIGSTOP), 0);
		assert_int_equal(exr_exec_start(fixture->session, &request, &exec, &error), 0);
		assert_int_equal(kill(spare, SIGKILL), 0);
		assert_int_equal(exr_exec_finish(exec, &end), 0);
		assert_true(end.start_failed);
		assert_string_equal(end.error.code, "setup-failed");
		assert_string_equal(end.error.stage, "exec-init");
		exr_end_clear(&end);
		assert_int_not_equal(access(path, F_OK), 0);
		fixture_expect(fixture, "echo works", "works\n");
	}
	/* Its twin. */
	fixture_expect(fixture, "touch ran", "");
	assert_int_equal(access(path, F_OK), 0);
}

/* Where it is, as the kernel calls it. */
static char *cwd_of(pid_t pid)
{
	g_autofree char *link = g_strdup_printf("/proc/%d/cwd", (int)pid);

	return g_file_read_link(link, NULL);
}

static void expect_waiting_at(const Fixture *fixture, const char *place)
{
	const pid_t spare = await_spare(fixture);
	gint64 until = g_get_monotonic_time() + PATIENCE_US;
	g_autofree char *at = NULL;

	while (g_strcmp0(at, place) != 0 && g_get_monotonic_time() < until) {
		g_free(at);
		at = cwd_of(spare);
		g_usleep(1000);
	}
	assert_string_equal(at, place);
}

static void expect_cwd(Fixture *fixture, const char *cwd, const char *place)
{
	static const char *const argv[] = { "sh", "-c", "readlink /proc/self/cwd; ls", NULL };
	const Run run = { .argv = argv, .cwd = cwd };
	RAN_AUTO ran = fixture_run(fixture, &run);

	assert_int_equal(ran.end.start_failed, place == NULL);
	if (!place) {
		assert_string_equal(ran.end.error.code, "cwd-invalid");
		return;
	}
	assert_true(g_str_has_prefix(ran.out, place) && ran.out[strlen(place)] == '\n');
}

/* A command begins where it is told to, whether its init has waited somewhere before or not. */
static void a_command_begins_where_it_is_told(void **state)
{
	static const struct {
		const char *cwd, *place;
	} cases[] = {
		{ NULL, "/workspace" },
		{ "/workspace", "/workspace" },
		{ "/workspace/sub", "/workspace/sub" },
		{ "/", "/" },
		{ "/workspace/to-sub", "/workspace/sub" },
		{ "/proc/self/cwd", "/" },
		{ "/proc/self/root", "/" },
		{ "/workspace/to-cwd", NULL },
		{ "/workspace/to-cwd/..", "/" },
		{ "/workspace/missing", NULL },
	};
	Fixture *fixture = *state;

	fixture_expect(fixture, "mkdir sub; ln -s sub to-sub; ln -s /proc/self/cwd to-cwd", "");
	fixture_warm_up(fixture);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		pid_t spare;

		expect_waiting_at(fixture, "/workspace");
		expect_cwd(fixture, cases[i].cwd, cases[i].place);
		/* one that is made when its request is there already */
		spare = await_spare(fixture);
		assert_int_equal(kill(spare, SIGKILL), 0);
		while (kill(spare, 0) == 0)
			g_usleep(1000);
		expect_cwd(fixture, cases[i].cwd, cases[i].place);
	}
}

/* Where commands begin is no mount of its own: it may be moved, so that nobody waits there. */
static void nobody_waits_where_a_name_may_change(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *sub = g_build_filename(fixture->workspace, "sub", NULL);

	fixture_stop(fixture);
	assert_int_equal(mkdir(sub, 0755), 0);
	fixture->working_dir = "/workspace/sub";
	fixture_start(fixture, "");
	fixture_warm_up(fixture);
	for (int i = 0; i < 3; i++) {
		g_autofree char *at = cwd_of(await_spare(fixture));

		assert_false(g_str_has_prefix(at, "/workspace"));
		expect_cwd(fixture, "/workspace/sub", "/workspace/sub");
		/* the next command's is another directory of that name */
		fixture_expect(fixture,
			       "cd /workspace && mv sub sub$(ls | wc -l) && mkdir sub && >sub/new",
			       "");
		fixture_expect(fixture, "cd /workspace/sub && ls", "new\n");
	}
}

/* The directory that a spare is to wait in is on a server that hangs: commands elsewhere go on, the first one after a
 * moment, and none of those that hung stays. */
static void a_place_to_wait_that_hangs_holds_up_no_command(void **state)
{
	static const char *const argv[] = { "echo", "up", NULL };
	const Run elsewhere = { .argv = argv, .cwd = "/tmp" };
	Fixture *fixture = *state;
	gint64 first_us = 0;
	HangFs fs;

	if (geteuid() != 0)
		skip(); /* hang-fs is root's only */
	fixture_stop(fixture);
	fs = hang_fs_start(fixture->workspace);
	fixture_start(fixture, "");
	fixture_warm_up(fixture);
	expect_waiting_at(fixture, "/workspace");
	hang_fs_hang(&fs);
	/* the first one has a spare that is ready, the second one the one that is made then */
	for (int i = 0; i < 5; i++) {
		gint64 begin = g_get_monotonic_time(), took_us;
		RAN_AUTO ran = fixture_run(fixture, &elsewhere);

		took_us = g_get_monotonic_time() - begin;
		assert_string_equal(ran.out, "up\n");
		assert_int_equal(ran.end.exit_code, 0);
		assert_true(took_us < 5 * G_USEC_PER_SEC);
		if (i == 1)
			first_us = took_us;
		/* it was waited for once */
		assert_true(i < 2 || took_us < MAX(first_us, G_USEC_PER_SEC));
	}
	assert_true(first_us > 400 * 1000);
	assert_true(atomic_load(&fixture->session->stays));
	/* one spare, and it waits where it was made */
	assert_true(await_spare(fixture) > 0);
	hang_fs_go_on(&fs);
	fixture_expect(fixture, "cat 1", "hello");
	fixture_stop(fixture);
	hang_fs_stop(&fs);
}

static void it_goes_with_its_session(void **state)
{
	Fixture *fixture = *state;
	int fds = count_entries("/proc/self/fd");
	pid_t spare;

	fixture_warm_up(fixture);
	spare = await_spare(fixture);
	/* One descriptor is all that it costs the host. */
	assert_int_equal(count_entries("/proc/self/fd"), fds + 1);
	fixture_stop(fixture);
	assert_int_not_equal(kill(spare, 0), 0);
	assert_int_equal(count_children(), 0);
}

/* A process whose first thread has ended is one all the same: it is counted, and killed before there is a result. */
static void a_process_that_lost_its_first_thread_is_left_over(void **state)
{
	static const char script[] = "python3 -c 'import ctypes, threading, time\n"
				     "def run():\n"
				     "  while True:\n"
				     "    open(\"late\", \"a\").write(\"x\")\n"
				     "    time.sleep(0.005)\n"
				     "threading.Thread(target=run).start()\n"
				     "ctypes.CDLL(None).pthread_exit(None)' &\n"
				     "until grep -q '^State:.Z' /proc/$!/status && test -s late; "
				     "do sleep 0.01; done; echo there";
	Fixture *fixture = *state;
	g_autofree char *path = g_build_filename(fixture->workspace, "late", NULL);
	struct stat before, after;

	for (int i = 0; i < 3; i++) {
		RAN_AUTO ran = fixture_sh(fixture, script);

		assert_int_equal(stat(path, &before), 0);
		assert_string_equal(ran.out, "there\n");
		assert_int_equal(ran.end.left_over_killed, 1);
		g_usleep(100000);
		assert_int_equal(stat(path, &after), 0);
		assert_int_equal(after.st_size, before.st_size);
	}
}

/* Descriptors under way on sockets count for all of a user: a command that has many there takes the room for init's. */
#define PARK                                                                                       \
	"import array, os, socket, sys, time\n"                                                    \
	"n = os.open('/dev/null', os.O_RDONLY)\n"                                                  \
	"pairs = []\n"                                                                             \
	"def park(count):\n"                                                                       \
	"  a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"                          \
	"  pairs.append((a, b))\n"                                                                 \
	"  a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "                             \
	"array.array('i', [n] * count))])\n"                                                       \
	"try:\n"                                                                                   \
	"  for i in range(1000): park(250)\n"                                                      \
	"except OSError: pass\n"

static void descriptors_under_way_stop_no_other_command(void **state)
{
	Fixture *fixture = *state;
	const char *const argv[] = { "python3", "-c", PARK "open('parked', 'w')\ntime.sleep(1000)",
				     NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest request = { .argv = argv, .env = env, .cwd = "/workspace", .stdin_null = true };
	g_autofree char *path = g_build_filename(fixture->workspace, "parked", NULL);
	ExrError error = { 0 };
	ExrExec *exec = NULL;
	struct rlimit before, low;
	ExrEnd end;

	/* A host with an ordinary limit. */
	fixture_stop(fixture);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = 1024;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	fixture_start(fixture, "");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	/* What init does to its own is not the commands'. */
	fixture_expect(fixture, "ulimit -n; ulimit -Hn", "1024\n1024\n");
	fixture_warm_up(fixture);
	assert_int_equal(exr_exec_start(fixture->session, &request, &exec, &error), 0);
	for (int i = 0; i < 2000 && access(path, F_OK) != 0; i++)
		g_usleep(5000);
	assert_int_equal(access(path, F_OK), 0);
	for (int i = 0; i < 4; i++) {
		gint64 began = g_get_monotonic_time();

		fixture_expect(fixture, "echo works", "works\n");
		assert_true(g_get_monotonic_time() - began < 2 * G_USEC_PER_SEC);
	}
	exr_exec_kill(exec);
	assert_int_equal(exr_exec_finish(exec, &end), 0);
	exr_end_clear(&end);
	fixture_expect(fixture, "echo works", "works\n");
	assert_true(exr_session_alive(fixture->session));
}

/* Its stops are no end: it goes on, and its own end is told. */
static void who_asks_to_be_traced_ends_by_itself(void **state)
{
	static const char script[] =
		"exec python3 -c 'import ctypes, os, signal\n"
		"assert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0\n"
		"signal.signal(signal.SIGUSR1, lambda *a: print(\"got it\", flush=True))\n"
		"os.kill(os.getpid(), signal.SIGWINCH)\n"
		"os.kill(os.getpid(), signal.SIGUSR1)\n"
		"%s'";
	Fixture *fixture = *state;

	for (int i = 0; i < 3; i++) {
		g_autofree char *exits = g_strdup_printf(script, "os._exit(7)");
		g_autofree char *executes = g_strdup_printf(
			script, "os.execvp(\"sh\", [\"sh\", \"-c\", \"echo and sh; exit 7\"])");
		RAN_AUTO first = fixture_sh(fixture, exits);
		RAN_AUTO second = fixture_sh(fixture, executes);

		assert_string_equal(first.out, "got it\n");
		assert_int_equal(first.end.exit_code, 7);
		assert_int_equal(first.end.signal, 0);
		assert_int_equal(first.end.left_over_killed, 0);
		assert_string_equal(second.out, "got it\nand sh\n");
		assert_int_equal(second.end.exit_code, 7);
	}
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_session_of_one_command_has_none),
		TEST(each_command_gets_a_new_one),
		TEST(it_has_nothing_to_lose),
		TEST(no_command_has_a_way_to_it),
		TEST(no_command_writes_to_what_proc_has_of_it),
		TEST(one_that_is_gone_costs_nothing),
		TEST(one_that_goes_with_a_request_has_not_run_it),
		TEST(a_command_begins_where_it_is_told),
		TEST(nobody_waits_where_a_name_may_change),
		TEST(a_place_to_wait_that_hangs_holds_up_no_command),
		TEST(it_goes_with_its_session),
		TEST(descriptors_under_way_stop_no_other_command),
		TEST(who_asks_to_be_traced_ends_by_itself),
		TEST(a_process_that_lost_its_first_thread_is_left_over),
	};
	int status = preflight_require(needs);

	/* What is mounted here goes with this process. */
	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
		return 1;
	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
