/* A slow and obvious model of a view, for test-path-model: a host tree and a mount table in memory, and what the
 * specification says about a path there, by plain recursion. It shares nothing with the code that it judges. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct ModelNode ModelNode;
struct ModelNode {
	char *name;
	mode_t type;  /* S_IFDIR, S_IFREG, S_IFLNK */
	char *target; /* of a link */
	ModelNode *parent;
	GPtrArray *children; /* of a directory; owned */
};

typedef struct {
	char *view_path; /* clean */
	ModelNode *node; /* no link */
	bool writable;
} ModelMount;

typedef struct {
	ModelNode *root;   /* of the host tree: nothing outside it is known */
	GPtrArray *mounts; /* ModelMount */
	char *working_dir; /* a view path: that of a directory's mount */
	bool denies_links;
} Model;

Model *model_new(void); /* with an empty directory as root */
void model_free(Model *model);
ModelNode *model_add_node(ModelNode *parent, const char *name, mode_t type, const char *target);
ModelNode *model_find_child(const ModelNode *node, const char *name);
void model_add_mount(Model *model, const char *view_path, ModelNode *node, bool writable);
/* Below the root, with a slash in front; "" for the root. The caller frees. */
char *model_node_path(const ModelNode *node);

/* Where a path leads. */
typedef struct {
	int errnum;	 /* 0, or why it leads nowhere */
	char *view_path; /* clean, without links; of what is absent too */
	bool absent;	 /* its directory exists, and has no such name */
	bool own;	 /* what is there, or the directory that it is not in, is the view's own */
	ModelNode *node; /* what is there, when it is the host's; of what is absent the directory */
	mode_t type;	 /* 0 when absent */
	bool writable;
	bool pinned; /* what is there leads to a mount, or is one */
} ModelPlace;

void model_place_clear(ModelPlace *place);
/* keep_last: a link at the end is not followed. makes: as with O_CREAT. */
ModelPlace model_walk(const Model *model, const char *path, bool keep_last, bool makes);

/* What open(2) gives: an errno; or 0, and `made`: a file is made at the place, else what is there is opened. */
int model_open(const Model *model, const char *path, int flags, ModelPlace *ret_place,
	       bool *ret_made);

/* The string form: 0 with the view path and the path below the host tree (both to be freed), or an errno; as `kind` it
 * says which: "outside", "link", "read-only", "io". */
int model_resolve(const Model *model, const char *path, bool for_write, char **ret_view_path,
		  char **ret_host_path, const char **ret_kind);

/* The view path of a path of the host tree, by names alone; NULL: none. The caller frees. */
char *model_locate(const Model *model, const char *host_path);

/* The tree, the mounts and the rest, for a person. The caller frees. */
char *model_format(const Model *model);
