/* log, session-log: what is in a record, and that a flood of refusals is a handful of records. */
#include "common/limits.h"
#include "common/log.h"
#include "executor/session-log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A host's own writer: what it is given, one "KEY=value;..." a record. */
static GPtrArray *records;

static GLogWriterOutput keep(GLogLevelFlags level, const GLogField *fields, gsize count,
			     gpointer data)
{
	GString *record = g_string_new(NULL);

	(void)data;
	g_string_append_printf(record, "%d;", (int)level);
	for (gsize i = 0; i < count; i++)
		g_string_append_printf(record, "%s=%s;", fields[i].key,
				       (const char *)fields[i].value);
	g_ptr_array_add(records, g_string_free(record, FALSE));
	return G_LOG_WRITER_HANDLED;
}

static int set_up(void **state)
{
	(void)state;
	records = g_ptr_array_new_with_free_func(g_free);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	g_ptr_array_unref(records);
	return 0;
}

static const char *record(guint index)
{
	assert_true(index < records->len);
	return records->pdata[index];
}

static void a_record_has_its_event_and_fields(void **state)
{
	const LogField fields[] = { { "session_id", "sandbox-1" },
				    { "path", "/a\nb\xff" },
				    { "absent", NULL } };

	(void)state;
	log_event(LOG_INFO, "sandbox.x", fields, 3);
	assert_int_equal(records->len, 1);
	assert_non_null(strstr(record(0), "STELLA_EVENT=sandbox.x;"));
	assert_non_null(strstr(record(0), "STELLA_SESSION_ID=sandbox-1;"));
	assert_non_null(strstr(record(0), "STELLA_PATH=/a\\x0ab\\xff;"));
	assert_non_null(strstr(record(0), "GLIB_DOMAIN=stella-sandbox;"));
	assert_non_null(strstr(record(0), "PRIORITY=6;"));
	assert_null(strstr(record(0), "ABSENT"));
	assert_null(strchr(record(0), '\n'));
}

/* GLib aborts at its own error level, and at others when it is told so. */
static void an_error_is_not_fatal(void **state)
{
	(void)state;
	g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
	log_event(LOG_ERROR, "sandbox.x", NULL, 0);
	assert_non_null(strstr(record(0), "PRIORITY=3;"));
}

static void a_long_value_is_cut(void **state)
{
	g_autofree char *value = g_strnfill(10 * LOG_VALUE_BYTES, 'x');
	const LogField field = { "path", value };

	(void)state;
	log_event(LOG_INFO, "sandbox.x", &field, 1);
	assert_true(strlen(record(0)) < 3 * LOG_VALUE_BYTES);
}

static void denial_free(void *data)
{
	g_free(((ExrDenial *)data)->path);
	g_free(data);
}

static GPtrArray *denials(guint count, uint64_t each)
{
	GPtrArray *rows = g_ptr_array_new_with_free_func(denial_free);
	static char op[] = "open", reason[] = "read-only-mount", name[] = "EROFS";

	for (guint i = 0; i < count; i++) {
		ExrDenial *denial = g_new0(ExrDenial, 1);

		*denial = (ExrDenial){ .op = op,
				       .path = g_strdup_printf("/ro/%u", i),
				       .reason = reason,
				       .errnum_name = name,
				       .count = each };
		g_ptr_array_add(rows, denial);
	}
	return rows;
}

static void few_denials_are_told_each(void **state)
{
	ExrObserved observed = { .denials = denials(3, 7) };

	(void)state;
	exr_log_denials("sandbox-1", &observed);
	assert_int_equal(records->len, 3);
	assert_non_null(strstr(record(0), "STELLA_OPERATION=open;STELLA_PATH=/ro/0;"
					  "STELLA_REASON=read-only-mount;STELLA_COUNT=7;"));
	g_ptr_array_unref(observed.denials);
}

static void many_denials_are_a_few_records_and_a_number(void **state)
{
	ExrObserved observed = { .denials = denials(256, 4000), .denials_dropped = 24000 };

	(void)state;
	exr_log_denials("sandbox-1", &observed);
	assert_int_equal(records->len, LIMIT_DENIALS_LOGGED + 1);
	assert_non_null(strstr(record(0), "STELLA_PATH=/ro/0;"));
	/* (256 - 16) * 4000 + 24000 */
	assert_non_null(strstr(record(LIMIT_DENIALS_LOGGED), "STELLA_OMITTED=984000;"));
	g_ptr_array_unref(observed.denials);
}

static void what_was_only_recorded_or_is_not_known_is_no_denial(void **state)
{
	ExrObserved observed = { .denials = denials(1, 1) };
	ExrObserved unknown = { 0 };

	(void)state;
	((ExrDenial *)observed.denials->pdata[0])->errnum_name = NULL;
	exr_log_denials("sandbox-1", &observed);
	exr_log_denials("sandbox-1", &unknown);
	assert_int_equal(records->len, 0);
	g_ptr_array_unref(observed.denials);
}

static void only_what_a_host_or_a_build_lacks_is_unsupported(void **state)
{
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	ExrError error = { 0 };

	(void)state;
	(void)exr_error_set(&error, "policy-invalid", "policy", EINVAL, "x");
	exr_log_unsupported(policy, "fsgate", &error);
	assert_int_equal(records->len, 0);
	exr_error_clear(&error);
	(void)exr_error_set(&error, "host-unsupported", "fuse-device", ENOENT, "no device");
	exr_log_unsupported(policy, "fsgate", &error);
	assert_non_null(strstr(record(0),
			       "STELLA_EVENT=sandbox.unsupported_backend;"
			       "STELLA_ATTEMPTED_BACKENDS=fsgate;STELLA_REASON=no device;"
			       "STELLA_NETWORK_MODE=allow_all;"));
	exr_error_clear(&error);
}

static void formats_have_names(void **state)
{
	(void)state;
	assert_int_equal(log_format_find("text"), LOG_FORMAT_TEXT);
	assert_int_equal(log_format_find("json"), LOG_FORMAT_JSON);
	assert_int_equal(log_format_find("xml"), -EINVAL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_record_has_its_event_and_fields),
		CASE(an_error_is_not_fatal),
		CASE(a_long_value_is_cut),
		CASE(few_denials_are_told_each),
		CASE(many_denials_are_a_few_records_and_a_number),
		CASE(what_was_only_recorded_or_is_not_known_is_no_denial),
		CASE(only_what_a_host_or_a_build_lacks_is_unsupported),
		CASE(formats_have_names),
	};

	g_log_set_writer_func(keep, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
