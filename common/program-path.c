/* Where the project's programs are; see program-path.h. */
#include "common/program-path.h"

#include "config.h"

#include <glib.h>
#include <stdbool.h>
#include <unistd.h>

static const struct {
	const char *name;
	const char *build_dir;
} programs[] = {
	{ "stella-fsgate", "fsgate" },
	{ "stella-exec", "executor" },
	{ "stella-sandbox-init", "executor" },
};

/* A test program of the build directory counts as running from it too. */
static bool runs_from_build_dir(void)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);

	return self && g_str_has_prefix(self, STELLA_BUILD_DIR "/");
}

char *program_path(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(programs); i++) {
		if (g_strcmp0(name, programs[i].name) != 0)
			continue;
		if (runs_from_build_dir())
			return g_build_filename(STELLA_BUILD_DIR, programs[i].build_dir, name,
						NULL);
		return g_build_filename(STELLA_LIBEXECDIR, name, NULL);
	}
	g_assert_not_reached();
}
