/* Real sessions for tests; see session-fixture.h. */
#include "session-fixture.h"

#include "common/io-util.h"
#include "common/policy-json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

Fixture *fixture_new(void)
{
	Fixture *fixture = g_new0(Fixture, 1);

	fixture->dir = g_dir_make_tmp("stella-session-XXXXXX", NULL);
	assert_non_null(fixture->dir);
	fixture->workspace = g_build_filename(fixture->dir, "workspace", NULL);
	fixture->state = g_build_filename(fixture->dir, "state", NULL);
	assert_int_equal(mkdir(fixture->workspace, 0755), 0);
	g_setenv("STELLA_STATE_DIR", fixture->state, TRUE);
	return fixture;
}

void fixture_free(Fixture *fixture)
{
	fixture_stop(fixture);
	assert_int_equal(io_remove_tree(AT_FDCWD, fixture->dir), 0);
	g_free(fixture->dir);
	g_free(fixture->workspace);
	g_free(fixture->state);
	g_free(fixture);
}

StellaPolicy *fixture_policy(const Fixture *fixture, const char *more)
{
	g_autofree char *text = g_strdup_printf(
		"{\"version\": 1, %s \"filesystem\": {\"working_dir\": \"%s\", "
		"\"mounts\": [{\"host_path\": \"%s\", \"view_path\": \"/workspace\", "
		"\"access\": \"rw\"}]}}",
		more, fixture->working_dir ? fixture->working_dir : "/workspace",
		fixture->workspace);
	g_autofree char *message = NULL;
	StellaPolicy *policy = NULL;

	if (policy_json_parse(text, strlen(text), &policy, &message) < 0)
		fail_msg("%s", message);
	return policy;
}

void fixture_start(Fixture *fixture, const char *more)
{
	g_autoptr(StellaPolicy) policy = fixture_policy(fixture, more);
	ExrSessionConfig config = { .policy = policy, .temporary_user = true };
	ExrError error = { 0 };

	if (exr_session_new(&config, &fixture->session, &error) < 0)
		fail_msg("%s (%s): %s", error.code, error.stage, error.message);
}

void fixture_stop(Fixture *fixture)
{
	exr_session_free(g_steal_pointer(&fixture->session));
}

int fixture_set_up(void **state)
{
	*state = fixture_new();
	fixture_start(*state, "");
	return 0;
}

int fixture_tear_down(void **state)
{
	fixture_free(*state);
	return 0;
}

/* Takes what is there. false at the end. */
static bool take(int fd, GString *text)
{
	char data[4096];
	ssize_t size = read(fd, data, sizeof data);

	if (size > 0)
		g_string_append_len(text, data, size);
	return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

static void collect(ExrExec *exec, const Run *run, GString *out, GString *err)
{
	gint64 deadline = g_get_monotonic_time() + PATIENCE_MS * G_TIME_SPAN_MILLISECOND;
	bool told = false;

	for (;;) {
		struct pollfd p[] = {
			{ .fd = exr_exec_stdout_fd(exec), .events = POLLIN },
			{ .fd = exr_exec_stderr_fd(exec), .events = POLLIN },
			{ .fd = exr_exec_end_fd(exec), .events = POLLIN },
		};

		assert_true(poll(p, 3, PATIENCE_MS) > 0);
		assert_true(g_get_monotonic_time() < deadline);
		if (p[0].revents && !take(p[0].fd, out))
			exr_exec_close_stdout(exec);
		if (p[1].revents && !take(p[1].fd, err))
			exr_exec_close_stderr(exec);
		if (out->len > 0 && run->at_output && !told) {
			told = true;
			run->at_output(exec);
		}
		if (p[2].revents && exr_exec_stdout_fd(exec) < 0 && exr_exec_stderr_fd(exec) < 0)
			return;
	}
}

Ran fixture_run(Fixture *fixture, const Run *run)
{
	const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "A=b c", NULL };
	ExrRequest request = {
		.argv = run->argv,
		.env = env,
		.cwd = run->cwd ? run->cwd : "/workspace",
		.stdin_null = !run->input,
	};
	GString *out = g_string_new(NULL), *err = g_string_new(NULL);
	ExrError error = { 0 };
	ExrExec *exec = NULL;
	Ran ran;

	if (exr_exec_start(fixture->session, &request, &exec, &error) < 0)
		fail_msg("%s (%s): %s", error.code, error.stage, error.message);
	if (run->input)
		assert_int_equal(
			io_write_all(exr_exec_stdin_fd(exec), run->input, strlen(run->input)), 0);
	exr_exec_close_stdin(exec);
	collect(exec, run, out, err);
	ran.result = exr_exec_finish(exec, &ran.end);
	ran.out = g_string_free(out, FALSE);
	ran.err = g_string_free(err, FALSE);
	return ran;
}

Ran fixture_sh(Fixture *fixture, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	Run run = { .argv = argv };

	return fixture_run(fixture, &run);
}

void fixture_expect(Fixture *fixture, const char *script, const char *output)
{
	RAN_AUTO ran = fixture_sh(fixture, script);

	assert_string_equal(ran.out, output);
	assert_int_equal(ran.end.exit_code, 0);
}

void fixture_warm_up(Fixture *fixture)
{
	for (int i = 0; i < 2; i++)
		fixture_expect(fixture, ":", "");
}

void ran_clear(Ran *ran)
{
	exr_end_clear(&ran->end);
	g_free(ran->out);
	g_free(ran->err);
}

int count_processes(const char *marker)
{
	g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
	const char *name;
	int count = 0;

	assert_non_null(dir);
	while ((name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename("/proc", name, "cmdline", NULL);
		g_autofree char *text = NULL;
		gsize size = 0;

		if (!g_ascii_isdigit(name[0]) || !g_file_get_contents(path, &text, &size, NULL))
			continue;
		for (gsize i = 0; i + 1 < size; i++)
			if (text[i] == '\0')
				text[i] = ' ';
		count += strstr(text, marker) != NULL;
	}
	return count;
}

int count_entries(const char *path)
{
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	int count = 0;

	assert_non_null(dir);
	while (g_dir_read_name(dir))
		count++;
	return count;
}

int count_mounts(void)
{
	g_autofree char *text = NULL;
	int count = 0;

	assert_true(g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL));
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		count++;
	return count;
}

static char *children(void)
{
	g_autofree char *path = g_strdup_printf("/proc/self/task/%d/children", (int)getpid());
	char *text = NULL;

	assert_true(g_file_get_contents(path, &text, NULL, NULL));
	return g_strstrip(text);
}

int count_children(void)
{
	g_autofree char *text = children();
	g_auto(GStrv) pids = g_strsplit(text, " ", -1);

	return *text ? (int)g_strv_length(pids) : 0;
}

pid_t find_child(const char *name)
{
	g_autofree char *text = children();
	g_auto(GStrv) pids = g_strsplit(text, " ", -1);

	for (char **pid = pids; *pid; pid++) {
		g_autofree char *path = g_strdup_printf("/proc/%s/comm", *pid);
		g_autofree char *comm = NULL;

		if (!g_file_get_contents(path, &comm, NULL, NULL))
			continue;
		/* The kernel keeps 15 bytes of a name. */
		if (strncmp(g_strstrip(comm), name, 15) == 0)
			return (pid_t)atoi(*pid);
	}
	return 0;
}
