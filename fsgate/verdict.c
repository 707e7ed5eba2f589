/* Verdicts; see verdict.h. */
#include "fsgate/verdict.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"
#include "fsgate/status-json.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void fsg_verdict_clear(FsgVerdict *verdict)
{
	g_free(verdict->view_path);
	g_free(verdict->host_path);
	g_free(verdict->mount);
	path_problem_clear(&verdict->problem);
	*verdict = (FsgVerdict){ .problem = { .reason = -1 } };
}

void fsg_verdict_strict(PathResolver *resolver, const char *path, bool for_write,
			FsgVerdict *ret_verdict)
{
	PathResolved resolved;
	FsgVerdict verdict = { .problem = { .reason = -1 } };

	if (path_resolver_resolve(resolver, path, for_write, &resolved, &verdict.problem) == 0) {
		verdict.allowed = true;
		verdict.view_path = g_strdup(resolved.view_path);
		verdict.host_path = g_strdup(resolved.host_path);
		verdict.mount = g_strdup(resolved.mount->view_path);
		verdict.access = policy_access_name(resolved.mount->access);
		path_resolved_clear(&resolved);
	}
	*ret_verdict = verdict;
}

static const char *type_name(mode_t type)
{
	switch (type) {
	case 0:
		return "absent";
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "device";
	}
}

static int fail(PathResolver *resolver, const char *path, const PathPlace *place, int errnum,
		int reason, FsgVerdict *verdict)
{
	PathProblemKind kind = errnum == EROFS ? PATH_PROBLEM_READ_ONLY : PATH_PROBLEM_IO;

	return path_resolver_fail(resolver, "open", path, kind, errnum, reason, place->view_path,
				  place->mount, &verdict->problem);
}

/* Of a directory, in which something is to be made: the host's own permissions, as whom it would be made. */
static int check_making(PathResolver *resolver, const char *path, const PathPlace *place,
			FsgVerdict *verdict)
{
	int fd = place->type == 0 ? place->parent_fd : place->fd;
	PathActing acting;
	int r = path_resolver_act_begin(place, &acting);

	if (r == 0) {
		r = faccessat(fd, "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0 ? 0 : -errno;
		path_resolver_act_end(&acting);
	}
	return r == 0 ? 0
		      : fail(resolver, path, place, -r, r == -EACCES ? DENIAL_HOST_PERMISSION : -1,
			     verdict);
}

/* A regular file is opened (without O_TRUNC that changes nothing), a directory to read it too. */
static int check_place(PathResolver *resolver, const char *path, bool for_write,
		       const PathPlace *place, FsgVerdict *verdict)
{
	bool is_made = for_write && (place->type == 0 || S_ISDIR(place->type));

	if (is_made && place->writable)
		return check_making(resolver, path, place, verdict);
	if (is_made && place->read_only_reason != DENIAL_HIDDEN)
		return fail(resolver, path, place, EROFS, place->read_only_reason, verdict);
	/* A directory of the view's own can be listed in it. */
	if (place->is_synthetic && S_ISDIR(place->type))
		return 0;
	FD_AUTO fd = path_resolver_open(resolver, path,
					(for_write ? O_WRONLY : O_RDONLY) | (is_made ? O_CREAT : 0),
					0600, &verdict->problem);
	return MIN(fd, 0);
}

void fsg_verdict_open(PathResolver *resolver, const char *path, bool for_write,
		      FsgVerdict *ret_verdict)
{
	FsgVerdict verdict = { .problem = { .reason = -1 } };
	PathPlace place;

	if (path_resolver_walk(resolver, path, 0, &place, &verdict.problem) == 0) {
		verdict.allowed = check_place(resolver, path, for_write, &place, &verdict) == 0;
		verdict.view_path = g_strdup(place.view_path);
		if (!place.is_synthetic)
			verdict.host_path = view_plan_to_host_path(path_resolver_plan(resolver),
								   place.view_path);
		verdict.mount = g_strdup(place.mount);
		verdict.access = policy_access_name(place.writable ? STELLA_MOUNT_READ_WRITE
								   : STELLA_MOUNT_READ_ONLY);
		verdict.type = type_name(place.type);
		path_place_clear(&place);
	}
	*ret_verdict = verdict;
}

static void append_path(GString *text, const char *path)
{
	g_autofree char *escaped = path_escape(path);

	g_string_append(text, escaped);
}

static char *refusal_text(const PathProblem *problem)
{
	GString *text = g_string_new("refused: ");

	g_string_append_printf(text, "%s (%s", problem->message, errno_name(problem->errnum));
	if (problem->reason >= 0)
		g_string_append_printf(text, ", %s",
				       denial_reason_name((DenialReason)problem->reason));
	g_string_append_c(text, ')');
	return g_string_free(text, FALSE);
}

char *fsg_verdict_text(const FsgVerdict *verdict)
{
	GString *text;

	if (!verdict->allowed)
		return refusal_text(&verdict->problem);
	text = g_string_new(NULL);
	append_path(text, verdict->view_path);
	if (verdict->host_path) {
		g_string_append(text, " = ");
		append_path(text, verdict->host_path);
	}
	if (verdict->mount) {
		g_string_append(text, " (mount ");
		append_path(text, verdict->mount);
		g_string_append_printf(text, ", %s", verdict->access);
	} else {
		g_string_append(text, " (the view's own");
	}
	if (verdict->type)
		g_string_append_printf(text, ", %s", verdict->type);
	g_string_append_c(text, ')');
	return g_string_free(text, FALSE);
}

static const char *kind_name(PathProblemKind kind)
{
	static const char *const names[] = {
		[PATH_PROBLEM_NONE] = "none",
		[PATH_PROBLEM_INVALID] = "invalid",
		[PATH_PROBLEM_NO_MOUNTS] = "no-mounts",
		[PATH_PROBLEM_OUTSIDE_MOUNTS] = "outside-mounts",
		[PATH_PROBLEM_READ_ONLY] = "read-only",
		[PATH_PROBLEM_SYMLINK] = "symlink",
		[PATH_PROBLEM_REFUSED] = "refused",
		[PATH_PROBLEM_IO] = "io",
	};

	return names[kind];
}

static void set_string(JsonObject *object, const char *name, const char *text)
{
	if (text)
		json_object_set_string_member(object, name, text);
	else
		json_object_set_null_member(object, name);
}

static JsonObject *problem_json(const PathProblem *problem)
{
	JsonObject *object = json_object_new();

	json_object_set_string_member(object, "kind", kind_name(problem->kind));
	json_object_set_string_member(object, "errno", errno_name(problem->errnum));
	set_string(object, "reason",
		   problem->reason >= 0 ? denial_reason_name((DenialReason)problem->reason) : NULL);
	fsg_json_set_path(object, "at", problem->path);
	fsg_json_set_path(object, "mount", problem->mount);
	json_object_set_string_member(object, "message", problem->message);
	return object;
}

JsonObject *fsg_verdict_json(const FsgVerdict *verdict)
{
	JsonObject *object = json_object_new();

	json_object_set_boolean_member(object, "allowed", verdict->allowed);
	fsg_json_set_path(object, "view_path", verdict->view_path);
	fsg_json_set_path(object, "host_path", verdict->host_path);
	fsg_json_set_path(object, "mount", verdict->mount);
	set_string(object, "access", verdict->access);
	set_string(object, "type", verdict->type);
	if (verdict->allowed)
		json_object_set_null_member(object, "error");
	else
		json_object_set_object_member(object, "error", problem_json(&verdict->problem));
	return object;
}
