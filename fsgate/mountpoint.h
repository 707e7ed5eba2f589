/* The place where a view that the host can see is mounted: checked through an fd, then used through it. */
#pragma once

#include "common/view-plan.h"

#include <stdbool.h>

/* Opens a mountpoint and refuses one that is no empty directory, lies inside a mounted host directory, or
 * carries a view already. One that a crashed gateway left dead is detached first. *ret_path is absolute and
 * without links. Returns an O_PATH fd or -errno with *reterr_message one line. */
int fsg_mountpoint_open(const char *path, const ViewPlan *plan, char **ret_path,
			char **reterr_message);

/* Whether a view is mounted at the absolute path: found in mountinfo, so that a dead or hung one is found
 * too. */
bool fsg_mountpoint_is_view(const char *path);

/* Whether the view at path has lost its gateway. Asked by a child, for at most 2 s: one that hangs counts as alive. */
bool fsg_mountpoint_is_dead(const char *path);

/* Unmounts the view at an absolute path, never following a link at its end: as root itself, else by
 * fusermount3. lazy: detach at once, even when it is in use. 0, -EBUSY, -EINVAL for what is no view, -EPERM for
 * somebody else's, or -errno. */
int fsg_mountpoint_unmount(const char *path, bool lazy);
