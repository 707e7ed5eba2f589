/* The host-side boundary for tools that work in the host agent's own process: where a path of an agent leads, and whether
 * it may be used there. The third door to one boundary: the mounted view and the commands of a session are the other two,
 * and the walk (view-walk.h) is the same code.
 *
 * Two forms. The string form (path_resolver_resolve) is strict: it answers with a host path, which the caller opens
 * later, so no link below a mount's root may be on the way. The walk and the open form follow links in view space as
 * the policy's `symlinks` says, and give the object itself, so that nothing that happens between check and use matters.
 *
 * Immutable once made, with a reference count; any thread at once. The roots of all mounts are opened when it is made and
 * held: what the host puts in their place later is not seen. Blocks on file I/O of the mounts' file systems. */
#pragma once

#include "common/denial-reason.h"
#include "common/view-plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct PathResolver PathResolver;

/* Why a path could not be used. The kinds are those a caller acts on differently. */
typedef enum {
	PATH_PROBLEM_NONE,
	PATH_PROBLEM_INVALID,	     /* empty, too long, not a path */
	PATH_PROBLEM_NO_MOUNTS,	     /* the table is empty */
	PATH_PROBLEM_OUTSIDE_MOUNTS, /* no mount covers it */
	PATH_PROBLEM_READ_ONLY, /* to be changed, on a read-only mount or in a directory of the view's own */
	PATH_PROBLEM_SYMLINK, /* a link on the way: any (strict, deny), or one that leaves the view, or a loop */
	PATH_PROBLEM_REFUSED, /* another rule of the view: pinned, hidden, across mounts */
	PATH_PROBLEM_IO,      /* what the host said: errnum */
} PathProblemKind;

typedef struct {
	PathProblemKind kind;
	int errnum; /* what the same use of the mounted view gives: EROFS, EACCES, ELOOP, ENOENT, EXDEV, ... */
	int reason; /* DenialReason when it is a denial of the view; else -1 */
	char *path; /* the view path at which the way ended (the component that is to blame), or NULL */
	char *mount; /* the view path of its mount, or NULL */
	char *message; /* one line without a newline: the agent's path, quoted, and the reason. View paths only */
} PathProblem;

void path_problem_clear(PathProblem *problem);

/* Opens the plan's mounts (the plan is taken, also on failure). -errno with *reterr_message one line. A mount that is
 * absent is an error unless it was optional, as for a view. private_dir: the state directory that shows empty (view.h of
 * fsgate), or NULL. session_id: named in the log of denials, or NULL. */
int path_resolver_new(ViewPlan *take_plan, const char *private_dir, const char *session_id,
		      PathResolver **ret_resolver, char **reterr_message);
PathResolver *path_resolver_ref(PathResolver *resolver);
void path_resolver_unref(PathResolver *resolver); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PathResolver, path_resolver_unref)

/* The plan, of which host paths, mounts and writable places are read. As long as the resolver. */
const ViewPlan *path_resolver_plan(const PathResolver *resolver);

typedef struct {
	char *host_path;	/* absolute, clean; owned */
	char *view_path;	/* absolute, clean; owned */
	const ViewEntry *mount; /* the deepest mount of view_path; borrowed from the plan */
} PathResolved;

void path_resolved_clear(PathResolved *resolved);

/* The string form. path: a view path, a relative one (from the working directory), or a host path inside a mount; cleaned
 * lexically first. A path whose last part does not exist resolves if what exists of it does. for_write: a read-only
 * mount refuses, judged by the deepest host mount that contains the result. 0, or -errno with *reterr_problem. */
int path_resolver_resolve(PathResolver *resolver, const char *path, bool for_write,
			  PathResolved *ret_resolved, PathProblem *reterr_problem);

/* Where a walk has come to. Owned: path_place_clear(). */
typedef struct {
	int fd; /* O_PATH of the object itself (a link with PATH_WALK_NOFOLLOW); -1: absent, or view's own directory */
	int parent_fd; /* O_PATH of the directory that holds `name`; -1 when that is a directory of the view's own, and of
			* mounts' roots */
	char *name; /* its name there; "" for the root of the view */
	mode_t type; /* S_IFMT bits; 0: there is nothing of that name (its parent directory exists) */
	bool is_synthetic; /* a directory of the view's own, or a stand-in of what the view does not show: read-only */
	bool is_mount_root; /* the object is the root of a mount: its name is the view's, not the host's */
	bool writable;	      /* what is there, or could be made there, may be changed */
	int read_only_reason; /* DenialReason when not writable: EROFS, but EACCES for DENIAL_HIDDEN */
	bool is_hidden;	      /* type 0, for the policy hides the name: looking it up is a denial */
	bool pinned; /* it cannot be renamed or removed (EBUSY): a mount's host object, or one that leads to it */
	char *view_path; /* absolute, clean, free of links: where it is */
	char *mount;	 /* view path of its mount, or NULL for synthetic */
	const void *
		anchor; /* the same for two places of one mount: what rename and link compare (EXDEV) */
	const void *node; /* for path_resolver_step(), as the next one */
	char *path_in_mount;
} PathPlace;

void path_place_clear(PathPlace *place);

enum {
	PATH_WALK_NOFOLLOW = 1u << 0, /* a link at the end is the object itself, not followed */
	PATH_WALK_ACTING = 1u << 1, /* a step: the thread acts for the directory's mount already */
};

/* Walks as the kernel does in the mounted view: names one at a time, ".." by where one is, links in view space, 40 at most.
 * A last name that is absent is a place whose type is 0; one on the way is ENOENT. A trailing slash asks for a directory
 * (ENOTDIR). 0, or -errno with *reterr_problem. */
int path_resolver_walk(PathResolver *resolver, const char *path, unsigned int flags,
		       PathPlace *ret_place, PathProblem *reterr_problem);

/* One name further, from a directory that was walked to and is the same whatever its path has become: what a walk along
 * a tree needs, for each step of which a path would be walked from the root. A link is the object itself. The place's view_path
 * is the directory's with the name behind it. flags: PATH_WALK_ACTING; changing back and forth costs more than the
 * step. 0, or -errno without a problem, and nothing is logged: -ENOENT for what is absent or hidden. */
int path_resolver_step(PathResolver *resolver, const PathPlace *dir, const char *name,
		       unsigned int flags, PathPlace *ret_place);

/* The open form: as open(2) of the same path in the view, with the same verdict: ".." is walked, not cleaned away, so that
 * "absent/../file" is ENOENT and "link/.." is above where the link leads. flags: an access mode with O_CREAT,
 * O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_SYNC, O_DSYNC, O_PATH; the rest is EINVAL (kind
 * INVALID). The fd is close-on-exec. Never blocks on a FIFO and opens no device, FIFO or socket (ENXIO). mode as
 * for open(2), set-id bits left out, and what is asked for is what the file gets: this process's umask takes nothing
 * away. A directory of the view's own, and a stand-in, has no fd to give: EOPNOTSUPP. Files are made, when we are root, as the owner of the mount's root directory,
 * and its permissions are those that decide, as in the view. The fd, or -errno with *reterr_problem. */
int path_resolver_open(PathResolver *resolver, const char *path, int flags, mode_t mode,
		       PathProblem *reterr_problem);

/* The same, with the place that was opened, for what is said of it later: its view path and its mount; of one that was made
 * type is 0 still. */
int path_resolver_open_place(PathResolver *resolver, const char *path, int flags, mode_t mode,
			     PathPlace *ret_place, PathProblem *reterr_problem);

/* For what is done in a place: the calling thread acts as the view's gateway would in that mount (when root: as the
 * owner of its root directory, without what overrides permissions) until path_resolver_act_end(). *ret_saved is for that
 * call. 0 or -errno. Nothing else may be done meanwhile. All calls above do the same for their own time; a process that is root
 * is afterwards not dumpable, and its thread has lost PR_SET_PDEATHSIG, which the kernel takes with a change of ids. */
typedef struct {
	bool switched;
	uid_t uid;
	gid_t gid;
	int n_groups;
	gid_t *groups;	       /* owned until act_end */
	uint64_t capabilities; /* that were in effect */
} PathActing;
int path_resolver_act_begin(const PathPlace *place, PathActing *ret_saved);
void path_resolver_act_end(PathActing *saved);

/* Whether what is made in a place gets its permissions by a default ACL of its directory. */
bool path_resolver_has_default_acl(const PathPlace *place);
/* Gives what was just made in a place the mode that it was made with, which this process's umask is not to change. To be
 * called while acting. 0 or -errno. */
int path_resolver_give_mode(const PathPlace *place, int fd, mode_t mode);

/* The object of a place, opened with these flags as its mount does. Regular files and directories only. The fd or -errno. */
int path_resolver_reopen(const PathPlace *place, int flags);

/* Fills a problem (empty before) about `path` of the agent's; message from reason or errnum. Logs it when it is a denial
 * ("sandbox.policy_denied"). op: "open", "rename", ... Returns -errnum. */
int path_resolver_fail(PathResolver *resolver, const char *op, const char *path,
		       PathProblemKind kind, int errnum, int reason, const char *at_view_path,
		       const char *mount, PathProblem *reterr_problem);
