/* From the texts of procfs to directories; see cgroup-find.h.
 *
 * Both files give paths as our cgroup namespace has them: the root that a mount shows, and our own
 * cgroup, each relative to the namespace's root. What of our path lies below the mount's root is the
 * directory below its mount point. A mount that shows another part of the hierarchy, and a path that
 * climbs out of the namespace, give nothing: a guess could put a sandbox outside of limits around us. */
#include "executor/cgroup-find.h"

#include "common/path-util.h"

#include <stdbool.h>
#include <string.h>

static bool list_has(const char *list, const char *name)
{
	g_auto(GStrv) names = g_strsplit(list, ",", -1);

	return g_strv_contains((const char *const *)names, name);
}

/* Our path in the hierarchy of a controller, and its version; NULL when there is none. The lines are
 * "id:controllers:path"; version 2's is "0::path", and the path may hold any other character. */
static char *find_own_path(const char *cgroup, const char *controller, int *ret_version)
{
	g_auto(GStrv) lines = g_strsplit(cgroup, "\n", -1);
	const char *unified = NULL;

	for (char **line = lines; *line; line++) {
		g_auto(GStrv) fields = g_strsplit(*line, ":", 3);

		if (g_strv_length(fields) != 3 || fields[2][0] != '/')
			continue;
		if (strcmp(fields[0], "0") == 0 && fields[1][0] == '\0')
			unified = *line + 3;
		if (!list_has(fields[1], controller))
			continue;
		*ret_version = 1;
		return g_strdup(fields[2]);
	}
	*ret_version = unified ? 2 : 0;
	return g_strdup(unified);
}

/* mountinfo shows blanks and backslashes as a backslash with three octal digits. */
static char *unescape(const char *text)
{
	GString *plain = g_string_new(NULL);

	for (const char *at = text; *at; at++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' &&
		    at[3] >= '0' && at[3] <= '7') {
			g_string_append_c(plain, (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 +
							(at[3] - '0')));
			at += 3;
		} else {
			g_string_append_c(plain, *at);
		}
	}
	return g_string_free(plain, FALSE);
}

/* The directory of own below a mount that shows the hierarchy from root on, or NULL. */
static char *join(const char *mount_point, const char *root, const char *own)
{
	g_auto(GStrv) names = NULL;
	const char *below;

	if (!path_is_below(own, root))
		return NULL;
	below = path_below(own, root);
	names = g_strsplit(below, "/", -1);
	if (g_strv_contains((const char *const *)names, ".."))
		return NULL;
	return path_join(mount_point, below);
}

typedef struct {
	char *root;
	char *mount_point;
	bool writable;
} Mount;

static void mount_clear(Mount *mount)
{
	g_free(mount->root);
	g_free(mount->mount_point);
}

/* Whether the line is of a mount of the hierarchy, and then what it says: "id parent major:minor root mount-point
 * options [optional fields] - type source super-options". */
static bool parse_mount(const char *line, int version, const char *controller, Mount *ret_mount)
{
	const char *tail = strstr(line, " - ");
	g_auto(GStrv) head = g_strsplit(line, " ", 7);
	g_auto(GStrv) rest = tail ? g_strsplit(tail + 3, " ", 3) : NULL;

	if (!rest || g_strv_length(head) < 7 || g_strv_length(rest) != 3)
		return false;
	if (strcmp(rest[0], version == 1 ? "cgroup" : "cgroup2") != 0)
		return false;
	if (version == 1 && !list_has(rest[2], controller))
		return false;
	ret_mount->root = unescape(head[3]);
	ret_mount->mount_point = unescape(head[4]);
	ret_mount->writable = list_has(head[5], "rw") && list_has(rest[2], "rw");
	return true;
}

void exr_cgroup_find(const char *cgroup, const char *mountinfo, const char *controller,
		     ExrCgroupPlace *ret_place)
{
	GPtrArray *dirs = g_ptr_array_new();
	int version;
	g_autofree char *own = find_own_path(cgroup, controller, &version);
	g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);
	gint writable_count = 0;

	for (char **line = own ? lines : NULL; line && *line; line++) {
		Mount mount = { 0 };
		char *dir;

		if (!parse_mount(*line, version, controller, &mount))
			continue;
		dir = join(mount.mount_point, mount.root, own);
		if (dir)
			g_ptr_array_insert(dirs, mount.writable ? writable_count++ : -1, dir);
		mount_clear(&mount);
	}
	g_ptr_array_add(dirs, NULL);
	ret_place->version = version;
	ret_place->dirs = (char **)g_ptr_array_free(dirs, FALSE);
}

void exr_cgroup_place_clear(ExrCgroupPlace *place)
{
	g_strfreev(place->dirs);
	memset(place, 0, sizeof *place);
}
