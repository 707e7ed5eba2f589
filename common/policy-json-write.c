/* Policy to text; see policy-json.h. */
#include "common/policy-json.h"

#include "common/json.h"

/* Every integer of a valid policy fits. */
static void add_integer(JsonObject *object, const char *name, uint64_t value)
{
	json_object_set_int_member(object, name, (gint64)value);
}

static JsonObject *add_object(JsonObject *object, const char *name)
{
	JsonObject *inner = json_object_new();

	json_object_set_object_member(object, name, inner);
	return inner;
}

static void add_mounts(JsonObject *object, const GPtrArray *mounts)
{
	JsonArray *rows = json_array_new();

	for (unsigned int i = 0; i < mounts->len; i++) {
		const PolicyMount *mount = mounts->pdata[i];
		JsonObject *row = json_object_new();

		json_object_set_string_member(row, "host_path", mount->host_path);
		json_object_set_string_member(row, "view_path", mount->view_path);
		json_object_set_string_member(row, "access", policy_access_name(mount->access));
		json_object_set_boolean_member(row, "optional", mount->optional);
		add_integer(row, "quota_bytes", mount->quota_bytes);
		add_integer(row, "quota_files", mount->quota_files);
		json_array_add_object_element(rows, row);
	}
	json_object_set_array_member(object, "mounts", rows);
}

static void add_strings(JsonObject *object, const char *name, const GPtrArray *strings)
{
	JsonArray *array = json_array_new();

	for (unsigned int i = 0; i < strings->len; i++)
		json_array_add_string_element(array, strings->pdata[i]);
	json_object_set_array_member(object, name, array);
}

static void add_filesystem(JsonObject *root, const StellaPolicy *policy)
{
	JsonObject *object = add_object(root, "filesystem");

	json_object_set_string_member(object, "workspace_root", policy->workspace_root);
	json_object_set_string_member(object, "working_dir", policy->working_dir);
	json_object_set_string_member(object, "stella_home", policy->stella_home);
	json_object_set_string_member(object, "user_tools_dir", policy->user_tools_dir);
	add_mounts(object, policy->mounts);
	json_object_set_string_member(object, "temp_dir_host", policy->temp_dir_host);
	/* The default has no word: it depends on what the policy is used for. */
	if (policy->runtime != POLICY_RUNTIME_DEFAULT)
		json_object_set_string_member(object, "runtime",
					      policy_runtime_name(policy->runtime));
	json_object_set_string_member(object, "symlinks", policy_symlinks_name(policy->symlinks));
	json_object_set_string_member(object, "cache", policy_cache_name(policy->cache));
	json_object_set_string_member(object, "ownership",
				      policy_ownership_name(policy->ownership));
	add_strings(object, "hide", policy->hide);
	add_strings(object, "protect", policy->protect);
}

static void add_environment(JsonObject *root, const StellaPolicy *policy)
{
	JsonObject *object = add_object(root, "env");

	for (unsigned int i = 0; i < policy->env->len; i++) {
		const PolicyEnv *env = policy->env->pdata[i];

		json_object_set_string_member(object, env->name, env->value);
	}
	json_object_set_boolean_member(root, "inherit_env", policy->inherit_env);
	json_object_set_boolean_member(root, "env_override", policy->env_override);
}

static void add_process(JsonObject *root, uid_t uid)
{
	const char *name = policy_user_name(uid);
	JsonObject *object = add_object(root, "process");

	if (name)
		json_object_set_string_member(object, "user", name);
	else
		add_integer(object, "user", uid);
}

static void add_limits(JsonObject *root, const StellaPolicy *policy)
{
	JsonObject *object = add_object(root, "limits");
	PolicyLimits limits = policy->limits;

	for (const PolicyLimit *row = policy_limits; row->name; row++)
		add_integer(object, row->name, *policy_limit_field(&limits, row));
	json_object_set_boolean_member(object, "spill", limits.spill);
	json_object_set_boolean_member(object, "required", limits.required);
}

char *policy_json_write(const StellaPolicy *policy, bool pretty)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	JsonObject *root = json_node_get_object(node), *network;

	add_integer(root, "version", POLICY_VERSION);
	add_filesystem(root, policy);
	network = add_object(root, "network");
	json_object_set_string_member(network, "mode", policy_network_name(policy->network_mode));
	add_integer(network, "timeout_ms", (uint64_t)policy->network_timeout_ms);
	add_environment(root, policy);
	add_integer(root, "timeout_ms", (uint64_t)policy->timeout_ms);
	add_process(root, policy->process_uid);
	add_limits(root, policy);
	return json_to_string(node, pretty);
}
