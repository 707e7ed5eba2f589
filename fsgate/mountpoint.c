/* The place where a view is mounted; see mountpoint.h. A stale or hung view must not hang the caller, so what
 * may be one is judged by mountinfo before it is touched. */
#include "fsgate/mountpoint.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"
#include "fsgate/mountinfo.h"

#include <dirent.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

bool fsg_mountpoint_is_view(const char *path)
{
	g_autoptr(FsgViewMount) mount = fsg_view_mount_find(path);

	return mount != NULL;
}

/* The path with the links of all but its last component resolved: what mountinfo says, and what a dead
 * mountpoint still allows. */
static char *resolve_parent(const char *path)
{
	g_autofree char *current = g_get_current_dir();
	g_autofree char *clean = path_clean_from(current, path);
	g_autofree char *dir = g_path_get_dirname(clean);
	g_autofree char *name = g_path_get_basename(clean);
	char *real = realpath(dir, NULL);
	char *joined = real ? path_join(real, strcmp(clean, "/") == 0 ? "" : name) : NULL;

	free(real);
	return joined;
}

/* Whether the view at path lost its gateway. A child asks, because a gateway that hangs would hang whoever
 * asks it; statfs is the question that is never answered from a cache. */
#define PROBE_S 2

bool fsg_mountpoint_is_dead(const char *path)
{
	struct statfs fs;
	int status = 0, asked = 0, r;
	pid_t child;

	if (!fsg_mountpoint_is_view(path))
		return false;
	child = fork();
	if (child == 0) {
		(void)signal(SIGALRM, SIG_DFL);
		alarm(PROBE_S);
		/* A question under way when the gateway dies is aborted: the next one has the answer. */
		do
			r = statfs(path, &fs) == 0 ? 0 : -errno;
		while (r == -ECONNABORTED && asked++ == 0);
		_exit(r == -ENOTCONN);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 1;
}

static int check_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	bool empty = true;

	if (!dir) {
		int r = -errno;

		fd_close(&copy);
		return r;
	}
	while (empty && (entry = readdir(dir)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	closedir(dir);
	return empty ? 0 : -ENOTEMPTY;
}

/* The mount whose host directory contains path, or NULL: serving such a view would serve itself. */
static const ViewEntry *find_containing(const ViewPlan *plan, const char *path)
{
	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(plan->entries, i);
		char *real;
		bool inside;

		if (entry->kind != VIEW_ENTRY_MOUNT || !entry->is_dir)
			continue;
		real = realpath(entry->host_path, NULL);
		inside = real && path_is_below(path, real);
		free(real);
		if (inside)
			return entry;
	}
	return NULL;
}

static int explain(char **reterr_message, const char *path, int r, const char *why)
{
	g_autofree char *shown = path_escape(path);

	*reterr_message = g_strdup_printf("mountpoint \"%s\": %s", shown, why);
	return r;
}

int fsg_mountpoint_open(const char *path, const ViewPlan *plan, char **ret_path,
			char **reterr_message)
{
	g_autofree char *where = resolve_parent(path);
	g_autofree char *real = NULL;
	char link[FD_PROC_PATH_SIZE];
	const ViewEntry *containing;
	struct stat st;
	FD_AUTO fd = -1;
	int r;

	if (!where)
		return explain(reterr_message, path, -errno, errno_text(errno));
	/* A view whose gateway was killed: nothing can be in it any more, so it is taken over. */
	if (fsg_mountpoint_is_dead(where) && (r = fsg_mountpoint_unmount(where, true)) < 0)
		return explain(reterr_message, path, r,
			       "a dead view is mounted there and cannot be detached");
	if (fsg_mountpoint_is_view(where))
		return explain(reterr_message, path, -EBUSY, "a view is mounted there already");
	fd = open(where, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return explain(reterr_message, path, -errno, errno_text(errno));
	/* Its parent may have been exchanged since it was resolved: what is used is what is judged. */
	fd_proc_path(fd, link);
	real = g_file_read_link(link, NULL);
	if (!real || strcmp(real, where) != 0)
		return explain(reterr_message, path, -ESTALE, "was moved while it was looked at");
	if (S_ISLNK(st.st_mode))
		return explain(reterr_message, path, -ELOOP,
			       "is a symbolic link; name the directory itself");
	if (!S_ISDIR(st.st_mode))
		return explain(reterr_message, path, -ENOTDIR, "is not a directory");
	if ((containing = find_containing(plan, where))) {
		g_autofree char *why = g_strdup_printf(
			"lies inside the mount %s; choose a mountpoint outside the workspace",
			containing->view_path);

		return explain(reterr_message, path, -EINVAL, why);
	}
	if ((r = check_empty(fd)) < 0)
		return explain(reterr_message, path, r,
			       r == -ENOTEMPTY ? "the directory is not empty" : errno_text(-r));
	*ret_path = g_steal_pointer(&where);
	return fd_steal(&fd);
}

static int run_fusermount(const char *path, bool lazy)
{
	const char *argv[] = { "fusermount3", lazy ? "-uqz" : "-uq", "--", path, NULL };
	int status;

	if (!g_spawn_sync("/", (char **)(uintptr_t)argv, NULL,
			  G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL |
				  G_SPAWN_STDERR_TO_DEV_NULL,
			  NULL, NULL, NULL, NULL, &status, NULL))
		return -ENOENT;
	return status == 0 ? 0 : -EBUSY;
}

int fsg_mountpoint_unmount(const char *path, bool lazy)
{
	g_autoptr(FsgViewMount) mount = fsg_view_mount_find(path);

	if (!mount)
		return -EINVAL;
	if (geteuid() != 0 && geteuid() != mount->uid)
		return -EPERM;
	if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	return errno == EPERM ? run_fusermount(path, lazy) : -errno;
}
