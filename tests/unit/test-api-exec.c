/* What a host agent gives and gets around one command: options of every version of their struct, results of a host's own,
 * and the codes of errors, in and out. */
#include "common/api-error.h"
#include "common/json.h"
#include "executor/api-exec.h"
#include "executor/api-exr-error.h"
#include "executor/api-options.h"
#include "executor/outcome-internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void every_code_of_a_start_is_one_of_the_librarys(void **state)
{
	static const struct {
		const char *word;
		StellaError code;
	} expected[] = {
		{ "policy-invalid", STELLA_ERROR_POLICY_INVALID },
		{ "policy-unsupported", STELLA_ERROR_POLICY_INCOMPATIBLE },
		{ "policy-incompatible", STELLA_ERROR_POLICY_INCOMPATIBLE },
		{ "request-invalid", STELLA_ERROR_INVALID_ARGUMENT },
		{ "host-unsupported", STELLA_ERROR_HOST_UNSUPPORTED },
		{ "limit-unenforceable", STELLA_ERROR_POLICY_INCOMPATIBLE },
		{ "state-dir-failed", STELLA_ERROR_START_FAILED },
		{ "gateway-failed", STELLA_ERROR_START_FAILED },
		{ "namespace-failed", STELLA_ERROR_START_FAILED },
		{ "rootfs-failed", STELLA_ERROR_START_FAILED },
		{ "setup-failed", STELLA_ERROR_START_FAILED },
		{ "cwd-invalid", STELLA_ERROR_CWD_INVALID },
		{ "program-not-found", STELLA_ERROR_PROGRAM_NOT_FOUND },
		{ "program-not-executable", STELLA_ERROR_PROGRAM_NOT_EXECUTABLE },
		{ "session-closed", STELLA_ERROR_SESSION_CLOSED },
		{ "internal", STELLA_ERROR_FAILED },
	};

	(void)state;
	for (size_t i = 0; exr_error_codes[i]; i++) {
		bool is_expected = false;

		for (size_t k = 0; k < G_N_ELEMENTS(expected); k++) {
			if (strcmp(expected[k].word, exr_error_codes[i]) != 0)
				continue;
			is_expected = true;
			assert_int_equal(api_exr_error_code(exr_error_codes[i]), expected[k].code);
		}
		if (!is_expected)
			fail_msg("%s has no code of the library", exr_error_codes[i]);
	}
	assert_int_equal(api_exr_error_code("no-such-code"), STELLA_ERROR_FAILED);
}

/* A code that comes back from its word; the others, which no start gives, are published as a defect. */
static void every_code_of_the_library_has_a_word_that_is_published(void **state)
{
	(void)state;
	for (int code = 0; code < STELLA_N_ERRORS; code++) {
		const char *word = api_exr_error_word((StellaError)code);
		StellaError back = api_exr_error_code(word);

		assert_true(g_strv_contains(exr_error_codes, word));
		if (back != (StellaError)code)
			assert_string_equal(word, "internal");
	}
	assert_string_equal(api_exr_error_word(STELLA_ERROR_CWD_INVALID), "cwd-invalid");
	assert_string_equal(api_exr_error_word(STELLA_ERROR_START_FAILED), "setup-failed");
}

static void an_error_keeps_what_is_known_of_it(void **state)
{
	ExrError inner = { 0 }, back = { 0 };
	g_autoptr(GError) error = NULL;

	(void)state;
	(void)exr_error_set(&inner, "setup-failed", "mount-proc", EPERM, "a %s", "sentence");
	exr_error_set_hint(&inner, "do something");
	inner.key = g_strdup("limits.memory_bytes");
	api_exr_error_take(&error, &inner);
	assert_null(inner.message);
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_START_FAILED));
	assert_string_equal(error->message, "a sentence");
	assert_string_equal(stella_error_get_stage(error), "mount-proc");
	assert_int_equal(stella_error_get_errno(error), EPERM);
	assert_string_equal(stella_error_get_hint(error), "do something");
	assert_string_equal(stella_error_get_key(error), "limits.memory_bytes");

	api_exr_error_from(error, &back);
	assert_string_equal(back.code, "setup-failed");
	assert_string_equal(back.stage, "mount-proc");
	assert_int_equal(back.errnum, EPERM);
	assert_string_equal(back.key, "limits.memory_bytes");
	assert_string_equal(back.hint, "do something");
	assert_string_equal(back.message, "a sentence");
	exr_error_clear(&back);

	/* Nobody asked: nothing is leaked. */
	(void)exr_error_set(&inner, "internal", "init", EIO, "x");
	api_exr_error_take(NULL, &inner);
	assert_null(inner.message);
}

static void every_errno_has_a_code(void **state)
{
	static const struct {
		int errnum;
		StellaError code;
	} rows[] = {
		{ ENOENT, STELLA_ERROR_NOT_FOUND },
		{ EEXIST, STELLA_ERROR_EXISTS },
		{ EROFS, STELLA_ERROR_READ_ONLY },
		{ ELOOP, STELLA_ERROR_SYMLINK },
		{ EXDEV, STELLA_ERROR_REFUSED },
		{ EFBIG, STELLA_ERROR_TOO_LARGE },
		{ EINVAL, STELLA_ERROR_INVALID_ARGUMENT },
		{ ENAMETOOLONG, STELLA_ERROR_INVALID_ARGUMENT },
		{ ECANCELED, STELLA_ERROR_CANCELED },
		{ ETIMEDOUT, STELLA_ERROR_TIMED_OUT },
		{ ESHUTDOWN, STELLA_ERROR_SESSION_CLOSED },
	};

	(void)state;
	for (int errnum = 1; errnum < 134; errnum++) {
		StellaError expected = STELLA_ERROR_IO;
		g_autoptr(GError) error = NULL;

		for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
			if (rows[i].errnum == errnum)
				expected = rows[i].code;
		assert_int_equal(api_error_code_from_errno(errnum), expected);
		api_error_set_errno(&error, API_ERROR_BY_ERRNO, -errnum, "x");
		assert_true(g_error_matches(error, STELLA_ERROR, (int)expected));
		assert_int_equal(stella_error_get_errno(error), errnum);
	}
}

static void the_inits_give_defaults(void **state)
{
	StellaExecOptions options;
	StellaProcessRequest request;
	StellaExecResultFields fields;

	(void)state;
	memset(&options, 0xff, sizeof options);
	memset(&request, 0xff, sizeof request);
	memset(&fields, 0xff, sizeof fields);
	stella_exec_options_init(&options);
	stella_process_request_init(&request);
	stella_exec_result_fields_init(&fields);
	assert_int_equal(options.size, sizeof options);
	assert_int_equal(request.size, sizeof request);
	assert_int_equal(fields.size, sizeof fields);
	assert_null(options.cwd);
	assert_int_equal(options.timeout_ms, 0);
	assert_null(request.path);
	assert_int_equal(fields.ended, STELLA_ENDED_EXITED);
}

static void assert_refused(const StellaExecOptions *options, const char *named)
{
	g_autoptr(GError) error = NULL;
	StellaExecOptions given;

	assert_false(api_exec_options_read(options, &given, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_INVALID_ARGUMENT));
	if (!strstr(error->message, named))
		fail_msg("\"%s\" does not name %s", error->message, named);
	assert_null(strstr(error->message, "secret"));
}

static void options_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		const char *entry;
		bool is_variable, is_name;
	} rows[] = {
		{ "A=secret", true, false },  { "A=", true, false },
		{ "A==secret", true, false }, { "A", false, true },
		{ "=secret", false, false },  { "", false, false },
		{ "=", false, false },
	};
	StellaExecOptions options, given;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		const char *const list[] = { "OK=1", rows[i].entry, NULL };
		const char *const names[] = { "OK", rows[i].entry, NULL };

		stella_exec_options_init(&options);
		options.env = list;
		if (rows[i].is_variable)
			assert_true(api_exec_options_read(&options, &given, NULL));
		else
			assert_refused(&options, "environment");
		options.env = NULL;
		options.unset_env = names;
		if (rows[i].is_name)
			assert_true(api_exec_options_read(&options, &given, NULL));
		else
			assert_refused(&options, "environment");
	}
	stella_exec_options_init(&options);
	options.timeout_ms = STELLA_NO_TIMEOUT;
	assert_true(api_exec_options_read(&options, &given, NULL));
	options.timeout_ms = -2;
	assert_refused(&options, "timeout_ms");
	options.timeout_ms = G_MAXINT64;
	assert_true(api_exec_options_read(&options, &given, NULL));
	options.kill_grace_ms = -1;
	assert_refused(&options, "kill_grace_ms");
	stella_exec_options_init(&options);
	options.input_size = 1;
	assert_refused(&options, "input_size");
	options.input = "x";
	assert_true(api_exec_options_read(&options, &given, NULL));
	assert_true(api_exec_options_read(NULL, &given, NULL));
	assert_int_equal(given.size, sizeof given);
}

/* Memory as long as a caller's struct and no longer, so that a sanitizer sees what is read behind it. */
static void *of_size(gsize allocated, gsize size)
{
	void *options = g_malloc0(allocated);

	memcpy(options, &size, sizeof size);
	return options;
}

/* What a caller does who knows another struct than this compiler. */
static void put(void *options, gsize offset, const void *value, gsize size)
{
	memcpy((char *)options + offset, value, size);
}

static void a_struct_of_another_version_is_read_as_far_as_it_goes(void **state)
{
	const gsize sizes[] = { 1, 7, 12, sizeof(StellaExecOptions) - 4, 4104, G_MAXSIZE };
	gsize shorter = offsetof(StellaExecOptions, unset_env);
	StellaExecOptions given;
	g_autofree void *older = of_size(shorter, shorter);
	g_autofree void *newer =
		of_size(sizeof(StellaExecOptions) + 16, sizeof(StellaExecOptions) + 16);
	const char *cwd = "/workspace/d";
	const gint64 timeout_ms = 5;
	const gsize none = 0;

	(void)state;
	put(older, offsetof(StellaExecOptions, cwd), &cwd, sizeof cwd);
	assert_true(api_exec_options_read(older, &given, NULL));
	assert_string_equal(given.cwd, "/workspace/d");
	assert_null(given.unset_env);
	assert_int_equal(given.size, sizeof given);

	put(newer, offsetof(StellaExecOptions, timeout_ms), &timeout_ms, sizeof timeout_ms);
	assert_true(api_exec_options_read(newer, &given, NULL));
	assert_int_equal(given.timeout_ms, 5);
	assert_int_equal(given.size, sizeof given);
	/* It asks for something that nobody here knows. */
	put(newer, sizeof(StellaExecOptions) + 8, "x", 1);
	assert_refused(newer, "StellaExecOptions");

	for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
		g_autofree void *wrong = of_size(sizeof(StellaExecOptions), sizes[i]);

		assert_refused(wrong, "StellaExecOptions");
	}
	put(older, 0, &none, sizeof none);
	assert_refused(older, "StellaExecOptions");
}

static void a_request_needs_a_program(void **state)
{
	g_autoptr(GError) error = NULL;
	StellaProcessRequest request, given;

	(void)state;
	stella_process_request_init(&request);
	assert_false(api_process_request_read(&request, &given, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_INVALID_ARGUMENT));
	request.path = "";
	assert_false(api_process_request_read(&request, &given, NULL));
	request.path = "cat";
	assert_true(api_process_request_read(&request, &given, NULL));
	request.timeout_ms = -3;
	assert_false(api_process_request_read(&request, &given, NULL));
	request.timeout_ms = 0;
	request.size = 3;
	assert_false(api_process_request_read(&request, &given, NULL));
}

static void a_copy_shares_nothing(void **state)
{
	char cwd[] = "d", variable[] = "A=1", name[] = "B", input[] = "in", path[] = "p";
	const char *env[] = { variable, NULL }, *names[] = { name, NULL };
	StellaExecOptions options;
	StellaProcessRequest request;
	StellaExecOptions *copy;
	StellaProcessRequest *request_copy;

	(void)state;
	stella_exec_options_init(&options);
	options.cwd = cwd;
	options.env = env;
	options.unset_env = names;
	options.input = input;
	options.input_size = 2;
	copy = api_exec_options_copy(&options);
	stella_process_request_init(&request);
	request.path = path;
	request.args = names;
	request_copy = api_process_request_copy(&request);
	cwd[0] = variable[0] = name[0] = input[0] = path[0] = 'z';
	env[0] = names[0] = NULL;
	assert_string_equal(copy->cwd, "d");
	assert_string_equal(copy->env[0], "A=1");
	assert_string_equal(copy->unset_env[0], "B");
	assert_memory_equal(copy->input, "in", 2);
	assert_string_equal(request_copy->path, "p");
	assert_string_equal(request_copy->args[0], "B");
	assert_null(request_copy->env);
	api_exec_options_free(copy);
	api_process_request_free(request_copy);
	api_exec_options_free(NULL);
	api_process_request_free(NULL);
}

static StellaExecResult *result_of(StellaEnded ended, int number, const GError *error)
{
	StellaExecResultFields fields;

	stella_exec_result_fields_init(&fields);
	fields.ended = ended;
	fields.exit_code = fields.signal = number;
	fields.error = error;
	return stella_exec_result_new(&fields);
}

static void what_a_host_knows_of_a_result_is_in_it_and_no_more(void **state)
{
	static const char out[] = { 'a', 0, (char)0xff };
	StellaExecResultFields fields;
	g_autoptr(StellaExecResult) result = NULL;
	StellaDenial denial = { .op = "untouched" };
	StellaChange change = { .path = "untouched" };
	gsize size = 7;

	(void)state;
	stella_exec_result_fields_init(&fields);
	fields.exit_code = 3;
	fields.stdout_data = out;
	fields.stdout_size = sizeof out;
	fields.duration_ms = 12;
	result = stella_exec_result_new(&fields);
	assert_int_equal(stella_exec_result_get_ended(result), STELLA_ENDED_EXITED);
	assert_int_equal(stella_exec_result_get_exit_code(result), 3);
	assert_int_equal(stella_exec_result_get_signal(result), 0);
	assert_null(stella_exec_result_get_error(result));
	assert_memory_equal(stella_exec_result_get_stdout(result, &size), out, sizeof out);
	assert_int_equal(size, sizeof out);
	assert_int_equal(stella_exec_result_get_stdout_bytes(result), sizeof out);
	assert_false(stella_exec_result_get_stdout_truncated(result));
	assert_null(stella_exec_result_get_stdout_spill(result));
	assert_string_equal(stella_exec_result_get_stderr(result, NULL), "");
	assert_int_equal(stella_exec_result_get_stderr_bytes(result), 0);
	assert_false(stella_exec_result_get_stderr_truncated(result));
	assert_null(stella_exec_result_get_stderr_spill(result));
	assert_int_equal(stella_exec_result_get_duration_ms(result), 12);
	assert_int_equal(stella_exec_result_get_cpu_ms(result), -1);
	assert_int_equal(stella_exec_result_get_max_rss_bytes(result), -1);
	assert_int_equal(stella_exec_result_get_left_over_killed(result), -1);
	assert_null(stella_exec_result_get_limits_hit(result)[0]);
	assert_null(stella_exec_result_get_limits_unenforced(result)[0]);
	assert_null(stella_exec_result_get_writable(result)[0]);
	assert_int_equal(stella_exec_result_get_n_denials(result), -1);
	assert_false(stella_exec_result_get_denial(result, 0, &denial));
	assert_string_equal(denial.op, "untouched");
	assert_int_equal(stella_exec_result_get_denials_dropped(result), 0);
	assert_int_equal(stella_exec_result_get_n_changes(result), -1);
	assert_false(stella_exec_result_get_change(result, 0, &change));
	assert_string_equal(change.path, "untouched");
	assert_int_equal(stella_exec_result_get_changes_dropped(result), 0);
	assert_false(stella_exec_result_get_changes_incomplete(result));
}

static void assert_check(StellaEnded ended, int number, StellaError code, const char *said)
{
	g_autoptr(StellaExecResult) result = result_of(ended, number, NULL);
	g_autoptr(GError) error = NULL;

	assert_false(stella_exec_result_check(result, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, (int)code));
	if (!strstr(error->message, said))
		fail_msg("\"%s\" does not say %s", error->message, said);
	assert_false(stella_exec_result_check(result, NULL));
}

static void a_result_is_checked_by_how_it_ended(void **state)
{
	g_autoptr(StellaExecResult) good = result_of(STELLA_ENDED_EXITED, 0, NULL);
	g_autoptr(StellaExecResult) killed = result_of(STELLA_ENDED_SIGNALED, 9, NULL);
	g_autoptr(StellaExecResult) late = result_of(STELLA_ENDED_TIMED_OUT, 9, NULL);

	(void)state;
	assert_true(stella_exec_result_check(good, NULL));
	assert_check(STELLA_ENDED_EXITED, 3, STELLA_ERROR_FAILED, "status 3");
	assert_check(STELLA_ENDED_SIGNALED, 9, STELLA_ERROR_FAILED, "SIGKILL");
	assert_check(STELLA_ENDED_SIGNALED, 40, STELLA_ERROR_FAILED, "signal 40");
	assert_check(STELLA_ENDED_TIMED_OUT, 0, STELLA_ERROR_TIMED_OUT, "time");
	assert_check(STELLA_ENDED_CANCELED, 0, STELLA_ERROR_CANCELED, "canceled");
	assert_check(STELLA_ENDED_START_FAILED, 0, STELLA_ERROR_START_FAILED, "started");
	assert_int_equal(stella_exec_result_get_exit_code(killed), 137);
	assert_int_equal(stella_exec_result_get_signal(killed), 9);
	assert_int_equal(stella_exec_result_get_exit_code(late), -1);
	assert_int_equal(stella_exec_result_get_signal(late), 0);
}

static void the_error_that_a_host_gives_is_the_results(void **state)
{
	g_autoptr(GError) error = NULL, foreign = NULL, checked = NULL;
	g_autoptr(StellaExecResult) result = NULL, other = NULL, running = NULL;
	g_autofree char *json = NULL, *other_json = NULL;

	(void)state;
	api_error_set_errno(&error, STELLA_ERROR_PROGRAM_NOT_FOUND, ENOENT, "no \"x\"");
	api_error_details(error)->stage = g_strdup("exec");
	result = result_of(STELLA_ENDED_START_FAILED, 0, error);
	g_clear_error(&error);
	assert_true(g_error_matches(stella_exec_result_get_error(result), STELLA_ERROR,
				    STELLA_ERROR_PROGRAM_NOT_FOUND));
	assert_false(stella_exec_result_check(result, &checked));
	assert_string_equal(stella_error_get_stage(checked), "exec");
	json = stella_exec_result_to_json(result);
	assert_non_null(strstr(json, "\"code\": \"program-not-found\", \"stage\": \"exec\", "
				     "\"errno\": \"ENOENT\""));

	/* Of another domain, and with what does not belong into one line of JSON. */
	foreign = g_error_new_literal(G_FILE_ERROR, 1, "a\nb");
	other = result_of(STELLA_ENDED_START_FAILED, 0, foreign);
	assert_true(g_error_matches(stella_exec_result_get_error(other), G_FILE_ERROR, 1));
	other_json = stella_exec_result_to_json(other);
	assert_non_null(strstr(other_json, "\"code\": \"setup-failed\""));
	assert_null(strchr(other_json, '\n'));
	/* Whatever did not fail has no error. */
	running = result_of(STELLA_ENDED_CANCELED, 0, foreign);
	assert_null(stella_exec_result_get_error(running));
}

/* Of every way to end: what a host knows least of fits the published schema too. */
static void its_json_fits_the_schema(void **state)
{
	g_autofree char *schema = g_strdup(g_getenv("STELLA_RESULT_SCHEMA"));
	g_autofree char *checker = NULL, *file = NULL;
	g_autoptr(GString) lines = g_string_new(NULL);
	char *argv[] = { (char[]){ "python3" }, NULL, schema, NULL, NULL };
	int fd, status = -1;

	(void)state;
	assert_non_null(schema);
	checker = g_build_filename(schema, "../../tests/api/check-schema.py", NULL);
	argv[1] = g_canonicalize_filename(checker, NULL);
	for (int ended = 0; ended <= STELLA_ENDED_START_FAILED; ended++) {
		StellaExecResult *result = result_of((StellaEnded)ended, 9, NULL);
		char *json = stella_exec_result_to_json(result);

		g_string_append_printf(lines, "%s\n", json);
		g_free(json);
		stella_exec_result_unref(result);
	}
	fd = g_file_open_tmp("stella-result-XXXXXX", &file, NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_true(g_file_set_contents(file, lines->str, -1, NULL));
	argv[3] = file;
	assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
				 &status, NULL));
	g_free(argv[1]);
	assert_int_equal(unlink(file), 0);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

static void its_json_has_every_key(void **state)
{
	static const char *const keys[] = {
		"version",
		"session_id",
		"exec_id",
		"ended",
		"exit_code",
		"signal",
		"stdout",
		"stdout_encoding",
		"stdout_bytes",
		"stdout_truncated",
		"stdout_spill",
		"stderr",
		"stderr_encoding",
		"stderr_bytes",
		"stderr_truncated",
		"stderr_spill",
		"duration_ms",
		"cpu_ms",
		"max_rss_bytes",
		"denials",
		"denials_dropped",
		"writable",
		"changes",
		"changes_dropped",
		"left_over_killed",
		"limits_hit",
		"limits_unenforced",
		"error",
	};
	g_autoptr(StellaExecResult) result = result_of(STELLA_ENDED_SIGNALED, 15, NULL);
	g_autofree char *json = stella_exec_result_to_json(result);
	g_autoptr(JsonNode) node = json_from_string(json, -1);
	JsonObject *object;

	(void)state;
	assert_true(JSON_NODE_HOLDS_OBJECT(node));
	object = json_node_get_object(node);
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		if (!json_object_get_member(object, keys[i]))
			fail_msg("%s is missing", keys[i]);
	assert_non_null(strstr(json, "\"signal\": \"SIGTERM\""));
	assert_non_null(strstr(json, "\"denials\": null"));
}

static void *read_texts(void *data)
{
	StellaExecResult *result = stella_exec_result_ref(data);
	char *json = stella_exec_result_to_json(result);
	const char *text = stella_exec_result_get_stdout(result, NULL);

	g_free(json);
	stella_exec_result_unref(result);
	return (void *)(uintptr_t)text;
}

/* An output whose end is kept lies in memory in another order than it is read. */
static void a_cut_output_reads_the_same_in_every_thread(void **state)
{
	ExrOutcome *outcome = exr_outcome_new(NULL);
	ExrOwnedOutcome *owned = (ExrOwnedOutcome *)outcome;
	g_autoptr(StellaExecResult) result = NULL;
	GThread *threads[4];
	gsize size;

	(void)state;
	owned->out = outcome->result.out = output_buffer_new_with_tail(8, 4);
	output_buffer_write(owned->out, "abcdefghijklmnopqrstuvwxyz", 26);
	result = api_exec_result_new(outcome);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		threads[i] = g_thread_new("read", read_texts, result);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		assert_ptr_equal(g_thread_join(threads[i]),
				 stella_exec_result_get_stdout(result, NULL));
	assert_string_equal(stella_exec_result_get_stdout(result, &size),
			    "abcd\n[stella: 18 bytes left out]\nwxyz");
	assert_int_equal(size, strlen(stella_exec_result_get_stdout(result, NULL)));
	assert_true(stella_exec_result_get_stdout_truncated(result));
	assert_int_equal(stella_exec_result_get_stdout_bytes(result), 26);
	assert_string_equal(stella_exec_result_get_limits_hit(result)[0], "output_bytes");
	assert_null(stella_exec_result_get_limits_hit(result)[1]);
}

static void a_result_is_a_boxed_value(void **state)
{
	GValue value = G_VALUE_INIT;
	StellaExecResult *result = result_of(STELLA_ENDED_EXITED, 0, NULL);

	(void)state;
	g_value_init(&value, STELLA_TYPE_EXEC_RESULT);
	g_value_set_boxed(&value, result);
	stella_exec_result_unref(result);
	assert_ptr_equal(g_value_get_boxed(&value), result);
	assert_int_equal(stella_exec_result_get_exit_code(g_value_get_boxed(&value)), 0);
	g_value_unset(&value);
	stella_exec_result_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_of_a_start_is_one_of_the_librarys),
		cmocka_unit_test(every_code_of_the_library_has_a_word_that_is_published),
		cmocka_unit_test(an_error_keeps_what_is_known_of_it),
		cmocka_unit_test(every_errno_has_a_code),
		cmocka_unit_test(the_inits_give_defaults),
		cmocka_unit_test(options_that_make_no_sense_are_refused),
		cmocka_unit_test(a_struct_of_another_version_is_read_as_far_as_it_goes),
		cmocka_unit_test(a_request_needs_a_program),
		cmocka_unit_test(a_copy_shares_nothing),
		cmocka_unit_test(what_a_host_knows_of_a_result_is_in_it_and_no_more),
		cmocka_unit_test(a_result_is_checked_by_how_it_ended),
		cmocka_unit_test(the_error_that_a_host_gives_is_the_results),
		cmocka_unit_test(its_json_fits_the_schema),
		cmocka_unit_test(its_json_has_every_key),
		cmocka_unit_test(a_cut_output_reads_the_same_in_every_thread),
		cmocka_unit_test(a_result_is_a_boxed_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
