/* What the file functions share: how a call fails, how a place is judged, how its object is opened. See files.h. */
#include "common/files-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <string.h>

int files_act(FilesCall *call, const PathPlace *place)
{
	int r;

	if (call->acts_for && call->acts_for == place->anchor)
		return 0;
	files_act_end(call);
	if ((r = path_resolver_act_begin(place, &call->acting)) < 0)
		return r;
	call->acts_for = place->anchor;
	return 0;
}

void files_act_end(FilesCall *call)
{
	path_resolver_act_end(&call->acting);
	call->acts_for = NULL;
}

void files_begin(FilesCall *call, const char *op, const char *verb, const char *path,
		 const char *to)
{
	call->op = op;
	call->verb = verb ? verb : op;
	call->path = path;
	call->to = to;
}

static void append_quoted(GString *text, const char *path)
{
	g_autofree char *escaped = path_escape(path);

	g_string_append_printf(text, "\"%s\"", escaped);
}

/* What the resolver says, `"PATH": why`, is about a path; the call is about what was to be done, with two paths maybe. at:
 * which of several things it was, where neither says it. */
static void reword(const FilesCall *call, const char *path, const char *at)
{
	g_autoptr(GString) text = g_string_new("cannot ");
	g_autoptr(GString) subject = g_string_new(NULL);
	PathProblem *problem = call->problem;
	const char *why = problem->message;

	g_string_append_printf(text, "%s ", call->verb);
	append_quoted(text, call->path);
	if (call->to) {
		g_string_append(text, " to ");
		append_quoted(text, call->to);
	}
	g_string_append(text, ": ");
	append_quoted(subject, path);
	g_string_append(subject, ": ");
	if (!call->to && g_str_has_prefix(why, subject->str))
		why += subject->len;
	if (at && !strstr(why, at)) {
		append_quoted(text, at);
		g_string_append(text, ": ");
	}
	g_string_append(text, why);
	g_free(problem->message);
	problem->message = g_strdup(text->str);
}

int files_reword(FilesCall *call, const char *path, int r)
{
	if (r < 0 && call->problem->message)
		reword(call, path, NULL);
	return r;
}

/* What the view's own gateway would call it: the host's refusals are denials of their own. */
static int reason_of_host(int r)
{
	if (r == -EACCES || r == -EPERM)
		return DENIAL_HOST_PERMISSION;
	return r == -EROFS ? DENIAL_HOST_READ_ONLY : -1;
}

static int fail(FilesCall *call, int r, PathProblemKind kind, int reason, const PathPlace *at,
		const char *name)
{
	g_autofree char *path = at ? path_join(at->view_path, name ? name : "") : NULL;
	/* Of two paths the one that is at fault, as the view has it. */
	const char *subject = call->to && path ? path : call->path;

	/* It is logged, by whatever the host has for that. */
	files_act_end(call);
	(void)path_resolver_fail(call->resolver, call->op, subject, kind, -r, reason, path,
				 at ? at->mount : NULL, call->problem);
	reword(call, subject, name && !call->to ? path : NULL);
	return r;
}

int files_fail(FilesCall *call, int r, const PathPlace *at, const char *name)
{
	PathProblemKind kind = PATH_PROBLEM_IO;

	if (r == -EROFS)
		kind = PATH_PROBLEM_READ_ONLY;
	return fail(call, r, kind, reason_of_host(r), at, name);
}

int files_fail_argument(FilesCall *call, const char *why)
{
	files_act_end(call);
	*call->problem = (PathProblem){
		.kind = PATH_PROBLEM_INVALID,
		.errnum = EINVAL,
		.reason = -1,
		.message = g_strdup(why),
	};
	reword(call, call->path, NULL);
	return -EINVAL;
}

int files_refuse(FilesCall *call, int r, DenialReason reason, const PathPlace *at, const char *name)
{
	return fail(call, r, r == -EROFS ? PATH_PROBLEM_READ_ONLY : PATH_PROBLEM_REFUSED,
		    (int)reason, at, name);
}

int files_check_canceled(FilesCall *call)
{
	if (!call->is_canceled || !call->is_canceled(call->data))
		return 0;
	return files_fail(call, -ECANCELED, NULL, NULL);
}

int files_check_writable(FilesCall *call, const PathPlace *place)
{
	if (place->writable)
		return 0;
	if (place->read_only_reason == DENIAL_HIDDEN)
		return files_refuse(call, -EACCES, DENIAL_HIDDEN, place, NULL);
	return files_refuse(call, -EROFS, (DenialReason)place->read_only_reason, place, NULL);
}

int files_check_movable(FilesCall *call, const PathPlace *place)
{
	if (place->pinned || place->is_mount_root)
		return files_refuse(call, -EBUSY, DENIAL_PINNED_DIRECTORY, place, NULL);
	return 0;
}

int files_fail_absent(FilesCall *call, const PathPlace *place)
{
	if (place->is_hidden)
		return files_refuse(call, -ENOENT, DENIAL_HIDDEN, place, NULL);
	/* What the view's own directories do not have, no mount covers. */
	if (place->is_synthetic && !place->anchor)
		return fail(call, -ENOENT, PATH_PROBLEM_OUTSIDE_MOUNTS, -1, place, NULL);
	return files_fail(call, -ENOENT, place, NULL);
}
