/* See runtime-dir.h. */
#include "common/runtime-dir.h"

#include <glib.h>
#include <unistd.h>

char *runtime_dir_views(void)
{
	const char *given = g_getenv("STELLA_STATE_DIR");
	const char *runtime = g_getenv("XDG_RUNTIME_DIR");
	const char *state = g_getenv("XDG_STATE_HOME");

	if (given && *given)
		return g_path_is_absolute(given) ? g_build_filename(given, "views", NULL) : NULL;
	if (geteuid() == 0)
		return g_strdup("/run/stella/views");
	if (runtime && g_path_is_absolute(runtime))
		return g_build_filename(runtime, "stella", "views", NULL);
	if (state && g_path_is_absolute(state))
		return g_build_filename(state, "stella", "views", NULL);
	return g_build_filename(g_get_home_dir(), ".local/state/stella/views", NULL);
}

char *runtime_dir_state(void)
{
	const char *given = g_getenv("STELLA_STATE_DIR");
	const char *state = g_getenv("XDG_STATE_HOME");

	if (given && *given)
		return g_strdup(given);
	if (geteuid() == 0)
		return g_strdup("/var/lib/stella");
	if (state && g_path_is_absolute(state))
		return g_build_filename(state, "stella", NULL);
	return g_build_filename(g_get_home_dir(), ".local/state/stella", NULL);
}
