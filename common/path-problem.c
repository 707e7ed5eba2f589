/* Why a path could not be used, in words and in the log; see path-resolver.h.
 *
 * A message goes to the model that gave the path: it names view paths only, and what of it comes from outside is escaped. The
 * text of a link is the agent's own to read; where it is a host path that the view has too, it is said how the view calls
 * it, for such a link is made by whoever does not know the difference. */
#include "common/path-resolver-internal.h"

#include "common/errno-util.h"
#include "common/limits.h"
#include "common/log-events.h"
#include "common/path-util.h"

#include <errno.h>
#include <string.h>

void path_problem_clear(PathProblem *problem)
{
	g_free(problem->path);
	g_free(problem->mount);
	g_free(problem->message);
	*problem = (PathProblem){ .reason = -1 };
}

static void append_quoted(GString *text, const char *path)
{
	g_autofree char *escaped = path_escape(path);

	g_string_append_printf(text, "\"%s\"", escaped);
}

static void append_writable(const PathResolver *resolver, GString *text)
{
	g_auto(GStrv) writable = view_plan_writable(resolver->plan);

	g_string_append(text, writable[0] ? "; writable:" : "; nothing is writable");
	for (char **path = writable; *path; path++) {
		g_autofree char *escaped = path_escape(*path);

		g_string_append_printf(text, " %s", escaped);
	}
}

static void append_link(const PathResolver *resolver, const PathFailure *failure, GString *text)
{
	g_autofree char *in_view = failure->target[0] == '/'
					   ? view_plan_to_view_path(resolver->plan, failure->target)
					   : NULL;

	append_quoted(text, failure->at);
	g_string_append(text, " is a link to ");
	append_quoted(text, failure->target);
	switch (failure->reason) {
	case DENIAL_SYMLINK_ESCAPE:
		g_string_append(text, ", which leaves the view");
		break;
	case DENIAL_SYMLINK_LOOP:
		g_string_append(text, ", after more than 40 links on the way");
		break;
	case DENIAL_SYMLINK_DENIED:
		g_string_append(text, ", and the policy lets none be followed");
		break;
	default:
		g_string_append(text, ", and links are not followed here");
		break;
	}
	if (in_view && strcmp(in_view, failure->target) != 0) {
		g_string_append(text, " (a host path; in the view this is ");
		append_quoted(text, in_view);
		g_string_append_c(text, ')');
	}
}

static void append_read_only(const PathResolver *resolver, const PathFailure *failure,
			     GString *text)
{
	if (failure->reason == DENIAL_READ_ONLY_MOUNT && failure->mount) {
		g_autofree char *mount = path_escape(failure->mount);

		g_string_append_printf(text, "read-only mount %s", mount);
	} else {
		g_string_append(text, failure->reason >= 0
					      ? denial_reason_meaning((DenialReason)failure->reason)
					      : errno_text(failure->errnum));
	}
	append_writable(resolver, text);
}

/* What the host, or the kernel in the view, would say; of which component, where it is another one. */
static void append_errno(const PathResolver *resolver, const PathFailure *failure, GString *text)
{
	g_autofree char *clean = path_clean_from(resolver->plan->working_dir, failure->path);

	if (failure->at && strcmp(failure->at, clean) != 0 && failure->errnum != ENOENT) {
		append_quoted(text, failure->at);
		g_string_append(text, ": ");
	}
	g_string_append(text, errno_text(failure->errnum));
}

static void append_why(const PathResolver *resolver, const PathFailure *failure, GString *text)
{
	switch (failure->kind) {
	case PATH_PROBLEM_NO_MOUNTS:
		g_string_append(text, "there are no mounts");
		return;
	case PATH_PROBLEM_OUTSIDE_MOUNTS:
		g_string_append(text, "no mount covers it");
		return;
	case PATH_PROBLEM_READ_ONLY:
		append_read_only(resolver, failure, text);
		return;
	case PATH_PROBLEM_SYMLINK:
		if (failure->target && failure->at)
			append_link(resolver, failure, text);
		else
			append_errno(resolver, failure, text);
		return;
	case PATH_PROBLEM_REFUSED:
		/* That it is hidden is not for who asks. */
		if (failure->reason >= 0 && failure->errnum != ENOENT) {
			g_string_append(text, denial_reason_meaning((DenialReason)failure->reason));
			return;
		}
		break;
	case PATH_PROBLEM_NONE:
	case PATH_PROBLEM_INVALID:
	case PATH_PROBLEM_IO:
		break;
	}
	append_errno(resolver, failure, text);
}

static void log_denial(const PathResolver *resolver, const PathFailure *failure)
{
	const LogDenial denial = {
		.operation = failure->op,
		.path = failure->at ? failure->at : failure->path,
		.reason = denial_reason_name((DenialReason)failure->reason),
	};

	log_policy_denied(resolver->session_id, &denial);
}

int path_fail(PathResolver *resolver, const PathFailure *failure, PathProblem *reterr_problem)
{
	g_autoptr(GString) message = g_string_new(NULL);

	if (failure->reason >= 0)
		log_denial(resolver, failure);
	if (!reterr_problem)
		return -failure->errnum;
	append_quoted(message, failure->path);
	g_string_append(message, ": ");
	if (failure->why)
		g_string_append(message, failure->why);
	else
		append_why(resolver, failure, message);
	*reterr_problem = (PathProblem){
		.kind = failure->kind,
		.errnum = failure->errnum,
		.reason = failure->reason,
		.path = g_strdup(failure->at),
		.mount = g_strdup(failure->mount),
		.message = g_strdup(message->str),
	};
	return -failure->errnum;
}

int path_resolver_fail(PathResolver *resolver, const char *op, const char *path,
		       PathProblemKind kind, int errnum, int reason, const char *at_view_path,
		       const char *mount, PathProblem *reterr_problem)
{
	const PathFailure failure = {
		.op = op,
		.path = path,
		.kind = kind,
		.errnum = errnum,
		.reason = reason,
		.at = at_view_path,
		.mount = mount,
	};

	return path_fail(resolver, &failure, reterr_problem);
}

int path_check_text(PathResolver *resolver, const char *op, const char *path,
		    PathProblem *reterr_problem)
{
	const char *name, *rest = path;
	size_t length;
	int errnum = path[0] == '\0' ? ENOENT : strlen(path) >= LIMIT_PATH_BYTES ? ENAMETOOLONG : 0;

	while (errnum == 0 && (name = path_next(&rest, &length)))
		if (length > LIMIT_NAME_BYTES)
			errnum = ENAMETOOLONG;
	if (errnum == ENOENT || errnum == ENAMETOOLONG)
		return path_resolver_fail(resolver, op, path, PATH_PROBLEM_INVALID, errnum, -1,
					  NULL, NULL, reterr_problem);
	if (!resolver->has_mounts)
		return path_resolver_fail(resolver, op, path, PATH_PROBLEM_NO_MOUNTS, ENOENT, -1,
					  NULL, NULL, reterr_problem);
	return 0;
}

static PathProblemKind kind_of(int r, int reason)
{
	switch (reason) {
	case DENIAL_SYMLINK_ESCAPE:
	case DENIAL_SYMLINK_LOOP:
	case DENIAL_SYMLINK_DENIED:
		return PATH_PROBLEM_SYMLINK;
	case DENIAL_HIDDEN:
		return PATH_PROBLEM_REFUSED;
	default:
		break;
	}
	if (r == -ENAMETOOLONG)
		return PATH_PROBLEM_INVALID;
	return r == -ELOOP ? PATH_PROBLEM_SYMLINK : PATH_PROBLEM_IO;
}

int path_walk_fail(PathResolver *resolver, const char *op, const char *path, const PathWalk *walk,
		   int r, PathProblem *reterr_problem)
{
	const ViewWalk *view_walk = &walk->walk;
	bool of_link = r == -ELOOP || view_walk->reason == DENIAL_SYMLINK_ESCAPE;
	PathFailure failure = {
		.op = op,
		.path = path,
		.kind = kind_of(r, view_walk->reason),
		.errnum = -r,
		.reason = view_walk->reason,
		.at = view_walk->at,
		.mount = view_walk->at_anchor ? view_walk->at_anchor->view_path : NULL,
		.target = of_link ? view_walk->target : NULL,
	};

	/* What the view's own directories do not have, no mount covers. */
	if (r == -ENOENT && failure.kind == PATH_PROBLEM_IO && view_walk->absent &&
	    view_walk_here(view_walk)->kind == VIEW_PLACE_OWN)
		failure.kind = PATH_PROBLEM_OUTSIDE_MOUNTS;
	if (failure.reason < 0 && (r == -EACCES || r == -EPERM))
		failure.reason = DENIAL_HOST_PERMISSION;
	return path_fail(resolver, &failure, reterr_problem);
}
