/* What cgroup.c and cgroup-v2.c share: for them only. */
#pragma once

#include "executor/cgroup.h"

#include <stdbool.h>

/* The file system's magic for that version, by fstatfs. */
bool cgroup_is_cgroup(int fd, int version);
/* A small file of a cgroup as text, or NULL with *reterr_errnum (may be NULL). The caller frees. */
char *cgroup_read_text(int dir_fd, const char *file, int *reterr_errnum);
int cgroup_write_text(int dir_fd, const char *file, const char *text);

/* Whether the next one would be able to, and would have to move us first. own becomes the cgroup that is divided. */
int cgroup_v2_check(const char *controller, ExrCgroup *own, bool *ret_have_to_move,
		    char **reterr_reason);
/* From our own cgroup of version 2 to the one that can have limited children; it may be another directory
 * then. -errno with *reterr_reason. */
int cgroup_v2_prepare(const char *controller, ExrCgroup *own, char **reterr_reason);
