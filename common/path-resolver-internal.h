/* What the files of the path resolver share; for them only. */
#pragma once

#include "common/path-resolver.h"
#include "common/view-walk.h"

struct PathResolver {
	int refs;	/* atomic */
	ViewPlan *plan; /* owned */
	GPtrArray *
		anchors; /* ViewAnchor, in the order of the plan's MOUNT and GENERATED entries; owned */
	ViewNode *root;			   /* owned */
	GHashTable *pinned, *private_dirs; /* view-host-ids */
	char *session_id;		   /* or NULL */
	bool has_mounts;
};

/* Who the calling thread acts as while a walk goes from mount to mount. Zero: as itself. */
typedef struct {
	PathActing saved;
	uid_t uid;
	gid_t gid;
} PathActor;

/* Acts for the anchor from here on. 0 or -errno, and then as itself. */
int path_actor_turn(PathActor *actor, const ViewAnchor *anchor);
void path_actor_end(PathActor *actor);

/* Times that something is done again because the directories changed meanwhile; each needs a change at the right moment. */
#define PATH_TRIES 64
/* Before the next try: a moment, after some that came at once. Who changes a directory as fast as it can gets into step with
 * who waits for its lock, and then each try meets the same moment. */
void path_pause(int tries);

/* A walk in a resolver's view. */
typedef struct {
	ViewWalkSpace space;
	ViewWalk walk;
	PathActor actor;
} PathWalk;

/* Walks a path (a relative one from the working directory); again where directories move meanwhile. The thread acts for
 * the last mount until path_walk_end(), to be called however it ends. 0 or -errno as view_walk_run(). */
int path_walk_begin(PathResolver *resolver, const char *path, unsigned int view_walk_flags,
		    PathWalk *walk);
void path_walk_end(PathWalk *walk);

/* The place that the walk has come to. 0, or -errno: -ENOENT when what is absent is on the way. */
int path_walk_get_place(PathResolver *resolver, PathWalk *walk, PathPlace *ret_place);

/* Makes the problem of a walk that gave r, and returns r. */
int path_walk_fail(PathResolver *resolver, const char *op, const char *path, const PathWalk *walk,
		   int r, PathProblem *reterr_problem);

/* What a path as a text has to be. 0, or -errno with the problem. */
int path_check_text(PathResolver *resolver, const char *op, const char *path,
		    PathProblem *reterr_problem);

/* Why a place, or what could be made there, may not be changed: DENIAL_READ_ONLY_MOUNT and the like; -1: it may. */
int path_read_only_reason(const ViewPlace *place);

/* All of a problem but its message, which is about the agent's `path`. */
typedef struct {
	const char *op, *path;
	PathProblemKind kind;
	int errnum;
	int reason;	    /* or -1 */
	const char *at;	    /* or NULL */
	const char *mount;  /* or NULL */
	const char *target; /* the text of the link at `at`, or NULL */
	const char *why;    /* in place of what follows from the others, or NULL */
} PathFailure;

/* Logs it if it is a denial, and fills the problem. Returns -errnum. */
int path_fail(PathResolver *resolver, const PathFailure *failure, PathProblem *reterr_problem);
