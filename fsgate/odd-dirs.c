/* Directories whose listing on the host does not say what the view shows. The host lists a mount point with the
 * inode number of what is covered; a look-up gives what is mounted there, or the view's stand-in for it. There are few
 * such directories, and only in them each listed name is looked up for its number.
 *
 * The clones are private: what is mounted on the host later does not appear in them, so one look is enough. */
#include "fsgate/odd-dirs.h"

#include "common/fd-util.h"
#include "common/path-util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

void fsg_view_find_odd_parent(FsgView *view, const char *path)
{
	g_autofree char *dir = g_path_get_dirname(path);
	FD_AUTO fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		fsg_view_add_odd_dir(view, st.st_dev, st.st_ino);
}

/* With the links of the policy's path resolved, as mountinfo has it. NULL when it is gone. */
static char *real_path(const char *host_path)
{
	FD_AUTO fd = open(host_path, O_PATH | O_CLOEXEC);
	char link[FD_PROC_PATH_SIZE];

	if (fd < 0)
		return NULL;
	fd_proc_path(fd, link);
	return g_file_read_link(link, NULL);
}

static void look_below(FsgView *view, const char *path, char *const *lines)
{
	for (; *lines; lines++) {
		g_auto(GStrv) words = g_strsplit(*lines, " ", 6);
		g_autofree char *point = NULL;

		if (g_strv_length(words) < 6)
			continue;
		point = g_strcompress(words[4]);
		if (strcmp(point, path) != 0 && path_is_below(point, path))
			fsg_view_find_odd_parent(view, point);
	}
}

void fsg_view_find_odd_dirs(FsgView *view)
{
	g_autofree char *mounts = NULL;
	g_auto(GStrv) lines = NULL;

	if (!g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL))
		return;
	lines = g_strsplit(mounts, "\n", -1);
	for (guint i = 0; i < view->plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(view->plan->entries, i);
		g_autofree char *path = NULL;

		if (entry->kind == VIEW_ENTRY_MOUNT && entry->is_dir &&
		    (path = real_path(entry->host_path)))
			look_below(view, path, lines);
	}
}
