/* The views that are mounted, as /proc/self/mountinfo has them: dead and hung ones too, for nothing is asked of the
 * views themselves. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* How the file system shows in mountinfo. */
#define FSG_FS_SUBTYPE "stella"
#define FSG_FS_SOURCE  "stella-fsgate"

typedef struct {
	char *path;	 /* mountpoint, absolute */
	unsigned int id; /* of the mount, as fdinfo has it */
	unsigned int dev_major, dev_minor;
	uid_t uid; /* who mounted it */
} FsgViewMount;

void fsg_view_mount_free(FsgViewMount *mount); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FsgViewMount, fsg_view_mount_free)

/* All views that are on top at their mountpoint, in the order of mounting: FsgViewMount, owned. */
GPtrArray *fsg_view_mounts(void);

/* The view at an absolute path, or NULL when there is none on top. */
FsgViewMount *fsg_view_mount_find(const char *path);
