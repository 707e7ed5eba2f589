/* Reading mountinfo; see mountinfo.h. A line is: id, parent, major:minor, root, mountpoint, options, optional
 * fields, "-", type, source, the file system's own options. */
#include "fsgate/mountinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fsg_view_mount_free(FsgViewMount *mount)
{
	if (!mount)
		return;
	g_free(mount->path);
	g_free(mount);
}

static void free_mount(gpointer data)
{
	fsg_view_mount_free(data);
}

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static char *unescape_octal(const char *text)
{
	GString *plain = g_string_new(NULL);

	while (*text) {
		if (text[0] == '\\' && g_ascii_isdigit(text[1]) && g_ascii_isdigit(text[2]) &&
		    g_ascii_isdigit(text[3])) {
			g_string_append_c(plain, (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 +
							(text[3] - '0')));
			text += 4;
			continue;
		}
		g_string_append_c(plain, *text++);
	}
	return g_string_free(plain, FALSE);
}

/* NULL for a line that makes no sense. *ret_is_view: of our kind. */
static FsgViewMount *parse_line(const char *line, bool *ret_is_view)
{
	g_auto(GStrv) fields = g_strsplit(line, " ", -1);
	const char *rest = strstr(line, " - "), *user;
	FsgViewMount mount = { .uid = (uid_t)-1 };

	if (g_strv_length(fields) < 6 || !rest || sscanf(fields[0], "%u", &mount.id) != 1 ||
	    sscanf(fields[2], "%u:%u", &mount.dev_major, &mount.dev_minor) != 2)
		return NULL;
	*ret_is_view = g_str_has_prefix(rest + 3, "fuse." FSG_FS_SUBTYPE " ");
	user = strstr(rest, "user_id=");
	if (user)
		mount.uid = (uid_t)strtoul(user + strlen("user_id="), NULL, 10);
	mount.path = unescape_octal(fields[4]);
	return g_memdup2(&mount, sizeof mount);
}

GPtrArray *fsg_view_mounts(void)
{
	GPtrArray *views = g_ptr_array_new_with_free_func(free_mount);
	g_autofree char *info = NULL;
	g_auto(GStrv) lines = NULL;

	if (!g_file_get_contents("/proc/self/mountinfo", &info, NULL, NULL))
		return views;
	lines = g_strsplit(info, "\n", -1);
	for (char **line = lines; *line; line++) {
		bool is_view = false;
		g_autoptr(FsgViewMount) mount = parse_line(*line, &is_view);

		/* The last mount listed at a place is the one on top. */
		for (guint i = 0; mount && i < views->len; i++) {
			const FsgViewMount *below = g_ptr_array_index(views, i);

			if (strcmp(below->path, mount->path) == 0)
				g_ptr_array_remove_index(views, i--);
		}
		if (mount && is_view)
			g_ptr_array_add(views, g_steal_pointer(&mount));
	}
	return views;
}

FsgViewMount *fsg_view_mount_find(const char *path)
{
	g_autoptr(GPtrArray) views = fsg_view_mounts();

	for (guint i = 0; i < views->len; i++) {
		const FsgViewMount *mount = g_ptr_array_index(views, i);

		if (strcmp(mount->path, path) == 0)
			return g_ptr_array_steal_index(views, i);
	}
	return NULL;
}
