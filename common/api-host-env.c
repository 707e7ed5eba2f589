/* The host's environment and private directories at the edge; see stella/host-env.h. */
#include "stella/host-env.h"

#include "common/api-error.h"
#include "common/host-env.h"
#include "common/path-util.h"
#include "common/private-dir.h"

char *stella_host_env_build_path(const char *home, const char *user_shims)
{
	g_return_val_if_fail(home && user_shims, NULL);
	return host_env_build_path(home, user_shims, g_getenv("PATH"));
}

gboolean stella_host_env_path_allowed(const char *entry, const char *bin)
{
	g_return_val_if_fail(entry && bin, FALSE);
	return host_env_path_allowed(entry, bin);
}

char **stella_host_env_copy(char **env)
{
	for (const char *const *name = host_env_names(); *name; name++) {
		const char *value = g_getenv(*name);

		if (value && value[0])
			env = g_environ_setenv(env, *name, value, TRUE);
	}
	return env ? env : g_new0(char *, 1);
}

gboolean stella_ensure_private_dir(const char *path, GError **error)
{
	g_autofree char *shown = NULL;
	int r;

	g_return_val_if_fail(path, FALSE);
	r = private_dir_ensure(path);
	if (r == 0)
		return TRUE;
	shown = path_escape(path);
	api_error_set_errno(error, API_ERROR_BY_ERRNO, r, "cannot make \"%s\" a private directory",
			    shown);
	return FALSE;
}
