/* The files of outputs in a session that goes on: they are there for its later commands, and go with it. */
#include "executor/session-exec.h"

#include "lib/preflight.h"
#include "session-fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int make(void **state)
{
	Fixture *fixture = fixture_new();

	fixture_start(
		fixture,
		"\"limits\": {\"output_bytes\": 1000, \"tail_bytes\": 300, \"spill\": true},");
	*state = fixture;
	return 0;
}

static int clear(void **state)
{
	fixture_free(*state);
	return 0;
}

static ExrOutcome *run_script(const Fixture *fixture, const char *script, bool spill_lasts)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	ExrExecOptions options;
	ExrOutcome *outcome;

	exr_exec_options_init(&options);
	options.argv = argv;
	options.timeout_ms = 20000;
	options.spill_lasts = spill_lasts;
	outcome = exr_session_exec(fixture->session, &options);
	if (outcome->result.error)
		fail_msg("%s: %s", outcome->result.error->stage, outcome->result.error->message);
	return outcome;
}

/* The host's side of a file in the session's own /tmp. */
static char *host_path(const Fixture *fixture, const char *spill)
{
	return g_build_filename(fixture->state, "sessions", exr_session_id(fixture->session), spill,
				NULL);
}

static void a_later_command_reads_the_file(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(ExrOutcome) first =
		run_script(fixture, "seq 10000; seq 20000 >&2; touch /tmp/mine", false);
	g_autoptr(ExrOutcome) later = NULL;
	g_autofree char *script = NULL;
	g_autofree char *file = NULL;
	struct stat st, mine;

	assert_int_equal(first->result.exit_code, 0);
	assert_non_null(first->result.out_spill);
	assert_non_null(first->result.err_spill);
	assert_string_not_equal(first->result.out_spill, first->result.err_spill);
	file = host_path(fixture, first->result.out_spill);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_size, output_buffer_total(first->result.out));
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	/* It is the command's user's, like what the command makes itself. */
	g_free(file);
	file = host_path(fixture, "tmp/mine");
	assert_int_equal(stat(file, &mine), 0);
	assert_int_equal(st.st_uid, mine.st_uid);
	assert_int_equal(st.st_gid, mine.st_gid);

	script = g_strdup_printf("seq 10000 | cmp - %s && seq 20000 | cmp - %s && sed -n 5000p %s "
				 "&& rm %s",
				 first->result.out_spill, first->result.err_spill,
				 first->result.out_spill, first->result.err_spill);
	later = run_script(fixture, script, false);
	assert_string_equal(output_buffer_data(later->result.out, NULL), "5000\n");
	assert_string_equal(output_buffer_data(later->result.err, NULL), "");
	assert_int_equal(later->result.exit_code, 0);
	assert_null(later->result.out_spill);
}

static void what_fits_makes_no_file(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *tmp = host_path(fixture, "tmp");
	g_autoptr(ExrOutcome) exact = run_script(fixture, "head -c 1000 /dev/zero", false);
	g_autoptr(ExrOutcome) where_it_lasts = run_script(fixture, "head -c 1001 /dev/zero", true);
	g_autoptr(ExrOutcome) more = NULL;

	assert_false(output_buffer_truncated(exact->result.out));
	assert_null(exact->result.out_spill);
	assert_true(output_buffer_truncated(where_it_lasts->result.out));
	assert_null(where_it_lasts->result.out_spill);
	assert_int_equal(count_entries(tmp), 0);
	more = run_script(fixture, "head -c 1001 /dev/zero", false);
	assert_non_null(more->result.out_spill);
	assert_int_equal(count_entries(tmp), 1);
}

/* What there was until then is there, also after a kill. */
static void a_command_that_is_killed_leaves_its_file(void **state)
{
	Fixture *fixture = *state;
	const char *const argv[] = { "sh", "-c", "seq 1000; sleep 100", NULL };
	g_autoptr(ExrOutcome) outcome = NULL;
	g_autofree char *file = NULL;
	ExrExecOptions options;
	struct stat st;

	exr_exec_options_init(&options);
	options.argv = argv;
	options.timeout_ms = 1500;
	outcome = exr_session_exec(fixture->session, &options);
	assert_int_equal(outcome->result.ended, EXR_ENDED_TIMED_OUT);
	assert_non_null(outcome->result.out_spill);
	file = host_path(fixture, outcome->result.out_spill);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_size, 3893);
}

static void *run_one(void *data)
{
	return run_script(data, "head -c 500000 /dev/zero | tr '\\0' x", false);
}

static void many_commands_have_files_of_their_own(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(GHashTable) paths = g_hash_table_new(g_str_hash, g_str_equal);
	ExrOutcome *outcomes[8];
	GThread *threads[8];

	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		threads[i] = g_thread_new("run", run_one, fixture);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
		g_autofree char *file = NULL;
		struct stat st;

		outcomes[i] = g_thread_join(threads[i]);
		assert_non_null(outcomes[i]->result.out_spill);
		assert_true(g_hash_table_add(paths,
					     (gpointer)(uintptr_t)outcomes[i]->result.out_spill));
		file = host_path(fixture, outcomes[i]->result.out_spill);
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_size, 500000);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(outcomes); i++)
		exr_outcome_free(outcomes[i]);
}

static void files_go_with_the_session(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *sessions = g_build_filename(fixture->state, "sessions", NULL);
	g_autoptr(ExrOutcome) outcome = run_script(fixture, "seq 10000", false);

	assert_non_null(outcome->result.out_spill);
	fixture_stop(fixture);
	assert_int_equal(count_entries(sessions), 0);
	/* The result outlives it. */
	assert_true(g_str_has_prefix(outcome->result.out_spill, "/tmp/stella-stdout-"));
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(a_later_command_reads_the_file),
		TEST(what_fits_makes_no_file),
		TEST(a_command_that_is_killed_leaves_its_file),
		TEST(many_commands_have_files_of_their_own),
		TEST(files_go_with_the_session),
	};
	int status = preflight_require(needs);

	return status != 0 ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
