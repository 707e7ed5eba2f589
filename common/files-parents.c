/* Walking to where something is to be made, and making directories: the one that was asked for, or those on the way to it.
 *
 * Directories on the way are made one at a time, from the front, each by a walk of its own: so each is judged as if it had
 * been asked for by itself, and what an agent puts in the place of one is judged anew by the next walk. A link on the way
 * that leads nowhere is not followed to make its target, as by mkdir(1) -p. */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/resolve.h"

#include <errno.h>
#include <string.h>

/* What a umask has taken away is given. Of a directory that an agent has put there meanwhile, it is its own to give. */
static int widen_mode(const PathPlace *place, mode_t mode)
{
	FD_AUTO fd = resolve_child(place->parent_fd, place->name, false);
	char path[FD_PROC_PATH_SIZE];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return 0; /* gone again */
	if (!S_ISDIR(st.st_mode) || (st.st_mode & mode) == mode)
		return 0;
	fd_proc_path(fd, path);
	return chmod(path, (st.st_mode & 07000) | mode) == 0 ? 0 : -errno;
}

int files_make_dir(const PathPlace *place, mode_t mode)
{
	ACTING_AUTO acting = { 0 };
	int r = path_resolver_act_begin(place, &acting);

	if (r < 0)
		return r;
	if (mkdirat(place->parent_fd, place->name, mode) != 0)
		return -errno;
	return path_resolver_has_default_acl(place) ? 0 : widen_mode(place, mode);
}

/* What is there already is fine when it is a directory, or leads to one. */
static int check_is_dir(FilesCall *call, const char *path, const PathPlace *place)
{
	PLACE_AUTO end = PLACE_NONE;
	mode_t type = place->type;

	if (S_ISLNK(type)) {
		int r = path_resolver_walk(call->resolver, path, 0, &end, call->problem);

		if (r < 0)
			return files_reword(call, path, r);
		type = end.type;
	}
	return S_ISDIR(type) ? 0 : files_fail(call, -EEXIST, place, NULL);
}

/* Another one may make it at the same time. */
#define MAKE_TRIES 3

static int ensure_dir(FilesCall *call, const char *path, bool exclusive)
{
	for (int tries = 1;; tries++) {
		PLACE_AUTO place = PLACE_NONE;
		int r = path_resolver_walk(call->resolver, path, PATH_WALK_NOFOLLOW, &place,
					   call->problem);

		if (r < 0)
			return files_reword(call, path, r);
		if (place.type != 0)
			return exclusive ? files_fail(call, -EEXIST, &place, NULL)
					 : check_is_dir(call, path, &place);
		if ((r = files_check_writable(call, &place)) < 0)
			return r;
		r = files_make_dir(&place, 0755);
		if (r != -EEXIST || exclusive || tries == MAKE_TRIES)
			return r < 0 ? files_fail(call, r, &place, NULL) : 0;
	}
}

static int make_missing(FilesCall *call, const char *path)
{
	const char *rest = path;
	size_t length;
	int r;

	while (path_next(&rest, &length)) {
		g_autofree char *prefix = g_strndup(path, (gsize)(rest - path));

		if (rest[strspn(rest, "/")] == '\0')
			break; /* the last one */
		if ((r = files_check_canceled(call)) < 0 ||
		    (r = ensure_dir(call, prefix, false)) < 0)
			return r;
	}
	return 0;
}

int files_walk(FilesCall *call, const char *path, unsigned int walk_flags, bool make_parents,
	       PathPlace *ret_place)
{
	int r = files_check_canceled(call);

	if (r < 0)
		return r;
	r = path_resolver_walk(call->resolver, path, walk_flags, ret_place, call->problem);
	if (r == -ENOENT && make_parents && call->problem->kind == PATH_PROBLEM_IO) {
		path_problem_clear(call->problem);
		if ((r = make_missing(call, path)) < 0)
			return r;
		r = path_resolver_walk(call->resolver, path, walk_flags, ret_place, call->problem);
	}
	return files_reword(call, path, r);
}

static char *without_slashes(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	return g_strndup(path, length);
}

static bool ends_in_dots(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int files_walk_to_name(FilesCall *call, const char *path, bool make_parents, PathPlace *ret_place)
{
	g_autofree char *name = without_slashes(path);
	PLACE_AUTO place = PLACE_NONE;
	int r;

	if (ends_in_dots(name))
		return files_fail(call, -EINVAL, NULL, NULL);
	r = files_walk(call, name, PATH_WALK_NOFOLLOW, make_parents, &place);
	if (r < 0)
		return r;
	if (strlen(name) < strlen(path) && place.type != 0 && !S_ISDIR(place.type))
		return files_fail(call, -ENOTDIR, &place, NULL);
	*ret_place = place;
	place = (PathPlace)PLACE_NONE;
	return 0;
}

int files_mkdir(FilesCall *call, const char *path, unsigned int flags)
{
	g_autofree char *stripped = without_slashes(path);
	PLACE_AUTO place = PLACE_NONE;
	int r;

	files_begin(call, "mkdir", "make directory", path, NULL);
	/* For its errors, and for the way. */
	r = files_walk(call, stripped, PATH_WALK_NOFOLLOW, flags & FILES_PARENTS, &place);
	if (r < 0)
		return r;
	return ensure_dir(call, stripped, flags & FILES_EXCLUSIVE);
}
