/* Where our own cgroup can be seen, controller by controller: what /proc/self/cgroup and
 * /proc/self/mountinfo say together. No well-known path is assumed: hierarchies of both versions may be
 * mounted anywhere, several times, in part, or not at all. Looks at texts only. */
#pragma once

#include <glib.h>

typedef struct {
	int version; /* 1 or 2; 0: no hierarchy has the controller */
	char **dirs; /* absolute paths of our own cgroup's directory, those that can be written to first;
			NULL-terminated; empty when no mount shows it */
} ExrCgroupPlace;

/* cgroup and mountinfo are the texts of the two files. A controller that no hierarchy of version 1 has
 * is looked for in that of version 2: whether it is there, only its directory can tell. */
void exr_cgroup_find(const char *cgroup, const char *mountinfo, const char *controller,
		     ExrCgroupPlace *ret_place);
void exr_cgroup_place_clear(ExrCgroupPlace *place);
