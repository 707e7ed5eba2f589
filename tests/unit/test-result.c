/* result: the JSON object and the exit status. What is written is read back by a JSON parser, and its
 * exact text is compared where a parser would not see the difference. */
#include "executor/result.h"
#include "executor/session-limits.h"

#include "common/json.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const all_keys[] = {
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
	"changes_incomplete",
	"left_over_killed",
	"limits_hit",
	"limits_unenforced",
	"error",
};

static ExrResult exited(int code)
{
	return (ExrResult){ .session_id = "sandbox-0123456789abcdef",
			    .exec_id = 1,
			    .ended = EXR_ENDED_EXITED,
			    .exit_code = code,
			    .duration_ms = 12,
			    .cpu_ms = -1,
			    .max_rss_bytes = -1 };
}

static OutputBuffer *buffer_of(uint64_t limit, const void *data, size_t size)
{
	OutputBuffer *buffer = output_buffer_new(limit);

	output_buffer_write(buffer, data, size);
	return buffer;
}

/* The object as a parser sees it; ours takes no NUL, not even an escaped one. */
static JsonNode *parse(const char *text)
{
	g_auto(GStrv) parts = g_strsplit(text, "\\u0000", -1);
	g_autofree char *without_nul = g_strjoinv("\\u0001", parts);
	JsonNode *node = json_from_string(without_nul, -1);

	assert_non_null(node);
	return node;
}

/* The text that follows `"key": `, up to the next key. */
static char *raw_value(const GString *json, const char *key)
{
	g_autofree char *mark = g_strdup_printf("\"%s\": ", key);
	const char *from = strstr(json->str, mark), *to;

	assert_non_null(from);
	from += strlen(mark);
	to = strstr(from, ", \"");
	return to ? g_strndup(from, (gsize)(to - from)) : g_strdup(from);
}

static void assert_raw(const GString *json, const char *key, const char *expected)
{
	g_autofree char *value = raw_value(json, key);

	assert_string_equal(value, expected);
}

static void every_key_is_there_once_in_its_order(void **state)
{
	ExrError error = { 0 };
	ExrResult results[] = { exited(0),
				{ .ended = EXR_ENDED_START_FAILED,
				  .cpu_ms = -1,
				  .max_rss_bytes = -1,
				  .error = &error } };

	(void)exr_error_set(&error, "gateway-failed", "gateway", ENOENT, "no \"/dev/fuse\"\n");
	for (size_t i = 0; i < G_N_ELEMENTS(results); i++) {
		g_autoptr(GString) json = exr_result_to_json(&results[i]);
		g_autoptr(JsonNode) node = parse(json->str);
		g_autoptr(GList) members = json_object_get_members(json_node_get_object(node));
		size_t n = 0;

		for (GList *member = members; member; member = member->next, n++) {
			assert_true(n < G_N_ELEMENTS(all_keys));
			assert_string_equal(member->data, all_keys[n]);
		}
		assert_int_equal(n, G_N_ELEMENTS(all_keys));
		assert_null(strchr(json->str, '\n'));
	}
	exr_error_clear(&error);
	(void)state;
}

static void what_is_not_known_is_null(void **state)
{
	static const char *const writable[] = { "/tmp", "/work\xffspace", NULL };
	static const char *const nothing[] = { NULL };
	ExrResult result = exited(3);
	g_autoptr(GString) json = exr_result_to_json(&result);
	g_autoptr(GString) known = NULL;

	assert_raw(json, "exit_code", "3");
	assert_raw(json, "signal", "null");
	assert_raw(json, "cpu_ms", "null");
	assert_raw(json, "max_rss_bytes", "null");
	assert_raw(json, "denials", "null");
	assert_raw(json, "changes", "null");
	assert_raw(json, "writable", "null");
	assert_raw(json, "limits_unenforced", "null");
	assert_raw(json, "error", "null}");
	result.cpu_ms = 0;
	result.max_rss_bytes = 4194304;
	result.writable = writable;
	result.limits_unenforced = nothing;
	known = exr_result_to_json(&result);
	assert_raw(known, "cpu_ms", "0");
	assert_raw(known, "limits_unenforced", "[]");
	assert_raw(known, "max_rss_bytes", "4194304");
	assert_non_null(strstr(known->str, "[\"/tmp\", {\"b64\": \"L3dvcmv/c3BhY2U=\"}]"));
	(void)state;
}

static void output_is_text_or_base64(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		uint64_t limit;
		const char *value, *encoding;
	} cases[] = {
		{ "", 0, 9, "\"\"", "\"utf-8\"" },
		{ "out\n", 4, 9, "\"out\\n\"", "\"utf-8\"" },
		{ "\"\\/\t\r", 5, 9, "\"\\\"\\\\/\\t\\r\"", "\"utf-8\"" },
		{ "a\0b\0", 4, 9, "\"a\\u0000b\\u0000\"", "\"utf-8\"" },
		{ "\0", 1, 9, "\"\\u0000\"", "\"utf-8\"" },
		{ "\x1b[31m\x7f", 6, 9, "\"\\u001b[31m\\u007f\"", "\"utf-8\"" },
		{ "\xc2\x9b\xc2\xa0", 4, 9, "\"\\u009b\xc2\xa0\"", "\"utf-8\"" },
		{ "\xe2\x82\xac", 3, 9, "\"\xe2\x82\xac\"", "\"utf-8\"" },
		{ "\xf0\x9f\x98\x80", 4, 9, "\"\xf0\x9f\x98\x80\"", "\"utf-8\"" },
		{ "\xff", 1, 9, "\"/w==\"", "\"base64\"" },
		{ "a\0\xff", 3, 9, "\"YQD/\"", "\"base64\"" },
		{ "\xed\xa0\x80", 3, 9, "\"7aCA\"", "\"base64\"" },
		{ "\xc0\x80", 2, 9, "\"wIA=\"", "\"base64\"" },
		/* Not cut, so not complete either. */
		{ "a\xe2\x82", 3, 9, "\"YeKC\"", "\"base64\"" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(OutputBuffer) buffer =
			buffer_of(cases[i].limit, cases[i].bytes, cases[i].size);
		ExrResult result = exited(0);
		g_autoptr(GString) json = NULL;
		g_autoptr(JsonNode) node = NULL;

		result.err = buffer;
		json = exr_result_to_json(&result);
		node = parse(json->str);
		assert_raw(json, "stderr", cases[i].value);
		assert_raw(json, "stderr_encoding", cases[i].encoding);
		assert_raw(json, "stderr_truncated", "false");
		assert_int_equal(
			json_object_get_int_member(json_node_get_object(node), "stderr_bytes"),
			cases[i].size);
		assert_raw(json, "stdout", "\"\"");
	}
}

static void lossy_text_replaces_what_is_no_character(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *value, *encoding;
	} cases[] = {
		{ "out\0\n", 5, "\"out\\u0000\\n\"", "\"utf-8\"" },
		{ "\xff", 1, "\"\xef\xbf\xbd\"", "\"utf-8-lossy\"" },
		{ "a\0\xff\0\"\x1b", 6, "\"a\\u0000\xef\xbf\xbd\\u0000\\\"\\u001b\"",
		  "\"utf-8-lossy\"" },
		/* One for each byte of a surrogate. */
		{ "\xed\xa0\x80!", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd!\"",
		  "\"utf-8-lossy\"" },
		/* At the end: the stream's own end, or the cut, which leaves no half character. */
		{ "a\xe2\x82", 3, "\"a\xef\xbf\xbd\xef\xbf\xbd\"", "\"utf-8-lossy\"" },
		{ "abcdefg\xe2\x82\xac", 10,
		  "\"abcdefg\\n[stella: output truncated, exceeded 9B]\\n\"", "\"utf-8\"" },
		{ "\xff"
		  "bcdefg\xe2\x82\xac",
		  10,
		  "\"\xef\xbf\xbd"
		  "bcdefg\\n[stella: output truncated, exceeded 9B]\\n\"",
		  "\"utf-8-lossy\"" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(OutputBuffer) buffer = buffer_of(9, cases[i].bytes, cases[i].size);
		ExrResult result = exited(0);
		g_autoptr(GString) json = NULL;
		g_autoptr(JsonNode) node = NULL;

		result.out = buffer;
		result.lossy_text = true;
		json = exr_result_to_json(&result);
		node = parse(json->str);
		assert_raw(json, "stdout", cases[i].value);
		assert_raw(json, "stdout_encoding", cases[i].encoding);
		assert_raw(json, "stderr_encoding", "\"utf-8\"");
	}
}

static void beginning_and_end_are_told_apart(void **state)
{
	static const struct {
		const char *bytes;
		const char *spill, *value, *encoding;
	} cases[] = {
		{ "abcdefghij", NULL, "\"ab\\n[stella: 6 bytes left out]\\nij\"", "\"utf-8\"" },
		{ "abcdefghij", "/tmp/stella-stdout-1.txt",
		  "\"ab\\n[stella: 6 bytes left out, whole output in /tmp/stella-stdout-1.txt]"
		  "\\nij\"",
		  "\"utf-8\"" },
		{ "a\xc3\xa9zzz\xc3\xa9i", NULL, "\"a\\n[stella: 7 bytes left out]\\ni\"",
		  "\"utf-8\"" },
		/* The last two of the four are the end. */
		{ "a\xff"
		  "cdefghij",
		  "/tmp/x", "\"Yf9pag==\"", "\"base64\"" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(OutputBuffer) buffer = output_buffer_new_with_tail(4, 2);
		ExrResult result = exited(0);
		g_autoptr(GString) json = NULL;
		g_autofree char *spill =
			cases[i].spill ? g_strdup_printf("\"%s\"", cases[i].spill) : NULL;

		output_buffer_write(buffer, cases[i].bytes, strlen(cases[i].bytes));
		result.err = buffer;
		result.err_spill = cases[i].spill;
		json = exr_result_to_json(&result);
		assert_raw(json, "stderr", cases[i].value);
		assert_raw(json, "stderr_encoding", cases[i].encoding);
		assert_raw(json, "stderr_truncated", "true");
		assert_raw(json, "stderr_spill", spill ? spill : "null");
		assert_raw(json, "stdout_spill", "null");
	}
}

static void a_cut_is_marked_in_text_and_not_in_base64(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *value, *encoding;
	} cases[] = {
		{ "abcde", 5, "\"abcd\\n[stella: output truncated, exceeded 4B]\\n\"",
		  "\"utf-8\"" },
		/* The cap is in the middle of the second character. */
		{ "ab\xe2\x82\xac", 5, "\"ab\\n[stella: output truncated, exceeded 4B]\\n\"",
		  "\"utf-8\"" },
		{ "\xff\xff\xff\xff\xff", 5, "\"/////w==\"", "\"base64\"" },
		/* No character is cut, this is no text at all: all that was kept is given. */
		{ "\xff\x61\x61\xe2\x82\xac", 6, "\"/2Fh4g==\"", "\"base64\"" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(OutputBuffer) buffer = buffer_of(4, cases[i].bytes, cases[i].size);
		ExrResult result = exited(0);
		g_autoptr(GString) json = NULL;
		g_autofree char *bytes = g_strdup_printf("%zu", cases[i].size);

		result.out = buffer;
		json = exr_result_to_json(&result);
		/* The marker holds ", " but no quote, so the value is found whole. */
		assert_raw(json, "stdout", cases[i].value);
		assert_raw(json, "stdout_encoding", cases[i].encoding);
		assert_raw(json, "stdout_truncated", "true");
		assert_raw(json, "stdout_bytes", bytes);
		assert_raw(json, "limits_hit", "[\"output_bytes\"]");
	}
}

static void limits_of_the_session_are_named(void **state)
{
	static const struct {
		unsigned int hit;
		const char *names;
	} cases[] = { { 0, "\"limits_hit\": []," },
		      { EXR_LIMIT_MEMORY, "\"limits_hit\": [\"memory_bytes\"]," },
		      { EXR_LIMIT_PROCESSES, "\"limits_hit\": [\"processes\"]," },
		      { EXR_LIMIT_MEMORY | EXR_LIMIT_PROCESSES,
			"\"limits_hit\": [\"memory_bytes\", \"processes\"]," } };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		ExrResult result = exited(0);
		g_autoptr(GString) json = NULL;

		result.limits_hit = cases[i].hit;
		json = exr_result_to_json(&result);
		assert_non_null(strstr(json->str, cases[i].names));
	}
}

static void signals_have_names_and_statuses(void **state)
{
	static const struct {
		int sig;
		const char *name;
	} cases[] = { { SIGKILL, "\"SIGKILL\"" },
		      { SIGSEGV, "\"SIGSEGV\"" },
		      { 34, "\"SIGRTMIN+0\"" } };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		ExrResult result = exited(0);
		g_autoptr(GString) json = NULL;
		g_autofree char *code = g_strdup_printf("%d", 128 + cases[i].sig);

		result.ended = EXR_ENDED_SIGNALED;
		result.signal = cases[i].sig;
		json = exr_result_to_json(&result);
		assert_raw(json, "ended", "\"signaled\"");
		assert_raw(json, "signal", cases[i].name);
		assert_raw(json, "exit_code", code);
		assert_int_equal(exr_result_exit_status(&result), 128 + cases[i].sig);
	}
}

static void ends_of_ours_have_no_exit_code(void **state)
{
	ExrResult timed_out = exited(0), canceled = exited(0);
	g_autoptr(GString) timed_out_json = NULL, canceled_json = NULL;

	timed_out.ended = EXR_ENDED_TIMED_OUT;
	canceled.ended = EXR_ENDED_CANCELED;
	canceled.signal = SIGTERM;
	timed_out_json = exr_result_to_json(&timed_out);
	canceled_json = exr_result_to_json(&canceled);
	assert_raw(timed_out_json, "ended", "\"timed_out\"");
	assert_raw(timed_out_json, "exit_code", "null");
	assert_raw(canceled_json, "ended", "\"canceled\"");
	assert_raw(canceled_json, "exit_code", "null");
	assert_raw(canceled_json, "signal", "null");
	assert_int_equal(exr_result_exit_status(&timed_out), 124);
	assert_int_equal(exr_result_exit_status(&canceled), 128 + SIGTERM);
	(void)state;
}

static void a_failed_start_says_why(void **state)
{
	static const struct {
		const char *code;
		int status;
	} cases[] = { { "program-not-found", 127 },
		      { "program-not-executable", 126 },
		      { "cwd-invalid", 125 },
		      { "policy-invalid", 125 } };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		ExrError error = { 0 };
		ExrResult result = exited(0);
		g_autoptr(GString) json = NULL;
		g_autoptr(JsonNode) node = NULL;
		JsonObject *object;

		(void)exr_error_set(&error, cases[i].code, "exec", ENOENT, "\"x\"\n\x1b: no");
		result.ended = EXR_ENDED_START_FAILED;
		result.error = &error;
		json = exr_result_to_json(&result);
		node = parse(json->str);
		object = json_object_get_object_member(json_node_get_object(node), "error");
		assert_string_equal(json_object_get_string_member(object, "code"), cases[i].code);
		assert_string_equal(json_object_get_string_member(object, "stage"), "exec");
		assert_string_equal(json_object_get_string_member(object, "errno"), "ENOENT");
		assert_true(json_object_get_null_member(object, "key"));
		assert_true(json_object_get_null_member(object, "hint"));
		assert_string_equal(json_object_get_string_member(object, "message"),
				    "\"x\"\n\x1b: no");
		assert_raw(json, "exit_code", "null");
		assert_int_equal(exr_result_exit_status(&result), cases[i].status);
		exr_error_clear(&error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_there_once_in_its_order),
		cmocka_unit_test(what_is_not_known_is_null),
		cmocka_unit_test(output_is_text_or_base64),
		cmocka_unit_test(lossy_text_replaces_what_is_no_character),
		cmocka_unit_test(beginning_and_end_are_told_apart),
		cmocka_unit_test(a_cut_is_marked_in_text_and_not_in_base64),
		cmocka_unit_test(limits_of_the_session_are_named),
		cmocka_unit_test(signals_have_names_and_statuses),
		cmocka_unit_test(ends_of_ours_have_no_exit_code),
		cmocka_unit_test(a_failed_start_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
