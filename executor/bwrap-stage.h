/* For root's bwrap: the sources as mounts below one directory, in a mount namespace of bwrap's own, where the sandbox's
 * user finds them and has in those of the policy the rights of their owner. */
#pragma once

#include "executor/error.h"
#include "executor/identity.h"

#include <glib.h>

typedef struct ExrBwrapStage ExrBwrapStage;

/* sources as of native-source.h, and after them init_fd (O_PATH), which is read-only; by their numbers. -errno with
 * *reterr_error. */
int exr_bwrap_stage_new(const GArray *sources, int init_fd, const ExrIdentity *identity,
			ExrBwrapStage **ret_stage, ExrError *reterr_error);
void exr_bwrap_stage_free(ExrBwrapStage *stage); /* NULL is allowed */

/* Where they are, once they are there. */
const char *exr_bwrap_stage_path(const ExrBwrapStage *stage);
/* In a child, still root: leaves the mount namespace and attaches them. System calls only. 0 or -errno. */
int exr_bwrap_stage_mount(const ExrBwrapStage *stage);
