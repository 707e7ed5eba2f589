/* MISE_* variables name directories of the tool trees; hosts give them as host paths, and a command
 * needs view paths. */
#include "common/environment-internal.h"

#include <string.h>

/* The one variable that is a list. */
#define TRUSTED_PATHS "MISE_TRUSTED_CONFIG_PATHS"

/* The view path of a host path inside a mount; anything else ("1", "github", a view path) as it
 * is. */
static char *map_one(const ViewPlan *plan, const char *value)
{
	char *mapped = value[0] == '/' ? view_plan_to_view_path(plan, value) : NULL;

	return mapped ? mapped : g_strdup(value);
}

/* Two host paths may be one view path: it is named once. */
static char *map_list(const ViewPlan *plan, const char *value)
{
	g_autoptr(GPtrArray) mapped = g_ptr_array_new_with_free_func(g_free);
	g_auto(GStrv) parts = g_strsplit(value, ":", -1);

	for (char **part = parts; *part; part++) {
		g_autofree char *path = map_one(plan, *part);

		if (path[0] && !g_ptr_array_find_with_equal_func(mapped, path, g_str_equal, NULL))
			g_ptr_array_add(mapped, g_steal_pointer(&path));
	}
	g_ptr_array_add(mapped, NULL);
	return g_strjoinv(":", (char **)mapped->pdata);
}

void environment_map_mise(GHashTable *env, const ViewPlan *plan)
{
	GHashTableIter iter;
	gpointer name, value;

	g_hash_table_iter_init(&iter, env);
	while (g_hash_table_iter_next(&iter, &name, &value)) {
		if (!g_str_has_prefix(name, "MISE_"))
			continue;
		g_hash_table_iter_replace(&iter, strcmp(name, TRUSTED_PATHS) == 0
							 ? map_list(plan, value)
							 : map_one(plan, value));
	}
}
