/* Copying a directory with all that is in it, as the view shows it: mounts below it included, what is hidden left out.
 *
 * There is no recursion, and there are never more than two directories open: what is still to be done is a stack of paths
 * below the two roots. Each directory is walked to anew when its turn comes, and has to be the one that was met; an agent
 * that moves one meanwhile ends the copying (ESTALE). New directories have mode 0700 until they are complete, and then
 * that of their originals. */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <string.h>

typedef struct {
	dev_t dev;
	ino_t ino; /* 0: a directory of the view's own */
} Identity;

/* A directory that was made. */
typedef struct {
	char *path; /* below both roots */
	Identity source, target;
	mode_t mode;
	bool is_complete; /* only its mode is missing */
} Pending;

typedef struct {
	FilesCall *call;
	const PathPlace *from_root, *to_root;
	Identity made_root;
	GPtrArray *stack; /* Pending */
	/* the directory in work */
	const Pending *pending;
	const PathPlace *source, *target;
} Copying;

static void pending_free(gpointer data)
{
	Pending *pending = data;

	g_free(pending->path);
	g_free(pending);
}

static int identify(const PathPlace *place, Identity *ret_identity, mode_t *ret_mode)
{
	struct stat st = { .st_mode = S_IFDIR | 0755 };

	if (place->fd >= 0 && fstat(place->fd, &st) != 0)
		return -errno;
	*ret_identity = (Identity){ .dev = st.st_dev, .ino = st.st_ino };
	*ret_mode = st.st_mode & 01777;
	return 0;
}

/* A name that is to be made in a directory. Borrows all of it; view_path is the caller's. */
static PathPlace place_below(const PathPlace *dir, char *name, char *view_path)
{
	PathPlace place = *dir;

	place.fd = -1;
	place.parent_fd = dir->fd;
	place.name = name;
	place.view_path = view_path;
	place.type = 0;
	place.is_mount_root = place.is_synthetic = place.pinned = false;
	return place;
}

static int push(Copying *copying, const char *path, const Identity *source, const Identity *target,
		mode_t mode)
{
	Pending *pending;

	if (copying->stack->len >= FILES_MAX_ENTRIES)
		return files_fail(copying->call, -EFBIG, copying->from_root, path);
	pending = g_new0(Pending, 1);
	pending->path = g_strdup(path);
	pending->source = *source;
	pending->target = *target;
	pending->mode = mode;
	g_ptr_array_add(copying->stack, pending);
	return 0;
}

/* The directory that was just made: what stands there now has to be one in the same mount. */
static int find_made(Copying *copying, const PathPlace *dir, const char *name,
		     Identity *ret_identity)
{
	PLACE_AUTO made = PLACE_NONE;
	mode_t mode;
	int r = path_resolver_step(copying->call->resolver, dir, name, 0, &made);

	if (r < 0)
		return r;
	if (!S_ISDIR(made.type) || made.fd < 0 || !made.writable ||
	    made.anchor != copying->to_root->anchor)
		return -ESTALE;
	return identify(&made, ret_identity, &mode);
}

static int copy_dir(Copying *copying, const PathPlace *child, const PathPlace *target)
{
	g_autofree char *path = path_join(copying->pending->path, target->name);
	Identity source, made;
	mode_t mode;
	int r = identify(child, &source, &mode);

	if (r < 0)
		return files_fail(copying->call, r, child, "");
	/* By another name of a host directory that lies in what is copied. */
	if (source.ino != 0 && source.dev == copying->made_root.dev &&
	    source.ino == copying->made_root.ino)
		return files_fail(copying->call, -EINVAL, child, "");
	if ((r = files_make_dir(target, 0700)) < 0 ||
	    (r = find_made(copying, copying->target, target->name, &made)) < 0)
		return files_fail(copying->call, r, target, "");
	return push(copying, path, &source, &made, mode);
}

static int copy_name(void *data, const char *name, mode_t type)
{
	Copying *copying = data;
	g_autofree char *view_path = path_join(copying->target->view_path, name);
	g_autofree char *own_name = g_strdup(name);
	PathPlace target = place_below(copying->target, own_name, view_path);
	PLACE_AUTO child = PLACE_NONE;
	int r;

	(void)type;
	if ((r = files_check_canceled(copying->call)) < 0)
		return r;
	r = path_resolver_step(copying->call->resolver, copying->source, name, 0, &child);
	if (r == -ENOENT)
		return 0; /* hidden, or gone */
	if (r < 0)
		return files_fail(copying->call, r, copying->source, name);
	if (S_ISDIR(child.type))
		return copy_dir(copying, &child, &target);
	return files_copy_one(copying->call, &child, &target, false);
}

/* Walks to a directory that was met before. */
static int walk_again(Copying *copying, const PathPlace *root, const char *path,
		      const Identity *identity, PathPlace *ret_place)
{
	g_autofree char *view_path = path_join(root->view_path, path);
	PLACE_AUTO place = PLACE_NONE;
	Identity found;
	mode_t mode;
	int r = path_resolver_walk(copying->call->resolver, view_path, PATH_WALK_NOFOLLOW, &place,
				   copying->call->problem);

	if (r < 0)
		return r;
	if (!S_ISDIR(place.type))
		return files_fail(copying->call, -ESTALE, root, path);
	if ((r = identify(&place, &found, &mode)) < 0)
		return files_fail(copying->call, r, root, path);
	if (found.dev != identity->dev || found.ino != identity->ino)
		return files_fail(copying->call, -ESTALE, root, path);
	*ret_place = place;
	place = (PathPlace)PLACE_NONE;
	return 0;
}

static int give_mode(const PathPlace *place, mode_t mode)
{
	FD_AUTO fd = path_resolver_reopen(place, O_RDONLY | O_DIRECTORY);
	ACTING_AUTO acting = { 0 };
	int r;

	if (fd < 0)
		return fd;
	if ((r = path_resolver_act_begin(place, &acting)) < 0)
		return r;
	return fchmod(fd, mode) == 0 ? 0 : -errno;
}

static int work_on(Copying *copying, const Pending *pending)
{
	PLACE_AUTO source = PLACE_NONE;
	PLACE_AUTO target = PLACE_NONE;
	int r = walk_again(copying, copying->to_root, pending->path, &pending->target, &target);

	if (r < 0)
		return r;
	if (!target.writable || target.anchor != copying->to_root->anchor)
		return files_fail(copying->call, -ESTALE, &target, "");
	if (pending->is_complete) {
		r = give_mode(&target, pending->mode);
		return r < 0 ? files_fail(copying->call, r, &target, "") : 0;
	}
	r = walk_again(copying, copying->from_root, pending->path, &pending->source, &source);
	if (r < 0)
		return r;
	copying->pending = pending;
	copying->source = &source;
	copying->target = &target;
	return files_scan(copying->call, &source, copy_name, copying);
}

/* The last one of the stack; what it finds comes on top of it, and it is done with when it is the last one again. */
static int work_on_last(Copying *copying)
{
	Pending *last = g_ptr_array_index(copying->stack, copying->stack->len - 1);
	bool was_complete = last->is_complete;
	int r = work_on(copying, last);

	last->is_complete = true;
	if (was_complete)
		g_ptr_array_set_size(copying->stack, (gint)copying->stack->len - 1);
	return r;
}

static int make_root(Copying *copying)
{
	Identity source;
	mode_t mode;
	int r = identify(copying->from_root, &source, &mode);
	PLACE_AUTO made = PLACE_NONE;
	mode_t made_mode;

	if (r < 0)
		return files_fail(copying->call, r, copying->from_root, "");
	if ((r = files_make_dir(copying->to_root, 0700)) < 0)
		return files_fail(copying->call, r, copying->to_root, "");
	r = path_resolver_walk(copying->call->resolver, copying->to_root->view_path,
			       PATH_WALK_NOFOLLOW, &made, copying->call->problem);
	if (r < 0)
		return r;
	if (!S_ISDIR(made.type) || made.fd < 0)
		return files_fail(copying->call, -ESTALE, copying->to_root, "");
	if ((r = identify(&made, &copying->made_root, &made_mode)) < 0)
		return files_fail(copying->call, r, copying->to_root, "");
	return push(copying, "", &source, &copying->made_root, mode);
}

int files_copy_tree(FilesCall *call, const PathPlace *from, const PathPlace *to)
{
	g_autoptr(GPtrArray) stack = g_ptr_array_new_with_free_func(pending_free);
	Copying copying = { .call = call, .from_root = from, .to_root = to, .stack = stack };
	int r = files_check_canceled(call);

	if (r == 0)
		r = make_root(&copying);
	while (r == 0 && stack->len > 0)
		r = work_on_last(&copying);
	return r;
}
