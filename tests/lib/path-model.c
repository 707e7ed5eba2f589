/* The model of a view; see path-model.h.
 *
 * What a view has at a path is found anew for each step, from the whole path: the deepest mount that is above it, and
 * the host's node below that. A walk is a list of such paths, each one name longer than the one before; ".." takes the last
 * one away, a link's text is walked by recursion. */
#include "lib/path-model.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define LINKS 40

static void node_free(gpointer data)
{
	ModelNode *node = data;

	g_free(node->name);
	g_free(node->target);
	if (node->children)
		g_ptr_array_unref(node->children);
	g_free(node);
}

static ModelNode *node_new(const char *name, mode_t type, const char *target)
{
	ModelNode *node = g_new0(ModelNode, 1);

	node->name = g_strdup(name);
	node->type = type;
	node->target = g_strdup(target);
	if (type == S_IFDIR)
		node->children = g_ptr_array_new_with_free_func(node_free);
	return node;
}

static void mount_free(gpointer data)
{
	ModelMount *mount = data;

	g_free(mount->view_path);
	g_free(mount);
}

Model *model_new(void)
{
	Model *model = g_new0(Model, 1);

	model->root = node_new("", S_IFDIR, NULL);
	model->mounts = g_ptr_array_new_with_free_func(mount_free);
	return model;
}

void model_free(Model *model)
{
	g_ptr_array_unref(model->mounts);
	node_free(model->root);
	g_free(model->working_dir);
	g_free(model);
}

ModelNode *model_add_node(ModelNode *parent, const char *name, mode_t type, const char *target)
{
	ModelNode *node = node_new(name, type, target);

	node->parent = parent;
	g_ptr_array_add(parent->children, node);
	return node;
}

ModelNode *model_find_child(const ModelNode *node, const char *name)
{
	for (guint i = 0; node->children && i < node->children->len; i++) {
		ModelNode *child = g_ptr_array_index(node->children, i);

		if (strcmp(child->name, name) == 0)
			return child;
	}
	return NULL;
}

void model_add_mount(Model *model, const char *view_path, ModelNode *node, bool writable)
{
	ModelMount *mount = g_new0(ModelMount, 1);

	*mount = (ModelMount){ g_strdup(view_path), node, writable };
	g_ptr_array_add(model->mounts, mount);
}

char *model_node_path(const ModelNode *node)
{
	g_autofree char *above = node->parent ? model_node_path(node->parent) : NULL;

	return above ? g_strconcat(above, "/", node->name, NULL) : g_strdup("");
}

/* Whether node is `above`, or lies somewhere below it. */
static bool is_within(const ModelNode *node, const ModelNode *above)
{
	for (; node; node = node->parent)
		if (node == above)
			return true;
	return false;
}

/* Paths here have no slash at the end, and the root is "". */
static bool path_is_within(const char *path, const char *above)
{
	size_t length = strlen(above);

	return strncmp(path, above, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static const ModelMount *mount_at(const Model *model, guint i)
{
	return g_ptr_array_index(model->mounts, i);
}

static const ModelMount *deepest_mount(const Model *model, const char *view_path)
{
	const ModelMount *best = NULL;

	for (guint i = 0; i < model->mounts->len; i++) {
		const ModelMount *mount = mount_at(model, i);

		if (path_is_within(view_path, mount->view_path) &&
		    (!best || strlen(mount->view_path) > strlen(best->view_path)))
			best = mount;
	}
	return best;
}

static bool leads_to_a_mount(const Model *model, const char *view_path)
{
	for (guint i = 0; i < model->mounts->len; i++)
		if (path_is_within(mount_at(model, i)->view_path, view_path) &&
		    strcmp(mount_at(model, i)->view_path, view_path) != 0)
			return true;
	return false;
}

/* What the view has at a path whose directories have been looked at before. */
typedef struct {
	bool exists;
	bool own;
	ModelNode *node; /* of the host */
} Object;

static Object object_at(const Model *model, const char *view_path)
{
	const ModelMount *mount = deepest_mount(model, view_path);
	ModelNode *node = mount ? mount->node : NULL;

	if (mount) {
		const char *below = view_path + strlen(mount->view_path);
		g_auto(GStrv) names = g_strsplit(below[0] ? below + 1 : "", "/", -1);

		for (char **name = names; node && *name; name++)
			node = model_find_child(node, *name);
	}
	/* On the way to a mount there is a directory, whatever the host has there. */
	if (leads_to_a_mount(model, view_path) && !(node && node->type == S_IFDIR))
		return (Object){ true, true, NULL };
	return (Object){ node != NULL, false, node };
}

/* SPEC, "Access": its own mount is rw, and no ro mount whose host directory lies below that mount's contains it. */
static bool is_writable(const Model *model, const char *view_path, const ModelNode *node)
{
	const ModelMount *own = deepest_mount(model, view_path);

	if (!own || !own->writable || !node)
		return false;
	for (guint i = 0; i < model->mounts->len; i++) {
		const ModelMount *mount = mount_at(model, i);

		if (!mount->writable && mount->node != own->node &&
		    is_within(mount->node, own->node) && is_within(node, mount->node))
			return false;
	}
	return true;
}

static bool is_pinned(const Model *model, const char *view_path, const ModelNode *node)
{
	if (!node || leads_to_a_mount(model, view_path) || view_path[0] == '\0')
		return true;
	for (guint i = 0; i < model->mounts->len; i++)
		if (is_within(mount_at(model, i)->node, node))
			return true;
	return false;
}

/* --- walking --- */

typedef struct {
	const Model *model;
	bool keep_last, makes;
	int links;
	GString *at;  /* a view path; "" is the root */
	char *absent; /* a name that `at` does not have */
} Walk;

/* What comes after a text that is being walked. */
typedef enum {
	NOTHING_FOLLOWS,
	SLASH_FOLLOWS,
	NAMES_FOLLOW,
} Follows;

static bool may_leave(const char *text)
{
	g_auto(GStrv) names = g_strsplit(text, "/", -1);

	return text[0] == '/' || g_strv_contains((const char *const *)names, "..");
}

static void go_up(Walk *walk)
{
	char *slash = strrchr(walk->at->str, '/');

	if (slash)
		g_string_truncate(walk->at, (gsize)(slash - walk->at->str));
}

static int walk_text(Walk *walk, const char *text, bool judged, Follows after, bool next_judged);

/* judged: the text that the link is met in is one of which it was asked whether it leaves. after: of all that follows;
 * next_judged: what comes next is of such a text too. Then the link is on the way of that question. */
static int follow(Walk *walk, const ModelNode *link, bool judged, Follows after, bool next_judged)
{
	bool is_on_the_way = judged && next_judged && after != NOTHING_FOLLOWS;

	if (walk->model->denies_links || ++walk->links > LINKS)
		return ELOOP;
	if (link->target[0] == '/')
		g_string_truncate(walk->at, 0);
	return walk_text(walk, link->target, may_leave(link->target) || is_on_the_way, after,
			 next_judged);
}

static int take_name(Walk *walk, const char *name, bool judged, Follows after, bool next_judged)
{
	g_autofree char *path = g_strconcat(walk->at->str, "/", name, NULL);
	Object object;

	if (walk->makes && after == SLASH_FOLLOWS)
		return EISDIR;
	object = object_at(walk->model, path);
	if (!object.exists) {
		if (judged && object_at(walk->model, walk->at->str).own)
			return EACCES;
		walk->absent = g_strdup(name);
		return after == NAMES_FOLLOW ? ENOENT : 0;
	}
	if (object.node && object.node->type == S_IFLNK &&
	    (after != NOTHING_FOLLOWS || !walk->keep_last))
		return follow(walk, object.node, judged, after, next_judged);
	g_string_assign(walk->at, path);
	return object.node && object.node->type != S_IFDIR && after != NOTHING_FOLLOWS ? ENOTDIR
										       : 0;
}

static Follows what_follows(char *const *names, bool has_slash, Follows after)
{
	for (; *names; names++)
		if ((*names)[0] != '\0')
			return NAMES_FOLLOW;
	return after == NAMES_FOLLOW ? NAMES_FOLLOW : has_slash ? SLASH_FOLLOWS : after;
}

static int walk_text(Walk *walk, const char *text, bool judged, Follows after, bool next_judged)
{
	g_auto(GStrv) names = g_strsplit(text, "/", -1);
	bool has_slash = g_str_has_suffix(text, "/");
	int r = 0;

	for (char **name = names; r == 0 && *name && !walk->absent; name++) {
		bool is_last =
			what_follows(name + 1, has_slash, NOTHING_FOLLOWS) == NOTHING_FOLLOWS;

		if ((*name)[0] == '\0' || strcmp(*name, ".") == 0)
			continue;
		if (strcmp(*name, "..") == 0)
			go_up(walk);
		else
			r = take_name(walk, *name, judged, what_follows(name + 1, has_slash, after),
				      is_last ? next_judged : judged);
	}
	return r;
}

static void fill_place(const Walk *walk, ModelPlace *place)
{
	Object object = object_at(walk->model, walk->at->str);

	place->absent = walk->absent != NULL;
	place->view_path = walk->absent	       ? g_strconcat(walk->at->str, "/", walk->absent, NULL)
			   : walk->at->len > 0 ? g_strdup(walk->at->str)
					       : g_strdup("/");
	place->own = object.own;
	place->node = object.node;
	place->type = walk->absent ? 0 : object.own ? S_IFDIR : object.node->type;
	place->writable = is_writable(walk->model, walk->at->str, object.node);
	place->pinned = !walk->absent && is_pinned(walk->model, walk->at->str, object.node);
}

ModelPlace model_walk(const Model *model, const char *path, bool keep_last, bool makes)
{
	Walk walk = { .model = model, .keep_last = keep_last, .makes = makes };
	ModelPlace place = { .errnum = 0 };

	walk.at = g_string_new(path[0] == '/' ? NULL : model->working_dir);
	place.errnum =
		path[0] == '\0' ? ENOENT : walk_text(&walk, path, false, NOTHING_FOLLOWS, false);
	if (place.errnum == 0)
		fill_place(&walk, &place);
	g_string_free(walk.at, TRUE);
	g_free(walk.absent);
	return place;
}

void model_place_clear(ModelPlace *place)
{
	g_free(place->view_path);
	*place = (ModelPlace){ .errnum = 0 };
}

static int open_existing(const ModelPlace *place, int flags)
{
	bool changes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);

	if ((flags & O_CREAT) && (flags & O_EXCL))
		return EEXIST;
	if ((flags & O_DIRECTORY) && place->type != S_IFDIR)
		return ENOTDIR;
	if (flags & O_PATH)
		return place->own ? EOPNOTSUPP : 0;
	if (place->type == S_IFLNK)
		return ELOOP;
	if (place->type == S_IFDIR && (changes || (flags & O_CREAT)))
		return EISDIR;
	if (place->own)
		return EOPNOTSUPP;
	return changes && !place->writable ? EROFS : 0;
}

int model_open(const Model *model, const char *path, int flags, ModelPlace *ret_place,
	       bool *ret_made)
{
	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
	*ret_place = model_walk(model, path,
				(flags & O_NOFOLLOW) ||
					(flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL),
				flags & O_CREAT);
	*ret_made = false;
	if (ret_place->errnum != 0)
		return ret_place->errnum;
	if (!ret_place->absent)
		return open_existing(ret_place, flags);
	if (!(flags & O_CREAT))
		return ENOENT;
	*ret_made = ret_place->writable;
	return ret_place->writable ? 0 : EROFS;
}

/* --- the string form --- */

/* "." and ".." and what they take away. "" is the root. */
static char *clean(const char *from, const char *path)
{
	g_autofree char *whole =
		path[0] == '/' ? g_strdup(path) : g_strconcat(from, "/", path, NULL);
	g_auto(GStrv) names = g_strsplit(whole, "/", -1);
	GString *out = g_string_new(NULL);

	for (char **name = names; *name; name++) {
		char *slash = strrchr(out->str, '/');

		if ((*name)[0] == '\0' || strcmp(*name, ".") == 0)
			continue;
		if (strcmp(*name, "..") != 0)
			g_string_append_printf(out, "/%s", *name);
		else if (slash)
			g_string_truncate(out, (gsize)(slash - out->str));
	}
	return g_string_free(out, FALSE);
}

/* Name by name, and no link anywhere. */
static const char *walk_strictly(const Model *model, const char *view_path, bool has_slash,
				 bool *ret_own, ModelNode **ret_node)
{
	g_auto(GStrv) names = g_strsplit(view_path[0] ? view_path + 1 : "", "/", -1);
	g_autoptr(GString) at = g_string_new(NULL);

	*ret_own = true;
	*ret_node = NULL;
	for (char **name = names; *name; name++) {
		Object object;

		g_string_append_printf(at, "/%s", *name);
		object = object_at(model, at->str);
		if (!object.exists)
			return NULL;
		if (object.node && object.node->type == S_IFLNK)
			return "link";
		*ret_own = object.own;
		*ret_node = object.node;
		if (object.node && object.node->type == S_IFREG && (name[1] || has_slash))
			return "io";
	}
	return NULL;
}

int model_resolve(const Model *model, const char *path, bool for_write, char **ret_view_path,
		  char **ret_host_path, const char **ret_kind)
{
	g_autofree char *view_path = clean(model->working_dir, path);
	const ModelMount *mount = deepest_mount(model, view_path);
	ModelNode *node;
	bool own;

	*ret_kind = walk_strictly(model, view_path, g_str_has_suffix(path, "/"), &own, &node);
	if (*ret_kind)
		return strcmp(*ret_kind, "link") == 0 ? ELOOP : ENOTDIR;
	if (mount && for_write && !is_writable(model, view_path, node)) {
		*ret_kind = "read-only";
		return EROFS;
	}
	if (!mount || own) {
		*ret_kind = "outside";
		return ENOENT;
	}
	g_autofree char *root = model_node_path(mount->node);
	*ret_host_path = g_strconcat(root, view_path + strlen(mount->view_path), NULL);
	*ret_view_path = g_steal_pointer(&view_path);
	return 0;
}

/* Deeper on the host, then shorter in the view, then first in byte order. */
static bool is_better(const ModelMount *one, const ModelMount *other)
{
	g_autofree char *one_root = model_node_path(one->node);
	g_autofree char *other_root = model_node_path(other->node);

	if (strlen(one_root) != strlen(other_root))
		return strlen(one_root) > strlen(other_root);
	if (strlen(one->view_path) != strlen(other->view_path))
		return strlen(one->view_path) < strlen(other->view_path);
	return strcmp(one->view_path, other->view_path) < 0;
}

char *model_locate(const Model *model, const char *host_path)
{
	g_autofree char *path = clean("", host_path);
	const ModelMount *best = NULL;
	char *best_path = NULL;

	for (guint i = 0; i < model->mounts->len; i++) {
		const ModelMount *mount = mount_at(model, i);
		g_autofree char *root = model_node_path(mount->node);
		g_autofree char *view_path = NULL;

		if (!path_is_within(path, root) || (best && !is_better(mount, best)))
			continue;
		/* Where another mount covers it, it is not to be seen. */
		view_path = g_strconcat(mount->view_path, path + strlen(root), NULL);
		if (deepest_mount(model, view_path) != mount)
			continue;
		best = mount;
		g_free(best_path);
		best_path = g_steal_pointer(&view_path);
	}
	return best_path;
}

/* --- for a person --- */

static void format_node(const ModelNode *node, GString *out)
{
	g_autofree char *path = model_node_path(node);

	g_string_append_printf(out, "  host %s%s%s%s\n", path, node->type == S_IFDIR ? "/" : "",
			       node->target ? " -> " : "", node->target ? node->target : "");
	for (guint i = 0; node->children && i < node->children->len; i++)
		format_node(g_ptr_array_index(node->children, i), out);
}

char *model_format(const Model *model)
{
	GString *out = g_string_new(NULL);

	format_node(model->root, out);
	for (guint i = 0; i < model->mounts->len; i++) {
		g_autofree char *path = model_node_path(mount_at(model, i)->node);

		g_string_append_printf(out, "  mount %s %s at %s\n",
				       mount_at(model, i)->writable ? "rw" : "ro", path,
				       mount_at(model, i)->view_path);
	}
	g_string_append_printf(out, "  in %s, links %s\n", model->working_dir,
			       model->denies_links ? "denied" : "contained");
	return g_string_free(out, FALSE);
}
