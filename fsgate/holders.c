/* See holders.h. Open files are told by the id of their mount and mapped ones by their device, for both are exact
 * and cost no look at the file; working directory, root and program by the text of the link. */
#include "fsgate/holders.h"

#include "common/fd-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCAN_MS	      2000
#define HOLDERS_SHOWN 8
#define TEXT_MOST     8192

/* A link's text as a path of the view, or NULL when it leads elsewhere. */
static const char *path_in_view(const FsgViewMount *mount, const char *text)
{
	if (!text || !path_is_below(text, mount->path))
		return NULL;
	return text[strlen(mount->path)] ? text + strlen(mount->path) : "/";
}

static char *holds_by_link(const FsgViewMount *mount, const char *process)
{
	static const struct {
		const char *link, *what;
	} links[] = { { "cwd", "working directory" },
		      { "root", "root directory" },
		      { "exe", "program" } };

	for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
		g_autofree char *link = g_build_filename(process, links[i].link, NULL);
		g_autofree char *text = g_file_read_link(link, NULL);
		const char *path = path_in_view(mount, text);

		if (path)
			return g_strdup_printf("%s %s", links[i].what, path);
	}
	return NULL;
}

static bool is_on_mount(const char *process, const char *fd, unsigned int mount_id)
{
	g_autofree char *info = g_build_filename(process, "fdinfo", fd, NULL);
	g_autofree char *text = NULL;
	const char *line;
	unsigned int id;

	return g_file_get_contents(info, &text, NULL, NULL) && (line = strstr(text, "mnt_id:")) &&
	       sscanf(line, "mnt_id: %u", &id) == 1 && id == mount_id;
}

static char *holds_by_fd(const FsgViewMount *mount, const char *process)
{
	g_autofree char *dir_path = g_build_filename(process, "fd", NULL);
	g_autoptr(GDir) dir = g_dir_open(dir_path, 0, NULL);
	const char *fd;

	while (dir && (fd = g_dir_read_name(dir))) {
		g_autofree char *link = NULL;
		g_autofree char *text = NULL;
		const char *path;

		if (!is_on_mount(process, fd, mount->id))
			continue;
		link = g_build_filename(dir_path, fd, NULL);
		text = g_file_read_link(link, NULL);
		path = path_in_view(mount, text);
		return g_strdup_printf("open file %s", path ? path : "?");
	}
	return NULL;
}

/* A line of maps: addresses, rights, offset, device, inode, path. */
static char *holds_by_mapping(const FsgViewMount *mount, const char *process)
{
	g_autofree char *maps = g_build_filename(process, "maps", NULL);
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;

	if (!g_file_get_contents(maps, &text, NULL, NULL))
		return NULL;
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line; line++) {
		unsigned int major, minor;
		int at = 0;
		const char *path;

		if (sscanf(*line, "%*s %*s %*s %x:%x %*s %n", &major, &minor, &at) != 2 ||
		    major != mount->dev_major || minor != mount->dev_minor)
			continue;
		path = at > 0 ? path_in_view(mount, *line + at) : NULL;
		return g_strdup_printf("mapped file %s", path ? path : "?");
	}
	return NULL;
}

static char *what_it_holds(const FsgViewMount *mount, const char *process)
{
	char *what = holds_by_link(mount, process);

	if (!what)
		what = holds_by_fd(mount, process);
	return what ? what : holds_by_mapping(mount, process);
}

static char *describe(const FsgViewMount *mount, const char *pid)
{
	g_autofree char *process = g_build_filename("/proc", pid, NULL);
	g_autofree char *comm = g_build_filename(process, "comm", NULL);
	g_autofree char *what = what_it_holds(mount, process);
	g_autofree char *name = NULL;
	g_autofree char *line = NULL;

	if (!what || !g_file_get_contents(comm, &name, NULL, NULL))
		return NULL;
	line = g_strdup_printf("%s %s (%s)", pid, g_strchomp(name), what);
	return path_escape(line);
}

/* The child: writes what it finds, as it finds it. */
static void scan(const FsgViewMount *mount, int out)
{
	g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
	unsigned int found = 0;
	const char *pid;

	while (proc && (pid = g_dir_read_name(proc))) {
		g_autofree char *line = g_ascii_isdigit(pid[0]) ? describe(mount, pid) : NULL;

		if (!line)
			continue;
		if (found++ < HOLDERS_SHOWN)
			dprintf(out, "%s%s", found > 1 ? ", " : "", line);
	}
	if (found > HOLDERS_SHOWN)
		dprintf(out, " and %u more", found - HOLDERS_SHOWN);
}

/* What comes until the end of file or the deadline. */
static char *collect(int in)
{
	gint64 deadline_us = g_get_monotonic_time() + SCAN_MS * (gint64)1000;
	GString *text = g_string_new(NULL);

	while (text->len < TEXT_MOST) {
		struct pollfd p = { .fd = in, .events = POLLIN };
		gint64 left_us = MAX(deadline_us - g_get_monotonic_time(), 0);
		char data[1024];
		ssize_t got;

		if (poll(&p, 1, (int)(left_us / 1000)) <= 0)
			break;
		got = read(in, data, sizeof data);
		if (got <= 0)
			break;
		g_string_append_len(text, data, got);
	}
	return g_string_free(text, FALSE);
}

char *fsg_view_holders(const FsgViewMount *mount)
{
	int fds[2];
	pid_t child;
	char *text;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return g_strdup("");
	child = fork();
	if (child == 0) {
		fd_close(&fds[0]);
		scan(mount, fds[1]);
		_exit(0);
	}
	fd_close(&fds[1]);
	text = child > 0 ? collect(fds[0]) : g_strdup("");
	fd_close(&fds[0]);
	if (child > 0) {
		(void)kill(child, SIGKILL); /* it may have ended: a zombie until it is waited for */
		(void)waitpid(child, NULL, 0);
	}
	return text;
}

/* Without a child: we are not stuck, and a copy of us would hold the same. */
char *fsg_view_held_by_self(const FsgViewMount *mount)
{
	g_autofree char *what = what_it_holds(mount, "/proc/self");

	return what ? path_escape(what) : NULL;
}
