/* Where a path leads in a resolver's view; see path-resolver.h. The walk is view-walk.h's, which carries the argument; here
 * it is begun, done again where directories moved under it, and what it has come to is given out. */
#include "common/path-resolver-internal.h"

#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/view-host-ids.h"

#include <errno.h>
#include <fcntl.h>

void path_pause(int tries)
{
	if (tries >= 4)
		g_usleep((gulong)tries * 7);
}

static int act_for(void *data, const ViewAnchor *anchor)
{
	return path_actor_turn(data, anchor);
}

static ViewWalkSpace space_of(const PathResolver *resolver, PathWalk *walk)
{
	return (ViewWalkSpace){
		.root = resolver->root,
		.private_dirs = resolver->private_dirs,
		.act_for = act_for,
		.data = &walk->actor,
	};
}

static void walk_init(const PathResolver *resolver, const char *path, unsigned int flags,
		      PathWalk *walk)
{
	view_walk_init(&walk->walk, &walk->space, flags);
	if (path[0] != '/')
		view_walk_add(&walk->walk, resolver->plan->working_dir, false);
	view_walk_add(&walk->walk, path, false);
}

int path_walk_begin(PathResolver *resolver, const char *path, unsigned int view_walk_flags,
		    PathWalk *walk)
{
	int r;

	*walk = (PathWalk){ .space = space_of(resolver, walk) };
	walk_init(resolver, path, view_walk_flags, walk);
	for (int tries = 1; (r = view_walk_run(&walk->walk)) == -ESTALE && tries < PATH_TRIES;
	     tries++) {
		path_pause(tries);
		view_walk_clear(&walk->walk);
		walk_init(resolver, path, view_walk_flags, walk);
	}
	return r;
}

void path_walk_end(PathWalk *walk)
{
	path_actor_end(&walk->actor);
	view_walk_clear(&walk->walk);
}

int path_read_only_reason(const ViewPlace *place)
{
	switch (place->kind) {
	case VIEW_PLACE_OWN:
		return DENIAL_VIEW_DIRECTORY;
	case VIEW_PLACE_STAND_IN:
		return DENIAL_STAND_IN;
	case VIEW_PLACE_PRIVATE:
		return DENIAL_PRIVATE_DIRECTORY;
	case VIEW_PLACE_HOST:
		break;
	}
	return place->anchor->writable ? -1 : DENIAL_READ_ONLY_MOUNT;
}

/* An O_PATH fd of the caller's own. */
static int dup_fd(ViewWalk *walk, guint i)
{
	const ViewPlace *place = view_walk_place(walk, i);
	int fd = view_walk_ensure_fd(walk, i);

	if (fd < 0)
		return fd;
	return place->anchor->is_generated && place->is_anchor_root ? fd_reopen_now(fd, O_PATH)
								    : fd_dup(fd);
}

static void fill_access(const ViewPlace *place, PathPlace *ret_place)
{
	ret_place->read_only_reason = path_read_only_reason(place);
	ret_place->writable = ret_place->read_only_reason < 0;
	ret_place->is_synthetic = place->kind != VIEW_PLACE_HOST;
	ret_place->mount = ret_place->is_synthetic ? NULL : g_strdup(place->anchor->view_path);
	ret_place->anchor = place->anchor;
}

static char *view_path_of(const ViewWalk *walk)
{
	g_autoptr(GString) path = g_string_new(NULL);

	view_walk_append_path(walk, path);
	while (path->len > 0 &&
	       path->str[path->len - 1] == '/') /* one at the end of what is absent */
		g_string_truncate(path, path->len - 1);
	return g_strdup(path->len > 0 ? path->str : "/");
}

static int fill_absent(ViewWalk *walk, PathPlace *ret_place)
{
	const ViewPlace *here = view_walk_here(walk);

	ret_place->name = g_strdup(walk->absent);
	fill_access(here, ret_place);
	ret_place->is_hidden = walk->reason == DENIAL_HIDDEN;
	if (ret_place->is_hidden && ret_place->writable) {
		ret_place->writable = false;
		ret_place->read_only_reason = DENIAL_HIDDEN;
	}
	if (here->kind == VIEW_PLACE_HOST)
		ret_place->parent_fd = dup_fd(walk, walk->places->len - 1);
	return here->kind == VIEW_PLACE_HOST ? MIN(ret_place->parent_fd, 0) : 0;
}

/* A root of a mount has its name from the view; of its host object's name nothing is known here. */
static int fill_found(PathResolver *resolver, ViewWalk *walk, PathPlace *ret_place)
{
	guint last = walk->places->len - 1;
	const ViewPlace *here = view_walk_here(walk);

	ret_place->name = g_strdup(here->name);
	ret_place->type = here->type;
	fill_access(here, ret_place);
	ret_place->is_mount_root = here->is_anchor_root;
	ret_place->pinned = here->kind != VIEW_PLACE_HOST || here->is_anchor_root || here->node ||
			    view_host_ids_have(resolver->pinned, here->dev, here->ino);
	ret_place->node = here->node;
	if (here->kind != VIEW_PLACE_HOST)
		return 0;
	ret_place->path_in_mount = view_walk_path_in_anchor(walk, last, NULL);
	if ((ret_place->fd = dup_fd(walk, last)) < 0)
		return ret_place->fd;
	if (!here->is_anchor_root)
		ret_place->parent_fd = dup_fd(walk, last - 1);
	return here->is_anchor_root ? 0 : MIN(ret_place->parent_fd, 0);
}

int path_walk_get_place(PathResolver *resolver, PathWalk *walk, PathPlace *ret_place)
{
	PathPlace place = { .fd = -1, .parent_fd = -1 };
	int r;

	if (walk->walk.absent && view_walk_has_rest(&walk->walk))
		return -ENOENT;
	r = walk->walk.absent ? fill_absent(&walk->walk, &place)
			      : fill_found(resolver, &walk->walk, &place);
	if (r < 0) {
		path_place_clear(&place);
		return r;
	}
	place.view_path = view_path_of(&walk->walk);
	*ret_place = place;
	return 0;
}

void path_place_clear(PathPlace *place)
{
	fd_close(&place->fd);
	fd_close(&place->parent_fd);
	g_free(place->name);
	g_free(place->view_path);
	g_free(place->mount);
	g_free(place->path_in_mount);
	*place = (PathPlace){ .fd = -1, .parent_fd = -1 };
}

int path_resolver_walk(PathResolver *resolver, const char *path, unsigned int flags,
		       PathPlace *ret_place, PathProblem *reterr_problem)
{
	unsigned int walk_flags = flags & PATH_WALK_NOFOLLOW ? VIEW_WALK_KEEP_LAST : 0;
	int r = path_check_text(resolver, "lookup", path, reterr_problem);

	if (r < 0)
		return r;
	/* Again, when a directory above moved after the walk and before its fd was opened once more. */
	for (int tries = 1;; tries++) {
		PathWalk walk;

		r = path_walk_begin(resolver, path, walk_flags, &walk);
		if (r == 0)
			r = path_walk_get_place(resolver, &walk, ret_place);
		path_actor_end(&walk.actor);
		if (r < 0 && (r != -ESTALE || tries == PATH_TRIES))
			r = path_walk_fail(resolver, "lookup", path, &walk, r, reterr_problem);
		path_walk_end(&walk);
		if (r != -ESTALE || tries == PATH_TRIES)
			return r;
	}
}

static int step_from(PathResolver *resolver, const ViewDirectory *dir, const char *name,
		     unsigned int flags, PathPlace *ret_place)
{
	PathWalk walk = { .actor = { .saved = { 0 } } };
	int r;

	walk.space = space_of(resolver, &walk);
	if (flags & PATH_WALK_ACTING)
		walk.space.act_for = NULL;
	view_walk_init(&walk.walk, &walk.space, VIEW_WALK_KEEP_LAST);
	view_walk_resume(&walk.walk, dir);
	view_walk_add(&walk.walk, name, false);
	r = view_walk_run(&walk.walk);
	if (r == 0 && walk.walk.absent)
		r = -ENOENT;
	if (r == 0)
		r = path_walk_get_place(resolver, &walk, ret_place);
	path_walk_end(&walk);
	return r;
}

int path_resolver_step(PathResolver *resolver, const PathPlace *dir, const char *name,
		       unsigned int flags, PathPlace *ret_place)
{
	const ViewDirectory from = {
		.node = (ViewNode *)(uintptr_t)dir->node,
		.anchor = dir->is_synthetic ? NULL : (ViewAnchor *)(uintptr_t)dir->anchor,
		.fd = dir->fd,
		.path = dir->path_in_mount,
	};
	int r = path_check_name(name);

	if (r < 0)
		return r;
	if (!S_ISDIR(dir->type))
		return -ENOTDIR;
	if (dir->is_synthetic && !dir->node)
		return -ENOENT; /* what stands in for something is empty */
	if ((r = step_from(resolver, &from, name, flags, ret_place)) < 0)
		return r;
	g_free(ret_place->view_path);
	ret_place->view_path = path_join(dir->view_path, name);
	return 0;
}
