/* The table of vectors, tests/data/paths.json, as it-doors.c has it: worlds, each a host tree and a mount table, and for
 * each of them paths with what every door has to say. tests/data/README.md says how it is written.
 *
 * Reading it ends the test at the first thing that is not as it should be. */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
	DOOR_RESOLVER,
	DOOR_VIEW,    /* mounted, a host process looks in */
	DOOR_SANDBOX, /* a command of a session */
	DOOR_N,
} Door;

extern const char *const door_names[DOOR_N];

typedef enum {
	WANT_ERROR,
	WANT_OBJECT, /* `path` of the host tree, which is there */
	WANT_NEW,    /* the same, but it is made by this */
	WANT_OWN,    /* something that is not of the host tree: the view's or the sandbox's own */
	WANT_SKIP,   /* cannot be asked at this door */
} WantKind;

typedef struct {
	WantKind kind;
	int errnum;
	char *path; /* owned */
} Want;

typedef struct {
	const char *group; /* borrowed from the world */
	char *name;
	char *path; /* as it is asked */
	int flags;
	Want want[DOOR_N];
	/* The string form: a view path, or a problem. */
	char *strict_path; /* NULL: refused */
	int strict_kind;   /* PathProblemKind */
	int strict_errnum; /* 0: any */
} Vector;

typedef struct {
	char *name;
	bool needs_root;
	bool denies_links;
	bool odd_inodes;   /* a directory is mounted twice: inode numbers of the view are its own */
	char *working_dir; /* NULL: /workspace */
	char **tree;	   /* lines, expanded */
	char **mounts;
	GPtrArray *groups;  /* char * */
	GPtrArray *vectors; /* Vector */
} World;

/* Which worlds there are: their names. Reads the file, but expands nothing. */
char **doors_table_worlds(const char *file);
/* Reads one world; "{host}" in its texts becomes host_dir. */
World *doors_table_read(const char *file, const char *name, const char *host_dir);
void world_free(World *world);

/* Whether the flags ask for something to be changed, or made. */
bool vector_changes(const Vector *vector);
