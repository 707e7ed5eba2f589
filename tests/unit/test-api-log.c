/* api-log: a host's own log writer is given each event under its name, with each of its fields, by value. */
#include "stella/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The last record, key to value, and how many there were. */
static GHashTable *last;
static GLogLevelFlags last_level;
static unsigned int n_records;

static GLogWriterOutput keep(GLogLevelFlags level, const GLogField *fields, gsize count,
			     gpointer data)
{
	(void)data;
	g_hash_table_remove_all(last);
	for (gsize i = 0; i < count; i++)
		g_hash_table_replace(last, g_strdup(fields[i].key), g_strdup(fields[i].value));
	last_level = level;
	n_records++;
	return G_LOG_WRITER_HANDLED;
}

static int set_up(void **state)
{
	(void)state;
	last = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	n_records = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	g_hash_table_unref(last);
	return 0;
}

static void assert_field(const char *key, const char *value)
{
	const char *found = g_hash_table_lookup(last, key);

	if (!found)
		fail_msg("no field %s", key);
	assert_string_equal(found, value);
}

/* What every record has, and that it has n_fields of its own. */
static void assert_event(const char *event, const char *priority, unsigned int n_fields)
{
	assert_int_equal(n_records, 1);
	assert_field("GLIB_DOMAIN", "stella-sandbox");
	assert_field("STELLA_EVENT", event);
	assert_field("PRIORITY", priority);
	/* GLib ends the process at its own error level, and hosts may do so at warnings. */
	assert_true(last_level == G_LOG_LEVEL_INFO || last_level == G_LOG_LEVEL_MESSAGE);
	assert_int_equal(g_hash_table_size(last), 4 + n_fields);
}

static StellaPolicy *new_policy(void)
{
	static const char *const env[] = { "API_TOKEN=hunter2", NULL };
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = "/workspace/src";
	options.workspace_root = "/srv/ws";
	options.network_mode = STELLA_NETWORK_DISABLED;
	options.env = env;
	return stella_policy_new(&options);
}

static void a_session_that_was_made_is_told(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();

	(void)state;
	stella_log_session_created("sandbox-1", "mine", policy);
	assert_event("sandbox.session_created", "6", 4);
	assert_field("STELLA_SESSION_ID", "sandbox-1");
	assert_field("STELLA_BACKEND", "mine");
	assert_field("STELLA_NETWORK_MODE", "disabled");
	assert_field("STELLA_WORKING_DIR", "/workspace/src");
	assert_field("MESSAGE", "sandbox.session_created session_id=sandbox-1 backend=mine "
				"network_mode=disabled working_dir=/workspace/src");
}

static void a_session_that_was_closed_is_told(void **state)
{
	(void)state;
	stella_log_session_closed("sandbox-1", "mine", "ended");
	assert_event("sandbox.session_closed", "6", 3);
	assert_field("STELLA_SESSION_ID", "sandbox-1");
	assert_field("STELLA_BACKEND", "mine");
	assert_field("STELLA_REASON", "ended");
}

static void backends_that_were_tried_are_told(void **state)
{
	static const char *const attempted[] = { "fsgate", "bwrap", NULL };
	g_autoptr(StellaPolicy) policy = new_policy();

	(void)state;
	stella_log_unsupported_backend(policy, attempted, "neither can");
	assert_event("sandbox.unsupported_backend", "3", 4);
	assert_field("STELLA_ATTEMPTED_BACKENDS", "fsgate, bwrap");
	assert_field("STELLA_REASON", "neither can");
	assert_field("STELLA_NETWORK_MODE", "disabled");
	assert_field("STELLA_WORKING_DIR", "/workspace/src");
}

static void a_denial_is_told(void **state)
{
	(void)state;
	stella_log_policy_denied("sandbox-1", "open", "/ro/a\nb", "read-only-mount");
	assert_event("sandbox.policy_denied", "6", 4);
	assert_field("STELLA_SESSION_ID", "sandbox-1");
	assert_field("STELLA_OPERATION", "open");
	assert_field("STELLA_PATH", "/ro/a\\x0ab");
	assert_field("STELLA_REASON", "read-only-mount");
}

/* An error is a record like the others also where a host has made warnings fatal. */
static void an_error_is_not_fatal(void **state)
{
	GLogLevelFlags before = g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);

	(void)state;
	stella_log_unsupported_backend(NULL, NULL, "x");
	g_log_set_always_fatal(before);
	assert_event("sandbox.unsupported_backend", "3", 4);
}

static void what_is_not_known_is_empty(void **state)
{
	(void)state;
	stella_log_session_created(NULL, NULL, NULL);
	assert_event("sandbox.session_created", "6", 4);
	assert_field("STELLA_SESSION_ID", "");
	assert_field("STELLA_BACKEND", "");
	assert_field("STELLA_NETWORK_MODE", "");
	assert_field("STELLA_WORKING_DIR", "");
	n_records = 0;
	stella_log_session_closed(NULL, NULL, NULL);
	assert_event("sandbox.session_closed", "6", 3);
	assert_field("STELLA_REASON", "");
	n_records = 0;
	stella_log_unsupported_backend(NULL, NULL, NULL);
	assert_event("sandbox.unsupported_backend", "3", 4);
	assert_field("STELLA_ATTEMPTED_BACKENDS", "");
	n_records = 0;
	stella_log_policy_denied(NULL, NULL, NULL, NULL);
	assert_event("sandbox.policy_denied", "6", 4);
	assert_field("STELLA_PATH", "");
}

static void no_variable_is_told(void **state)
{
	static const char *const attempted[] = { "fsgate", NULL };
	g_autoptr(StellaPolicy) policy = new_policy();
	GHashTableIter iter;
	gpointer value;

	(void)state;
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			stella_log_session_created("sandbox-1", "mine", policy);
		else
			stella_log_unsupported_backend(policy, attempted, "no");
		g_hash_table_iter_init(&iter, last);
		while (g_hash_table_iter_next(&iter, NULL, &value)) {
			assert_null(strstr(value, "hunter2"));
			assert_null(strstr(value, "API_TOKEN"));
		}
	}
	assert_int_equal(n_records, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_session_that_was_made_is_told),
		CASE(a_session_that_was_closed_is_told),
		CASE(backends_that_were_tried_are_told),
		CASE(a_denial_is_told),
		CASE(an_error_is_not_fatal),
		CASE(what_is_not_known_is_empty),
		CASE(no_variable_is_told),
	};

	g_log_set_writer_func(keep, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
