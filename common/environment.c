/* The layers of a command's environment; see environment.h.
 *
 * Nothing of the host gets in but by a layer's own rule, and PATH holds absolute view paths only:
 * an empty or relative entry would make a program of any directory the command happens to be in. */
#include "common/environment.h"

#include "common/env-filter.h"
#include "common/environment-internal.h"
#include "common/host-env.h"
#include "common/path-util.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void put(GHashTable *env, const char *name, const char *value)
{
	g_hash_table_replace(env, g_strdup(name), g_strdup(value));
}

/* What of a name a message shows: one line, and not all of a name that is megabytes long. */
static char *show(const char *name)
{
	g_autofree char *start = g_strndup(name, 100);

	return path_escape(start);
}

static int check_name(const char *layer, const char *name, char **reterr_message)
{
	g_autofree char *shown = show(name);

	if (name[0] == '\0')
		*reterr_message = g_strdup_printf("%s: a variable has an empty name", layer);
	else if (strchr(name, '='))
		*reterr_message = g_strdup_printf("%s: variable \"%s\": a name cannot hold '='",
						  layer, shown);
	else
		return 0;
	return -EINVAL;
}

/* Puts in the entries NAME=value of a list that somebody asked for. */
static int put_list(GHashTable *env, const char *layer, const char *const *list,
		    char **reterr_message)
{
	for (; list && *list; list++) {
		const char *equals = strchr(*list, '=');
		g_autofree char *name = equals ? g_strndup(*list, (gsize)(equals - *list)) : NULL;
		int r;

		if (!equals) {
			g_autofree char *shown = show(*list);

			*reterr_message = g_strdup_printf(
				"%s: \"%s\" has no '=': expected NAME=value", layer, shown);
			return -EINVAL;
		}
		r = check_name(layer, name, reterr_message);
		if (r < 0)
			return r;
		put(env, name, equals + 1);
	}
	return 0;
}

static int unset_list(GHashTable *env, const char *layer, const char *const *names,
		      char **reterr_message)
{
	for (; names && *names; names++) {
		int r = check_name(layer, *names, reterr_message);

		if (r < 0)
			return r;
		g_hash_table_remove(env, *names);
	}
	return 0;
}

/* Layer 1. The host's environment is what it is: an entry that is no variable is left out. */
static void inherit(GHashTable *env, const EnvironmentOptions *options)
{
	for (const char *const *entry = options->host; entry && *entry; entry++) {
		const char *equals = strchr(*entry, '=');
		g_autofree char *name = equals ? g_strndup(*entry, (gsize)(equals - *entry)) : NULL;

		if (name && !g_hash_table_contains(env, name) &&
		    !env_filter_denied(name, options->denied))
			put(env, name, equals + 1);
	}
}

/* Layer 3. */
static int put_policy(GHashTable *env, const StellaPolicy *policy, char **reterr_message)
{
	for (guint i = 0; i < policy->env->len; i++) {
		const PolicyEnv *row = policy->env->pdata[i];
		int r = check_name("env", row->name, reterr_message);

		if (r < 0)
			return r;
		put(env, row->name, row->value);
	}
	return 0;
}

/* The most bytes of one NAME=value with its NUL that execve takes (MAX_ARG_STRLEN: 32 pages). */
static int check_sizes(GHashTable *env, char **reterr_message)
{
	size_t most = (size_t)sysconf(_SC_PAGESIZE) * 32;
	GHashTableIter iter;
	gpointer name, value;

	g_hash_table_iter_init(&iter, env);
	while (g_hash_table_iter_next(&iter, &name, &value)) {
		size_t size = strlen(name) + strlen(value) + 2;

		if (size > most) {
			g_autofree char *shown = show(name);

			*reterr_message = g_strdup_printf("environment variable \"%s\": %zu bytes, "
							  "the kernel takes at most %zu: "
							  "pass it in a file",
							  shown, size, most);
			return -E2BIG;
		}
	}
	return 0;
}

static int compare(gconstpointer a, gconstpointer b)
{
	const char *const *left = a;
	const char *const *right = b;

	return strcmp(*left, *right);
}

static char **to_list(GHashTable *env)
{
	g_autoptr(GPtrArray) list = g_ptr_array_new();
	GHashTableIter iter;
	gpointer name, value;

	g_hash_table_iter_init(&iter, env);
	while (g_hash_table_iter_next(&iter, &name, &value))
		g_ptr_array_add(list, g_strconcat(name, "=", value, NULL));
	g_ptr_array_sort(list, compare);
	g_ptr_array_add(list, NULL);
	return (char **)g_ptr_array_steal(list, NULL);
}

int environment_new(const EnvironmentOptions *options, char ***ret_env, char **reterr_message)
{
	g_autoptr(GHashTable) env = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	const StellaPolicy *policy = options->plan->policy;
	int r;

	if (policy->inherit_env)
		inherit(env, options);
	host_env_copy(options->host, env);
	r = put_policy(env, policy, reterr_message);
	if (r < 0)
		return r;
	environment_put_view(env, options);
	r = put_list(env, "refreshed environment", options->refresh, reterr_message);
	if (r < 0)
		return r;
	r = unset_list(env, "request environment", options->request_unset, reterr_message);
	if (r < 0)
		return r;
	r = put_list(env, "request environment", options->request_set, reterr_message);
	if (r < 0)
		return r;
	environment_map_mise(env, options->plan);
	r = check_sizes(env, reterr_message);
	if (r < 0)
		return r;
	*ret_env = to_list(env);
	return 0;
}
