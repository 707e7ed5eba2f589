/* The walk: from a path to what it names in the view, component by component, links followed in view space. The one
 * code by which the gateway judges link texts and a path resolver judges paths.
 *
 * What a directory of the view has is asked in the gateway's order: first the view tree (what a mount covers is never
 * asked of the host), then what is hidden, then the host, one checked name at a time (resolve.h); and what the host gives
 * belongs to a read-only mount where it is the root of one. ".." is where the walk came from, by its own record: never
 * a name that the host resolves. See view-walk.c for why nothing leads out. */
#pragma once

#include "common/denial-reason.h"
#include "common/view-tree.h"

/* What a place is made of. */
typedef enum {
	VIEW_PLACE_HOST,     /* an object of a mount */
	VIEW_PLACE_OWN,	     /* a directory or link of the view's own */
	VIEW_PLACE_STAND_IN, /* an empty one for what the host has mounted below a mount */
	VIEW_PLACE_PRIVATE,  /* an empty one for a directory of ours, which no view enters */
} ViewPlaceKind;

/* A directory (or, as the last one, any object) that the walk has come to. */
typedef struct {
	ViewPlaceKind kind;
	char *name;	    /* "" for the root */
	ViewNode *node;	    /* laid over it, or whose form it is; or NULL */
	ViewAnchor *anchor; /* HOST: whose; stand-ins: of their directory; OWN: NULL */
	int fd;		    /* O_PATH (of generated files the memfd); -1: none, or not kept */
	bool owns_fd;	    /* it is not the anchor's */
	bool is_anchor_root;
	mode_t type; /* S_IFMT */
	dev_t dev;   /* HOST */
	ino_t ino;
	guint base; /* HOST: the index of its anchor's root */
} ViewPlace;

/* Of one view, for all walks. */
typedef struct {
	ViewNode *root;
	GHashTable *private_dirs; /* view-host-ids; or NULL */
	/* Makes the thread act as whom the anchor says, before each look below it. 0 or -errno. NULL: as it is. */
	int (*act_for)(void *data, const ViewAnchor *anchor);
	void *data;
} ViewWalkSpace;

enum {
	VIEW_WALK_KEEP_LAST = 1u << 0, /* a link at the end is the object itself */
	VIEW_WALK_STRICT = 1u << 1, /* no link below a mount's root, wherever: -ELOOP, reason -1 */
	VIEW_WALK_MAKES = 1u << 2,  /* the last name with a slash behind it is -EISDIR */
};

typedef struct {
	const ViewWalkSpace *space; /* borrowed */
	unsigned int flags;
	GPtrArray *places; /* ViewPlace; [0] is the root, the last is where it is */
	GQueue pending;	   /* what is still to be walked */
	int links;
	/* the outcome */
	char *absent; /* the last place has no such name, and so the walk went no further; or NULL */
	int reason;   /* DenialReason of what was refused, or hidden; -1 */
	char *at;     /* after a failure: the view path of the component that is to blame */
	char *target;		     /* and its text, when that is a link */
	const ViewAnchor *at_anchor; /* and the mount that it is in, or NULL */
} ViewWalk;

/* Begins at the root of the view. To be cleared however it ends. */
void view_walk_init(ViewWalk *walk, const ViewWalkSpace *space, unsigned int flags);
void view_walk_clear(ViewWalk *walk);

/* A directory that an earlier walk has come to. */
typedef struct {
	ViewNode *node;	    /* laid over it, or whose form it is; or NULL */
	ViewAnchor *anchor; /* NULL: a directory of the view's own */
	int fd;		    /* of one of a mount; borrowed until view_walk_clear() */
	const char *path;   /* below the anchor's root (view_walk_path_in_anchor()) */
} ViewDirectory;
/* Begins there instead. Such a walk goes down only: above the directory it has no record. */
void view_walk_resume(ViewWalk *walk, const ViewDirectory *dir);

/* Adds components to those that are to be walked; a slash at the end counts as one. as_link: as those of a link's text
 * that may leave the view: what they do not find in a directory of the view's own is outside. */
void view_walk_add(ViewWalk *walk, const char *path, bool as_link);

/* Walks all of it. 0: the last place is what was asked for, or, with `absent`, the directory in which the walk ended. Else
 * -errno: -EACCES (reason symlink-escape), -ELOOP (symlink-loop, symlink-denied, or strict), -ENOTDIR, -EISDIR,
 * -ENAMETOOLONG, -ESTALE for a directory that was moved while the walk was below it (the next walk is about what is there
 * then), or what the host says. */
int view_walk_run(ViewWalk *walk);

/* The place at index i. */
ViewPlace *view_walk_place(const ViewWalk *walk, guint i);
/* The last one. */
ViewPlace *view_walk_here(const ViewWalk *walk);

/* Where the HOST place at index i is below the root of its anchor, without a slash in front; or, with a name, an entry of
 * it. The caller frees. */
char *view_walk_path_in_anchor(const ViewWalk *walk, guint i, const char *name);

/* The fd of a place of kind HOST, opened again if it was not kept. Borrowed, or -errno as above. */
int view_walk_ensure_fd(ViewWalk *walk, guint i);

/* Whether components are left that matter: not the slash at the end. Only after `absent`. */
bool view_walk_has_rest(const ViewWalk *walk);

/* Appends "/NAME" for each place, then for `absent` and what is left up to the first "..", in place of which
 * stands "/.": a path free of links and of "..". Appends nothing for the root. */
void view_walk_append_path(const ViewWalk *walk, GString *path);

/* Whether a link's text can lead out of the link's own directory: absolute, or with "..". */
bool view_link_may_climb(const char *text);
