/* The host's environment, as far as commands get it; see host-env.h. It is a list of what is
 * allowed: a variable that is not named here is not copied. */
#include "common/host-env.h"

#include "common/mise.h"
#include "common/path-util.h"

#include <string.h>

static const char *const copied[] = {
	"TERM",	      "COLORTERM",   "LANG",	    "LC_ALL",	 "LC_CTYPE",
	"TZ",	      "HTTP_PROXY",  "HTTPS_PROXY", "NO_PROXY",	 "ALL_PROXY",
	"http_proxy", "https_proxy", "no_proxy",    "all_proxy", NULL,
};

/* Directories that only the system's administrator writes to. */
static const char *const allowed_trees[] = {
	"/usr", "/bin", "/sbin", "/nix", "/run/current-system/sw",
};

static const char *const standard[] = {
	"/run/current-system/sw/bin",
	"/usr/local/sbin",
	"/usr/local/bin",
	"/usr/sbin",
	"/usr/bin",
	"/sbin",
	"/bin",
};

bool host_env_path_allowed(const char *entry, const char *bin)
{
	g_autofree char *clean = path_clean(entry);
	g_autofree char *clean_bin = path_clean(bin);

	if (!clean)
		return false;
	if (clean_bin && strcmp(clean, clean_bin) == 0)
		return true;
	for (size_t i = 0; i < G_N_ELEMENTS(allowed_trees); i++) {
		if (path_is_below(clean, allowed_trees[i]))
			return true;
	}
	return false;
}

char *host_env_join_path(const GPtrArray *entries)
{
	g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func(g_free);

	for (guint i = 0; i < entries->len; i++) {
		g_autofree char *clean = path_clean(entries->pdata[i]);

		/* A colon would make two entries of one, the second maybe relative. */
		if (!clean || strchr(clean, ':'))
			continue;
		if (!g_ptr_array_find_with_equal_func(kept, clean, g_str_equal, NULL))
			g_ptr_array_add(kept, g_steal_pointer(&clean));
	}
	g_ptr_array_add(kept, NULL);
	return g_strjoinv(":", (char **)kept->pdata);
}

char *host_env_build_path(const char *home, const char *user_shims, const char *host_path)
{
	g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func(g_free);
	g_auto(GStrv) host = g_strsplit(host_path ? host_path : "", ":", -1);
	g_autofree char *bin = home[0] ? path_join(home, "bin") : g_strdup("");

	g_ptr_array_add(entries, g_strdup(user_shims));
	g_ptr_array_add(entries, mise_shims_dir(home));
	g_ptr_array_add(entries, g_strdup(bin));
	for (char **entry = host; *entry; entry++) {
		if (host_env_path_allowed(*entry, bin))
			g_ptr_array_add(entries, g_strdup(*entry));
	}
	for (size_t i = 0; i < G_N_ELEMENTS(standard); i++)
		g_ptr_array_add(entries, g_strdup(standard[i]));
	return host_env_join_path(entries);
}

const char *host_env_get(const char *const *environ_list, const char *name)
{
	size_t length = strlen(name);

	for (; environ_list && *environ_list; environ_list++) {
		if (strncmp(*environ_list, name, length) == 0 && (*environ_list)[length] == '=')
			return *environ_list + length + 1;
	}
	return NULL;
}

const char *const *host_env_names(void)
{
	return copied;
}

void host_env_copy(const char *const *environ_list, GHashTable *env)
{
	for (const char *const *name = copied; *name; name++) {
		const char *value = host_env_get(environ_list, *name);

		if (value && value[0])
			g_hash_table_replace(env, g_strdup(*name), g_strdup(value));
	}
}
