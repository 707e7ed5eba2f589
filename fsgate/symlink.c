/* Links; see symlink.h for the argument. Where a text leads says the walk that all doors share (view-walk.h). */
#include "fsgate/symlink.h"

#include "common/limits.h"
#include "common/path-util.h"
#include "common/view-walk.h"
#include "fsgate/lookup.h"
#include "fsgate/refusal.h"

#include <errno.h>
#include <string.h>

static int act_for(void *data, const ViewAnchor *anchor)
{
	const FsgView *view = data;

	/* The text that comes out must not tell what is in a directory that its reader may not search. */
	return view->kernel_decides ? fsg_identity_search(anchor, view->proc_fd, view->shown_uid)
				    : fsg_view_act_as(anchor);
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

/* Where it leads, below the mountpoint. What is absent there is a dangling link inside the view, which may be used to
 * create. */
static int result_path(const FsgView *view, const ViewWalk *walk, char **ret_text)
{
	g_autoptr(GString) path = g_string_new(view->mountpoint);

	view_walk_append_path(walk, path);
	if (path->len >= LIMIT_PATH_BYTES)
		return -ENAMETOOLONG;
	*ret_text = g_strdup(path->str);
	return 0;
}

/* A link at the end is judged when it is read itself. */
static int judge(FsgView *view, FsgInode *link, const char *text, char **ret_text)
{
	const ViewWalkSpace space = {
		.root = view->root,
		.private_dirs = view->private_dirs,
		.act_for = act_for,
		.data = view,
	};
	ViewWalk walk;
	int r;

	view_walk_init(&walk, &space, VIEW_WALK_KEEP_LAST);
	if (text[0] != '/') {
		g_autofree char *path = fsg_inode_dup_path(view->inodes, link);
		g_autofree char *dir = g_path_get_dirname(path);

		view_walk_add(&walk, dir, false);
	}
	view_walk_add(&walk, text, true);
	r = view_walk_run(&walk);
	if (r == 0)
		r = result_path(view, &walk, ret_text);
	else if (walk.reason >= 0)
		r = fsg_refuse((DenialReason)walk.reason, r);
	view_walk_clear(&walk);
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
static bool note_escape(FsgView *view, FsgInode *link, const char *text)
{
	g_autofree char *path = fsg_inode_dup_path(view->inodes, link);
	g_autofree char *dir = g_path_get_dirname(path);
	g_autofree char *target = path_clean_from(dir, text);

	if (view_plan_names(view->plan, target))
		return false;
	fsg_asked_note_escape(view, link, text);
	return true;
}

int fsg_link_text(FsgView *view, FsgInode *link, char **ret_text, bool *ret_once)
{
	g_autofree char *text = NULL;
	int r;

	*ret_once = false;
	if (link->kind == FSG_INODE_HOST && link->anchor->denies_links)
		return fsg_refuse(DENIAL_SYMLINK_DENIED, -ELOOP);
	if ((r = read_text(view, link, &text)) < 0)
		return r;
	if (view->mountpoint && !view->original_links) {
		FsgLinkKind kind = view_link_may_climb(text) ? FSG_LINK_CLIMBS : FSG_LINK_STAYS;

		fsg_inode_set_link_kind(view->inodes, link, kind);
		if (kind == FSG_LINK_CLIMBS) {
			fsg_refuse_target(text);
			return judge_text(view, link, text, ret_text);
		}
	}
	/* Without times of birth another link may come to have its number. */
	*ret_once = link->kind == FSG_INODE_HOST && link->key.birth_sec == 0;
	if (view->plan->presentation == VIEW_FOR_SANDBOX && view_link_may_climb(text))
		*ret_once |= note_escape(view, link, text);
	*ret_text = g_steal_pointer(&text);
	return 0;
}

void fsg_link_adjust_size(FsgView *view, FsgInode *link, struct stat *st)
{
	g_autofree char *text = NULL;
	bool once;

	if (!view->mountpoint || view->original_links || link->anchor->denies_links)
		return;
	/* Reading the text is an access that the host notes: once is enough for most links. */
	if (fsg_inode_link_kind(view->inodes, link) == FSG_LINK_STAYS)
		return;
	if (fsg_link_text(view, link, &text, &once) == 0)
		st->st_size = (off_t)strlen(text);
}
