/* Where the project's programs are; see program-path.h. */
#include "common/program-path.h"

#include "config.h"

#include <dlfcn.h>
#include <glib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
	const char *name;
	const char *build_dir;
} programs[] = {
	{ "stella-fsgate", "fsgate" },
	{ "stella-exec", "executor" },
	{ "stella-sandbox-init", "executor" },
};

static bool is_in_build_dir(const char *path)
{
	return path && g_str_has_prefix(path, STELLA_BUILD_DIR "/");
}

/* The file that this code was loaded from, when it is a library of its own; the caller frees with free(). */
static char *own_library(void)
{
	Dl_info info;

	return dladdr((void *)&program_path, &info) && info.dli_fname
		       ? realpath(info.dli_fname, NULL)
		       : NULL;
}

/* A program of the build directory, a test of it too, or any program that has loaded the library from there. */
static bool runs_from_build_dir(void)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	char *library = own_library();
	bool runs = is_in_build_dir(self) || is_in_build_dir(library);

	free(library);
	return runs;
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
