/* The supplementary groups of a process that asks, which FUSE does not tell: from its /proc/PID/status. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* The groups of the process or thread pid. proc_fd is /proc/self/fd. *ret_groups is to be freed with g_free. -ESRCH when
 * no such process is seen from here (pid 0: it is in another pid namespace), -EBADMSG for a text without
 * groups. Any thread at once. */
int fsg_caller_groups_read(int proc_fd, pid_t pid, gid_t **ret_groups, size_t *ret_count);

/* The same of a status file's text. 0 or -EBADMSG. */
int fsg_caller_groups_parse(const char *status, gid_t **ret_groups, size_t *ret_count);
