/* Counting in /proc; see session-usage.h. */
#include "session-usage.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Times 10 ms. */
#define PATIENCE 300

static char *read_proc(int pid, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/%s", pid, name);
	char *text = NULL;

	(void)g_file_get_contents(path, &text, NULL, NULL);
	return text;
}

static int count_lines(int pid, const char *name)
{
	g_autofree char *text = read_proc(pid, name);
	int count = 0;

	if (!text || !*text)
		return -1;
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		count++;
	return count;
}

static int count_entries(int pid, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/%s", pid, name);
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	int count = 0;

	if (!dir)
		return -1;
	while (g_dir_read_name(dir))
		count++;
	return count;
}

/* Private_Clean, Private_Dirty and Private_Hugetlb. */
static long private_kib(int pid)
{
	g_autofree char *text = read_proc(pid, "smaps_rollup");
	long sum = 0;

	if (!text || !*text)
		return -1;
	for (const char *at = text; (at = strstr(at, "\nPrivate_")); at++) {
		const char *colon = strchr(at, ':');

		if (colon)
			sum += strtol(colon + 1, NULL, 10);
	}
	return sum;
}

static long add(long sum, long part)
{
	return sum < 0 || part < 0 ? -1 : sum + part;
}

/* The children of every thread of a process. */
static void add_children(int pid, GArray *pids)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/task", pid);
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	const char *task;

	while (dir && (task = g_dir_read_name(dir))) {
		g_autofree char *name = g_strdup_printf("task/%s/children", task);
		g_autofree char *text = read_proc(pid, name);
		g_auto(GStrv) children = g_strsplit(text ? text : "", " ", -1);

		for (char **child = children; *child; child++) {
			int number = atoi(*child);

			if (number > 0)
				g_array_append_val(pids, number);
		}
	}
}

/* How many processes there are below our children. */
static int read_usage(SessionUsage *ret_usage)
{
	g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(int));
	SessionUsage usage = { .own_kib = private_kib(getpid()) };
	guint direct;

	/* One of them is the directory that is being counted. */
	usage.fds = count_entries(getpid(), "fd") - 1;
	add_children(getpid(), pids);
	direct = pids->len;
	for (guint i = 0; i < pids->len; i++) {
		int pid = g_array_index(pids, int, i);

		if (i < direct)
			usage.mounts = (int)add(usage.mounts, count_lines(pid, "mountinfo"));
		usage.fds = (int)add(usage.fds, count_entries(pid, "fd"));
		usage.session_kib = add(usage.session_kib, private_kib(pid));
		add_children(pid, pids);
	}
	usage.processes = (int)pids->len;
	*ret_usage = usage;
	return (int)(pids->len - direct);
}

void session_usage_read(int spares, SessionUsage *ret_usage)
{
	SessionUsage last = { .fds = -2 };

	/* Twice the same: one that is still getting ready has other descriptors. */
	for (int i = 0; i < PATIENCE; i++) {
		int below = read_usage(ret_usage);

		if ((spares < 0 || below == spares) && ret_usage->fds == last.fds &&
		    ret_usage->processes == last.processes)
			return;
		last = *ret_usage;
		g_usleep(10000);
	}
}
