/* Names of the mise layout; see mise.h. The single place that knows them: PATH, mounts and
 * preparation all ask here. */
#include "common/mise.h"

#include "common/limits.h"
#include "common/path-util.h"

#include <stdbool.h>
#include <string.h>

char *mise_tools_dir(const char *home)
{
	return home[0] ? path_join(home, ".mise-tools") : g_strdup("");
}

char *mise_shims_dir(const char *home)
{
	return home[0] ? path_join(home, ".mise-tools/shims") : g_strdup("");
}

/* What cannot be a path of its own, climb, or collide with a hidden name. */
static bool is_safe_id(const char *id)
{
	size_t length = strspn(id, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-");

	return length > 0 && length <= LIMIT_NAME_BYTES && id[length] == '\0';
}

char *mise_user_tools_dir(const char *home, const char *principal, const char *id)
{
	if (!home[0] || strcmp(principal, "users") != 0 || !is_safe_id(id))
		return g_strdup("");
	return g_build_filename(home, principal, id, ".mise-tools", NULL);
}

char *mise_user_shims_dir(const char *user_tools_dir)
{
	return user_tools_dir[0] ? path_join(user_tools_dir, "shims") : g_strdup("");
}

char *per_user_mise_data_dir(GHashTable *env, const char *home)
{
	const char *data_dir = g_hash_table_lookup(env, "MISE_DATA_DIR");
	g_autofree char *system_dir = mise_tools_dir(home);
	g_autofree char *clean_data = data_dir ? path_clean(data_dir) : NULL;
	g_autofree char *clean_system = path_clean(system_dir);

	if (!data_dir || g_strcmp0(clean_data, clean_system) == 0)
		return g_strdup("");
	return g_strdup(data_dir);
}

const char *const *mise_home_dirs(void)
{
	static const char *const dirs[] = { "bin", ".mise-tools", NULL };

	return dirs;
}
