/* The hint for a missing program; see program-hint.h. */
#include "executor/program-hint.h"

#include "common/path-util.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Its absolute path on the host, or NULL. */
static char *find_on_host(const char *program, char **host_env)
{
	const char *path = g_environ_getenv(host_env, "PATH");
	g_auto(GStrv) dirs = NULL;

	if (strchr(program, '/'))
		return *program == '/' && is_program(program) ? g_strdup(program) : NULL;
	dirs = g_strsplit(path ? path : "", ":", -1);
	for (char **dir = dirs; *program && *dir; dir++) {
		g_autofree char *found = path_join(*dir, program);

		if (**dir == '/' && is_program(found))
			return g_steal_pointer(&found);
	}
	return NULL;
}

/* Whether the view has a place of its own there (/tmp, /run): what the host has at that path is not in it. */
static bool is_a_place_of_its_own(const ViewPlan *plan, const char *path)
{
	const ViewEntry *deepest = NULL;

	/* Sorted by path: those that cover it come in the order of their depth. */
	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (path_is_below(path, entry->view_path))
			deepest = entry;
	}
	return deepest && deepest->kind == VIEW_ENTRY_POINT && !deepest->host_path;
}

char *exr_program_hint(const ViewPlan *plan, const char *program, char **host_env)
{
	g_autofree char *found = find_on_host(program, host_env), *shown = NULL, *target = NULL;
	g_autofree char *located = NULL;

	if (!found)
		return NULL;
	located = view_plan_locate(plan, found);
	if (located && strcmp(located, found) != 0) {
		shown = path_escape(located);
		return g_strdup_printf("in the view it is %s: run it by that path", shown);
	}
	/* In a directory that the view has, yet not found: a link to where the view ends. */
	if (located && !is_a_place_of_its_own(plan, found)) {
		char *resolved = realpath(found, NULL);

		target = g_strdup(resolved);
		free(resolved);
		if (!target || strcmp(target, found) == 0)
			return NULL;
	}
	shown = path_escape(target ? target : found);
	return g_strdup_printf("the host has %s: give --ro %s and run it by that path", shown,
			       shown);
}
