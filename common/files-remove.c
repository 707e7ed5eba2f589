/* Removing: one name, or a directory with all that is in it.
 *
 * A directory that leads to a mount is refused by the walk's judgement of it (pinned), before anything is removed; nothing of that kind can come into it afterwards, for no agent can move it. Even so each name is judged
 * when its turn comes, as if it had been asked for alone: a stand-in for a mount of the host's, a directory of ours,
 * what is read-only. No link is followed, no mount is entered.
 *
 * There is no recursion and there are never more than REMOVE_LEVELS directories open: one that lies deeper and is not empty
 * is moved to the top of the tree that is being removed, under a name that nobody guesses. So a tree can be as deep as
 * an agent likes to make it. Other trees are worked off where they are, so that what could not be removed is still at its
 * place. */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REMOVE_LEVELS 16
/* Times that a directory is read again because there was something in it still: readdir may miss names while others
 * go, what was moved to the top has to be met, and an agent may be adding to it. */
#define REMOVE_PASSES 8192
/* Times that a name is judged again because it was a directory and is none, or the other way round. */
#define NAME_TRIES 3

typedef struct {
	PathPlace place;
	DIR *dir;
	bool has_progress; /* since it was opened */
	int passes;
} Level;

typedef struct {
	FilesCall *call;
	Level levels[REMOVE_LEVELS]; /* [0] is the top */
	unsigned int depth;
} Removal;

static int unlink_name(FilesCall *call, const PathPlace *place, int dirfd, const char *name,
		       int flags)
{
	int r = files_act(call, place);

	if (r < 0)
		return r;
	return unlinkat(dirfd, name, flags) == 0 ? 0 : -errno;
}

static int open_level(Level *level)
{
	FD_AUTO fd = path_resolver_reopen(&level->place, O_RDONLY | O_DIRECTORY);

	if (level->dir) {
		closedir(level->dir);
		level->dir = NULL;
	}
	level->has_progress = false;
	level->passes++;
	if (fd < 0)
		return fd;
	if (!(level->dir = fdopendir(fd)))
		return -errno;
	(void)fd_steal(&fd); /* the stream's */
	return 0;
}

static void drop_level(Removal *removal)
{
	Level *level = &removal->levels[--removal->depth];

	if (level->dir)
		closedir(level->dir);
	path_place_clear(&level->place);
}

/* Goes into a directory; takes its place. */
static int push_level(Removal *removal, PathPlace *take_place)
{
	Level *level = &removal->levels[removal->depth++];
	int r;

	*level = (Level){ .place = *take_place };
	*take_place = (PathPlace)PLACE_NONE;
	r = open_level(level);
	return r < 0 ? files_fail(removal->call, r, &level->place, "") : 0;
}

/* A directory that lies too deep goes to the top. */
static int move_to_top(Removal *removal, const Level *level, const char *name)
{
	const PathPlace *top = &removal->levels[0].place;
	char other[40];
	int r = files_random_name(other);

	if (r < 0 || (r = files_act(removal->call, top)) < 0)
		return r;
	return sys_renameat2(level->place.fd, name, top->fd, other, RENAME_NOREPLACE);
}

/* Whether one name of the tree may go. */
static int judge(Removal *removal, const Level *level, const char *name, const PathPlace *place)
{
	if (place->pinned || place->is_mount_root || place->is_synthetic)
		return files_refuse(removal->call, -EBUSY,
				    place->pinned || place->is_mount_root ? DENIAL_PINNED_DIRECTORY
									  : DENIAL_STAND_IN,
				    &level->place, name);
	if (!place->writable)
		return files_refuse(removal->call, -EROFS, (DenialReason)place->read_only_reason,
				    &level->place, name);
	return 0;
}

static int remove_directory(Removal *removal, Level *level, const char *name, PathPlace *place)
{
	int r = unlink_name(removal->call, &level->place, level->place.fd, name, AT_REMOVEDIR);

	if (r == -ENOTEMPTY || r == -EEXIST) {
		if (removal->depth < REMOVE_LEVELS)
			return push_level(removal, place);
		r = move_to_top(removal, level, name);
	}
	return r;
}

/* -errno of the last step is not failed yet, unless the problem is filled in. */
static int try_name(Removal *removal, Level *level, const char *name)
{
	PLACE_AUTO place = PLACE_NONE;
	int r = files_act(removal->call, &level->place);

	if (r < 0 || (r = path_resolver_step(removal->call->resolver, &level->place, name,
					     PATH_WALK_ACTING, &place)) < 0)
		return r;
	if ((r = judge(removal, level, name, &place)) < 0)
		return r;
	if (S_ISDIR(place.type))
		return remove_directory(removal, level, name, &place);
	return unlink_name(removal->call, &level->place, level->place.fd, name, 0);
}

static int remove_name(Removal *removal, Level *level, const char *name)
{
	int r = -EISDIR;

	for (int tries = 0; (r == -EISDIR || r == -ENOTDIR) && tries < NAME_TRIES; tries++)
		r = try_name(removal, level, name);
	if (r == -ENOENT)
		return 0; /* gone, or hidden: then its directory stays, and is named */
	if (r == 0)
		level->has_progress = true;
	else if (removal->call->problem->kind == PATH_PROBLEM_NONE)
		files_fail(removal->call, r, &level->place, name);
	return r;
}

/* Removes what was emptied. What is above it has progressed by that. */
static int finish_level(Removal *removal)
{
	Level *level = &removal->levels[removal->depth - 1];
	int r = unlink_name(removal->call, &level->place, level->place.parent_fd, level->place.name,
			    AT_REMOVEDIR);

	if ((r == -ENOTEMPTY || r == -EEXIST) && level->has_progress &&
	    level->passes < REMOVE_PASSES) {
		r = open_level(level);
		return r < 0 ? files_fail(removal->call, r, &level->place, "") : 0;
	}
	if (r < 0 && r != -ENOENT)
		return files_fail(removal->call, r, &level->place, "");
	drop_level(removal);
	if (removal->depth > 0)
		removal->levels[removal->depth - 1].has_progress = true;
	return 0;
}

static int work_off(Removal *removal)
{
	int r = 0;

	while (r == 0 && removal->depth > 0) {
		Level *level = &removal->levels[removal->depth - 1];
		struct dirent *entry;

		if ((r = files_check_canceled(removal->call)) < 0)
			return r;
		errno = 0;
		entry = readdir(level->dir);
		if (!entry && errno != 0)
			r = files_fail(removal->call, -errno, &level->place, "");
		else if (!entry)
			r = finish_level(removal);
		else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_name(removal, level, entry->d_name);
	}
	return r;
}

static int remove_tree(FilesCall *call, PathPlace *take_place)
{
	Removal removal = { .call = call };
	int r = push_level(&removal, take_place);

	if (r == 0)
		r = work_off(&removal);
	while (removal.depth > 0)
		drop_level(&removal);
	files_act_end(call);
	return r;
}

int files_remove(FilesCall *call, const char *path, unsigned int flags)
{
	PLACE_AUTO place = PLACE_NONE;
	bool is_dir;
	int r;

	files_begin(call, "remove", NULL, path, NULL);
	if ((r = files_walk_to_name(call, path, false, &place)) < 0)
		return r;
	if (place.type == 0)
		return files_fail_absent(call, &place);
	if ((r = files_check_movable(call, &place)) < 0 ||
	    (r = files_check_writable(call, &place)) < 0)
		return r;
	is_dir = S_ISDIR(place.type);
	r = unlink_name(call, &place, place.parent_fd, place.name, is_dir ? AT_REMOVEDIR : 0);
	files_act_end(call);
	if (is_dir && (flags & FILES_RECURSIVE) && (r == -ENOTEMPTY || r == -EEXIST))
		return remove_tree(call, &place);
	return r < 0 ? files_fail(call, r, &place, NULL) : 0;
}
