/* See limits-fixture.h. */
#include "executor/cgroup-find.h"
#include "executor/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits-fixture.h"

static const char *const controllers[] = { "memory", "pids" };

/* By controller, or one for both: where this process was, and the cgroup of its own that it is in. */
typedef struct {
	char *before;
	char *own;
} Place;
static Place places[G_N_ELEMENTS(controllers)];
static bool has_v2; /* one of them is of version 2, which is the same place for both */

static bool write_file(const char *dir, const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(dir, name, NULL);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

/* The hierarchy's root, where processes are in nobody's way. */
static char *find_root(const char *dir)
{
	char *root = g_strdup(dir);

	for (;;) {
		g_autofree char *parent = g_path_get_dirname(root);
		g_autofree char *file = g_build_filename(parent, "cgroup.controllers", NULL);

		if (!g_file_test(file, G_FILE_TEST_EXISTS))
			return root;
		g_free(root);
		root = g_steal_pointer(&parent);
	}
}

/* So that all cgroups of sessions below ours are this test's. */
static void enter_own(size_t i)
{
	g_autofree char *cgroup = NULL;
	g_autofree char *mounts = NULL;
	g_autofree char *name = g_strdup_printf("it-limits-%d", (int)getpid());
	g_autofree char *parent = NULL;
	ExrCgroupPlace place;

	if (!g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL) ||
	    !g_file_get_contents("/proc/self/cgroup", &cgroup, NULL, NULL))
		return;
	exr_cgroup_find(cgroup, mounts, controllers[i], &place);
	if (place.dirs[0] && place.version == 1)
		parent = g_strdup(place.dirs[0]);
	else if (place.dirs[0] && !has_v2)
		parent = find_root(place.dirs[0]);
	if (place.version == 2 && parent) {
		(void)write_file(parent, "cgroup.subtree_control", "+memory");
		(void)write_file(parent, "cgroup.subtree_control", "+pids");
		has_v2 = true;
	}
	if (parent) {
		g_autofree char *own = g_build_filename(parent, name, NULL);

		if (mkdir(own, 0755) == 0 && write_file(own, "cgroup.procs", "0")) {
			places[i].before = g_strdup(place.dirs[0]);
			places[i].own = g_steal_pointer(&own);
		}
	}
	exr_cgroup_place_clear(&place);
}

int limits_leave(int status)
{
	for (size_t i = 0; i < G_N_ELEMENTS(controllers); i++) {
		g_autofree char *leaf = NULL;

		if (!places[i].own)
			continue;
		leaf = g_build_filename(places[i].own, EXR_CGROUP_LEAF, NULL);
		if (!write_file(places[i].before, "cgroup.procs", "0") ||
		    (rmdir(leaf) != 0 && errno != ENOENT) || rmdir(places[i].own) != 0) {
			fprintf(stderr, "left: %s: %s\n", places[i].own, g_strerror(errno));
			status = 1;
		}
	}
	return status;
}

int limits_require(void)
{
	const char *must_run = g_getenv("STELLA_TESTS_MUST_RUN");

	for (size_t i = 0; i < G_N_ELEMENTS(controllers); i++) {
		CGROUP_AUTO parent = EXR_NO_CGROUP;
		g_autofree char *reason = NULL;

		enter_own(i);
		if (exr_cgroup_check(controllers[i], &reason) < 0 ||
		    exr_cgroup_find_parent(controllers[i], &parent, &reason) < 0) {
			fprintf(stderr, "cannot run: %s\n", reason);
			return limits_leave(g_strcmp0(must_run, "1") == 0 ? 1 : 77);
		}
	}
	return 0;
}

int count_session_cgroups(void)
{
	int count = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(controllers); i++) {
		CGROUP_AUTO parent = EXR_NO_CGROUP;
		g_autofree char *reason = NULL;
		g_autoptr(GDir) dir = NULL;
		const char *name;

		if (exr_cgroup_find_parent(controllers[i], &parent, &reason) < 0 ||
		    !(dir = g_dir_open(parent.path, 0, NULL)))
			return -1;
		while ((name = g_dir_read_name(dir)))
			count += g_str_has_prefix(name, "sandbox-");
	}
	return count;
}

/* The mount points may be below each other: the last one first. */
static bool change_mounts(WithoutCgroups how)
{
	g_autofree char *mounts = NULL;
	g_auto(GStrv) lines = NULL;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    !g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL))
		return false;
	lines = g_strsplit(mounts, "\n", -1);
	for (guint i = g_strv_length(lines); i-- > 0;) {
		g_auto(GStrv) fields = g_strsplit(lines[i], " ", 6);

		if (!strstr(lines[i], " - cgroup"))
			continue;
		if (how == CGROUPS_HIDDEN ? umount2(fields[4], MNT_DETACH) != 0
					  : mount(NULL, fields[4], NULL,
						  MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0)
			return false;
	}
	return true;
}

int run_without_cgroups(WithoutCgroups how, bool (*check)(void *data), void *data)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(change_mounts(how) && check(data) ? 0 : 1);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
