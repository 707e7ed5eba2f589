/* What procfs says of a process; see task.h. */
#include "fsgate/task.h"

#include "common/fd-util.h"
#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PF_EXITING of the kernel's task flags, the ninth field of stat. */
#define TASK_EXITING 0x4u

int fsg_tasks_open(void)
{
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int read_task_file(int tasks_fd, uint32_t tid, const char *name, char *buffer, size_t size)
{
	char path[32];
	ssize_t got;

	snprintf(path, sizeof path, "%u/%s", tid, name);
	FD_AUTO fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = read(fd, buffer, size - 1);
	if (got < 0)
		return -errno;
	buffer[got] = '\0';
	return 0;
}

/* The nth field (from 3) of a stat line: they are counted behind the name, which may hold anything. */
static const char *find_stat_field(const char *stat, int n)
{
	const char *field = strrchr(stat, ')');

	for (int i = 2; field && i < n; i++)
		field = strchr(field + 1, ' ');
	return field ? field + 1 : NULL;
}

/* Of the first 31 signals, those pending for the task; when a signal is going to end the process, SIGKILL is
 * made pending for each of its tasks. */
#define FIELD_FLAGS   9
#define FIELD_PENDING 31

bool fsg_task_is_dying(int tasks_fd, uint32_t tid)
{
	char text[1024];
	const char *flags, *pending;

	if (read_task_file(tasks_fd, tid, "stat", text, sizeof text) < 0)
		return false;
	flags = find_stat_field(text, FIELD_FLAGS);
	pending = find_stat_field(text, FIELD_PENDING);
	return (flags && (strtoul(flags, NULL, 10) & TASK_EXITING)) ||
	       (pending && (strtoul(pending, NULL, 10) & 1ul << (SIGKILL - 1)));
}
