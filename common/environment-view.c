/* The variables that say where things are in the view; see environment.h. Values are view paths: a
 * host path would mean nothing to the command and tell it about the host. */
#include "common/environment-internal.h"

#include "common/host-env.h"
#include "common/mise.h"
#include "common/path-util.h"
#include "stella/types.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

typedef struct {
	GHashTable *env;
	const ViewPlan *plan;
	GHashTable *policy_env; /* the policy's own variables, borrowed strings */
} ViewLayer;

/* Whether the policy's own value of one of our variables stays. */
static bool is_overridden(const ViewLayer *layer, const char *name)
{
	return layer->plan->policy->env_override && g_hash_table_contains(layer->policy_env, name);
}

/* Value NULL takes the variable away. */
static void put(const ViewLayer *layer, const char *name, const char *value)
{
	if (is_overridden(layer, name))
		return;
	if (value)
		g_hash_table_replace(layer->env, g_strdup(name), g_strdup(value));
	else
		g_hash_table_remove(layer->env, name);
}

static void put_below(const ViewLayer *layer, const char *name, const char *dir, const char *below)
{
	g_autofree char *path = path_join(dir, below);

	put(layer, name, path);
}

static bool has_tools(const ViewPlan *plan)
{
	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (strcmp(entry->view_path, STELLA_MOUNT_STELLA_HOME) == 0 ||
		    (entry->origin == VIEW_ORIGIN_TOOLS &&
		     path_is_below(entry->view_path, STELLA_MOUNT_STELLA_HOME)))
			return true;
	}
	return false;
}

/* A directory of the tool trees as the view has it, or "": it is not in the view. */
static char *tool_view_path(const ViewPlan *plan, const char *host_path)
{
	char *path = view_plan_to_view_path(plan, host_path);

	return path ? path : g_strdup("");
}

/* The user's shims, from where the policy says that the user's tools are. */
static char *user_shims_view_path(const ViewLayer *layer)
{
	const StellaPolicy *policy = layer->plan->policy;
	g_autofree char *data_dir = per_user_mise_data_dir(layer->policy_env, policy->stella_home);
	g_autofree char *shims =
		mise_user_shims_dir(data_dir[0] ? data_dir : policy->user_tools_dir);
	g_autofree char *clean = path_clean(shims);
	char *path;

	if (!clean)
		return g_strdup("");
	path = view_plan_to_view_path(layer->plan, clean);
	/* A policy may also have said it as a view path. */
	if (!path && view_plan_find_by_view_path(layer->plan, clean))
		path = g_strdup(clean);
	return path ? path : g_strdup("");
}

/* The order of host_env_build_path(), in view paths: the tool directories are translated, or left
 * out where the view does not show them; the rest are runtime directories, which a view has at the
 * same path. */
static char *build_path(const ViewLayer *layer, const char *host_path)
{
	const char *home = layer->plan->policy->stella_home;
	g_autofree char *host_bin = home[0] ? path_join(home, "bin") : g_strdup("");
	g_autofree char *host_shims = mise_shims_dir(home);
	g_autofree char *user = user_shims_view_path(layer);
	g_autofree char *host = host_env_build_path("", "", host_path);
	g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func(g_free);
	g_auto(GStrv) parts = g_strsplit(host, ":", -1);

	g_ptr_array_add(entries, g_steal_pointer(&user));
	g_ptr_array_add(entries, tool_view_path(layer->plan, host_shims));
	g_ptr_array_add(entries, tool_view_path(layer->plan, host_bin));
	for (char **part = parts; *part; part++)
		g_ptr_array_add(entries, g_strdup(*part));
	return host_env_join_path(entries);
}

/* On the host the same, with the host's own directories. */
static char *build_host_path(const ViewLayer *layer, const char *host_path)
{
	const StellaPolicy *policy = layer->plan->policy;
	g_autofree char *data_dir = per_user_mise_data_dir(layer->policy_env, policy->stella_home);
	g_autofree char *shims =
		mise_user_shims_dir(data_dir[0] ? data_dir : policy->user_tools_dir);

	return host_env_build_path(policy->stella_home, shims, host_path);
}

static void put_host_directories(const ViewLayer *layer, const char *home)
{
	const char *user = layer->plan->user_dir, *temp = layer->plan->temp_dir;
	const char *tools = layer->plan->policy->stella_home;

	/* Also one of the policy's own, which may have been a view path. */
	g_hash_table_replace(layer->env, g_strdup("HOME"), g_strdup(home));
	put(layer, "TMPDIR", temp ? temp : "/tmp");
	put_below(layer, "XDG_CONFIG_HOME", home, ".config");
	put_below(layer, "XDG_DATA_HOME", home, ".local/share");
	put_below(layer, "XDG_STATE_HOME", home, ".local/state");
	put_below(layer, "XDG_CACHE_HOME", user ? user : home, ".cache");
	put(layer, "XDG_RUNTIME_DIR", NULL);
	put(layer, "STELLA_USER_DIR", user);
	put(layer, "STELLA_HOME", tools[0] ? tools : NULL);
}

static void put_directories(const ViewLayer *layer, const char *home)
{
	const ViewEntry *user = view_plan_find_by_view_path(layer->plan, STELLA_MOUNT_USER_DATA);

	put(layer, "HOME", home);
	put(layer, "TMPDIR", "/tmp");
	put_below(layer, "XDG_CONFIG_HOME", home, ".config");
	put_below(layer, "XDG_DATA_HOME", home, ".local/share");
	put_below(layer, "XDG_STATE_HOME", home, ".local/state");
	put_below(layer, "XDG_CACHE_HOME", user ? STELLA_MOUNT_USER_DATA : home, ".cache");
	put(layer, "XDG_RUNTIME_DIR", NULL); /* there is none, and the host's is full of sockets */
	put(layer, "STELLA_USER_DIR", user ? STELLA_MOUNT_USER_DATA : NULL);
	put(layer, "STELLA_HOME", has_tools(layer->plan) ? STELLA_MOUNT_STELLA_HOME : NULL);
}

static bool has_locale(GHashTable *env)
{
	static const char *const names[] = { "LANG", "LC_ALL", "LC_CTYPE" };

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		const char *value = g_hash_table_lookup(env, names[i]);

		if (value && value[0])
			return true;
	}
	return false;
}

void environment_put_view(GHashTable *env, const EnvironmentOptions *options)
{
	const StellaPolicy *policy = options->plan->policy;
	g_autoptr(GHashTable) policy_env = g_hash_table_new(g_str_hash, g_str_equal);
	ViewLayer layer = { .env = env, .plan = options->plan, .policy_env = policy_env };
	bool on_host = options->plan->presentation == VIEW_AS_HOST;
	const char *user = policy->process_uid == 0 ? "root" : "agent";
	const char *home = options->home ? options->home : options->plan->home;
	g_autofree char *path = NULL;

	for (guint i = 0; i < policy->env->len; i++) {
		const PolicyEnv *row = policy->env->pdata[i];

		g_hash_table_replace(policy_env, row->name, row->value);
	}
	if (is_overridden(&layer, "HOME"))
		home = options->plan->home; /* made from it */
	path = (on_host ? build_host_path : build_path)(&layer,
							host_env_get(options->host, "PATH"));
	(on_host ? put_host_directories : put_directories)(&layer, home);
	/* Whoever runs us: there is no other user. */
	if (on_host)
		user = host_env_get(options->host, "USER");
	put(&layer, "PATH", path);
	put(&layer, "USER", user);
	put(&layer, "LOGNAME", user);
	put(&layer, "SHELL", access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh");
	put(&layer, "PWD", options->cwd ? options->cwd : options->plan->working_dir);
	if (!has_locale(env))
		put(&layer, "LANG", "C.UTF-8");
}
