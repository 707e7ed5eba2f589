/* limits.memory_bytes and limits.processes of sessions: what is over is refused or killed and named, what is under
 * works, others are not touched, and nothing is left. Runs with cgroups of either version. */
#include "session-fixture.h"

#include "executor/cgroup.h"
#include "executor/session-limits.h"
#include "limits-fixture.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/preflight.h"
#include <cmocka.h>

#define PATIENCE_MS 20000
#define WAIT_UNTIL(condition)                                                                      \
	do {                                                                                       \
		gint64 until_ = g_get_monotonic_time() + PATIENCE_MS * G_TIME_SPAN_MILLISECOND;    \
		while (!(condition)) {                                                             \
			if (g_get_monotonic_time() > until_)                                       \
				fail_msg("not in time: %s", #condition);                           \
			g_usleep(10000);                                                           \
		}                                                                                  \
	} while (0)

static pid_t test_pid;

static int make(void **state)
{
	test_pid = getpid();
	*state = fixture_new();
	return 0;
}

/* In a child that a test has forked, a failed assertion comes here as well, and no further. */
static int clear(void **state)
{
	if (getpid() != test_pid)
		_exit(1);
	fixture_free(*state);
	assert_int_equal(count_session_cgroups(), 0);
	return 0;
}

static bool is_unenforced(const Fixture *fixture, const char *name)
{
	return g_strv_contains(exr_session_unenforced(fixture->session), name);
}

static void start(Fixture *fixture, const char *limits)
{
	g_autofree char *more = g_strdup_printf("\"limits\": {%s}, ", limits);

	fixture_start(fixture, more);
	assert_false(is_unenforced(fixture, "memory_bytes"));
	assert_false(is_unenforced(fixture, "processes"));
}

/* It goes on after whatever happened in it. */
static void assert_works(Fixture *fixture)
{
	RAN_AUTO ran = fixture_sh(fixture, "echo works");

	assert_string_equal(ran.out, "works\n");
	assert_int_equal(ran.end.limits_hit, 0);
	assert_true(exr_session_alive(fixture->session));
}

#define DD "dd if=/dev/zero of=/dev/null count=1 bs="

static void a_memory_hog_is_killed_and_named(void **state)
{
	Fixture *fixture = *state;

	start(fixture, "\"memory_bytes\": 67108864");
	{
		RAN_AUTO below = fixture_sh(fixture, DD "30M && echo fits");
		RAN_AUTO above = fixture_sh(fixture, "exec " DD "200M");
		RAN_AUTO child = fixture_sh(fixture, DD "200M; echo $?");

		assert_string_equal(below.out, "fits\n");
		assert_int_equal(below.end.limits_hit, 0);
		assert_int_equal(above.end.signal, SIGKILL);
		assert_int_equal(above.end.limits_hit, EXR_LIMIT_MEMORY);
		assert_string_equal(child.out, "137\n");
		assert_int_equal(child.end.exit_code, 0);
		assert_int_equal(child.end.limits_hit, EXR_LIMIT_MEMORY);
	}
	assert_works(fixture);
}

/* Files in memory count and cannot use all of it up for later commands, and several processes count together, each of them
 * larger than an init of ours with a sanitizer, for the largest is killed; that files on a disk are cached does not end
 * anything. */
static void memory_is_that_of_all_of_the_session(void **state)
{
	Fixture *fixture = *state;

	start(fixture, "\"memory_bytes\": 67108864");
	{
		RAN_AUTO cached =
			fixture_sh(fixture, "head -c 100M /dev/zero >big && cat big big | wc -c");
		RAN_AUTO shared = fixture_sh(
			fixture,
			"head -c 100M /dev/zero >/dev/shm/big; stat -c %s /dev/shm/big; " DD
			"40M && echo fits");
		RAN_AUTO over = fixture_sh(fixture, "exec " DD "55M");
		RAN_AUTO freed = fixture_sh(fixture, "rm /dev/shm/big && " DD "50M && echo fits");
		RAN_AUTO many = fixture_sh(
			fixture, "for i in $(seq 6); do head -c 20M /dev/zero | tail -c 20M | "
				 "{ sleep 1; cat >/dev/null; } & done; wait; echo done");

		assert_string_equal(cached.out, "209715200\n");
		assert_int_equal(cached.end.limits_hit, 0);
		assert_string_equal(shared.out, "16777216\nfits\n");
		assert_int_equal(shared.end.limits_hit, 0);
		assert_int_equal(over.end.signal, SIGKILL);
		assert_int_equal(over.end.limits_hit, EXR_LIMIT_MEMORY);
		assert_string_equal(freed.out, "fits\n");
		assert_string_equal(many.out, "done\n");
		assert_int_equal(many.end.limits_hit, EXR_LIMIT_MEMORY);
	}
	assert_works(fixture);
}

static void what_is_too_little_for_the_sandbox_is_said(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(StellaPolicy) policy =
		fixture_policy(fixture, "\"limits\": {\"memory_bytes\": 4096}, ");
	ExrSessionConfig config = { .policy = policy };
	ExrSession *session = NULL;
	ExrError error = { 0 };

	assert_true(exr_session_new(&config, &session, &error) < 0);
	assert_non_null(error.hint);
	assert_non_null(strstr(error.hint, "limits.memory_bytes"));
	exr_error_clear(&error);
	assert_int_equal(count_session_cgroups(), 0);
	policy->limits.memory_bytes = 8 << 20;
	assert_int_equal(exr_session_new(&config, &fixture->session, &error), 0);
	assert_works(fixture);
}

#define FIVE_MORE "for i in 1 2 3 4; do sleep 100 & done; echo five; sleep 100 & echo six"

/* The shell and what it starts; the processes that a sandbox itself needs are not the commands'. */
static void commands_have_exactly_as_many_processes(void **state)
{
	Fixture *fixture = *state;

	start(fixture, "\"processes\": 5");
	for (int i = 0; i < 3; i++) {
		RAN_AUTO over = fixture_sh(fixture, FIVE_MORE);
		RAN_AUTO within =
			fixture_sh(fixture, "for i in 1 2 3 4; do sleep 100 & done; echo five");

		assert_string_equal(over.out, "five\n");
		assert_non_null(strstr(over.err, "ork"));
		assert_int_equal(over.end.limits_hit, EXR_LIMIT_PROCESSES);
		assert_int_equal(over.end.left_over_killed, 4);
		assert_string_equal(within.out, "five\n");
		assert_string_equal(within.err, "");
		assert_int_equal(within.end.limits_hit, 0);
	}
	assert_works(fixture);
}

static ExrExec *start_sleep(Fixture *fixture)
{
	const char *const argv[] = { "sleep", "100", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest request = { .argv = argv, .env = env, .cwd = "/", .stdin_null = true };
	ExrError error = { 0 };
	ExrExec *exec = NULL;

	if (exr_exec_start(fixture->session, &request, &exec, &error) < 0)
		fail_msg("%s (%s): %s", error.code, error.stage, error.message);
	return exec;
}

static void finish(ExrExec *exec, ExrEnd *ret_end)
{
	exr_exec_kill(exec);
	assert_int_equal(exr_exec_finish(exec, ret_end), 0);
}

/* Two execs at a time share what there is, and a third one finds none; when one has ended there is room again. */
static void execs_share_the_processes_of_their_session(void **state)
{
	Fixture *fixture = *state;
	ExrExec *first, *second, *third;
	ExrEnd end;

	start(fixture, "\"processes\": 2");
	first = start_sleep(fixture);
	second = start_sleep(fixture);
	third = start_sleep(fixture);
	assert_int_equal(exr_exec_finish(third, &end), 0);
	assert_true(end.start_failed);
	assert_string_equal(end.error.stage, "fork");
	assert_int_equal(end.error.errnum, EAGAIN);
	assert_non_null(strstr(end.error.hint, "limits.processes"));
	assert_int_equal(end.limits_hit, EXR_LIMIT_PROCESSES);
	exr_end_clear(&end);
	finish(second, &end);
	assert_false(end.start_failed);
	exr_end_clear(&end);
	assert_works(fixture);
	finish(first, &end);
	exr_end_clear(&end);
}

#define BOMB_PROCESSES 30
static const char bomb_marker[] = "stella-test-bomb";
static Fixture *bystander;

/* What this program is inside of the sandbox: it says at each process's first refusal what it was. */
static _Noreturn void bomb(void)
{
	bool told = false;

	for (;;) {
		if (fork() < 0 && !told) {
			(void)!write(STDOUT_FILENO, errno == EAGAIN ? "EAGAIN\n" : "other\n", 7);
			told = true;
		}
		g_usleep(20000);
	}
}

/* While it goes off: another session is what it always is, and there are never more of it. */
static void look_at_bomb(ExrExec *exec)
{
	for (int i = 0; i < 5; i++) {
		RAN_AUTO ran =
			fixture_sh(bystander, "for i in 1 2 3 4 5; do sleep 0.01 & done; wait; "
					      "echo works");

		assert_string_equal(ran.out, "works\n");
		assert_string_equal(ran.err, "");
		assert_int_equal(ran.end.limits_hit, 0);
		assert_true(count_processes(bomb_marker) <= BOMB_PROCESSES);
	}
	assert_int_equal(count_processes(bomb_marker), BOMB_PROCESSES);
	exr_exec_kill(exec);
}

static void a_fork_bomb_is_contained(void **state)
{
	Fixture *fixture = *state;
	const char *const argv[] = { "/workspace/bomb", bomb_marker, NULL };
	Run run = { .argv = argv, .at_output = look_at_bomb };
	g_autofree char *program = g_build_filename(fixture->workspace, "bomb", NULL);
	g_autofree char *text = NULL;
	gsize size;

	assert_true(g_file_get_contents("/proc/self/exe", &text, &size, NULL));
	assert_true(g_file_set_contents_full(program, text, (gssize)size, G_FILE_SET_CONTENTS_NONE,
					     0755, NULL));
	bystander = fixture_new();
	start(bystander, "\"processes\": 30");
	g_setenv("STELLA_STATE_DIR", fixture->state, TRUE);
	start(fixture, "\"processes\": 30");
	{
		RAN_AUTO ran = fixture_run(fixture, &run);

		assert_int_equal(ran.end.signal, SIGKILL);
		assert_int_equal(ran.end.limits_hit, EXR_LIMIT_PROCESSES);
		assert_true(g_str_has_prefix(ran.out, "EAGAIN\n"));
		assert_null(strstr(ran.out, "other"));
	}
	assert_int_equal(count_processes(bomb_marker), 0);
	assert_works(fixture);
	fixture_free(bystander);
}

/* What a command sees of cgroups is nothing of the host's. */
static void the_sandbox_is_the_root_of_its_cgroups(void **state)
{
	static const char *const policies[] = { "",
						"\"memory_bytes\": 67108864, \"processes\": 9" };
	Fixture *fixture = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(policies); i++) {
		start(fixture, policies[i]);
		{
			RAN_AUTO ran = fixture_sh(fixture, "cat /proc/self/cgroup /proc/1/cgroup");
			g_auto(GStrv) lines = g_strsplit(ran.out, "\n", -1);

			assert_true(g_strv_length(lines) > 2);
			for (char **line = lines; **line; line++)
				if (!g_str_has_suffix(*line, ":/"))
					fail_msg("%s", *line);
		}
		fixture_stop(fixture);
	}
}

/* In children: what fails there is said, and is their status. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static bool required_limits_are_refused(void *data)
{
	Fixture *fixture = data;
	g_autoptr(StellaPolicy) policy = fixture_policy(
		fixture, "\"limits\": {\"memory_bytes\": 67108864, \"required\": true}, ");
	ExrSessionConfig config = { .policy = policy };
	ExrSession *session = NULL;
	ExrError error = { 0 };
	g_autofree char *sessions = g_build_filename(fixture->state, "sessions", NULL);
	g_autofree char *reason = NULL;

	CHECK(exr_cgroup_check("memory", &reason) < 0 && reason);
	CHECK(exr_session_new(&config, &session, &error) < 0);
	CHECK(!session);
	CHECK(strcmp(error.code, "limit-unenforceable") == 0);
	CHECK(strcmp(error.stage, "limits") == 0);
	CHECK(strcmp(error.key, "limits.memory_bytes") == 0);
	CHECK(strstr(error.message, "limits.memory_bytes"));
	CHECK(!strchr(error.message, '\n'));
	CHECK(strstr(error.hint, "scope"));
	exr_error_clear(&error);
	CHECK(count_children() == 0);
	CHECK(count_entries(sessions) == 0);
	/* What can be enforced without them is. */
	policy->limits.memory_bytes = 0;
	policy->limits.processes = 5;
	CHECK(exr_session_new(&config, &session, &error) == 0);
	exr_session_free(session);
	return true;
}

/* Optional ones are told of; processes are counted by the user namespace instead. */
static bool optional_limits_are_told(void *data)
{
	Fixture *fixture = data;

	fixture_start(fixture, "\"limits\": {\"memory_bytes\": 67108864, \"processes\": 5}, ");
	CHECK(is_unenforced(fixture, "memory_bytes"));
	CHECK(!is_unenforced(fixture, "processes"));
	for (int i = 0; i < 2; i++) {
		RAN_AUTO hog = fixture_sh(fixture, DD "200M && echo unlimited");
		RAN_AUTO over = fixture_sh(fixture, FIVE_MORE);
		RAN_AUTO within =
			fixture_sh(fixture, "for i in 1 2 3 4; do sleep 100 & done; echo five");

		CHECK(strcmp(hog.out, "unlimited\n") == 0);
		CHECK(strcmp(over.out, "five\n") == 0);
		CHECK(strstr(over.err, "ork"));
		CHECK(strcmp(within.out, "five\n") == 0 && !*within.err);
		CHECK(hog.end.limits_hit == 0 && over.end.limits_hit == 0);
	}
	fixture_stop(fixture);
	return true;
}

static void without_cgroups_memory_is_not_limited_in_silence(void **state)
{
	static const WithoutCgroups ways[] = { CGROUPS_READ_ONLY, CGROUPS_HIDDEN };

	for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
		assert_int_equal(run_without_cgroups(ways[i], required_limits_are_refused, *state),
				 0);
		assert_int_equal(run_without_cgroups(ways[i], optional_limits_are_told, *state), 0);
	}
	/* The twin: here they are enforced, and may be required. */
	start(*state, "\"memory_bytes\": 67108864, \"processes\": 5, \"required\": true");
	assert_works(*state);
}

static void a_dead_owner_leaves_no_cgroup_for_long(void **state)
{
	Fixture *fixture = *state;

	for (int i = 0; i < 10; i++) {
		pid_t owner;

		assert_int_equal(count_session_cgroups(), 0);
		owner = fork();
		if (owner == 0) {
			start(fixture, "\"memory_bytes\": 67108864, \"processes\": 9");
			for (;;) {
				RAN_AUTO ran = fixture_sh(fixture, "sleep 100 & sleep 0.1");

				(void)ran.result;
			}
		}
		if (i == 0)
			WAIT_UNTIL(count_session_cgroups() > 0);
		else
			g_usleep((gulong)i * 8000);
		assert_int_equal(kill(owner, SIGKILL), 0);
		assert_int_equal(waitpid(owner, NULL, 0), owner);
		/* A process that was cloned at the last moment keeps the lock until it notices. */
		WAIT_UNTIL((fixture_start(fixture, ""), fixture_stop(fixture),
			    count_session_cgroups() == 0));
	}
}

int main(int argc, char **argv)
{
	static const char *const needs[] = { "root", "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(a_memory_hog_is_killed_and_named),
		TEST(memory_is_that_of_all_of_the_session),
		TEST(what_is_too_little_for_the_sandbox_is_said),
		TEST(commands_have_exactly_as_many_processes),
		TEST(execs_share_the_processes_of_their_session),
		TEST(a_fork_bomb_is_contained),
		TEST(the_sandbox_is_the_root_of_its_cgroups),
		TEST(without_cgroups_memory_is_not_limited_in_silence),
		TEST(a_dead_owner_leaves_no_cgroup_for_long),
	};
	int status;

	if (argc == 2 && strcmp(argv[1], bomb_marker) == 0)
		bomb();
	status = preflight_require(needs);

	if (status == 0)
		status = limits_require();
	if (status)
		return status;
	return limits_leave(cmocka_run_group_tests(tests, NULL, NULL));
}
