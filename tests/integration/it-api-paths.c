/* A session's paths for tools in the host agent's own process: what they find is what commands find, and what they make
 * commands can use; before, during and after the session. */
#include "api-fixture.h"

#include "common/io-util.h"
#include "executor/backend.h"
#include "lib/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static StellaSession *session_of(void **state)
{
	return ((ApiFixture *)*state)->session;
}

static void write_through(StellaSession *session, const char *path, const char *text)
{
	g_autoptr(GError) error = NULL;
	int fd = stella_session_open(session, path, O_WRONLY | O_CREAT, 0644, &error);

	if (fd < 0)
		fail_msg("%s: %s", path, error->message);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void assert_reads(StellaSession *session, const char *path, const char *expected)
{
	g_autoptr(GError) error = NULL;
	char text[256] = "";
	int fd = stella_session_open(session, path, O_RDONLY, 0, &error);

	if (fd < 0)
		fail_msg("%s: %s", path, error->message);
	assert_true(read(fd, text, sizeof text - 1) >= 0);
	close(fd);
	assert_string_equal(text, expected);
}

static void assert_refused(StellaSession *session, const char *path, int flags, StellaError code)
{
	g_autoptr(GError) error = NULL;

	assert_int_equal(stella_session_open(session, path, flags, 0644, &error), -1);
	api_assert_error(error, code);
	assert_int_equal(stella_session_open(session, path, flags, 0644, NULL), -1);
}

static void paths_lead_where_they_do_for_commands(void **state)
{
	ApiFixture *fixture = *state;
	StellaSession *session = fixture->session;
	g_autofree char *file = g_build_filename(fixture->dirs->workspace, "f", NULL);
	const char *const same[] = { "f", "/workspace/f", "./x/../f", file };
	g_autoptr(GError) outside = NULL, read_only = NULL;

	api_assert_out(session, "echo made >f", NULL, "");
	for (size_t i = 0; i < G_N_ELEMENTS(same); i++) {
		g_autofree char *found = stella_session_resolve(session, same[i], NULL);
		g_autofree char *to_write = stella_session_resolve_write(session, same[i], NULL);

		assert_string_equal(found, file);
		assert_string_equal(to_write, file);
	}
	assert_reads(session, "f", "made\n");
	assert_null(stella_session_resolve(session, "/outside/x", &outside));
	api_assert_error(outside, STELLA_ERROR_OUTSIDE_MOUNTS);
	assert_null(stella_session_resolve_write(session, "/usr/x", &read_only));
	api_assert_error(read_only, STELLA_ERROR_READ_ONLY);
	assert_int_equal(access("/usr/x", F_OK), -1);
}

static void assert_shared(StellaSession *session, const char *const *places, size_t n_places)
{
	for (size_t i = 0; i < n_places; i++) {
		g_autofree char *ours = g_build_filename(places[i], "ours", NULL);
		g_autofree char *theirs = g_build_filename(places[i], "theirs", NULL);
		g_autofree char *command = g_strdup_printf(
			"cat %s && echo two >>%s && rm %s && umask 077 && echo of it >%s", ours,
			ours, ours, theirs);

		write_through(session, ours, "one\n");
		api_assert_out(session, command, NULL, "one\n");
		assert_refused(session, ours, O_RDONLY, STELLA_ERROR_NOT_FOUND);
		assert_reads(session, theirs, "of it\n");
	}
}

/* What a denial says to who uses tools is what a result says to who runs commands. */
static void assert_writable(ApiFixture *fixture, StellaPolicy *policy, const char *backend,
			    const char *expected)
{
	g_autofree char *ending = g_strconcat("; writable: ", expected, NULL);
	g_autoptr(StellaExecResult) result = NULL;
	g_autofree char *of_commands = NULL;
	g_autoptr(GError) refusal = NULL;

	api_fixture_stop(fixture);
	fixture->session = api_fixture_session_by(backend, policy);
	result = api_exec(fixture->session, "true", NULL);
	of_commands = g_strjoinv(" ", (char **)(uintptr_t)stella_exec_result_get_writable(result));
	assert_string_equal(of_commands, expected);
	assert_int_equal(
		stella_session_open(fixture->session, "/usr/x", O_WRONLY | O_CREAT, 0644, &refusal),
		-1);
	api_assert_error(refusal, STELLA_ERROR_READ_ONLY);
	if (!g_str_has_suffix(refusal->message, ending))
		fail_msg("%s, not %s", refusal->message, ending);
	assert_int_equal(access("/usr/x", F_OK), -1);
	write_through(fixture->session, "/var/tmp/untold", "one\n");
	api_assert_out(fixture->session, "cat /var/tmp/untold", NULL, "one\n");
}

static void places_to_write_are_told_the_same_everywhere(void **state)
{
	ApiFixture *fixture = *state;
	g_autoptr(StellaPolicy) plain = fixture_policy(fixture->dirs, "");
	g_autoptr(StellaPolicy) below = fixture_policy(fixture->dirs, "");
	g_autoptr(StellaPolicy) declared = fixture_policy(fixture->dirs, "");
	g_autofree char *reason = NULL;

	policy_add_mount(below, fixture->dirs->workspace, "/var/tmp/below", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(declared, fixture->dirs->workspace, "/var/tmp", STELLA_MOUNT_READ_WRITE);
	assert_writable(fixture, plain, "fsgate", "/workspace /user /tmp");
	assert_writable(fixture, below, "fsgate", "/workspace /user /tmp");
	assert_writable(fixture, declared, "fsgate", "/workspace /user /var/tmp /tmp");
	if (exr_backend_bwrap.available(&reason))
		assert_writable(fixture, plain, "bwrap", "/workspace /user /tmp");
	else
		print_message("not by bwrap: %s\n", reason);
}

static void files_that_either_side_makes_are_the_others(void **state)
{
	static const char *const places[] = { "/workspace", "/tmp", "/var/tmp", "/user" };
	ApiFixture *fixture = *state;
	g_autoptr(StellaPolicy) policy = fixture_policy(fixture->dirs, "");
	g_autofree char *reason = NULL;

	assert_shared(fixture->session, places, G_N_ELEMENTS(places));
	api_fixture_stop(fixture);
	if (!exr_backend_bwrap.available(&reason)) {
		print_message("not by bwrap: %s\n", reason);
		return;
	}
	fixture->session = api_fixture_session_by("bwrap", policy);
	assert_string_equal(stella_session_get_backend(fixture->session), "bwrap");
	assert_shared(fixture->session, places, G_N_ELEMENTS(places));
}

/* Without a sandbox every path is the host's, for tools as for commands. */
static void on_the_host_paths_are_the_hosts(void **state)
{
	ApiFixture *fixture = *state;
	g_autoptr(StellaPolicy) policy = fixture_policy(fixture->dirs, ""), shown = NULL;
	const char *const places[] = { fixture->dirs->workspace };
	g_autofree char *found = NULL, *working_dir = NULL;
	g_autoptr(StellaExecResult) result = NULL;
	g_autoptr(GError) error = NULL;

	api_fixture_stop(fixture);
	fixture->session = api_fixture_session_by("none", policy);
	working_dir = stella_session_dup_working_dir(fixture->session);
	assert_string_equal(working_dir, fixture->dirs->workspace);
	assert_shared(fixture->session, places, 1);
	api_assert_out(fixture->session, "echo x >f; basename \"$PWD\"", NULL, "workspace\n");
	found = stella_session_resolve(fixture->session, "f", NULL);
	assert_true(g_str_has_prefix(found, fixture->dirs->workspace));
	assert_refused(fixture->session, "/etc/hostname", O_RDONLY, STELLA_ERROR_OUTSIDE_MOUNTS);
	shown = stella_session_dup_policy(fixture->session);
	if (!stella_policy_validate(shown, &error))
		fail_msg("%s", error->message);
	result = api_exec(fixture->session, "true", NULL);
	assert_int_equal(stella_exec_result_get_n_denials(result), -1);
}

static void what_commands_do_not_see_nobody_does(void **state)
{
	ApiFixture *fixture = *state;
	StellaSession *session = fixture->session;
	g_autofree char *secret = g_build_filename(fixture->dirs->dir, "secret", NULL);
	g_autofree char *link = g_build_filename(fixture->dirs->workspace, "link", NULL);
	g_autofree char *out = g_build_filename(fixture->dirs->workspace, "out", NULL);
	g_autofree char *text = NULL, *resolved = NULL;
	g_autoptr(GError) error = NULL;
	int fd;

	assert_true(g_file_set_contents(secret, "secret", -1, NULL));
	assert_int_equal(symlink(secret, link), 0);
	assert_int_equal(symlink("/proc/self/environ", out), 0);
	/* Its text means the view's own /tmp, where there is no such file. */
	assert_refused(session, "link", O_RDONLY, STELLA_ERROR_NOT_FOUND);
	assert_refused(session, "link", O_WRONLY | O_TRUNC, STELLA_ERROR_NOT_FOUND);
	assert_refused(session, "out", O_RDONLY, STELLA_ERROR_SYMLINK);
	resolved = stella_session_resolve(session, "link", &error);
	assert_null(resolved);
	api_assert_error(error, STELLA_ERROR_SYMLINK);
	assert_refused(session, "/etc/shadow", O_RDONLY, STELLA_ERROR_REFUSED); /* hidden */
	assert_refused(session, "/etc/passwd", O_WRONLY, STELLA_ERROR_READ_ONLY);
	fd = stella_session_open(session, "/etc/passwd", O_RDONLY, 0, NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_true(g_file_get_contents(secret, &text, NULL, NULL));
	assert_string_equal(text, "secret");
}

/* A mount that covers the state directory does not show other sessions' private places. */
static void the_state_directory_shows_empty(void **state)
{
	ApiFixture *fixture = *state;
	g_autoptr(StellaPolicy) policy = NULL;
	StellaMount mounts[] = {
		{ fixture->dirs->workspace, "/workspace", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ fixture->dirs->dir, "/all", STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 },
	};
	StellaPolicyOptions options;
	g_autofree char *tmp = NULL;

	api_fixture_stop(fixture);
	stella_policy_options_init(&options);
	options.working_dir = "/workspace";
	options.workspace_root = fixture->dirs->workspace;
	options.mounts = mounts;
	options.n_mounts = 2;
	policy = stella_policy_new(&options);
	fixture->session = api_fixture_session(policy);
	write_through(fixture->session, "f", "x");
	write_through(fixture->session, "/tmp/private", "x");
	assert_reads(fixture->session, "/all/workspace/f", "x");
	tmp = g_strdup_printf("/all/state/sessions/%s/tmp/private",
			      stella_session_get_id(fixture->session));
	assert_refused(fixture->session, tmp, O_RDONLY, STELLA_ERROR_NOT_FOUND);
	assert_reads(fixture->session, "/tmp/private", "x");
}

static void *ask_for_it(void *session)
{
	return stella_session_dup_resolver(session, NULL);
}

static void a_session_has_one_resolver(void **state)
{
	StellaSession *session = session_of(state);
	GThread *threads[8];
	g_autoptr(StellaPathResolver) first = NULL;
	g_autoptr(StellaFiles) files = NULL;
	int fds;

	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		threads[i] = g_thread_new("ask", ask_for_it, session);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
		g_autoptr(StellaPathResolver) resolver = g_thread_join(threads[i]);

		assert_non_null(resolver);
		if (!first)
			first = stella_path_resolver_ref(resolver);
		assert_ptr_equal(resolver, first);
	}
	fds = count_entries("/proc/self/fd");
	files = stella_session_dup_files(session, NULL);
	assert_ptr_equal(stella_files_get_resolver(files), first);
	assert_true(stella_files_write(files, "by-tool", "text", 4, STELLA_FILES_NONE, NULL, NULL));
	api_assert_out(session, "cat by-tool; rm by-tool", NULL, "text");
	assert_int_equal(count_entries("/proc/self/fd"), fds);
}

static void it_works_on_when_the_session_has_ended(void **state)
{
	ApiFixture *fixture = *state;
	StellaSession *session = fixture->session;
	g_autoptr(StellaPathResolver) before = stella_session_dup_resolver(session, NULL);
	g_autoptr(StellaPathResolver) after = NULL;
	g_autoptr(StellaFiles) files = NULL;
	g_autofree char *text = NULL;

	assert_true(stella_session_close(session, NULL, NULL));
	after = stella_session_dup_resolver(session, NULL);
	assert_ptr_equal(before, after);
	write_through(session, "late", "x");
	text = api_host_text(fixture, "late");
	assert_string_equal(text, "x");
	assert_refused(session, "/tmp/late", O_WRONLY | O_CREAT, STELLA_ERROR_NOT_FOUND);
	files = stella_files_new(after);
	api_fixture_stop(fixture);
	/* Nor does it need the object. */
	assert_true(stella_files_append(files, "late", "y", 1, STELLA_FILES_NONE, NULL, NULL));
}

static void it_can_be_asked_for_after_the_end(void **state)
{
	StellaSession *session = session_of(state);

	assert_true(stella_session_close(session, NULL, NULL));
	write_through(session, "late", "x");
	assert_reads(session, "/workspace/late", "x");
	/* What went with the session is no part of it. */
	assert_refused(session, "/tmp/late", O_WRONLY | O_CREAT, STELLA_ERROR_OUTSIDE_MOUNTS);
	assert_refused(session, "/user/late", O_WRONLY | O_CREAT, STELLA_ERROR_OUTSIDE_MOUNTS);
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, api_fixture_set_up, api_fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(paths_lead_where_they_do_for_commands),
		TEST(places_to_write_are_told_the_same_everywhere),
		TEST(files_that_either_side_makes_are_the_others),
		TEST(on_the_host_paths_are_the_hosts),
		TEST(what_commands_do_not_see_nobody_does),
		TEST(the_state_directory_shows_empty),
		TEST(a_session_has_one_resolver),
		TEST(it_works_on_when_the_session_has_ended),
		TEST(it_can_be_asked_for_after_the_end),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
