/* The start and the end of sessions: what is refused, what is left behind, what happens when a part of
 * it is killed. */
#include "lib/preflight.h"
#include "session-fixture.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 10000

static int make(void **state)
{
	*state = fixture_new();
	return 0;
}

static int clear(void **state)
{
	fixture_free(*state);
	return 0;
}

static char *sessions_of(const Fixture *fixture)
{
	return g_build_filename(fixture->state, "sessions", NULL);
}

/* Waits for a condition that comes about by itself. */
#define WAIT_UNTIL(condition)                                                                      \
	do {                                                                                       \
		gint64 until_ = g_get_monotonic_time() + PATIENCE_MS * G_TIME_SPAN_MILLISECOND;    \
		while (!(condition) && g_get_monotonic_time() < until_)                            \
			g_usleep(5000);                                                            \
		assert_true(condition);                                                            \
	} while (0)

static void nothing_is_left_after_the_end(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *sessions = sessions_of(fixture);
	int fds = count_entries("/proc/self/fd"), mounts = count_mounts();

	for (int i = 0; i < 3; i++) {
		fixture_start(fixture, "");
		{
			RAN_AUTO ran = fixture_sh(
				fixture,
				"mkdir -p /tmp/a/b /var/tmp/c /user/d && chmod 0 /tmp/a && "
				"ln -s /etc/passwd /tmp/l && echo x > /user/d/e");

			assert_int_equal(ran.end.exit_code, 0);
		}
		assert_true(exr_session_alive(fixture->session));
		assert_int_equal(count_children(), 2);
		/* the directory and its lock */
		assert_int_equal(count_entries(sessions), 2);
		fixture_stop(fixture);
		assert_int_equal(count_children(), 0);
		assert_int_equal(count_entries(sessions), 0);
		assert_int_equal(count_entries("/proc/self/fd"), fds);
		assert_int_equal(count_mounts(), mounts);
	}
	assert_int_equal(count_entries(fixture->workspace), 0);
}

static void end_kills_what_still_runs(void **state)
{
	Fixture *fixture = *state;
	const char *const argv[] = { "sleep", "16180", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest request = { .argv = argv, .env = env, .cwd = "/", .stdin_null = true };
	ExrError error = { 0 };
	ExrExec *exec = NULL;
	struct pollfd p = { .events = POLLIN };
	ExrEnd end;

	fixture_start(fixture, "");
	assert_int_equal(exr_exec_start(fixture->session, &request, &exec, &error), 0);
	WAIT_UNTIL(count_processes("sleep 16180") == 1);
	fixture_stop(fixture);
	assert_int_equal(count_processes("sleep 16180"), 0);
	p.fd = exr_exec_end_fd(exec);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(exr_exec_signal(exec, SIGTERM), -ESRCH);
	assert_int_equal(exr_exec_finish(exec, &end), 0);
	assert_int_equal(end.signal, SIGKILL);
	exr_end_clear(&end);
}

static void refuse(const Fixture *fixture, const char *more, const char *host_path,
		   const char *code, const char *stage, const char *key)
{
	g_autoptr(StellaPolicy) policy = fixture_policy(fixture, more);
	ExrSessionConfig config = { .policy = policy };
	ExrSession *session = NULL;
	ExrError error = { 0 };

	if (host_path)
		policy_add_mount(policy, host_path, "/opt/more", STELLA_MOUNT_READ_ONLY);
	assert_true(exr_session_new(&config, &session, &error) < 0);
	assert_null(session);
	assert_string_equal(error.code, code);
	assert_string_equal(error.stage, stage);
	if (g_strcmp0(error.key, key) != 0)
		fail_msg("%s: the key is %s", error.message, error.key ? error.key : "none");
	assert_non_null(error.message);
	assert_null(strchr(error.message, '\n'));
	exr_error_clear(&error);
	assert_int_equal(count_children(), 0);
}

static void a_bad_policy_is_refused_before_anything_starts(void **state)
{
	Fixture *fixture = *state;
	static const char *const row = "filesystem.mounts[1].host_path";
	g_autofree char *sessions = sessions_of(fixture);
	int mounts = count_mounts();

	refuse(fixture, "", "/no/such/directory", "policy-invalid", "policy", row);
	refuse(fixture, "", "/proc/1", "policy-invalid", "policy", row);
	refuse(fixture, "", "/dev/null", "policy-invalid", "policy", row);
	refuse(fixture, "\"network\": {\"timeout_ms\": 5}, ", NULL, "policy-incompatible", "policy",
	       "network.timeout_ms");
	if (g_file_test(sessions, G_FILE_TEST_EXISTS))
		assert_int_equal(count_entries(sessions), 0);
	assert_int_equal(count_mounts(), mounts);
	fixture_start(fixture, "");
}

static void a_state_directory_that_cannot_be_is_an_error(void **state)
{
	Fixture *fixture = *state;

	g_setenv("STELLA_STATE_DIR", "relative", TRUE);
	refuse(fixture, "", NULL, "state-dir-failed", "state-dir", NULL);
	assert_int_equal(symlink(fixture->workspace, fixture->state), 0);
	g_setenv("STELLA_STATE_DIR", fixture->state, TRUE);
	refuse(fixture, "", NULL, "state-dir-failed", "state-dir", NULL);
	assert_int_equal(unlink(fixture->state), 0);
	fixture_start(fixture, "");
}

static void a_killed_part_ends_the_session(void **state)
{
	static const char *const parts[] = { "stella-fsgate", "stella-sandbox-init" };
	Fixture *fixture = *state;
	const char *const argv[] = { "true", NULL };
	const char *const env[] = { NULL };
	ExrRequest request = { .argv = argv, .env = env, .cwd = "/", .stdin_null = true };

	for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
		ExrError error = { 0 };
		ExrExec *exec = NULL;
		pid_t pid;

		fixture_start(fixture, "");
		pid = find_child(parts[i]);
		assert_true(pid > 0);
		assert_int_equal(kill(pid, SIGKILL), 0);
		WAIT_UNTIL(!exr_session_alive(fixture->session));
		assert_int_equal(exr_exec_start(fixture->session, &request, &exec, &error),
				 -ESHUTDOWN);
		assert_string_equal(error.code, "session-closed");
		exr_error_clear(&error);
		fixture_stop(fixture);
		assert_int_equal(count_children(), 0);
	}
}

/* The gateway is stopped, not dead: requests wait in it for ever. */
static void a_hanging_gateway_holds_up_nobody(void **state)
{
	Fixture *fixture = *state;
	const char *const argv[] = { "sh", "-c", "echo up; sleep 0.3; cat /workspace/17320", NULL };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	ExrRequest request = { .argv = argv, .env = env, .cwd = "/", .stdin_null = true };
	gint64 begin;
	ExrError error = { 0 };
	ExrExec *exec = NULL;
	struct pollfd p = { .events = POLLIN };
	ExrEnd end;

	fixture_start(fixture, "");
	assert_int_equal(exr_exec_start(fixture->session, &request, &exec, &error), 0);
	p.fd = exr_exec_stdout_fd(exec);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(kill(find_child("stella-fsgate"), SIGSTOP), 0);
	WAIT_UNTIL(count_processes("17320") > 0);
	g_usleep(500000);
	begin = g_get_monotonic_time();
	exr_exec_kill(exec);
	assert_int_equal(exr_exec_finish(exec, &end), 0);
	assert_int_equal(end.signal, SIGKILL);
	exr_end_clear(&end);
	fixture_stop(fixture);
	assert_true(g_get_monotonic_time() - begin < 9 * G_TIME_SPAN_SECOND);
	assert_int_equal(count_processes("17320"), 0);
	assert_int_equal(count_children(), 0);
}

static void a_dead_owner_is_cleaned_up_after(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *sessions = sessions_of(fixture);
	int mounts = count_mounts(), ready[2];
	char byte;
	pid_t owner;

	assert_int_equal(pipe(ready), 0);
	owner = fork();
	if (owner == 0) {
		const char *const argv[] = { "sleep", "22360", NULL };
		const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
		ExrRequest request = { .argv = argv, .env = env, .cwd = "/", .stdin_null = true };
		ExrError error = { 0 };
		ExrExec *exec = NULL;

		fixture_start(fixture, "");
		if (exr_exec_start(fixture->session, &request, &exec, &error) == 0)
			(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	assert_int_equal(close(ready[1]), 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(close(ready[0]), 0);
	/* Somebody else's session is left alone. */
	fixture_start(fixture, "");
	assert_int_equal(count_entries(sessions), 4);
	fixture_stop(fixture);
	assert_int_equal(count_entries(sessions), 2);
	assert_int_equal(kill(owner, SIGKILL), 0);
	assert_int_equal(waitpid(owner, NULL, 0), owner);
	WAIT_UNTIL(count_processes("sleep 22360") == 0);
	fixture_start(fixture, "");
	assert_int_equal(count_entries(sessions), 2);
	fixture_stop(fixture);
	assert_int_equal(count_entries(sessions), 0);
	assert_int_equal(count_mounts(), mounts);
}

/* At random moments of a session's start and life. */
static void a_killed_owner_leaves_no_process(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *sessions = sessions_of(fixture);
	g_autofree char *marker = g_strdup_printf("sleep 2449%d", (int)getpid());
	gint64 until;

	for (int i = 0; i < 15; i++) {
		pid_t owner = fork();

		if (owner == 0) {
			fixture_start(fixture, "");
			for (;;) {
				RAN_AUTO ran = fixture_sh(fixture, marker);

				(void)ran.result;
			}
		}
		g_usleep((gulong)i * 6000);
		assert_int_equal(kill(owner, SIGKILL), 0);
		assert_int_equal(waitpid(owner, NULL, 0), owner);
	}
	WAIT_UNTIL(count_processes(marker) == 0);
	until = g_get_monotonic_time() + PATIENCE_MS * G_TIME_SPAN_MILLISECOND;
	/* A process that was cloned at the last moment keeps the lock until it notices: then the start
	 * after that cleans up. */
	do {
		fixture_start(fixture, "");
		fixture_stop(fixture);
	} while (count_entries(sessions) != 0 && g_get_monotonic_time() < until);
	assert_int_equal(count_entries(sessions), 0);
}

static void a_host_that_ignores_its_children_is_no_obstacle(void **state)
{
	Fixture *fixture = *state;
	void (*before)(int) = signal(SIGCHLD, SIG_IGN);

	fixture_start(fixture, "");
	{
		RAN_AUTO ran = fixture_sh(fixture, "exit 9");

		assert_int_equal(ran.end.exit_code, 9);
	}
	fixture_stop(fixture);
	(void)signal(SIGCHLD, before);
	assert_int_equal(count_children(), 0);
}

static void damaged_requests_are_refused(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *large = g_strnfill(9 * 1024 * 1024, 'x');
	const char *const none[] = { NULL };
	const char *const program[] = { "true", NULL };
	const char *const too_large[] = { "true", large, NULL };
	const char *const nameless[] = { "=x", NULL };
	const char *const valueless[] = { "X", NULL };
	const struct {
		const char *const *argv, *const *env;
		int errnum;
	} cases[] = {
		{ none, none, EINVAL },
		{ program, nameless, EINVAL },
		{ program, valueless, EINVAL },
		{ too_large, none, E2BIG },
	};

	fixture_start(fixture, "");
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		ExrRequest request = {
			.argv = cases[i].argv, .env = cases[i].env, .cwd = "/", .stdin_null = true
		};
		ExrError error = { 0 };
		ExrExec *exec = NULL;

		assert_int_equal(exr_exec_start(fixture->session, &request, &exec, &error),
				 -cases[i].errnum);
		assert_string_equal(error.stage, "request");
		exr_error_clear(&error);
	}
	{
		RAN_AUTO ran = fixture_run(fixture, &(Run){ .argv = program });

		assert_false(ran.end.start_failed);
		assert_int_equal(ran.end.exit_code, 0);
	}
}

/* Root lends its identity to nobody, and a user that is 0 inside has no power either. */
static void user_zero_inside_has_no_power(void **state)
{
	Fixture *fixture = *state;

	fixture_start(fixture, "\"process\": {\"user\": \"root\"}, ");
	{
		RAN_AUTO ran = fixture_sh(
			fixture, "id -u; grep -E '^Cap(Eff|Bnd)' /proc/self/status; "
				 "cat /proc/self/uid_map | tr -s ' '; echo x > /workspace/f; "
				 "for f in /proc/sys/kernel/hostname /proc/sys/vm/drop_caches; do "
				 "(echo 1 > $f) 2>/dev/null && echo wrote $f; done; "
				 "mount -t tmpfs x /tmp 2>/dev/null; echo $?");
		g_autofree char *expected = g_strdup_printf(
			"0\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n 0 ");

		assert_int_equal(ran.end.exit_code, 0);
		assert_true(g_str_has_prefix(ran.out, expected));
		assert_null(strstr(ran.out, "wrote"));
		assert_false(g_str_has_suffix(ran.out, "\n0\n"));
		if (geteuid() == 0)
			assert_null(strstr(ran.out, "\n 0 0 1"));
	}
}

static char *connect_script(const char *name)
{
	return g_strdup_printf("import socket as s\nc=s.socket(s.AF_UNIX)\ntry:\n "
			       "c.connect('\\0%s')\n print('reached')\nexcept OSError as e:\n "
			       "print(e.errno)\n",
			       name);
}

/* An abstract socket has no file: with the host's network only the kernel's scoping keeps it away. */
static void abstract_sockets_of_the_host_are_out_of_reach(void **state)
{
	static const char *const more[] = { "\"network\": {\"mode\": \"allow_all\"}, ",
					    "\"network\": {\"mode\": \"disabled\"}, " };
	Fixture *fixture = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	g_autofree char *name = g_strdup_printf("stella-test-%d", (int)getpid());
	g_autofree char *script = connect_script(name);
	const char *const argv[] = { "python3", "-c", script, NULL };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path + 1, name);
	assert_int_equal(
		bind(listener, (struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
		0);
	assert_int_equal(listen(listener, 5), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(more); i++) {
		fixture_start(fixture, more[i]);
		if (!*exr_session_unenforced(fixture->session)) {
			RAN_AUTO ran = fixture_run(fixture, &(Run){ .argv = argv });
			/* the allowed twin: their own */
			RAN_AUTO own = fixture_sh(
				fixture, "python3 -c \"import socket as s; l=s.socket(s.AF_UNIX); "
					 "l.bind('\\0own'); l.listen(); c=s.socket(s.AF_UNIX); "
					 "c.connect('\\0own'); print('reached')\"; "
					 "mkdir -p a b && : > a/f && mv a/f b/f && ln b/f a/g && "
					 "rm -r a b && echo moved");

			assert_true(strcmp(ran.out, "1\n") == 0 || strcmp(ran.out, "111\n") == 0);
			assert_string_equal(own.out, "reached\nmoved\n");
		}
		fixture_stop(fixture);
	}
	assert_int_equal(close(listener), 0);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_left_after_the_end),
		TEST(end_kills_what_still_runs),
		TEST(a_bad_policy_is_refused_before_anything_starts),
		TEST(a_state_directory_that_cannot_be_is_an_error),
		TEST(a_killed_part_ends_the_session),
		TEST(a_hanging_gateway_holds_up_nobody),
		TEST(a_dead_owner_is_cleaned_up_after),
		TEST(a_killed_owner_leaves_no_process),
		TEST(a_host_that_ignores_its_children_is_no_obstacle),
		TEST(damaged_requests_are_refused),
		TEST(user_zero_inside_has_no_power),
		TEST(abstract_sockets_of_the_host_are_out_of_reach),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
