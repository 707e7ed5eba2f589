/* policy: the value itself, what validation says of one that no text made, and the keys without effect.
 *
 * What can be said in JSON is tested with the reader (test-policy-json.c). */
#include "common/limits.h"
#include "common/policy.h"

#include <errno.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static StellaPolicy *new_valid(void)
{
	StellaPolicy *policy = policy_new_defaults();

	policy_set_path(&policy->working_dir, "/workspace");
	policy_set_path(&policy->workspace_root, "/srv/ws");
	policy_add_mount(policy, "/srv/ws", "/workspace", STELLA_MOUNT_READ_WRITE);
	return policy;
}

static void assert_valid(const StellaPolicy *policy)
{
	g_autofree char *message = NULL;

	if (policy_validate(policy, &message) != 0)
		fail_msg("%s", message);
}

static void assert_refused(const StellaPolicy *policy, const char *expected)
{
	g_autofree char *message = NULL;

	assert_int_equal(policy_validate(policy, &message), -EINVAL);
	assert_string_equal(message, expected);
}

static void a_path_over_the_caps_is_refused(void **state)
{
	g_autoptr(StellaPolicy) policy = new_valid();
	PolicyMount *mount = policy->mounts->pdata[0];
	g_autoptr(GString) path = g_string_new("/");

	(void)state;
	for (int i = 0; i < 255; i++)
		g_string_append_c(path, 'n');
	policy_set_path(&mount->host_path, path->str);
	assert_valid(policy);
	g_string_append_c(path, 'n');
	policy_set_path(&mount->host_path, path->str);
	assert_refused(policy, "filesystem.mounts[0].host_path: has a name longer than 255 bytes");

	g_string_truncate(path, 0);
	while (path->len < LIMIT_PATH_BYTES - 3)
		g_string_append(path, "/d");
	g_string_append(path, "d");
	assert_int_equal(path->len, LIMIT_PATH_BYTES - 1);
	policy_set_path(&mount->host_path, path->str);
	assert_valid(policy);
	g_string_append(path, "d");
	policy_set_path(&mount->host_path, path->str);
	assert_refused(policy, "filesystem.mounts[0].host_path: is longer than 4095 bytes");
}

static void bytes_that_are_not_utf8_are_refused(void **state)
{
	g_autoptr(StellaPolicy) policy = new_valid();
	PolicyMount *mount = policy->mounts->pdata[0];

	(void)state;
	policy_set_path(&mount->host_path, "/srv/\xc3\xa9");
	assert_valid(policy);
	policy_set_path(&mount->host_path, "/srv/\xe9");
	assert_refused(policy, "filesystem.mounts[0].host_path: expected valid UTF-8, got "
			       "\"/srv/\\xe9\"");
	policy_set_path(&mount->host_path, "/srv");
	policy_add_env(policy, "A", "\xc3\xa9");
	assert_valid(policy);
	policy_add_env(policy, "B", "\xe9");
	assert_refused(policy, "env: \"B\" is not valid UTF-8");
}

static void a_path_that_was_not_cleaned_is_refused(void **state)
{
	g_autoptr(StellaPolicy) policy = new_valid();
	PolicyMount *mount = policy->mounts->pdata[0];

	(void)state;
	g_free(mount->view_path);
	mount->view_path = g_strdup("/workspace/../etc");
	assert_refused(policy,
		       "filesystem.mounts[0].view_path: expected a path without //, . and .., "
		       "got \"/workspace/../etc\"");
	policy_set_path(&mount->view_path, "/workspace/../etc");
	assert_valid(policy);
}

static void a_variable_given_twice_is_refused(void **state)
{
	g_autoptr(StellaPolicy) policy = new_valid();

	(void)state;
	policy_add_env(policy, "A", "1");
	policy_add_env(policy, "a", "1");
	assert_valid(policy);
	policy_add_env(policy, "A", "2");
	assert_refused(policy, "env: \"A\" is given twice");
}

static void more_mounts_than_the_cap_are_refused(void **state)
{
	g_autoptr(StellaPolicy) policy = new_valid();

	(void)state;
	for (int i = 1; i < LIMIT_MOUNTS; i++) {
		g_autofree char *path = g_strdup_printf("/m/%d", i);

		policy_add_mount(policy, path, path, STELLA_MOUNT_READ_ONLY);
	}
	assert_valid(policy);
	policy_add_mount(policy, "/m", "/m", STELLA_MOUNT_READ_ONLY);
	assert_refused(policy, "filesystem.mounts: has 1025 rows, at most 1024 work");
}

static void use_hide(StellaPolicy *policy)
{
	g_ptr_array_add(policy->hide, g_strdup("*"));
}

static void use_protect(StellaPolicy *policy)
{
	g_ptr_array_add(policy->protect, g_strdup("*"));
}

static void use_cow(StellaPolicy *policy)
{
	policy_add_mount(policy, "/c", "/c", STELLA_MOUNT_COW);
}

static void use_quota_bytes(StellaPolicy *policy)
{
	((PolicyMount *)policy->mounts->pdata[0])->quota_bytes = 1;
}

static void use_quota_files(StellaPolicy *policy)
{
	((PolicyMount *)policy->mounts->pdata[0])->quota_files = 1;
}

static void use_network_timeout(StellaPolicy *policy)
{
	policy->network_timeout_ms = 1;
}

static void each_key_without_effect_is_found(void **state)
{
	static const struct {
		void (*use)(StellaPolicy *policy);
		const char *key;
	} cases[] = {
		{ use_hide, "filesystem.hide" },
		{ use_protect, "filesystem.protect" },
		{ use_cow, "filesystem.mounts[1].access" },
		{ use_quota_bytes, "filesystem.mounts[0].quota_bytes" },
		{ use_quota_files, "filesystem.mounts[0].quota_files" },
		{ use_network_timeout, "network.timeout_ms" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(StellaPolicy) policy = new_valid();
		g_autofree char *found = NULL;

		cases[i].use(policy);
		assert_valid(policy);
		found = policy_find_unimplemented(policy);
		if (!found)
			fail_msg("%s is not found", cases[i].key);
		assert_string_equal(found, cases[i].key);
	}
}

static void keys_that_work_are_not_held_up(void **state)
{
	g_autoptr(StellaPolicy) policy = new_valid();

	(void)state;
	policy->network_mode = STELLA_NETWORK_DISABLED;
	policy->runtime = POLICY_RUNTIME_NONE;
	policy->symlinks = POLICY_SYMLINKS_DENY;
	policy->cache = POLICY_CACHE_STRICT;
	policy->ownership = POLICY_OWNERSHIP_HOST;
	policy->inherit_env = policy->env_override = true;
	policy->timeout_ms = 1;
	policy->process_uid = 0;
	policy->limits.output_bytes = policy->limits.file_size_bytes = 1;
	policy->limits.tail_bytes = 1;
	policy->limits.spill = true;
	policy->limits.open_files = policy->limits.cpu_seconds = 1;
	policy->limits.memory_bytes = policy->limits.processes = 1;
	policy->limits.required = true;
	policy_set_path(&policy->stella_home, "/s");
	policy_set_path(&policy->user_tools_dir, "/s/users/u/.mise-tools");
	policy_set_path(&policy->temp_dir_host, "/t");
	policy_add_env(policy, "A", "B");
	assert_valid(policy);
	assert_null(policy_find_unimplemented(policy));
}

static void the_key_of_a_message_is_what_it_begins_with(void **state)
{
	static const struct {
		const char *message;
		const char *key; /* NULL: it begins with none */
	} cases[] = {
		{ "version: is missing", "version" },
		{ "filesystem.mounts[2].view_path: is relative", "filesystem.mounts[2].view_path" },
		{ "filesystem.stella_home \"/a b: c\": Not a directory", "filesystem.stella_home" },
		{ "env.A: expected a string, got null", "env.A" },
		{ "view path \"/x\": lies below /y, which is a file", NULL },
		{ "runtime directory \"/usr.d\": Not a directory", NULL },
		{ "policy \"/srv/p.json\": filesystem.cache: no such word", NULL },
		{ "--ro /x: filesystem.cache: no such word", NULL },
		{ "line 3, column 7: expected a value", NULL },
		{ "is larger than 5 bytes", NULL },
		{ ": expected an object", NULL },
		{ "word", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *key = policy_message_key(cases[i].message);

		if (g_strcmp0(key, cases[i].key) != 0)
			fail_msg("%s: the key is %s", cases[i].message, key ? key : "none");
	}
}

static void a_copy_is_equal_and_its_own(void **state)
{
	g_autoptr(StellaPolicy) policy = new_valid();
	g_autoptr(StellaPolicy) copy = NULL;
	PolicyMount *mount = policy->mounts->pdata[0];

	(void)state;
	mount->optional = true;
	mount->quota_files = 9;
	policy->limits.cpu_seconds = 5;
	policy_add_env(policy, "A", "1");
	g_ptr_array_add(policy->hide, g_strdup("h"));
	copy = policy_copy(policy);
	policy_add_mount(copy, "/u", "/user", STELLA_MOUNT_READ_WRITE);
	assert_int_equal(policy->mounts->len, 1);
	assert_int_equal(copy->mounts->len, 2);
	mount->quota_files = 1;
	g_free(((PolicyEnv *)policy->env->pdata[0])->value);
	((PolicyEnv *)policy->env->pdata[0])->value = g_strdup("2");
	mount = copy->mounts->pdata[0];
	assert_string_equal(mount->host_path, "/srv/ws");
	assert_true(mount->optional);
	assert_int_equal(mount->quota_files, 9);
	assert_int_equal(copy->limits.cpu_seconds, 5);
	assert_string_equal(((PolicyEnv *)copy->env->pdata[0])->value, "1");
	assert_string_equal(copy->hide->pdata[0], "h");
	assert_string_equal(copy->working_dir, "/workspace");
}

static void a_reference_keeps_it_alive(void **state)
{
	StellaPolicy *policy = new_valid();
	StellaPolicy *second = stella_policy_ref(policy);

	(void)state;
	stella_policy_unref(policy);
	assert_string_equal(second->working_dir, "/workspace"); /* the sanitizer would object */
	stella_policy_unref(second);
	stella_policy_unref(NULL);
}

static void words_and_values_match(void **state)
{
	g_autofree char *expected = policy_words_expected(&policy_cache_words, false);
	uid_t uid = 5;

	(void)state;
	assert_string_equal(policy_access_name(STELLA_MOUNT_READ_ONLY), "ro");
	assert_string_equal(policy_access_name(STELLA_MOUNT_READ_WRITE), "rw");
	assert_string_equal(policy_access_name(STELLA_MOUNT_COW), "cow");
	assert_string_equal(policy_network_name(STELLA_NETWORK_ALLOW_ALL), "allow_all");
	assert_string_equal(policy_network_name(STELLA_NETWORK_DISABLED), "disabled");
	assert_null(policy_runtime_name(POLICY_RUNTIME_DEFAULT));
	assert_string_equal(policy_runtime_name(POLICY_RUNTIME_NONE), "none");
	assert_string_equal(policy_runtime_name(POLICY_RUNTIME_HOST), "host");
	assert_string_equal(policy_symlinks_name(POLICY_SYMLINKS_DENY), "deny");
	assert_string_equal(policy_cache_name(POLICY_CACHE_EXCLUSIVE), "exclusive");
	assert_string_equal(policy_ownership_name(POLICY_OWNERSHIP_HOST), "host");
	assert_string_equal(expected, "auto, strict or exclusive");
	assert_int_equal(policy_words_find(&policy_runtime_words, "host"), POLICY_RUNTIME_HOST);
	assert_int_equal(policy_words_find(&policy_runtime_words, "Host"), -1);
	assert_true(policy_find_user("root", &uid));
	assert_int_equal(uid, 0);
	assert_false(policy_find_user("Agent", &uid));
	assert_int_equal(uid, 0);
	assert_string_equal(policy_user_name(1000), "agent");
	assert_null(policy_user_name(1001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_over_the_caps_is_refused),
		cmocka_unit_test(bytes_that_are_not_utf8_are_refused),
		cmocka_unit_test(a_path_that_was_not_cleaned_is_refused),
		cmocka_unit_test(a_variable_given_twice_is_refused),
		cmocka_unit_test(more_mounts_than_the_cap_are_refused),
		cmocka_unit_test(each_key_without_effect_is_found),
		cmocka_unit_test(keys_that_work_are_not_held_up),
		cmocka_unit_test(the_key_of_a_message_is_what_it_begins_with),
		cmocka_unit_test(a_copy_is_equal_and_its_own),
		cmocka_unit_test(a_reference_keeps_it_alive),
		cmocka_unit_test(words_and_values_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
