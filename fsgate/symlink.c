/* Links; see symlink.h for the argument. The walk below holds an fd for each directory that it is in, opened
 * one checked name at a time, and never hands a composed path to the kernel. */
#include "fsgate/symlink.h"

#include "common/fd-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "common/resolve.h"
#include "fsgate/lookup.h"
#include "fsgate/refusal.h"

#include <errno.h>
#include <string.h>

/* A directory (or, as the last one, any object) that the walk has come to. Only the present place, mounts, and
 * the places that mounts hang in have an fd: a deep walk must not use up the fds of the others. Going back up
 * opens ".." of what is left, which in the same clone is the directory that it came from, or wherever a
 * rename has put it meanwhile: still inside the mount, and what comes out is only a text. */
typedef struct {
	char *name;
	FsgNode *node;	   /* or NULL */
	FsgAnchor *anchor; /* NULL: synthetic */
	int fd;		   /* O_PATH; -1 for what has no host object, or when it is not kept */
	bool owns_fd;
	bool is_dir;
	bool has_object; /* there is a host object, whether or not fd is kept */
} Place;

typedef struct {
	FsgView *view;
	GPtrArray *places; /* Place; [0] is the root */
	GQueue *pending;   /* char *: components still to be walked */
	int links;
} Walk;

static void place_free(gpointer data)
{
	Place *place = data;

	if (place->owns_fd)
		fd_close(&place->fd);
	g_free(place->name);
	g_free(place);
}

static Place *place_new(const char *name, FsgNode *node, FsgAnchor *anchor, int fd, bool owns_fd,
			bool is_dir)
{
	Place *place = g_new0(Place, 1);

	*place = (Place){
		.name = g_strdup(name),
		.node = node,
		.anchor = anchor,
		.fd = fd,
		.owns_fd = owns_fd,
		.is_dir = is_dir,
		.has_object = fd >= 0,
	};
	return place;
}

static Place *place_of_node(FsgNode *node)
{
	if (node->kind == FSG_NODE_MOUNT)
		return place_new(node->name, node, node->anchor, node->anchor->fd, false,
				 node->anchor->is_dir);
	return place_new(node->name, node, NULL, -1, false, true);
}

static void push_front(Walk *walk, const char *text)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new();
	const char *name;
	size_t length;

	while ((name = path_next(&text, &length)))
		g_ptr_array_add(names, g_strndup(name, length));
	for (guint i = names->len; i > 0; i--)
		g_queue_push_head(walk->pending, g_ptr_array_index(names, i - 1));
}

static void to_root(Walk *walk)
{
	g_ptr_array_set_size(walk->places, 1);
}

static int read_fd_text(int fd, char **ret_text)
{
	char text[LIMIT_PATH_BYTES];
	ssize_t length = readlinkat(fd, "", text, sizeof text);

	if (length < 0)
		return -errno;
	if (length == sizeof text)
		return -ENAMETOOLONG;
	*ret_text = g_strndup(text, (gsize)length);
	return 0;
}

/* What `name` is in the present place: *ret_place for a directory or file, *ret_text for a link. -ENOENT
 * when the host has no such name, -EACCES when the view has none. */
static int step(Walk *walk, const char *name, Place **ret_place, char **ret_text)
{
	const Place *here = g_ptr_array_index(walk->places, walk->places->len - 1);
	FsgNode *node = fsg_node_find_child(here->node, name);
	struct stat st;
	int r;

	if (node && node->kind == FSG_NODE_LINK) {
		*ret_text = g_strdup(node->target);
		return 0;
	}
	if (node && (node->kind == FSG_NODE_MOUNT || here->fd < 0)) {
		*ret_place = place_of_node(node);
		return 0;
	}
	if (here->fd < 0)
		return here->anchor ? -ENOENT : fsg_refuse(DENIAL_SYMLINK_ESCAPE, -EACCES);
	/* The text that comes out must not tell what is in a directory that its reader may not search. */
	r = walk->view->kernel_decides
		    ? fsg_identity_search(here->anchor, walk->view->proc_fd, walk->view->shown_uid)
		    : fsg_view_act_as(here->anchor);
	if (r < 0)
		return r;
	FD_AUTO fd = resolve_child(here->fd, name, here->anchor->cross_mounts);
	if (fd >= 0 && fstat(fd, &st) != 0)
		return -errno;
	if (node && (fd < 0 || !S_ISDIR(st.st_mode))) {
		*ret_place = place_of_node(node);
		return 0;
	}
	if (fd == -EXDEV) {
		*ret_place = place_new(name, NULL, here->anchor, -1, false, true);
		return 0;
	}
	if (fd < 0)
		return fd;
	if (S_ISLNK(st.st_mode))
		return read_fd_text(fd, ret_text);
	if (S_ISDIR(st.st_mode) && fsg_view_is_private(walk->view, st.st_dev, st.st_ino)) {
		*ret_place = place_new(name, NULL, here->anchor, -1, false, true);
		return 0;
	}
	*ret_place = place_new(name, node, here->anchor, fd_steal(&fd), true, S_ISDIR(st.st_mode));
	return 0;
}

/* mountpoint, the places, and a last name if there is one. */
static int result_path(const Walk *walk, const char *last, char **ret_text)
{
	g_autoptr(GString) path = g_string_new(walk->view->mountpoint);

	for (guint i = 1; i < walk->places->len; i++) {
		const Place *place = g_ptr_array_index(walk->places, i);

		g_string_append_c(path, '/');
		g_string_append(path, place->name);
	}
	if (last) {
		g_string_append_c(path, '/');
		g_string_append(path, last);
	}
	if (path->len >= LIMIT_PATH_BYTES)
		return -ENAMETOOLONG;
	*ret_text = g_strdup(path->str);
	return 0;
}

static void go_down(Walk *walk, Place *take_place)
{
	Place *from = g_ptr_array_index(walk->places, walk->places->len - 1);

	if (from->owns_fd && from->anchor == take_place->anchor && take_place->owns_fd) {
		fd_close(&from->fd);
		from->owns_fd = false;
	}
	g_ptr_array_add(walk->places, take_place);
}

static int go_up(Walk *walk)
{
	Place *from, *to;

	if (walk->places->len < 2)
		return 0; /* ".." of the root is the root */
	from = g_ptr_array_index(walk->places, walk->places->len - 1);
	to = g_ptr_array_index(walk->places, walk->places->len - 2);
	if (to->has_object && to->fd < 0) {
		to->fd = openat(from->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (to->fd < 0)
			return -errno;
		to->owns_fd = true;
	}
	g_ptr_array_set_size(walk->places, (gint)walk->places->len - 1);
	return 0;
}

static int walk_on(Walk *walk, char **ret_text)
{
	while (!g_queue_is_empty(walk->pending)) {
		g_autofree char *name = g_queue_pop_head(walk->pending);
		g_autofree char *text = NULL;
		Place *place = NULL;
		int r;

		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			if ((r = go_up(walk)) < 0)
				return r;
			continue;
		}
		r = step(walk, name, &place, &text);
		/* Absent below a mount: a dangling link inside the view, which may be used to create. */
		if (r == -ENOENT)
			return result_path(walk, name, ret_text);
		if (r < 0)
			return r;
		if (text) {
			if (g_queue_is_empty(walk->pending)) /* judged when it is read itself */
				return result_path(walk, name, ret_text);
			if (++walk->links > LIMIT_LINKS)
				return fsg_refuse(DENIAL_SYMLINK_LOOP, -ELOOP);
			if (text[0] == '/')
				to_root(walk);
			push_front(walk, text);
			continue;
		}
		g_assert(place); /* step gives one or the other */
		go_down(walk, place);
		if (!place->is_dir && !g_queue_is_empty(walk->pending))
			return -ENOTDIR;
	}
	return result_path(walk, NULL, ret_text);
}

static int judge(FsgView *view, FsgInode *link, const char *text, char **ret_text)
{
	Walk walk = {
		.view = view,
		.places = g_ptr_array_new_with_free_func(place_free),
		.pending = g_queue_new(),
	};
	int r;

	g_ptr_array_add(walk.places, place_of_node(view->root));
	push_front(&walk, text);
	if (text[0] != '/') {
		g_autofree char *path = fsg_inode_dup_path(view->inodes, link);
		g_autofree char *dir = g_path_get_dirname(path);

		push_front(&walk, dir);
	}
	r = walk_on(&walk, ret_text);
	g_ptr_array_unref(walk.places);
	g_queue_free_full(walk.pending, g_free);
	return r;
}

/* Texts that were given out come back: a program that copies a link reads a path below the mountpoint and
 * makes a link of it. */
static int judge_text(FsgView *view, FsgInode *link, const char *text, char **ret_text)
{
	int r = judge(view, link, text, ret_text);

	if (r == -EACCES && text[0] == '/' && path_is_below(text, view->mountpoint))
		r = judge(view, link, text + strlen(view->mountpoint), ret_text);
	return r;
}

static bool may_climb(const char *text)
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

static int read_text(FsgView *view, FsgInode *link, char **ret_text)
{
	FsgNode *node = fsg_inode_node(view->inodes, link);
	int fd, r;

	if (link->kind == FSG_INODE_SYNTHETIC) {
		*ret_text = g_strdup(node->target);
		return 0;
	}
	if ((fd = fsg_get_object_fd(view, link, false)) < 0)
		return fd;
	r = read_fd_text(fd, ret_text);
	fsg_inode_put_fd(view->inodes, link);
	return r;
}

/* In a sandbox the text is given whatever it says; whoever runs it is told of one that names nothing that the
 * view has. By the names alone: what a link on the way would change is not worth a walk here. */
static void note_escape(FsgView *view, FsgInode *link, const char *text)
{
	g_autofree char *path = fsg_inode_dup_path(view->inodes, link);
	g_autofree char *dir = g_path_get_dirname(path);
	g_autofree char *target = path_clean_from(dir, text);

	if (!view_plan_names(view->plan, target))
		fsg_asked_note_escape(view, link, text);
}

int fsg_link_text(FsgView *view, FsgInode *link, char **ret_text)
{
	g_autofree char *text = NULL;
	int r;

	if (link->kind == FSG_INODE_HOST && link->anchor->denies_links)
		return fsg_refuse(DENIAL_SYMLINK_DENIED, -ELOOP);
	if ((r = read_text(view, link, &text)) < 0)
		return r;
	if (view->mountpoint && !view->original_links) {
		FsgLinkKind kind = may_climb(text) ? FSG_LINK_CLIMBS : FSG_LINK_STAYS;

		fsg_inode_set_link_kind(view->inodes, link, kind);
		if (kind == FSG_LINK_CLIMBS) {
			fsg_refuse_target(text);
			return judge_text(view, link, text, ret_text);
		}
	}
	if (view->plan->presentation == VIEW_FOR_SANDBOX && may_climb(text))
		note_escape(view, link, text);
	*ret_text = g_steal_pointer(&text);
	return 0;
}

void fsg_link_adjust_size(FsgView *view, FsgInode *link, struct stat *st)
{
	g_autofree char *text = NULL;

	if (!view->mountpoint || view->original_links || link->anchor->denies_links)
		return;
	/* Reading the text is an access that the host notes: once is enough for most links. */
	if (fsg_inode_link_kind(view->inodes, link) == FSG_LINK_STAYS)
		return;
	if (fsg_link_text(view, link, &text) == 0)
		st->st_size = (off_t)strlen(text);
}
