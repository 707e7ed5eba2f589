/* The walk; see view-walk.h. Why nothing leads out, whatever is renamed or exchanged meanwhile:
 *
 * - Down: one checked name relative to the fd of a directory, never through a link, never across a mount
 *   (resolve_child). What comes back is an entry of that directory, and the fd is the object, whatever happens to its
 *   name. Links are read from the fd of the link and walked here, from the view's root or the link's directory.
 * - Up: the directory above is the place before in our record. No fd of ours is ever asked for "..", which would follow
 *   the host's tree, and out of a directory that has been moved. Where the fd of the place was not kept, it is opened by
 *   the recorded names from the fd of its mount's root, beneath it and without links; what is found there has to be the
 *   directory that was walked through. Moving a directory up while the walk is below it so ends in ESTALE.
 * - A directory may be moved out of its mount by the host while the walk is in it. What is found in it then is what an agent
 *   could have opened a moment before. No agent can do that: between mounts a rename is refused.
 *
 * Only the present place, the one before, roots of mounts, and places that other mounts hang in have an fd: a deep walk must
 * not use up the fds of the others. */
#include "common/view-walk.h"

#include "common/fd-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "common/resolve.h"
#include "common/view-host-ids.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* A component that is still to be walked; "" is a slash at the end. */
typedef struct {
	bool as_link;
	char name[];
} Step;

static void place_free(gpointer data)
{
	ViewPlace *place = data;

	if (place->owns_fd)
		fd_close(&place->fd);
	g_free(place->name);
	g_free(place);
}

ViewPlace *view_walk_place(const ViewWalk *walk, guint i)
{
	return g_ptr_array_index(walk->places, i);
}

ViewPlace *view_walk_here(const ViewWalk *walk)
{
	return view_walk_place(walk, walk->places->len - 1);
}

/* As the next place of the walk. */
static ViewPlace *place_new(const ViewWalk *walk, ViewPlaceKind kind, const char *name,
			    ViewNode *node, mode_t type)
{
	ViewPlace *place = g_new0(ViewPlace, 1);

	*place = (ViewPlace){
		.kind = kind,
		.name = g_strdup(name),
		.node = node,
		.fd = -1,
		.type = type,
		.base = walk->places->len,
	};
	return place;
}

/* The root of a mount, by its name in the view or met below a writable mount. */
static ViewPlace *place_of_anchor(const ViewWalk *walk, const char *name, ViewNode *node,
				  ViewAnchor *anchor)
{
	ViewPlace *place =
		place_new(walk, VIEW_PLACE_HOST, name, node, anchor->is_dir ? S_IFDIR : S_IFREG);

	place->anchor = anchor;
	place->fd = anchor->fd;
	place->is_anchor_root = true;
	place->dev = anchor->dev;
	place->ino = anchor->ino;
	return place;
}

static ViewPlace *place_of_node(const ViewWalk *walk, ViewNode *node)
{
	if (node->kind == VIEW_NODE_MOUNT)
		return place_of_anchor(walk, node->name, node, node->anchor);
	return place_new(walk, VIEW_PLACE_OWN, node->name, node,
			 node->kind == VIEW_NODE_LINK ? S_IFLNK : S_IFDIR);
}

static Step *step_new(const char *name, size_t length, bool as_link)
{
	Step *step = g_malloc(sizeof *step + length + 1);

	step->as_link = as_link;
	memcpy(step->name, name, length);
	step->name[length] = '\0';
	return step;
}

static GQueue steps_of(const char *path, bool as_link)
{
	GQueue steps = G_QUEUE_INIT;
	const char *name, *rest = path;
	size_t length;

	while ((name = path_next(&rest, &length)))
		g_queue_push_tail(&steps, step_new(name, length, as_link));
	if (g_str_has_suffix(path, "/"))
		g_queue_push_tail(&steps, step_new("", 0, as_link));
	return steps;
}

void view_walk_init(ViewWalk *walk, const ViewWalkSpace *space, unsigned int flags)
{
	*walk = (ViewWalk){
		.space = space,
		.flags = flags,
		.places = g_ptr_array_new_with_free_func(place_free),
		.pending = G_QUEUE_INIT,
		.reason = -1,
	};
	g_ptr_array_add(walk->places, place_of_node(walk, space->root));
}

void view_walk_resume(ViewWalk *walk, const ViewDirectory *dir)
{
	ViewPlace *place;

	if (!dir->anchor) {
		g_ptr_array_add(walk->places, place_of_node(walk, dir->node));
		return;
	}
	place = place_of_anchor(walk, "", NULL, dir->anchor);
	g_ptr_array_add(walk->places, place);
	if (dir->path[0] != '\0') {
		place = place_new(walk, VIEW_PLACE_HOST, dir->path, NULL, S_IFDIR);
		place->anchor = dir->anchor;
		place->fd = dir->fd;
		place->base--;
		g_ptr_array_add(walk->places, place);
	}
	place->node = dir->node;
}

void view_walk_clear(ViewWalk *walk)
{
	g_ptr_array_unref(walk->places);
	g_queue_clear_full(&walk->pending, g_free);
	g_free(walk->absent);
	g_free(walk->at);
	g_free(walk->target);
}

void view_walk_add(ViewWalk *walk, const char *path, bool as_link)
{
	GQueue steps = steps_of(path, as_link);
	gpointer step;

	while ((step = g_queue_pop_head(&steps)))
		g_queue_push_tail(&walk->pending, step);
}

static void push_front(ViewWalk *walk, const char *text, bool as_link)
{
	GQueue steps = steps_of(text, as_link);
	gpointer step;

	while ((step = g_queue_pop_tail(&steps)))
		g_queue_push_head(&walk->pending, step);
}

static int refuse(ViewWalk *walk, DenialReason reason, int r)
{
	walk->reason = (int)reason;
	return r;
}

static void append_places(const ViewWalk *walk, guint from, guint end, GString *path)
{
	for (guint i = from; i < end; i++) {
		g_string_append_c(path, '/');
		g_string_append(path, view_walk_place(walk, i)->name);
	}
}

char *view_walk_path_in_anchor(const ViewWalk *walk, guint i, const char *name)
{
	g_autoptr(GString) path = g_string_new(NULL);

	append_places(walk, view_walk_place(walk, i)->base + 1, i + 1, path);
	if (name) {
		g_string_append_c(path, '/');
		g_string_append(path, name);
	}
	return g_strdup(path->len > 0 ? path->str + 1 : "");
}

static int act_for(const ViewWalk *walk, const ViewAnchor *anchor)
{
	return walk->space->act_for ? walk->space->act_for(walk->space->data, anchor) : 0;
}

int view_walk_ensure_fd(ViewWalk *walk, guint i)
{
	ViewPlace *place = view_walk_place(walk, i);
	g_autofree char *path = NULL;
	struct stat st;
	FD_AUTO fd = -1;
	int r;

	if (place->fd >= 0)
		return place->fd;
	if (place->kind != VIEW_PLACE_HOST)
		return -EBADF;
	if ((r = act_for(walk, place->anchor)) < 0)
		return r;
	path = view_walk_path_in_anchor(walk, i, NULL);
	fd = resolve_dir_below(view_walk_place(walk, place->base)->fd, path,
			       place->anchor->cross_mounts);
	/* Something on the way is not what it was. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV)
		return -ESTALE;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0)
		return -errno;
	if (st.st_dev != place->dev || st.st_ino != place->ino)
		return -ESTALE;
	place->fd = fd_steal(&fd);
	place->owns_fd = true;
	return place->fd;
}

static bool hides(const ViewWalk *walk, const char *name)
{
	const ViewPlace *here = view_walk_here(walk);
	g_autofree char *path = NULL;

	if (!here->anchor->hide)
		return false;
	path = view_walk_path_in_anchor(walk, walk->places->len - 1, name);
	return view_anchor_hides(here->anchor, path);
}

static ViewPlace *stand_in(const ViewWalk *walk, ViewPlaceKind kind, const char *name, mode_t type)
{
	ViewPlace *place = place_new(walk, kind, name, NULL, type);

	place->anchor = view_walk_here(walk)->anchor;
	return place;
}

/* Of what is mounted there only the kind is used. */
static ViewPlace *blocked_place(const ViewWalk *walk, int dirfd, const char *name)
{
	struct stat st;
	bool is_file = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
		       !S_ISDIR(st.st_mode);

	return stand_in(walk, VIEW_PLACE_STAND_IN, name, is_file ? S_IFREG : S_IFDIR);
}

static ViewPlace *place_of_object(const ViewWalk *walk, const char *name, ViewNode *node,
				  const struct stat *st, int take_fd)
{
	const ViewPlace *here = view_walk_here(walk);
	ViewAnchor *alias = view_anchor_find_alias(here->anchor, st->st_dev, st->st_ino);
	FD_AUTO fd = take_fd;
	ViewPlace *place;

	if (S_ISDIR(st->st_mode) && walk->space->private_dirs &&
	    view_host_ids_have(walk->space->private_dirs, st->st_dev, st->st_ino))
		return stand_in(walk, VIEW_PLACE_PRIVATE, name, S_IFDIR);
	if (alias)
		return place_of_anchor(walk, name, node, alias);
	place = place_new(walk, VIEW_PLACE_HOST, name, node, st->st_mode & S_IFMT);
	place->anchor = here->anchor;
	place->fd = fd_steal(&fd);
	place->owns_fd = true;
	place->dev = st->st_dev;
	place->ino = st->st_ino;
	place->base = here->base;
	return place;
}

/* node: a directory of the view's own that leads to a mount, laid over what the host has if that is a directory. */
static int look_on_host(ViewWalk *walk, const char *name, ViewNode *node, ViewPlace **ret_place)
{
	const ViewAnchor *anchor = view_walk_here(walk)->anchor;
	struct stat st;
	int dirfd, r;

	if (hides(walk, name))
		return refuse(walk, DENIAL_HIDDEN, -ENOENT);
	if ((dirfd = view_walk_ensure_fd(walk, walk->places->len - 1)) < 0)
		return dirfd;
	if ((r = act_for(walk, anchor)) < 0)
		return r;
	FD_AUTO fd = resolve_child(dirfd, name, anchor->cross_mounts);
	if (fd >= 0 && fstat(fd, &st) != 0)
		return -errno;
	if (node && (fd < 0 || !S_ISDIR(st.st_mode)))
		*ret_place = place_of_node(walk, node);
	else if (fd == -EXDEV)
		*ret_place = blocked_place(walk, dirfd, name);
	else if (fd < 0)
		return fd;
	else
		*ret_place = place_of_object(walk, name, node, &st, fd_steal(&fd));
	return 0;
}

/* What `name` is in the present place. -ENOENT when it has no such name; -EACCES when a link leads there, and it is a directory
 * of the view's own: then what is meant is outside. */
static int look(ViewWalk *walk, const char *name, bool as_link, ViewPlace **ret_place)
{
	const ViewPlace *here = view_walk_here(walk);
	ViewNode *node = view_node_find_child(here->node, name);
	int r;

	if ((r = path_check_name(name)) < 0)
		return r;
	if (node && (node->kind != VIEW_NODE_DIR || here->kind != VIEW_PLACE_HOST)) {
		*ret_place = place_of_node(walk, node);
		return 0;
	}
	if (here->kind == VIEW_PLACE_HOST)
		return look_on_host(walk, name, node, ret_place);
	if (here->kind == VIEW_PLACE_OWN && as_link)
		return refuse(walk, DENIAL_SYMLINK_ESCAPE, -EACCES);
	return -ENOENT;
}

static void go_down(ViewWalk *walk, ViewPlace *take_place)
{
	/* Of the three in a row that are of one mount, the first one's is not kept. */
	if (walk->places->len >= 2) {
		ViewPlace *above = view_walk_place(walk, walk->places->len - 2);

		if (above->owns_fd && above->anchor == view_walk_here(walk)->anchor &&
		    above->anchor == take_place->anchor && take_place->owns_fd) {
			fd_close(&above->fd);
			above->owns_fd = false;
		}
	}
	g_ptr_array_add(walk->places, take_place);
}

static int read_link(const ViewPlace *link, char **ret_text)
{
	char text[LIMIT_PATH_BYTES];
	ssize_t length;

	if (link->kind == VIEW_PLACE_OWN) {
		*ret_text = g_strdup(link->node->target);
		return 0;
	}
	length = readlinkat(link->fd, "", text, sizeof text);
	if (length < 0)
		return -errno;
	if (length == sizeof text)
		return -ENAMETOOLONG;
	*ret_text = g_strndup(text, (gsize)length);
	return 0;
}

static void blame(ViewWalk *walk, const char *name)
{
	g_autoptr(GString) path = g_string_new(NULL);

	append_places(walk, 1, walk->places->len, path);
	if (name) {
		g_string_append_c(path, '/');
		g_string_append(path, name);
	}
	g_free(walk->at);
	walk->at = g_strdup(path->len > 0 ? path->str : "/");
	walk->at_anchor = view_walk_here(walk)->anchor;
}

static bool next_is_of_link(const ViewWalk *walk)
{
	const Step *next = g_queue_peek_head((GQueue *)(uintptr_t)&walk->pending);

	return next && next->as_link;
}

/* The components of the link's text take its place. */
static int follow(ViewWalk *walk, const ViewPlace *link, const Step *step)
{
	g_autofree char *text = NULL;
	bool of_host = link->kind == VIEW_PLACE_HOST;
	int r = read_link(link, &text);

	blame(walk, step->name);
	if (r < 0)
		return r;
	g_free(walk->target);
	walk->target = g_strdup(text);
	if (of_host && link->anchor->denies_links)
		return refuse(walk, DENIAL_SYMLINK_DENIED, -ELOOP);
	if (of_host && (walk->flags & VIEW_WALK_STRICT))
		return -ELOOP;
	if (++walk->links > LIMIT_LINKS)
		return refuse(walk, DENIAL_SYMLINK_LOOP, -ELOOP);
	/* In the middle of a text that may leave, or one itself. A text that stays below its own directory is walked by who
	 * reads it, and to him what is not there is absent. */
	push_front(walk, text,
		   view_link_may_climb(text) || (step->as_link && next_is_of_link(walk)));
	if (text[0] == '/')
		g_ptr_array_set_size(walk->places, 1);
	return 0;
}

static bool is_slash(gconstpointer step)
{
	return ((const Step *)step)->name[0] == '\0';
}

static bool only_slashes_are_left(const ViewWalk *walk)
{
	for (const GList *each = walk->pending.head; each; each = each->next)
		if (!is_slash(each->data))
			return false;
	return true;
}

static void go_up(ViewWalk *walk)
{
	if (walk->places->len > 1) /* ".." of the root is the root */
		g_ptr_array_set_size(walk->places, (gint)walk->places->len - 1);
}

static int take_step(ViewWalk *walk, const Step *step)
{
	ViewPlace *place = NULL;
	int r;

	if (step->name[0] == '\0' || strcmp(step->name, ".") == 0)
		return 0;
	if (strcmp(step->name, "..") == 0) {
		go_up(walk);
		return 0;
	}
	/* As the kernel does with O_CREAT, which does not look for it then, nor where it leads. */
	if ((walk->flags & VIEW_WALK_MAKES) && walk->pending.length > 0 &&
	    only_slashes_are_left(walk)) {
		blame(walk, step->name);
		return -EISDIR;
	}
	r = look(walk, step->name, step->as_link, &place);
	if (r == -ENOENT)
		walk->absent = g_strdup(step->name);
	/* Of a link that leaves, the link is to blame. */
	if (r < 0 && !(walk->reason == DENIAL_SYMLINK_ESCAPE && walk->at))
		blame(walk, step->name);
	if (r < 0)
		return r;
	if (S_ISLNK(place->type) &&
	    (walk->pending.length > 0 || !(walk->flags & VIEW_WALK_KEEP_LAST))) {
		r = follow(walk, place, step);
		place_free(place);
		return r;
	}
	go_down(walk, place);
	if (!S_ISDIR(place->type) && walk->pending.length > 0) {
		blame(walk, NULL);
		return -ENOTDIR;
	}
	return 0;
}

int view_walk_run(ViewWalk *walk)
{
	int r = 0;

	while (r == 0 && walk->pending.length > 0) {
		g_autofree Step *step = g_queue_pop_head(&walk->pending);

		r = take_step(walk, step);
	}
	return walk->absent ? 0 : r;
}

bool view_walk_has_rest(const ViewWalk *walk)
{
	return !only_slashes_are_left(walk);
}

void view_walk_append_path(const ViewWalk *walk, GString *path)
{
	append_places(walk, 1, walk->places->len, path);
	if (!walk->absent)
		return;
	g_string_append_c(path, '/');
	g_string_append(path, walk->absent);
	for (const GList *each = walk->pending.head; each; each = each->next) {
		const Step *step = each->data;
		bool climbs = strcmp(step->name, "..") == 0;

		g_string_append_c(path, '/');
		g_string_append(path, climbs ? "." : step->name);
		if (climbs)
			break;
	}
}

bool view_link_may_climb(const char *text)
{
	const char *name;
	size_t length;

	if (text[0] == '/')
		return true;
	while ((name = path_next(&text, &length)))
		if (length == 2 && name[0] == '.' && name[1] == '.')
			return true;
	return false;
}
