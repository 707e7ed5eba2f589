/* A stand-in for mise, as far as tool trees rest on it: it is bin/mise of a home, and every shim is a link to it.
 *
 * Called by the name of a tool it runs that tool: installs/TOOL/VERSION/bin/TOOL, looked for below MISE_DATA_DIR,
 * then below the .mise-tools beside its own bin directory. VERSION is that of the variable MISE_TOOL_VERSION (the
 * tool's name in upper case), else "latest". Which tool it is, argv[0] alone says, as for mise itself: an argv[0]
 * that is lost on the way shows as "mise".
 *
 *   mise where      the home that it finds itself in
 *   mise name ...   its argv[0] */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char *own_home(void)
{
	g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *bin = program ? g_path_get_dirname(program) : NULL;

	return bin ? g_path_get_dirname(bin) : NULL;
}

static const char *version_of(const char *tool)
{
	g_autofree char *upper = g_ascii_strup(tool, -1);
	g_autofree char *variable = g_strdup_printf("MISE_%s_VERSION", upper);
	const char *version = g_getenv(variable);

	return version ? version : "latest";
}

/* The tool's program below a tree, or NULL. */
static char *find_in(const char *tree, const char *tool)
{
	g_autofree char *path = NULL;

	if (!tree)
		return NULL;
	path = g_build_filename(tree, "installs", tool, version_of(tool), "bin", tool, NULL);
	return access(path, X_OK) == 0 ? g_steal_pointer(&path) : NULL;
}

static int run_tool(const char *tool, char **argv)
{
	g_autofree char *home = own_home();
	g_autofree char *system_tree = home ? g_build_filename(home, ".mise-tools", NULL) : NULL;
	g_autofree char *program = find_in(g_getenv("MISE_DATA_DIR"), tool);

	if (!program)
		program = find_in(system_tree, tool);
	if (!program) {
		fprintf(stderr, "mise: %s %s is not installed\n", tool, version_of(tool));
		return 127;
	}
	argv[0] = program;
	execv(program, argv);
	fprintf(stderr, "mise: %s: %s\n", program, g_strerror(errno));
	return 126;
}

int main(int argc, char **argv)
{
	g_autofree char *name = g_path_get_basename(argc > 0 ? argv[0] : "");
	g_autofree char *home = own_home();

	if (strcmp(name, "mise") != 0)
		return run_tool(name, argv);
	if (argc > 1 && strcmp(argv[1], "where") == 0)
		puts(home ? home : "");
	else
		puts(argv[0]);
	return 0;
}
