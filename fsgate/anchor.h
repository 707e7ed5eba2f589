/* The anchors of a served view (common/view-anchor.h), made once at start.
 *
 * An anchor's fd is the root of a private clone of the host mount (open_tree, mount_setattr) with
 * nosuid, nodev, nosymfollow, and read-only for a read-only mount. So the kernel enforces
 * beneath us what our gate enforces above: EROFS on every way to write, EXDEV between mounts, no
 * device, no link followed, and ENOENT for ".." of what was moved out. A mistake in the gate costs a
 * wrong errno, not a breach. */
#pragma once

#include "common/view-anchor.h"

typedef ViewAnchor FsgAnchor;

/* Opens and clones every mount of the plan. A caller with CAP_SYS_ADMIN in its mount namespace's user
 * namespace clones directly; another one has the clones made by a child in a user namespace of
 * its own. On failure -errno with *reterr_message one line.
 * The plan has to outlive the anchors. */
int fsg_anchors_new(const ViewPlan *plan, GPtrArray **ret_anchors, char **reterr_message);

#define fsg_anchor_find_alias view_anchor_find_alias
