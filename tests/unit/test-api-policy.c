/* stella/policy.h, error.h and output-buffer.h as a host agent uses them. */
#include "common/api-error.h"
#include "stella/stella.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static StellaPolicy *new_policy(const StellaMount *mounts, gsize n_mounts)
{
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = "/srv/a1";
	options.mounts = mounts;
	options.n_mounts = n_mounts;
	return stella_policy_new(&options);
}

static void assert_invalid(const StellaPolicy *policy, const char *key, const char *message)
{
	g_autoptr(GError) error = NULL;

	assert_false(stella_policy_validate(policy, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_POLICY_INVALID));
	assert_string_equal(stella_error_get_key(error), key);
	if (!strstr(error->message, message))
		fail_msg("%s: expected %s", error->message, message);
}

static void options_left_alone_give_the_defaults(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy(NULL, 0);
	g_autoptr(GError) error = NULL;
	g_auto(GStrv) env = stella_policy_dup_env(policy);
	StellaLimits limits;

	(void)state;
	assert_true(stella_policy_validate(policy, &error));
	assert_null(error);
	assert_string_equal(stella_policy_get_workspace_root(policy), "/srv/a1");
	assert_string_equal(stella_policy_get_temp_dir_host(policy), "");
	assert_int_equal(stella_policy_get_network_mode(policy), STELLA_NETWORK_ALLOW_ALL);
	assert_int_equal(stella_policy_get_process_uid(policy), 1000);
	assert_int_equal(stella_policy_get_timeout_ms(policy), 0);
	assert_int_equal(stella_policy_get_n_mounts(policy), 0);
	assert_int_equal(g_strv_length(env), 0);
	stella_policy_get_limits(policy, &limits);
	assert_true(limits.output_bytes == STELLA_MAX_EXEC_OUTPUT_BYTES);
	assert_int_equal(limits.open_files, 1024);
	assert_int_equal(limits.cpu_seconds, 300);
}

static void every_option_arrives(void **state)
{
	const StellaMount mounts[] = {
		{ "/srv//a1/./ws/", "/workspace/", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ "/srv/skills", "/opt/stella/agent-skills", STELLA_MOUNT_READ_ONLY, TRUE, 0, 0 },
	};
	static const char *const env[] = { "A=1", "B=x=y", NULL };
	g_autoptr(StellaPolicy) policy = NULL, again = NULL;
	g_autoptr(GError) error = NULL;
	g_autofree char *text = NULL, *text_again = NULL;
	g_auto(GStrv) got_env = NULL;
	StellaPolicyOptions options;
	StellaMount mount;

	(void)state;
	stella_policy_options_init(&options);
	options.workspace_root = "/srv/a1/ws";
	options.working_dir = "/workspace";
	options.stella_home = "/opt/home";
	options.user_tools_dir = "/opt/home/users/u1/.mise-tools";
	options.temp_dir_host = "/srv/tmp";
	options.mounts = mounts;
	options.n_mounts = 2;
	options.runtime = STELLA_RUNTIME_NONE;
	options.symlinks = STELLA_SYMLINKS_DENY;
	options.cache = STELLA_CACHE_STRICT;
	options.ownership = STELLA_OWNERSHIP_HOST;
	options.network_mode = STELLA_NETWORK_DISABLED;
	options.network_timeout_ms = 5;
	options.env = env;
	options.inherit_env = TRUE;
	options.env_override = TRUE;
	options.timeout_ms = 1500;
	options.process_user = "root";
	options.limits.processes = 7;
	policy = stella_policy_new(&options);
	assert_true(stella_policy_validate(policy, &error));
	assert_true(stella_policy_get_mount(policy, 0, &mount));
	assert_string_equal(mount.host_path, "/srv/a1/ws");
	assert_string_equal(mount.view_path, "/workspace");
	assert_int_equal(mount.access, STELLA_MOUNT_READ_WRITE);
	assert_true(stella_policy_get_mount(policy, 1, &mount));
	assert_true(mount.optional);
	assert_false(stella_policy_get_mount(policy, 2, &mount));
	assert_int_equal(stella_policy_get_runtime(policy), STELLA_RUNTIME_NONE);
	assert_int_equal(stella_policy_get_symlinks(policy), STELLA_SYMLINKS_DENY);
	assert_int_equal(stella_policy_get_cache(policy), STELLA_CACHE_STRICT);
	assert_int_equal(stella_policy_get_ownership(policy), STELLA_OWNERSHIP_HOST);
	assert_int_equal(stella_policy_get_network_mode(policy), STELLA_NETWORK_DISABLED);
	assert_int_equal(stella_policy_get_network_timeout_ms(policy), 5);
	assert_int_equal(stella_policy_get_timeout_ms(policy), 1500);
	assert_int_equal(stella_policy_get_process_uid(policy), 0);
	assert_true(stella_policy_get_inherit_env(policy));
	assert_true(stella_policy_get_env_override(policy));
	got_env = stella_policy_dup_env(policy);
	assert_true(g_strv_equal((const char *const *)got_env, env));
	/* and all of it survives the way through text */
	text = stella_policy_to_json(policy, FALSE);
	again = stella_policy_new_from_json(text, -1, &error);
	assert_non_null(again);
	text_again = stella_policy_to_json(again, FALSE);
	assert_string_equal(text, text_again);
}

static void a_structure_that_is_wrong_names_its_key(void **state)
{
	const StellaMount relative = { "srv", "/workspace", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 };
	const StellaMount nothing = { NULL, NULL, STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 };
	const StellaMount reserved = { "/srv", "/proc/x", STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 };
	const StellaMount access = { "/srv", "/x", (StellaMountAccess)77, FALSE, 0, 0 };
	const StellaMount skills = {
		"/srv", STELLA_MOUNT_AGENT_SKILLS, STELLA_MOUNT_READ_WRITE, FALSE, 0, 0
	};
	const struct {
		const StellaMount *mount;
		const char *key, *message;
	} rows[] = {
		{ &relative, "filesystem.mounts[0].host_path", "absolute" },
		{ &nothing, "filesystem.mounts[0].host_path", "empty" },
		{ &reserved, "filesystem.mounts[0].view_path", "/proc" },
		{ &access, "filesystem.mounts[0].access", "77" },
		{ &skills, "filesystem.mounts[0].access", "always read-only" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autoptr(StellaPolicy) policy = new_policy(rows[i].mount, 1);
		/* no state of it, however wrong, may be deadly to look at */
		g_autofree char *text = stella_policy_to_json(policy, TRUE);

		assert_non_null(text);
		assert_invalid(policy, rows[i].key, rows[i].message);
	}
}

static void options_that_are_wrong_name_their_key(void **state)
{
	static const char *const no_name[] = { "=x", NULL }, *const no_equals[] = { "x", NULL },
				 *const twice[] = { "A=1", "A=2", NULL };
	const struct {
		const char *working_dir, *user;
		const char *const *env;
		int network, symlinks;
		gint64 timeout_ms;
		const char *key, *message;
	} rows[] = {
		{ "", NULL, NULL, 0, 0, 0, "filesystem.working_dir", "required" },
		{ "rel", NULL, NULL, 0, 0, 0, "filesystem.working_dir", "absolute" },
		{ "/w", "nobody-has-this", NULL, 0, 0, 0, "process.user", "no user" },
		{ "/w", "-1", NULL, 0, 0, 0, "process.user", "no user" },
		{ "/w", NULL, no_name, 0, 0, 0, "env", "empty" },
		{ "/w", NULL, no_equals, 0, 0, 0, "env", "empty" },
		{ "/w", NULL, twice, 0, 0, 0, "env", "twice" },
		{ "/w", NULL, NULL, 9, 0, 0, "network.mode", "9" },
		{ "/w", NULL, NULL, 0, -3, 0, "filesystem.symlinks", "-3" },
		{ "/w", NULL, NULL, 0, 0, -1, "timeout_ms", "-1" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autoptr(StellaPolicy) policy = NULL;
		StellaPolicyOptions options;

		stella_policy_options_init(&options);
		options.working_dir = rows[i].working_dir;
		options.process_user = rows[i].user;
		options.env = rows[i].env;
		options.network_mode = (StellaNetworkMode)rows[i].network;
		options.symlinks = (StellaSymlinks)rows[i].symlinks;
		options.timeout_ms = rows[i].timeout_ms;
		policy = stella_policy_new(&options);
		assert_invalid(policy, rows[i].key, rows[i].message);
	}
}

static void a_caller_of_an_older_header_says_nothing_of_what_came_later(void **state)
{
	g_autoptr(StellaPolicy) policy = NULL;
	StellaPolicyOptions options;

	(void)state;
	memset(&options, 0xff, sizeof options);
	options.size = G_STRUCT_OFFSET(StellaPolicyOptions, stella_home);
	options.workspace_root = NULL;
	options.working_dir = "/w";
	policy = stella_policy_new(&options);
	assert_true(stella_policy_validate(policy, NULL));
	assert_string_equal(stella_policy_get_stella_home(policy), "");
}

/* What a newer header has, and says, cannot be done here: leaving it out could be weaker than what was asked for. */
static void a_caller_of_a_newer_header_is_not_misread(void **state)
{
	struct {
		StellaPolicyOptions known;
		gint64 later;
	} options = { .later = 0 };
	const gsize sizes[] = { 0, 4, sizeof options.known - 1, 1 << 20 };

	(void)state;
	stella_policy_options_init(&options.known);
	options.known.working_dir = "/w";
	options.known.size = sizeof options;
	for (int later = 0; later < 2; later++) {
		g_autoptr(StellaPolicy) policy = NULL;
		g_autoptr(GError) error = NULL;

		options.later = later;
		policy = stella_policy_new(&options.known);
		assert_int_equal(stella_policy_validate(policy, &error), later == 0);
		assert_int_equal(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_POLICY_INVALID),
				 later != 0);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
		g_autoptr(StellaPolicy) policy = NULL;

		options.known.size = sizes[i];
		policy = stella_policy_new(&options.known);
		assert_false(stella_policy_validate(policy, NULL));
	}
}

static void text_is_counted_and_judged(void **state)
{
	static const char good[] =
		"{\"version\": 1, \"filesystem\": {\"working_dir\": \"/w\"}}and more";
	static const char nul[] =
		"{\"version\": 1, \"filesystem\": {\"working_dir\": \"/w\\u0000x\"}}";
	static const char raw_nul[] =
		"{\"version\": 1,\0 \"filesystem\": {\"working_dir\": \"/w\"}}";
	g_autoptr(GError) error = NULL;
	g_autoptr(StellaPolicy) policy = stella_policy_new_from_json(
		good, (gssize)(strlen(good) - strlen("and more")), &error);

	(void)state;
	assert_non_null(policy);
	assert_null(stella_policy_new_from_json(good, -1, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_POLICY_INVALID));
	g_clear_error(&error);
	assert_null(stella_policy_new_from_json(nul, -1, &error));
	assert_non_null(error);
	g_clear_error(&error);
	assert_null(stella_policy_new_from_json(raw_nul, sizeof raw_nul - 1, &error));
	assert_non_null(error);
	g_clear_error(&error);
	assert_null(stella_policy_new_from_json("", 0, &error));
	assert_non_null(error);
	/* who does not want to know need not */
	assert_null(stella_policy_new_from_json("[]", -1, NULL));
	g_clear_error(&error);
	assert_null(
		stella_policy_new_from_json("{\"version\": 1, \"filesystem\": {\"working_dir\": "
					    "\"/w\", \"cache\": \"fast\"}}",
					    -1, &error));
	assert_string_equal(stella_error_get_key(error), "filesystem.cache");
}

static void every_code_goes_in_and_comes_out(void **state)
{
	g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

	(void)state;
	for (int code = 0; code < STELLA_N_ERRORS; code++) {
		const char *name = stella_error_code_name((StellaError)code);
		g_autoptr(GError) error = NULL;

		assert_non_null(name);
		assert_true(g_hash_table_add(names, (gpointer)(uintptr_t)name));
		api_error_set(&error, (StellaError)code, "%s", name);
		assert_true(g_error_matches(error, STELLA_ERROR, code));
		assert_int_equal(stella_error_is_policy_incompatible(error),
				 code == STELLA_ERROR_POLICY_INCOMPATIBLE);
		assert_string_equal(error->message, name);
	}
	assert_string_equal(stella_error_code_name((StellaError)STELLA_N_ERRORS), "unknown");
	assert_string_equal(stella_error_code_name((StellaError)-1), "unknown");
}

static void an_errno_has_a_code_and_stays_known(void **state)
{
	const struct {
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
		{ EACCES, STELLA_ERROR_IO },
		{ ENOSPC, STELLA_ERROR_IO },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autoptr(GError) error = NULL;

		api_error_set_errno(&error, API_ERROR_BY_ERRNO, -rows[i].errnum, "open \"%s\"",
				    "/x");
		assert_true(g_error_matches(error, STELLA_ERROR, (int)rows[i].code));
		assert_int_equal(stella_error_get_errno(error), rows[i].errnum);
		assert_true(g_str_has_prefix(error->message, "open \"/x\": "));
	}
}

static void details_travel_with_a_copy(void **state)
{
	StellaPolicy *policy = new_policy(NULL, 0);
	g_autoptr(GError) error = NULL, copy = NULL;
	ApiErrorDetails *details;

	(void)state;
	api_error_set(&error, STELLA_ERROR_POLICY_INCOMPATIBLE, "no");
	details = api_error_details(error);
	details->backend = g_strdup("bwrap");
	details->reason = g_strdup("because");
	details->policy = stella_policy_ref(policy);
	stella_policy_unref(policy);
	copy = g_error_copy(error);
	g_clear_error(&error);
	assert_true(stella_error_is_policy_incompatible(copy));
	assert_string_equal(stella_error_get_backend(copy), "bwrap");
	assert_string_equal(stella_error_get_reason(copy), "because");
	assert_string_equal(stella_policy_get_working_dir(stella_error_get_policy(copy)),
			    "/srv/a1");
}

static void an_error_of_others_has_no_details(void **state)
{
	g_autoptr(GError) error = g_error_new(G_FILE_ERROR, G_FILE_ERROR_NOENT, "other");

	(void)state;
	assert_int_equal(stella_error_get_errno(error), 0);
	assert_null(stella_error_get_stage(error));
	assert_null(stella_error_get_policy(NULL));
	assert_null(stella_error_get_hint(NULL));
	assert_false(stella_error_is_policy_incompatible(NULL));
}

static void an_output_buffer_takes_all_and_keeps_its_limit(void **state)
{
	g_autoptr(StellaOutputBuffer) buffer = stella_output_buffer_new(4);
	g_autoptr(StellaOutputBuffer) standard = stella_output_buffer_new_exec();
	g_autofree char *text = NULL, *cut = NULL;
	gsize size;

	(void)state;
	assert_int_equal(stella_output_buffer_write(buffer, "a\0b", 3), 3);
	assert_int_equal(stella_output_buffer_write(buffer, NULL, 0), 0);
	assert_memory_equal(stella_output_buffer_get_bytes(buffer, &size), "a\0b", 4);
	assert_int_equal(size, 3);
	assert_false(stella_output_buffer_get_truncated(buffer));
	assert_int_equal(stella_output_buffer_write(buffer, "cdef", 4), 4);
	assert_memory_equal(stella_output_buffer_get_bytes(buffer, &size), "a\0bc", 5);
	assert_int_equal(size, 4);
	assert_true(stella_output_buffer_get_truncated(buffer));
	assert_int_equal(stella_output_buffer_get_total(buffer), 7);
	assert_string_equal(stella_output_buffer_get_bytes(standard, NULL), "");
	stella_output_buffer_write(standard, "hello", 5);
	text = stella_output_buffer_dup_string(standard);
	assert_string_equal(text, "hello");
	stella_output_buffer_free(g_steal_pointer(&buffer));
	buffer = stella_output_buffer_new(4);
	stella_output_buffer_write(buffer, "hello", 5);
	cut = stella_output_buffer_dup_string(buffer);
	assert_string_equal(cut, "hell\n[stella: output truncated, exceeded 4B]\n");
	stella_output_buffer_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_left_alone_give_the_defaults),
		cmocka_unit_test(every_option_arrives),
		cmocka_unit_test(a_structure_that_is_wrong_names_its_key),
		cmocka_unit_test(options_that_are_wrong_name_their_key),
		cmocka_unit_test(a_caller_of_an_older_header_says_nothing_of_what_came_later),
		cmocka_unit_test(a_caller_of_a_newer_header_is_not_misread),
		cmocka_unit_test(text_is_counted_and_judged),
		cmocka_unit_test(every_code_goes_in_and_comes_out),
		cmocka_unit_test(an_errno_has_a_code_and_stays_known),
		cmocka_unit_test(details_travel_with_a_copy),
		cmocka_unit_test(an_error_of_others_has_no_details),
		cmocka_unit_test(an_output_buffer_takes_all_and_keeps_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
