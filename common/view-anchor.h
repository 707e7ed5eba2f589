/* Anchors: where a view is tied to the host. One for each mount (and one more for each read-only mount that may be
 * met inside a writable one), made once; afterwards no host path is ever built or opened, and what the host puts in
 * the place of a mounted directory is not seen.
 *
 * What an anchor says holds for all that is reached below it: whether it may be changed, which names do not appear,
 * whether links are followed, whom root acts as. Who makes them opens them: the gateway as private clones of the
 * host's mounts (fsgate/anchor.h), a path resolver as the directories themselves. */
#pragma once

#include "common/view-plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ViewNode ViewNode;

typedef struct ViewAnchor ViewAnchor;
struct ViewAnchor {
	unsigned int id;       /* part of an inode's identity */
	const char *view_path; /* borrowed from the plan */
	int fd;		       /* O_PATH, the mount's root object, or a sealed memfd; owned */
	bool owns_fd;	       /* aliases share the fd of their mount */
	bool is_dir;
	bool writable;
	bool is_generated; /* fd is the memfd */
	bool is_local;	   /* the root object's file system is (the gateway's local-fs.h) */
	bool cross_mounts; /* host mounts below belong to it */
	bool denies_links; /* no link below its root is read or followed */
	bool is_clone;	   /* fd is a mount clone: resolve_check_connected works */
	bool has_twin; /* another mount of the view shows the same host directory, or a part of it */
	uint64_t mount_id;	 /* of the clone; 0: not known, or cross_mounts */
	const char *const *hide; /* globs that do not appear, relative to the anchor; or NULL */
	dev_t dev;		 /* identity of the root object */
	ino_t ino;
	uid_t act_uid; /* whom root acts as; (uid_t)-1: as itself */
	gid_t act_gid;
	bool as_caller; /* in place of these: as who asks */
	ViewNode *node; /* the view-tree node it hangs on; borrowed */
	GPtrArray
		*aliases; /* ViewAnchor *: for a writable anchor, a read-only one for each ro mount
			       whose host object may be met inside it; owned */
};

/* An array that frees its anchors, and what they own, with itself. */
GPtrArray *view_anchors_new(void);

/* What the plan says of a mount, not opened yet. The plan has to outlive it. */
ViewAnchor *view_anchor_new(const ViewPlan *plan, const ViewEntry *entry, unsigned int id);

/* Opens a GENERATED entry: a sealed memfd with its content. 0 or -errno. */
int view_anchor_open_generated(ViewAnchor *anchor, const ViewEntry *entry);

/* The host object may have been replaced since the plan was made: what was judged is what is used. 0, -ESTALE or
 * what the host says. */
int view_anchor_check_identity(const ViewAnchor *anchor, const ViewEntry *entry);

/* Gives each writable anchor its aliases, when all are opened. *next_id is of the next anchor made. */
void view_anchors_add_aliases(GPtrArray *anchors, unsigned int *next_id);

/* The read-only anchor to switch to when the object (dev, ino) is met below this one; or NULL. */
ViewAnchor *view_anchor_find_alias(const ViewAnchor *anchor, dev_t dev, ino_t ino);

/* Whether what has this path below the anchor's root ("ssl/private") does not appear. Names below one that does not
 * are not asked about: nothing leads there. */
bool view_anchor_hides(const ViewAnchor *anchor, const char *path);
