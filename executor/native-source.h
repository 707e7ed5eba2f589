/* What of the host a session without a gateway is made of: opened once, by the supervisor, and then known by fd. */
#pragma once

#include "common/view-plan.h"

#include <stdbool.h>
#include <sys/stat.h>

typedef struct {
	int fd;	     /* O_PATH; owned */
	char *real;  /* its path when it was opened, links followed */
	char *in_fs; /* exr_path_in_fs() of it */
	struct stat st;
	bool read_only;
	bool is_given; /* by the policy: the sandbox's user is to have the rights of its owner */
} ExrSource;

/* ExrSource, which frees what it owns. */
GArray *exr_sources_new(void);

/* Opens path (links followed). *ret_index is its place among them. -errno. */
int exr_sources_add(GArray *sources, const char *path, bool read_only, unsigned int *ret_index);
const ExrSource *exr_source(const GArray *sources, unsigned int index);

/* Opens what is below a source at a relative path, without following links; mounts are crossed. O_PATH; the fd or
 * -errno. */
int exr_source_open_below(const ExrSource *source, const char *below);

/* The same for all paths by which the host shows one directory: its file system and where in that it is, of a path without
 * links. What is below has it as a prefix, as paths have. NULL when it is not told. The caller frees. */
char *exr_path_in_fs(const char *real);

/* The paths of all mount points of this process's mount namespace, sorted; NULL at the end. Empty when they are not
 * told. The caller frees. */
char **exr_mount_points(void);
