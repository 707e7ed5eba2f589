/* The policy at the edge; see stella/policy.h. The value is policy.c's own; this file turns structs into it and back. */
#include "stella/policy.h"

#include "common/api-error.h"
#include "common/api-struct.h"
#include "common/policy-json.h"
#include "common/policy.h"

#include <string.h>

_Static_assert((int)STELLA_RUNTIME_NONE == (int)POLICY_RUNTIME_NONE &&
		       (int)STELLA_RUNTIME_HOST == (int)POLICY_RUNTIME_HOST,
	       "one numbering");
_Static_assert((int)STELLA_SYMLINKS_DENY == (int)POLICY_SYMLINKS_DENY, "one numbering");
_Static_assert((int)STELLA_CACHE_STRICT == (int)POLICY_CACHE_STRICT &&
		       (int)STELLA_CACHE_EXCLUSIVE == (int)POLICY_CACHE_EXCLUSIVE,
	       "one numbering");
_Static_assert((int)STELLA_OWNERSHIP_HOST == (int)POLICY_OWNERSHIP_HOST, "one numbering");

/* A user that is neither a name of the format nor a number: no command can be one. */
#define NO_USER ((uid_t)-1)

static StellaPolicy *boxed_copy(StellaPolicy *policy)
{
	return stella_policy_ref(policy);
}

G_DEFINE_BOXED_TYPE(StellaPolicy, stella_policy, boxed_copy, stella_policy_unref)

static void limits_to_public(const PolicyLimits *limits, StellaLimits *ret_limits)
{
	*ret_limits = (StellaLimits){
		.output_bytes = limits->output_bytes,
		.tail_bytes = limits->tail_bytes,
		.spill = limits->spill,
		.file_size_bytes = limits->file_size_bytes,
		.open_files = limits->open_files,
		.cpu_seconds = limits->cpu_seconds,
		.memory_bytes = limits->memory_bytes,
		.processes = limits->processes,
		.required = limits->required,
	};
}

void stella_limits_init(StellaLimits *limits)
{
	g_autoptr(StellaPolicy) defaults = policy_new_defaults();

	limits_to_public(&defaults->limits, limits);
}

void stella_policy_options_init(StellaPolicyOptions *options)
{
	memset(options, 0, sizeof *options);
	options->size = sizeof *options;
	stella_limits_init(&options->limits);
}

static uid_t find_user(const char *name)
{
	uid_t uid;
	guint64 number;

	if (policy_find_user(name, &uid))
		return uid;
	if (g_ascii_string_to_unsigned(name, 10, 0, NO_USER - 1, &number, NULL))
		return (uid_t)number;
	return NO_USER;
}

static void set_env(StellaPolicy *policy, const char *const *env)
{
	for (; env && *env; env++) {
		const char *equals = strchr(*env, '=');
		g_autofree char *name =
			equals ? g_strndup(*env, (gsize)(equals - *env)) : g_strdup("");

		/* without "=" there is no name, which validating refuses */
		policy_add_env(policy, name, equals ? equals + 1 : *env);
	}
}

static void set_mounts(StellaPolicy *policy, const StellaMount *mounts, gsize n_mounts)
{
	for (gsize i = 0; i < n_mounts; i++) {
		PolicyMount *mount = policy_add_mount(
			policy, mounts[i].host_path ? mounts[i].host_path : "",
			mounts[i].view_path ? mounts[i].view_path : "", mounts[i].access);

		mount->optional = mounts[i].optional;
		mount->quota_bytes = mounts[i].quota_bytes;
		mount->quota_files = mounts[i].quota_files;
	}
}

static void set_path(char **field, const char *path)
{
	if (path)
		policy_set_path(field, path);
}

StellaPolicy *stella_policy_new(const StellaPolicyOptions *options)
{
	StellaPolicyOptions given;
	StellaPolicy *policy;
	const StellaLimits *limits = &given.limits;

	g_return_val_if_fail(options != NULL, NULL);
	stella_policy_options_init(&given);
	policy = policy_new_defaults();
	if (!api_struct_read(options, options->size, &given, sizeof given, sizeof options->size)) {
		policy->is_unreadable = true;
		return policy;
	}
	set_path(&policy->working_dir, given.working_dir);
	set_path(&policy->workspace_root, given.workspace_root && given.workspace_root[0]
						  ? given.workspace_root
						  : given.working_dir);
	set_path(&policy->stella_home, given.stella_home);
	set_path(&policy->user_tools_dir, given.user_tools_dir);
	set_path(&policy->temp_dir_host, given.temp_dir_host);
	set_mounts(policy, given.mounts, given.n_mounts);
	policy->runtime = (PolicyRuntime)given.runtime;
	policy->symlinks = (PolicySymlinks)given.symlinks;
	policy->cache = (PolicyCache)given.cache;
	policy->ownership = (PolicyOwnership)given.ownership;
	policy->network_mode = given.network_mode;
	policy->network_timeout_ms = given.network_timeout_ms;
	set_env(policy, given.env);
	policy->inherit_env = given.inherit_env;
	policy->env_override = given.env_override;
	policy->timeout_ms = given.timeout_ms;
	if (given.process_user && given.process_user[0])
		policy->process_uid = find_user(given.process_user);
	policy->limits = (PolicyLimits){
		.output_bytes = limits->output_bytes,
		.tail_bytes = limits->tail_bytes,
		.spill = limits->spill,
		.file_size_bytes = limits->file_size_bytes,
		.open_files = limits->open_files,
		.cpu_seconds = limits->cpu_seconds,
		.memory_bytes = limits->memory_bytes,
		.processes = limits->processes,
		.required = limits->required,
	};
	return policy;
}

static void set_invalid(GError **error, const char *message)
{
	api_error_set(error, STELLA_ERROR_POLICY_INVALID, "%s", message);
	if (error)
		api_error_details(*error)->key = policy_message_key(message);
}

StellaPolicy *stella_policy_new_from_json(const char *text, gssize length, GError **error)
{
	g_autofree char *message = NULL;
	StellaPolicy *policy = NULL;

	g_return_val_if_fail(text != NULL, NULL);
	if (policy_json_parse(text, length < 0 ? strlen(text) : (size_t)length, &policy, &message) <
	    0)
		set_invalid(error, message);
	return policy;
}

gboolean stella_policy_validate(const StellaPolicy *policy, GError **error)
{
	g_autofree char *message = NULL;

	g_return_val_if_fail(policy != NULL, FALSE);
	if (policy_validate(policy, &message) == 0)
		return TRUE;
	set_invalid(error, message);
	return FALSE;
}

char *stella_policy_to_json(const StellaPolicy *policy, gboolean pretty)
{
	g_return_val_if_fail(policy != NULL, NULL);
	return policy_json_write(policy, pretty);
}

#define TEXT_GETTER(field)                                                                         \
	const char *stella_policy_get_##field(const StellaPolicy *policy)                          \
	{                                                                                          \
		g_return_val_if_fail(policy != NULL, NULL);                                        \
		return policy->field;                                                              \
	}

#define VALUE_GETTER(type, name, field)                                                            \
	type stella_policy_get_##name(const StellaPolicy *policy)                                  \
	{                                                                                          \
		g_return_val_if_fail(policy != NULL, (type)0);                                     \
		return (type)policy->field;                                                        \
	}

TEXT_GETTER(workspace_root)
TEXT_GETTER(working_dir)
TEXT_GETTER(stella_home)
TEXT_GETTER(user_tools_dir)
TEXT_GETTER(temp_dir_host)
VALUE_GETTER(gsize, n_mounts, mounts->len)
VALUE_GETTER(StellaRuntime, runtime, runtime)
VALUE_GETTER(StellaSymlinks, symlinks, symlinks)
VALUE_GETTER(StellaCache, cache, cache)
VALUE_GETTER(StellaOwnership, ownership, ownership)
VALUE_GETTER(StellaNetworkMode, network_mode, network_mode)
VALUE_GETTER(gint64, network_timeout_ms, network_timeout_ms)
VALUE_GETTER(gboolean, inherit_env, inherit_env)
VALUE_GETTER(gboolean, env_override, env_override)
VALUE_GETTER(gint64, timeout_ms, timeout_ms)
VALUE_GETTER(uid_t, process_uid, process_uid)

gboolean stella_policy_get_mount(const StellaPolicy *policy, gsize i, StellaMount *ret_mount)
{
	const PolicyMount *mount;

	g_return_val_if_fail(policy != NULL && ret_mount != NULL, FALSE);
	if (i >= policy->mounts->len)
		return FALSE;
	mount = policy->mounts->pdata[i];
	*ret_mount = (StellaMount){
		.host_path = mount->host_path,
		.view_path = mount->view_path,
		.access = mount->access,
		.optional = mount->optional,
		.quota_bytes = mount->quota_bytes,
		.quota_files = mount->quota_files,
	};
	return TRUE;
}

char **stella_policy_dup_env(const StellaPolicy *policy)
{
	g_autoptr(GStrvBuilder) list = g_strv_builder_new();

	g_return_val_if_fail(policy != NULL, NULL);
	for (unsigned int i = 0; i < policy->env->len; i++) {
		const PolicyEnv *variable = policy->env->pdata[i];
		g_autofree char *text = g_strdup_printf("%s=%s", variable->name, variable->value);

		g_strv_builder_add(list, text);
	}
	return g_strv_builder_end(list);
}

void stella_policy_get_limits(const StellaPolicy *policy, StellaLimits *ret_limits)
{
	g_return_if_fail(policy != NULL && ret_limits != NULL);
	limits_to_public(&policy->limits, ret_limits);
}

const char *stella_mount_access_name(StellaMountAccess access)
{
	return (unsigned int)access <= STELLA_MOUNT_COW ? policy_access_name(access) : NULL;
}

const char *stella_network_mode_name(StellaNetworkMode mode)
{
	return (unsigned int)mode <= STELLA_NETWORK_DISABLED ? policy_network_name(mode) : NULL;
}
