/* One view while it is served: everything that a handler needs, reached through FUSE's userdata. No
 * part of it changes after the start but the tables, which lock themselves. */
#pragma once

#include "common/view-plan.h"
#include "fsgate/anchor.h"
#include "fsgate/denial.h"
#include "fsgate/handle.h"
#include "fsgate/identity.h"
#include "fsgate/inode-table.h"
#include "fsgate/stats.h"
#include "fsgate/view-tree.h"

typedef struct FsgDevice FsgDevice;
typedef struct FsgPassthrough FsgPassthrough;
typedef struct FsgBoundary FsgBoundary;
typedef struct FsgChanges FsgChanges;
typedef struct FsgClients FsgClients;
typedef struct FsgEvents FsgEvents;
typedef struct FsgInvalidate FsgInvalidate;

typedef struct {
	ViewPlan *plan;	    /* owned */
	GPtrArray *anchors; /* FsgAnchor; owned */
	FsgNode *root;	    /* owned */
	FsgInodeTable *inodes;
	FsgHandleBudget *handles;
	FsgDevice *device;	     /* the session's, from before its first request on; borrowed */
	FsgPassthrough *passthrough; /* likewise */
	FsgDenials *denials;
	FsgStats stats;
	FsgBoundary *boundary; /* of a session's view only; else NULL */
	FsgClients *clients;   /* likewise */
	FsgChanges *changes;
	FsgEvents *events;
	struct FsgLocks *locks;
	/* view-host-ids: mounted host objects and what is above them, which may not move. */
	GHashTable *pinned;
	/* Likewise: directories of ours, which no view enters. */
	GHashTable *private_dirs;
	/* Likewise: see fsg_view_is_odd_dir(). */
	GHashTable *odd_dirs;
	/* Of dev_t, in the order of the table: an inode number's first part. */
	GArray *devices;
	int proc_fd;	     /* /proc/self/fd */
	char *mountpoint;    /* absolute, for VIEW_FOR_HOST; else NULL */
	bool original_links; /* give link texts unchanged although the host sees the view */
	uid_t shown_uid;     /* the session's user, as ids of the mount's user namespace */
	gid_t shown_gid;
	bool maps_one_id; /* no other id has a mapping where the view is mounted: all are shown so */
	bool is_for_one_exec; /* a session's that ends with its first command */
	bool kernel_decides;  /* mounted with default_permissions: by the modes and ACLs shown */
	int lease_waits;      /* threads that wait for a lease; atomic */
	struct fuse_session *fuse; /* who serves it; borrowed, set when that is made */
	bool has_near;		   /* two mounts lie in one file system of the host */
	bool has_twins;		   /* and one of them in the other, or they are the same */
	bool caches_links; /* the kernel keeps their texts, until it is told; set with the session's first request */
	FsgInvalidate *invalidate; /* what the kernel believes; owned */
} FsgView;

typedef struct {
	bool original_links;
	const char *mountpoint; /* or NULL */
	uid_t shown_uid;
	gid_t shown_gid;
	bool maps_one_id;
	bool kernel_decides;
	bool is_for_one_exec;
	const char *private_dir; /* the state directory, or NULL */
} FsgViewConfig;

/* Opens everything of the plan (taken, also on failure). On failure -errno with *reterr_message one line.
 * Before any other thread exists. */
int fsg_view_new(ViewPlan *take_plan, const FsgViewConfig *config, FsgView **ret_view,
		 char **reterr_message);
void fsg_view_free(FsgView *view); /* NULL is allowed */

/* Whether (dev, ino) is a mounted host object or leads to one: it cannot be renamed or removed. */
bool fsg_view_is_pinned(const FsgView *view, dev_t dev, ino_t ino);

/* Whether (dev, ino) is a directory of ours, with the private files of all sessions: it shows as an empty
 * read-only one wherever a mount contains it. */
bool fsg_view_is_private(const FsgView *view, dev_t dev, ino_t ino);

/* Whether names in the host directory (dev, ino) may lead to other objects than the host's listing says, for
 * something is mounted there, or it is private. */
bool fsg_view_is_odd_dir(const FsgView *view, dev_t dev, ino_t ino);
/* Makes it one. Before any other thread exists. */
void fsg_view_add_odd_dir(FsgView *view, dev_t dev, ino_t ino);

/* The inode number to show for a host object: its own on the first device of the table. */
uint64_t fsg_view_ino(const FsgView *view, dev_t dev, ino_t ino);

/* Whether what is done is done as who asks: ownership "host". */
static inline bool fsg_view_serves_callers(const FsgView *view)
{
	return view->plan->policy->ownership == POLICY_OWNERSHIP_HOST;
}

/* Whether an entry of this directory does not appear (the policy hides it). */
bool fsg_view_hides(FsgView *view, FsgInode *dir, const char *name);
