/* Between the files that make a plan of the kernel's mounts; for them only. */
#pragma once

#include "executor/sandbox-plan-internal.h"
#include "executor/sandbox-plan-native.h"

typedef struct {
	ExrPlanBuilder plan;
	const ViewPlan *view;
	GArray *sources;
	int *source_of; /* by entry: the number of its source, or -1 */
	char **mount_points;
	char *state_root; /* its real path, or NULL */
} ExrNative;

/* st: what the row is checked by, or NULL; what of it is a directory is flagged in any case. The row is borrowed until the next
 * one. NULL: there are too many. */
WireRow *exr_native_add(ExrNative *native, WireRowKind kind, uint32_t flags, const char *target,
			const struct stat *st);

/* Whether the session made what an entry shows, and nobody has written to it yet: mount points can be made in it. */
bool exr_native_is_ours(const ExrNative *native, const ViewEntry *entry);

/* After the row of a mount: what is pinned and what is masked in it. 0 or -errno. */
int exr_native_cover(ExrNative *native, unsigned int i);
