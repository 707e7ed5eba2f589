/* Policy to text; see policy-json.h. */
#include "common/policy-json.h"

#include <json-glib/json-glib.h>

static void add_string(JsonBuilder *builder, const char *name, const char *value)
{
	json_builder_set_member_name(builder, name);
	json_builder_add_string_value(builder, value);
}

static void add_bool(JsonBuilder *builder, const char *name, bool value)
{
	json_builder_set_member_name(builder, name);
	json_builder_add_boolean_value(builder, value);
}

/* Every integer of a valid policy fits. */
static void add_integer(JsonBuilder *builder, const char *name, uint64_t value)
{
	json_builder_set_member_name(builder, name);
	json_builder_add_int_value(builder, (gint64)value);
}

static void begin_object(JsonBuilder *builder, const char *name)
{
	json_builder_set_member_name(builder, name);
	json_builder_begin_object(builder);
}

static void add_mounts(JsonBuilder *builder, const GPtrArray *mounts)
{
	json_builder_set_member_name(builder, "mounts");
	json_builder_begin_array(builder);
	for (unsigned int i = 0; i < mounts->len; i++) {
		const PolicyMount *mount = mounts->pdata[i];

		json_builder_begin_object(builder);
		add_string(builder, "host_path", mount->host_path);
		add_string(builder, "view_path", mount->view_path);
		add_string(builder, "access", policy_access_name(mount->access));
		add_bool(builder, "optional", mount->optional);
		add_integer(builder, "quota_bytes", mount->quota_bytes);
		add_integer(builder, "quota_files", mount->quota_files);
		json_builder_end_object(builder);
	}
	json_builder_end_array(builder);
}

static void add_strings(JsonBuilder *builder, const char *name, const GPtrArray *strings)
{
	json_builder_set_member_name(builder, name);
	json_builder_begin_array(builder);
	for (unsigned int i = 0; i < strings->len; i++)
		json_builder_add_string_value(builder, strings->pdata[i]);
	json_builder_end_array(builder);
}

static void add_filesystem(JsonBuilder *builder, const StellaPolicy *policy)
{
	begin_object(builder, "filesystem");
	add_string(builder, "workspace_root", policy->workspace_root);
	add_string(builder, "working_dir", policy->working_dir);
	add_string(builder, "stella_home", policy->stella_home);
	add_string(builder, "user_tools_dir", policy->user_tools_dir);
	add_mounts(builder, policy->mounts);
	add_string(builder, "temp_dir_host", policy->temp_dir_host);
	/* The default has no word: it depends on what the policy is used for. */
	if (policy->runtime != POLICY_RUNTIME_DEFAULT)
		add_string(builder, "runtime", policy_runtime_name(policy->runtime));
	add_string(builder, "symlinks", policy_symlinks_name(policy->symlinks));
	add_string(builder, "cache", policy_cache_name(policy->cache));
	add_string(builder, "ownership", policy_ownership_name(policy->ownership));
	add_strings(builder, "hide", policy->hide);
	add_strings(builder, "protect", policy->protect);
	json_builder_end_object(builder);
}

static void add_environment(JsonBuilder *builder, const StellaPolicy *policy)
{
	begin_object(builder, "env");
	for (unsigned int i = 0; i < policy->env->len; i++) {
		const PolicyEnv *env = policy->env->pdata[i];

		add_string(builder, env->name, env->value);
	}
	json_builder_end_object(builder);
	add_bool(builder, "inherit_env", policy->inherit_env);
	add_bool(builder, "env_override", policy->env_override);
}

static void add_process(JsonBuilder *builder, uid_t uid)
{
	const char *name = policy_user_name(uid);

	begin_object(builder, "process");
	if (name)
		add_string(builder, "user", name);
	else
		add_integer(builder, "user", uid);
	json_builder_end_object(builder);
}

static void add_limits(JsonBuilder *builder, const StellaPolicy *policy)
{
	PolicyLimits limits = policy->limits;

	begin_object(builder, "limits");
	for (const PolicyLimit *row = policy_limits; row->name; row++)
		add_integer(builder, row->name, *policy_limit_field(&limits, row));
	add_bool(builder, "spill", limits.spill);
	add_bool(builder, "required", limits.required);
	json_builder_end_object(builder);
}

/* json-glib writes the byte 1F as it is, which JSON does not allow in a string; it can be nowhere else. */
static char *escape_1f(const char *text)
{
	g_auto(GStrv) parts = g_strsplit(text, "\x1f", -1);

	return g_strjoinv("\\u001f", parts);
}

char *policy_json_write(const StellaPolicy *policy, bool pretty)
{
	g_autoptr(JsonBuilder) builder = json_builder_new();
	g_autoptr(JsonNode) root = NULL;
	g_autofree char *text = NULL;

	json_builder_begin_object(builder);
	add_integer(builder, "version", POLICY_VERSION);
	add_filesystem(builder, policy);
	begin_object(builder, "network");
	add_string(builder, "mode", policy_network_name(policy->network_mode));
	add_integer(builder, "timeout_ms", (uint64_t)policy->network_timeout_ms);
	json_builder_end_object(builder);
	add_environment(builder, policy);
	add_integer(builder, "timeout_ms", (uint64_t)policy->timeout_ms);
	add_process(builder, policy->process_uid);
	add_limits(builder, policy);
	json_builder_end_object(builder);
	root = json_builder_get_root(builder);
	text = json_to_string(root, pretty);
	return escape_1f(text);
}
