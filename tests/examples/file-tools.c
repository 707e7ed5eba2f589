/* A boundary for the file tools of a host agent: what a model asks for goes through the resolver, whatever it says.
 *
 *   file-tools WORKSPACE read PATH | write PATH TEXT | edit PATH OLD NEW | list PATH | open PATH
 *
 * No sandbox is started, and nothing but WORKSPACE can be reached; `open` shows the way for a tool that wants a
 * descriptor. Exit status 1: refused, with the code and the reason on stderr. */
#include <fcntl.h>
#include <stdio.h>
#include <stella/stella.h>
#include <string.h>
#include <unistd.h>

static StellaPathResolver *open_boundary(const char *workspace, GError **error)
{
	const StellaMount mounts[] = {
		{ workspace, STELLA_MOUNT_WORKSPACE, STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
	};
	StellaPathResolverConfig config;

	stella_path_resolver_config_init(&config);
	config.workspace_root = workspace;
	config.working_dir = STELLA_MOUNT_WORKSPACE;
	config.mounts = mounts;
	config.n_mounts = G_N_ELEMENTS(mounts);
	return stella_path_resolver_new(&config, error);
}

static gboolean read_file(StellaFiles *files, const char *path, GError **error)
{
	g_autoptr(GBytes) bytes = stella_files_read(files, path, 0, 0, NULL, error);
	gsize size;
	const void *data;

	if (!bytes)
		return FALSE;
	data = g_bytes_get_data(bytes, &size);
	return fwrite(data, 1, size, stdout) == size;
}

static gboolean list_directory(StellaFiles *files, const char *path, GError **error)
{
	g_autoptr(GPtrArray) entries = stella_files_list(files, path, NULL, error);

	if (!entries)
		return FALSE;
	for (guint i = 0; i < entries->len; i++) {
		const StellaDirEntry *entry = g_ptr_array_index(entries, i);

		printf("%s%s\n", entry->name, entry->is_dir ? "/" : "");
	}
	return TRUE;
}

/* The descriptor is the file itself: whatever is renamed or linked meanwhile, no other file is read. */
static gboolean read_by_descriptor(StellaPathResolver *resolver, const char *path, GError **error)
{
	int fd = stella_path_resolver_open(resolver, path, O_RDONLY, 0, error);
	char buffer[4096];
	ssize_t n;

	if (fd < 0)
		return FALSE;
	while ((n = read(fd, buffer, sizeof buffer)) > 0)
		fwrite(buffer, 1, (size_t)n, stdout);
	close(fd);
	return n == 0;
}

static gboolean run_tool(StellaPathResolver *resolver, char **arguments, GError **error)
{
	g_autoptr(StellaFiles) files = stella_files_new(resolver);
	guint count = g_strv_length(arguments);
	const char *tool = arguments[0], *path = count > 1 ? arguments[1] : "";

	if (count == 2 && strcmp(tool, "read") == 0)
		return read_file(files, path, error);
	if (count == 2 && strcmp(tool, "list") == 0)
		return list_directory(files, path, error);
	if (count == 2 && strcmp(tool, "open") == 0)
		return read_by_descriptor(resolver, path, error);
	if (count == 3 && strcmp(tool, "write") == 0)
		return stella_files_write(files, path, arguments[2], strlen(arguments[2]),
					  STELLA_FILES_PARENTS, NULL, error);
	if (count == 4 && strcmp(tool, "edit") == 0)
		return stella_files_edit(files, path, arguments[2], arguments[3], STELLA_FILES_NONE,
					 NULL, NULL, error);
	g_set_error(error, STELLA_ERROR, STELLA_ERROR_INVALID_ARGUMENT, "no such tool: %s", tool);
	return FALSE;
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(StellaPathResolver) resolver = NULL;

	if (argc < 3) {
		fprintf(stderr, "usage: file-tools WORKSPACE TOOL PATH [TEXT...]\n");
		return 2;
	}
	resolver = open_boundary(argv[1], &error);
	if (resolver && run_tool(resolver, argv + 2, &error))
		return 0;
	fprintf(stderr, "%s: %s\n",
		error->domain == STELLA_ERROR ? stella_error_code_name((StellaError)error->code)
					      : "error",
		error->message);
	return 1;
}
