/* What is there now, and what is more than before; see leaks.h. */
#include "lib/leaks.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The ids that sandboxes of root have on the host. */
#define FIRST_LENT_ID 1900000000u
#define LOOK_AGAIN_US 5000
#define CGROUP_DEPTH  8

static void add_mounts(GString *list)
{
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;

	if (!g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL))
		return;
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line; line++)
		if (**line)
			g_string_append_printf(list, "mount %s\n", *line);
}

/* All but ourselves; a process that has ended is its parent's to reap. */
static void add_processes(GString *list)
{
	g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename("/proc", name, "stat", NULL);
		g_autofree char *text = NULL;
		const char *state;

		if (!g_ascii_isdigit(name[0]) || atoi(name) == (int)getpid() ||
		    !g_file_get_contents(path, &text, NULL, NULL) || !(state = strrchr(text, ')')))
			continue;
		if (state[1] != ' ' || state[2] == 'Z' || state[2] == 'X')
			continue;
		g_string_append_printf(list, "process %.*s\n", (int)(state + 1 - text), text);
	}
}

static void add_fds(GString *list)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct stat st;

		if (fstat(fd, &st) == 0)
			g_string_append_printf(list, "fd %d\n", fd);
	}
}

/* The directories that stay, and the lock of the whole, are no leaks. */
static void add_tree(GString *list, const char *what, const char *path, bool is_state)
{
	g_autoptr(GDir) dir = path ? g_dir_open(path, 0, NULL) : NULL;
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *inner = g_build_filename(path, name, NULL);

		if (is_state && (strcmp(name, "sessions") == 0 || strcmp(name, "views") == 0))
			add_tree(list, what, inner, false);
		else if (!is_state || strcmp(name, "lock") != 0)
			g_string_append_printf(list, "%s %s\n", what, inner);
	}
}

static void add_connections(GString *list)
{
	g_autoptr(GDir) dir = g_dir_open("/sys/fs/fuse/connections", 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename("/sys/fs/fuse/connections", name, NULL);
		struct stat st;

		if (stat(path, &st) == 0 && st.st_uid >= FIRST_LENT_ID)
			g_string_append_printf(list, "connection %s\n", name);
	}
}

static void add_cgroups(GString *list, const char *path, int depth)
{
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	const char *name;

	while (dir && depth > 0 && (name = g_dir_read_name(dir))) {
		g_autofree char *inner = g_build_filename(path, name, NULL);

		if (!g_file_test(inner, G_FILE_TEST_IS_DIR) ||
		    g_file_test(inner, G_FILE_TEST_IS_SYMLINK))
			continue;
		if (g_str_has_prefix(name, "stella") || g_str_has_prefix(name, "sandbox-"))
			g_string_append_printf(list, "cgroup %s\n", inner);
		add_cgroups(list, inner, depth - 1);
	}
}

char *leaks_list(bool whole_machine)
{
	GString *list = g_string_new(NULL);

	add_mounts(list);
	add_processes(list);
	add_fds(list);
	add_tree(list, "state", g_getenv("STELLA_STATE_DIR"), true);
	add_tree(list, "temporary", g_getenv("TMPDIR"), false);
	if (whole_machine) {
		add_connections(list);
		add_cgroups(list, "/sys/fs/cgroup", CGROUP_DEPTH);
	}
	return g_string_free(list, FALSE);
}

static char *find_new(const char *before, bool whole_machine)
{
	g_autofree char *now = leaks_list(whole_machine);
	g_auto(GStrv) then = g_strsplit(before, "\n", -1), lines = g_strsplit(now, "\n", -1);
	GString *more = g_string_new(NULL);

	for (char **line = lines; *line; line++)
		if (**line && !g_strv_contains((const char *const *)then, *line))
			g_string_append_printf(more, "%s\n", *line);
	return g_string_free(more, more->len == 0);
}

char *leaks_find_new(const char *before, bool whole_machine, double seconds)
{
	gint64 until = g_get_monotonic_time() + (gint64)(seconds * G_USEC_PER_SEC);

	for (;;) {
		char *more = find_new(before, whole_machine);

		if (!more || g_get_monotonic_time() >= until)
			return more;
		g_free(more);
		g_usleep(LOOK_AGAIN_US);
	}
}
