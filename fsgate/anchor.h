/* Anchors: where the view is tied to the host. One for each mount (and one more for each read-only mount
 * that lies inside a writable one), made once at start; afterwards no host path is ever built or opened.
 *
 * An anchor's fd is the root of a private clone of the host mount (open_tree, mount_setattr) with
 * nosuid, nodev, nosymfollow, and read-only for a read-only mount. So the kernel enforces
 * beneath us what our gate enforces above: EROFS on every way to write, EXDEV between mounts, no
 * device, no link followed, and ENOENT for ".." of what was moved out. A mistake in the gate costs a
 * wrong errno, not a breach. */
#pragma once

#include "common/view-plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct FsgNode FsgNode;

typedef struct FsgAnchor FsgAnchor;
struct FsgAnchor {
	unsigned int id;       /* part of an inode's identity */
	const char *view_path; /* borrowed from the plan */
	int fd;		       /* O_PATH, the clone's root, or a sealed memfd; owned */
	bool owns_fd;	       /* aliases share the fd of their mount */
	bool is_dir;
	bool writable;
	bool is_local;	   /* the root object's file system is (local-fs.h) */
	bool cross_mounts; /* host mounts below belong to it */
	bool denies_links; /* no link below its root is read or followed */
	bool is_clone;	   /* fd is a mount clone: resolve_check_connected works */
	bool has_twin; /* another mount of the view shows the same host directory, or a part of it */
	uint64_t mount_id;	 /* of the clone; 0: not known, or cross_mounts */
	const char *const *hide; /* globs that do not appear, relative to the anchor; or NULL */
	dev_t dev;		 /* identity of the root object */
	ino_t ino;
	uid_t act_uid; /* whom the serving thread acts as; (uid_t)-1: as itself */
	gid_t act_gid;
	bool as_caller;	    /* in place of these: as who asks */
	FsgNode *node;	    /* the view-tree node it hangs on; borrowed */
	GPtrArray *aliases; /* FsgAnchor *: for a writable anchor, a read-only one for each ro mount
			       whose host object may be met inside it; owned */
};

/* Opens and clones every mount of the plan. A caller with CAP_SYS_ADMIN in its mount namespace's user
 * namespace clones directly; another one has the clones made by a child in a user namespace of
 * its own. On failure -errno with *reterr_message one line.
 * The plan has to outlive the anchors. */
int fsg_anchors_new(const ViewPlan *plan, GPtrArray **ret_anchors, char **reterr_message);

/* The read-only anchor to switch to when the object (dev, ino) is met below this one; or NULL. */
FsgAnchor *fsg_anchor_find_alias(const FsgAnchor *anchor, dev_t dev, ino_t ino);
