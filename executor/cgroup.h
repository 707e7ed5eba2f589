/* One cgroup of a session, below our own: made, written to, read and removed.
 *
 * Of either version: which of them has a controller is looked up in cgroup-find.h, controller by
 * controller. Nothing here decides what is limited, or by how much (session-limits.h). */
#pragma once

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>

/* The cgroup of version 2 that we move ourselves to when we are alone in one that is ours to divide (cgroup-v2.c).
 * Sessions' cgroups are made beside it. A host agent that divides its cgroup itself takes this name too. */
#define EXR_CGROUP_LEAF "stella-supervisor"

/* A directory of a cgroup file system. */
typedef struct {
	int version; /* 1 or 2 */
	int fd;	     /* owned */
	char *path;  /* owned; for messages and for the record of what was made */
} ExrCgroup;
#define EXR_NO_CGROUP                                                                              \
	{                                                                                          \
		.fd = -1                                                                           \
	}

void exr_cgroup_clear(ExrCgroup *cgroup);
#define CGROUP_AUTO __attribute__((cleanup(exr_cgroup_clear))) ExrCgroup

/* Where cgroups of sessions with that controller ("memory", "pids") can be made. -errno with *reterr_reason, half a
 * sentence that says what is missing (the caller frees); -EOPNOTSUPP when the kernel has no such controller. */
int exr_cgroup_find_parent(const char *controller, ExrCgroup *ret_parent, char **reterr_reason);

/* Whether one could be made there, by asking only: nothing is changed. 0, or as the above. */
int exr_cgroup_check(const char *controller, char **reterr_reason);

/* Makes a cgroup of that name in parent, or takes the one that is there: a session's id is its own, so it was made for
 * another controller of the same hierarchy. Its path is added to the file `record` before: what a killed
 * owner leaves is found by it. 0 or -errno. */
int exr_cgroup_make(const ExrCgroup *parent, const char *name, const char *record,
		    ExrCgroup *ret_cgroup);

/* Removes the cgroups of that name that a record lists, and waits for their last processes to be gone
 * until `deadline_us` (monotonic). 0 when none is left, or there is no such record; else -errno. */
int exr_cgroup_remove_recorded(const char *record, const char *name, gint64 deadline_us);

/* Puts a number into one of its files. 0 or -errno. */
int exr_cgroup_write(const ExrCgroup *cgroup, const char *file, uint64_t value);
/* The number in one of its files: behind key on a line of its own, or the whole of it (key NULL). 0 when
 * there is none, as on kernels that do not count it. */
uint64_t exr_cgroup_read(const ExrCgroup *cgroup, const char *file, const char *key);
