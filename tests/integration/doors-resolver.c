/* The first door: the path resolver. Its open form answers as the others do; of the walk and the string form it is
 * judged here what follows from the same row of the table. */
#include "integration/doors.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-resolver.h"
#include "common/path-util.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct ResolverDoor {
	PathResolver *resolver;
	const Ground *ground; /* borrowed */
};

ResolverDoor *resolver_door_new(const Ground *ground)
{
	ResolverDoor *door = g_new0(ResolverDoor, 1);
	g_autoptr(StellaPolicy) policy = ground_policy(ground, POLICY_RUNTIME_NONE);
	g_autofree char *message = NULL;
	ViewPlan *plan = NULL;

	door->ground = ground;
	if (policy_validate(policy, &message) < 0 ||
	    view_plan_new(policy, VIEW_FOR_HOST, &plan, &message) < 0 ||
	    path_resolver_new(plan, NULL, NULL, &door->resolver, &message) < 0)
		fail_msg("%s", message);
	return door;
}

void resolver_door_free(ResolverDoor *door)
{
	path_resolver_unref(door->resolver);
	g_free(door);
}

/* A message is one line, about the path as it was given, and names nothing of the host that the path did not. */
static void check_problem(const Ground *ground, const Vector *vector, int r,
			  const PathProblem *problem)
{
	bool names_host = strstr(vector->path, ground->host) != NULL ||
			  problem->kind == PATH_PROBLEM_SYMLINK; /* the text of a link */

	if (r != -problem->errnum || problem->kind == PATH_PROBLEM_NONE || !problem->message)
		fail_msg("%s: a problem that is none", vector->name);
	if (strpbrk(problem->message, "\n\r") ||
	    (!names_host && strstr(problem->message, ground->host)))
		fail_msg("%s: %s", vector->name, problem->message);
}

void resolver_door_try(void *door, const Vector *vector, DoorAnswer *ret_answer)
{
	const ResolverDoor *own = door;
	PathProblem problem = { .reason = -1 };
	int fd = path_resolver_open(own->resolver, vector->path, vector->flags, 0644, &problem);

	if (fd >= 0)
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	else
		check_problem(own->ground, vector, fd, &problem);
	door_look(fd, vector->flags, ret_answer);
	path_problem_clear(&problem);
}

/* The walk's part of the verdict on an open that failed: the error of a walk that fails too, or 0. */
static int walk_errnum(const Vector *vector)
{
	const Want *want = &vector->want[DOOR_RESOLVER];
	bool keeps = (vector->flags & O_NOFOLLOW) ||
		     (vector->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);

	if (want->kind != WANT_ERROR)
		return 0;
	switch (want->errnum) {
	case EROFS:
	case EEXIST:
	case EISDIR:
	case ENXIO:
	case EOPNOTSUPP:
	case EINVAL:
		return 0;
	case ENOTDIR:
		return vector->flags & O_DIRECTORY ? 0 : ENOTDIR;
	case ELOOP:
		return keeps ? 0 : ELOOP;
	default:
		return want->errnum;
	}
}

static bool is_same(const PathPlace *place, const struct stat *st)
{
	struct stat got;

	return place->fd >= 0 && fstat(place->fd, &got) == 0 && got.st_dev == st->st_dev &&
	       got.st_ino == st->st_ino && place->type == (st->st_mode & S_IFMT);
}

static const char *judge_place(const Ground *ground, const Vector *vector, const PathPlace *place)
{
	const Want *want = &vector->want[DOOR_RESOLVER];

	if (place->view_path[0] != '/' || strstr(place->view_path, "/../"))
		return "a view path that is not clean";
	if (want->kind == WANT_OBJECT && !is_same(place, &ground->st))
		return "the walk: another object";
	if (want->kind == WANT_NEW && (place->type != 0 || !place->writable))
		return "the walk: not what can be made";
	if (want->kind == WANT_OBJECT && S_ISREG(place->type) && !(vector->flags & O_PATH) &&
	    (vector->flags & (O_ACCMODE | O_TRUNC)) && !place->writable)
		return "the walk: not writable";
	if (want->kind == WANT_ERROR && want->errnum == EROFS && place->writable)
		return "the walk: writable";
	if (want->kind == WANT_ERROR && (want->errnum == EEXIST || want->errnum == ENXIO) &&
	    place->type == 0)
		return "the walk: nothing there";
	return NULL;
}

static const char *check_walk(ResolverDoor *door, const Ground *ground, const Vector *vector)
{
	bool keeps = (vector->flags & O_NOFOLLOW) ||
		     (vector->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	PathProblem problem = { .reason = -1 };
	PathPlace place = { .fd = -1, .parent_fd = -1 };
	const char *wrong = NULL;
	int errnum = walk_errnum(vector);
	/* About a slash behind what is to be made the walk knows nothing: it makes nothing. */
	bool may_fail = (vector->flags & O_CREAT) && vector->want[DOOR_RESOLVER].errnum == EISDIR;
	int r = path_resolver_walk(door->resolver, vector->path, keeps ? PATH_WALK_NOFOLLOW : 0,
				   &place, &problem);

	if (r < 0) {
		check_problem(ground, vector, r, &problem);
		path_problem_clear(&problem);
		return r == -errnum || may_fail ? NULL : errno_name(-r);
	}
	if (errnum == ENOENT ? place.type != 0 : errnum != 0 && errnum != EACCES)
		wrong = "the walk: it was allowed";
	else
		wrong = judge_place(ground, vector, &place);
	path_place_clear(&place);
	return wrong;
}

/* The host path that the deepest mount gives: by the table alone. */
static char *map_path(const Ground *ground, const char *view_path)
{
	char *best = NULL;
	size_t depth = 0;

	for (char **line = ground->world->mounts; *line; line++) {
		g_auto(GStrv) words = g_strsplit(*line, " ", 2);
		g_auto(GStrv) paths = g_strsplit(words[1], ":", 2);
		g_autofree char *view = path_clean(paths[1]);
		size_t length = strlen(view);

		if (strncmp(view_path, view, length) == 0 && length > depth &&
		    (view_path[length] == '/' || view_path[length] == '\0')) {
			g_autofree char *root = ground_path(ground, paths[0]);

			g_free(best);
			best = g_strconcat(root, view_path + length, NULL);
			depth = length;
		}
	}
	return best;
}

static const char *judge_resolved(const Ground *ground, const Vector *vector,
				  const PathResolved *resolved)
{
	g_autofree char *mapped = NULL;

	if (!vector->strict_path)
		return "strict: it was allowed";
	mapped = map_path(ground, vector->strict_path);
	if (strcmp(resolved->view_path, vector->strict_path) != 0)
		return "strict: another view path";
	if (!mapped || strcmp(resolved->host_path, mapped) != 0)
		return "strict: another host path";
	return NULL;
}

static const char *check_strict(ResolverDoor *door, const Ground *ground, const Vector *vector)
{
	PathProblem problem = { .reason = -1 };
	PathResolved resolved;
	const char *wrong = NULL;
	int r = path_resolver_resolve(door->resolver, vector->path, vector_changes(vector),
				      &resolved, &problem);

	if (r == 0) {
		wrong = judge_resolved(ground, vector, &resolved);
		path_resolved_clear(&resolved);
		return wrong;
	}
	check_problem(ground, vector, r, &problem);
	if (vector->strict_path)
		wrong = "strict: it was refused";
	else if ((int)problem.kind != vector->strict_kind)
		wrong = "strict: another kind of problem";
	else if (vector->strict_errnum && problem.errnum != vector->strict_errnum)
		wrong = errno_name(problem.errnum);
	path_problem_clear(&problem);
	return wrong;
}

char *resolver_door_check(ResolverDoor *door, const Ground *ground, const Vector *vector)
{
	const char *wrong = check_walk(door, ground, vector);

	if (!wrong)
		wrong = check_strict(door, ground, vector);
	return g_strdup(wrong);
}
