/* A caller's groups; see caller-groups.h. The process waits for our answer meanwhile, so that it is there, and is the
 * one that asked; should it have been killed and its number given away, the groups of another are no more
 * than one of two keys, for the kernel has judged the request by the right ones. */
#include "fsgate/caller-groups.h"

#include "common/fd-util.h"
#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the text, a process chooses only its name, in which the kernel escapes line ends.
 * Room for NGROUPS_MAX groups of ten digits and a blank, and for the other lines. */
#define STATUS_BYTES_MOST (NGROUPS_MAX * 11 + 8192)

int fsg_caller_groups_parse(const char *status, gid_t **ret_groups, size_t *ret_count)
{
	const char *line = strstr(status, "\nGroups:"), *at;
	g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(gid_t));

	if (!line || !strchr(line + 1, '\n'))
		return -EBADMSG;
	for (at = line + strlen("\nGroups:");;) {
		unsigned long long id;
		gid_t gid;
		char *end;

		at += strspn(at, " \t");
		if (*at == '\n')
			break;
		errno = 0;
		id = strtoull(at, &end, 10);
		if (end == at || *at == '-' || errno || id >= UINT32_MAX ||
		    groups->len >= NGROUPS_MAX)
			return -EBADMSG;
		gid = (gid_t)id;
		g_array_append_val(groups, gid);
		at = end;
	}
	*ret_count = groups->len;
	*ret_groups = (gid_t *)(void *)g_array_free(g_steal_pointer(&groups), FALSE);
	return 0;
}

int fsg_caller_groups_read(int proc_fd, pid_t pid, gid_t **ret_groups, size_t *ret_count)
{
	g_autofree char *text = NULL;
	char path[64];
	size_t size;
	int r;

	if (pid <= 0)
		return -ESRCH;
	(void)snprintf(path, sizeof path, "../../%d/status", (int)pid); /* it fits */
	FD_AUTO fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if ((r = io_read_to_end(fd, STATUS_BYTES_MOST, &text, &size)) < 0)
		return r;
	return fsg_caller_groups_parse(text, ret_groups, ret_count);
}
