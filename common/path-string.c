/* The string form of a path resolver: a path in, a host path out, which the caller opens later; see path-resolver.h.
 *
 * Checking and then opening is a race, so the answer is strict: no link below a mount's root may be on the way, also where it
 * stays inside. What is not there yet resolves, for tools make it; what the view does not show (what is mounted on the host
 * below a mount, our own directories, hidden names) does not, for the host path would lead to it. */
#include "common/path-resolver-internal.h"

#include "common/limits.h"
#include "common/path-util.h"

#include <errno.h>
#include <string.h>

#define OP "resolve"

void path_resolved_clear(PathResolved *resolved)
{
	g_free(resolved->host_path);
	g_free(resolved->view_path);
	*resolved = (PathResolved){ .host_path = NULL };
}

static int fail(PathResolver *resolver, const char *path, PathProblemKind kind, int errnum,
		int reason, const PathResolved *at, PathProblem *reterr_problem)
{
	const PathFailure failure = {
		.op = OP,
		.path = path,
		.kind = kind,
		.errnum = errnum,
		.reason = reason,
		.at = at->view_path,
		.mount = at->mount ? at->mount->view_path : NULL,
	};

	return path_fail(resolver, &failure, reterr_problem);
}

/* The read-only mount, if there is one, whose host directory lies deeper than the mount's own and contains the result. */
static const ViewEntry *find_read_only(const ViewPlan *plan, const PathResolved *resolved)
{
	const char *own = resolved->mount->host_path;

	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(plan->entries, i);

		if (entry->kind == VIEW_ENTRY_MOUNT && !view_entry_is_writable(entry) &&
		    strcmp(entry->host_path, own) != 0 && path_is_below(entry->host_path, own) &&
		    path_is_below(resolved->host_path, entry->host_path))
			return entry;
	}
	return NULL;
}

static int check_write(PathResolver *resolver, const char *path, const ViewWalk *walk,
		       PathResolved *resolved, PathProblem *reterr_problem)
{
	const ViewPlace *here = view_walk_here(walk);
	int reason = path_read_only_reason(here);
	PathResolved at = *resolved;

	if (reason < 0 && resolved->host_path) {
		const ViewEntry *inner = find_read_only(resolver->plan, resolved);

		if (inner) {
			at.mount = inner;
			reason = DENIAL_READ_ONLY_MOUNT;
		}
	} else if (reason == DENIAL_READ_ONLY_MOUNT) {
		/* Maybe another one's than by name: a read-only mount that was met below a writable one. */
		at.mount = view_plan_find_by_view_path(resolver->plan, here->anchor->view_path);
	}
	if (reason >= 0)
		return fail(resolver, path, PATH_PROBLEM_READ_ONLY, EROFS, reason, &at,
			    reterr_problem);
	if (walk->reason == DENIAL_HIDDEN)
		return fail(resolver, path, PATH_PROBLEM_REFUSED, EACCES, DENIAL_HIDDEN, &at,
			    reterr_problem);
	return 0;
}

/* What is not to be read there either, for the host path would lead to what the view does not show. */
static int check_read(PathResolver *resolver, const char *path, const ViewWalk *walk,
		      const PathResolved *resolved, PathProblem *reterr_problem)
{
	PathFailure failure = {
		.op = OP,
		.path = path,
		.kind = PATH_PROBLEM_REFUSED,
		.reason = -1,
		.at = resolved->view_path,
		.mount = resolved->mount ? resolved->mount->view_path : NULL,
	};

	switch (view_walk_here(walk)->kind) {
	case VIEW_PLACE_STAND_IN:
		failure.errnum = EXDEV;
		failure.reason = DENIAL_STAND_IN;
		failure.why = "what the host has mounted there is not part of the mount";
		break;
	case VIEW_PLACE_PRIVATE:
		failure.errnum = EACCES;
		failure.reason = DENIAL_PRIVATE_DIRECTORY;
		failure.why = "the state directory of stella is not part of the view";
		break;
	case VIEW_PLACE_OWN:
	case VIEW_PLACE_HOST:
		if (walk->reason != DENIAL_HIDDEN)
			return 0;
		failure.errnum = ENOENT;
		failure.reason = DENIAL_HIDDEN;
		break;
	}
	return path_fail(resolver, &failure, reterr_problem);
}

static char *view_path_of(const ViewWalk *walk)
{
	g_autoptr(GString) path = g_string_new("/");

	view_walk_append_path(walk, path);
	return path_clean(path->str);
}

static int answer(PathResolver *resolver, const char *path, bool for_write, const ViewWalk *walk,
		  PathResolved *resolved, PathProblem *reterr_problem)
{
	int r;

	resolved->view_path = view_path_of(walk);
	resolved->mount = view_plan_find_by_view_path(resolver->plan, resolved->view_path);
	if (resolved->mount && resolved->mount->kind == VIEW_ENTRY_MOUNT)
		resolved->host_path = view_plan_to_host_path(resolver->plan, resolved->view_path);
	if (for_write && resolved->mount)
		r = check_write(resolver, path, walk, resolved, reterr_problem);
	else
		r = check_read(resolver, path, walk, resolved, reterr_problem);
	if (r < 0)
		return r;
	/* Of the view's own below a mount: what the host has by that path is covered, and may be a link to anywhere. */
	if (!resolved->host_path || view_walk_here(walk)->kind == VIEW_PLACE_OWN) {
		const PathFailure failure = {
			.op = OP,
			.path = path,
			.kind = PATH_PROBLEM_OUTSIDE_MOUNTS,
			.errnum = ENOENT,
			.reason = -1,
			.at = resolved->view_path,
			.why = resolved->mount
				       ? "the view makes this itself; it is in no host directory"
				       : NULL,
		};

		return path_fail(resolver, &failure, reterr_problem);
	}
	if (strlen(resolved->host_path) >= LIMIT_PATH_BYTES)
		return fail(resolver, path, PATH_PROBLEM_INVALID, ENAMETOOLONG, -1, resolved,
			    reterr_problem);
	return 0;
}

/* The cleaned path, with the slash at the end that cleaning takes away. NULL when the view has nothing of that name. */
static char *locate(const PathResolver *resolver, const char *path)
{
	g_autofree char *clean = view_plan_locate(resolver->plan, path);

	if (!clean)
		return NULL;
	return g_str_has_suffix(path, "/") ? g_strconcat(clean, "/", NULL)
					   : g_steal_pointer(&clean);
}

int path_resolver_resolve(PathResolver *resolver, const char *path, bool for_write,
			  PathResolved *ret_resolved, PathProblem *reterr_problem)
{
	PathResolved resolved = { .host_path = NULL };
	g_autofree char *located = NULL;
	PathWalk walk;
	int r;

	if ((r = path_check_text(resolver, OP, path, reterr_problem)) < 0)
		return r;
	if (!(located = locate(resolver, path)))
		return fail(resolver, path, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT, -1, &resolved,
			    reterr_problem);
	r = path_walk_begin(resolver, located, VIEW_WALK_STRICT, &walk);
	path_actor_end(&walk.actor);
	if (r < 0)
		r = path_walk_fail(resolver, OP, path, &walk, r, reterr_problem);
	else
		r = answer(resolver, path, for_write, &walk.walk, &resolved, reterr_problem);
	path_walk_end(&walk);
	if (r < 0) {
		path_resolved_clear(&resolved);
		return r;
	}
	*ret_resolved = resolved;
	return 0;
}
