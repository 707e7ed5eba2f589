/* The tool trees at the edge; see stella/mise.h. All of the work is that of mise.h. */
#include "stella/mise.h"

#include "common/api-error.h"
#include "common/host-env.h"
#include "common/mise.h"
#include "common/path-util.h"

#include <errno.h>
#include <stdint.h>

char *stella_mise_tools_dir(const char *home)
{
	g_return_val_if_fail(home, NULL);
	return mise_tools_dir(home);
}

char *stella_mise_shims_dir(const char *home)
{
	g_return_val_if_fail(home, NULL);
	return mise_shims_dir(home);
}

char *stella_mise_user_tools_dir(const char *home, const char *principal, const char *id)
{
	g_return_val_if_fail(home && principal && id, NULL);
	return mise_user_tools_dir(home, principal, id);
}

char *stella_mise_user_shims_dir(const char *user_tools_dir)
{
	g_return_val_if_fail(user_tools_dir, NULL);
	return mise_user_shims_dir(user_tools_dir);
}

char *stella_per_user_mise_data_dir(const char *const *env, const char *home)
{
	g_autoptr(GHashTable) table = g_hash_table_new(g_str_hash, g_str_equal);
	const char *value = host_env_get(env, "MISE_DATA_DIR");

	g_return_val_if_fail(home, NULL);
	if (value)
		g_hash_table_insert(table, (void *)(uintptr_t) "MISE_DATA_DIR",
				    (void *)(uintptr_t)value);
	return per_user_mise_data_dir(table, home);
}

const char *const *stella_home_sandbox_dirs(void)
{
	return mise_home_dirs();
}

/* r: 0, or the -errno of preparing that directory. */
static gboolean prepared(int r, const char *what, const char *dir, GError **error)
{
	g_autofree char *shown = path_escape(dir);

	if (r < 0)
		api_error_set_errno(error,
				    r == -E2BIG ? (int)STELLA_ERROR_TOO_LARGE : API_ERROR_BY_ERRNO,
				    r, "cannot prepare %s \"%s\"", what, shown);
	return r == 0;
}

gboolean stella_relink_system_mise_shims(const char *home, GError **error)
{
	g_return_val_if_fail(home, FALSE);
	return prepared(relink_system_mise_shims(home), "the shims of", home, error);
}

gboolean stella_ensure_user_mise_home(const char *home, const char *user_tools_dir, GError **error)
{
	g_return_val_if_fail(home && user_tools_dir, FALSE);
	return prepared(ensure_user_mise_home(home, user_tools_dir), "the user's tools",
			user_tools_dir, error);
}

gboolean stella_ensure_mise_shims(const char *home, const char *user_tools_dir, GError **error)
{
	GError *first = NULL;

	g_return_val_if_fail(home && user_tools_dir, FALSE);
	(void)stella_relink_system_mise_shims(home, &first);
	/* Both are done; of two errors the first is told. */
	(void)stella_ensure_user_mise_home(home, user_tools_dir, first ? NULL : &first);
	if (!first)
		return TRUE;
	g_propagate_error(error, first);
	return FALSE;
}
