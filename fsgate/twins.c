/* Which mounts of a view show the same host directories: what is changed through one of them changes in the
 * other. Judged by the place in the file system, device and path from its root, for a bind mount
 * on the host shows a directory at a path that says nothing of where it lies. */
#include "fsgate/twins.h"

#include "common/fd-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	FsgAnchor *anchor;
	char *place; /* from the root of the file system */
} Site;

static void site_free(gpointer data)
{
	Site *site = data;

	g_free(site->place);
	g_free(site);
}

/* The number of the mount that fd is in, or -1. */
static long mount_id_of(int fd)
{
	char path[64];
	g_autofree char *text = NULL;
	const char *line;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	if (!g_file_get_contents(path, &text, NULL, NULL) || !(line = strstr(text, "mnt_id:")))
		return -1;
	return strtol(line + strlen("mnt_id:"), NULL, 10);
}

/* Of the mount with that number: its root in the file system and its mount point. */
static bool find_mount(const char *mounts, long id, char **ret_root, char **ret_point)
{
	g_auto(GStrv) lines = g_strsplit(mounts, "\n", -1);

	for (char **line = lines; *line; line++) {
		g_auto(GStrv) words = g_strsplit(*line, " ", 6);

		if (g_strv_length(words) < 6 || strtol(words[0], NULL, 10) != id)
			continue;
		*ret_root = g_strcompress(words[3]);
		*ret_point = g_strcompress(words[4]);
		return true;
	}
	return false;
}

static char *place_of(const char *mounts, const char *host_path)
{
	FD_AUTO fd = open(host_path, O_PATH | O_CLOEXEC);
	char link[FD_PROC_PATH_SIZE];
	g_autofree char *path = NULL;
	g_autofree char *root = NULL;
	g_autofree char *point = NULL;
	const char *rest;

	if (fd < 0)
		return NULL;
	fd_proc_path(fd, link);
	path = g_file_read_link(link, NULL);
	if (!path || !find_mount(mounts, mount_id_of(fd), &root, &point) ||
	    !path_is_below(path, point))
		return NULL;
	rest = strcmp(point, "/") == 0 ? path : path + strlen(point);
	return g_build_filename("/", root, rest, NULL);
}

static void compare(FsgView *view, Site *a, Site *b)
{
	if (a->anchor->dev != b->anchor->dev)
		return;
	view->has_near = true;
	/* Not known where: as if they did. */
	if (a->place && b->place && !path_is_below(a->place, b->place) &&
	    !path_is_below(b->place, a->place))
		return;
	view->has_twins = a->anchor->has_twin = b->anchor->has_twin = true;
}

/* The stand-ins for read-only mounts inside writable ones. */
static void mark_aliases(const FsgAnchor *outer)
{
	for (guint i = 0; outer->aliases && i < outer->aliases->len; i++)
		((FsgAnchor *)g_ptr_array_index(outer->aliases, i))->has_twin = true;
}

void fsg_view_find_twins(FsgView *view)
{
	g_autoptr(GPtrArray) sites = g_ptr_array_new_with_free_func(site_free);
	g_autofree char *mounts = NULL;
	guint at = 0;

	if (!g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL))
		mounts = g_strdup("");
	for (guint i = 0; i < view->plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(view->plan->entries, i);
		Site *site;

		if (entry->kind != VIEW_ENTRY_MOUNT && entry->kind != VIEW_ENTRY_GENERATED)
			continue;
		site = g_new0(Site, 1);
		site->anchor = g_ptr_array_index(view->anchors, at++);
		if (entry->kind == VIEW_ENTRY_MOUNT)
			site->place = place_of(mounts, entry->host_path);
		g_ptr_array_add(sites, site);
	}
	for (guint i = 0; i < sites->len; i++) {
		Site *site = g_ptr_array_index(sites, i);

		mark_aliases(site->anchor);
		for (guint k = 0; k < i; k++)
			if (site->anchor->is_clone &&
			    ((Site *)g_ptr_array_index(sites, k))->anchor->is_clone)
				compare(view, site, g_ptr_array_index(sites, k));
	}
}
