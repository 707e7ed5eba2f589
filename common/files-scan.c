/* The names of a directory of the view, in whatever way it is made: of the host, of the view's plan, or of both. The
 * same names as the gateway lists (fsgate's ops-dir.c); what is hidden the caller finds out by stepping to it. */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/path-util.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

/* What the plan has right below a view path. Each name once. */
static GHashTable *names_of_plan(const FilesCall *call, const char *view_path)
{
	GHashTable *names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	const GPtrArray *entries = path_resolver_plan(call->resolver)->entries;

	for (guint i = 0; i < entries->len; i++) {
		const ViewEntry *entry = entries->pdata[i];
		const char *rest;

		if (!path_is_below(entry->view_path, view_path))
			continue;
		rest = path_below(entry->view_path, view_path);
		if (rest[0] != '\0')
			g_hash_table_add(names, g_strndup(rest, strcspn(rest, "/")));
	}
	return names;
}

static int scan_host(int take_fd, GHashTable *covered, FilesVisit visit, void *data, int *ret_host)
{
	DIR *dir = fdopendir(take_fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		*ret_host = -errno;
		fd_close(&take_fd);
		return 0;
	}
	while (errno = 0, r == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    g_hash_table_contains(covered, entry->d_name))
			continue;
		r = visit(data, entry->d_name, DTTOIF(entry->d_type));
	}
	if (r == 0)
		*ret_host = -errno;
	closedir(dir);
	return r;
}

int files_scan(FilesCall *call, const PathPlace *dir, FilesVisit visit, void *data)
{
	g_autoptr(GHashTable) covered = names_of_plan(call, dir->view_path);
	int host = 0, r = 0;
	GHashTableIter iter;
	gpointer name;

	g_hash_table_iter_init(&iter, covered);
	while (r == 0 && g_hash_table_iter_next(&iter, &name, NULL))
		r = visit(data, name, 0);
	if (r != 0 || dir->fd < 0)
		return r;
	host = path_resolver_reopen(dir, O_RDONLY | O_DIRECTORY);
	if (host >= 0)
		r = scan_host(host, covered, visit, data, &host);
	if (r != 0)
		return r;
	return host < 0 ? files_fail(call, host, dir, NULL) : 0;
}
