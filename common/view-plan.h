/* The view plan: a policy turned into the list of everything that the view holds, with the host
 * objects looked at. Gateway, executor and `check` all work from it.
 *
 * Built from a policy in this order: the declared mounts; the implied workspace; the tool tree
 * (stella_home, user_tools_dir); the temporary directory; runtime directories. Rows are sorted by
 * view path; no two have the same. */
#pragma once

#include "common/policy.h"

#include <sys/stat.h>

/* Who sees the view. */
typedef enum {
	VIEW_FOR_HOST, /* mounted where host processes can look in: links are checked and rewritten */
	VIEW_FOR_SANDBOX, /* root of a sandbox and visible nowhere else: links are given unchanged */
	VIEW_FOR_TOOLS, /* mounted nowhere: for a path resolver of a host that does not remap. No runtime, and the
			 * implied workspace is at its own host path */
	VIEW_AS_HOST, /* there is none, commands run on the host: every view path is the host path
			 itself */
} ViewPresentation;

typedef enum {
	VIEW_ENTRY_MOUNT,     /* a host directory or single file, served by the gateway */
	VIEW_ENTRY_GENERATED, /* a read-only file whose content is in the plan (passwd, resolv.conf) */
	VIEW_ENTRY_LINK,      /* a symlink of the view's own (/bin -> usr/bin) */
	VIEW_ENTRY_POINT,     /* an empty directory that the sandbox mounts something on; for
				 VIEW_FOR_SANDBOX only: /proc /dev /tmp /usr ... */
} ViewEntryKind;

typedef enum {
	VIEW_ORIGIN_DECLARED,
	VIEW_ORIGIN_WORKSPACE, /* implied */
	VIEW_ORIGIN_TOOLS,     /* stella_home, user_tools_dir */
	VIEW_ORIGIN_TEMP,
	VIEW_ORIGIN_RUNTIME,
} ViewOrigin;

typedef struct {
	ViewEntryKind kind;
	ViewOrigin origin;
	char *view_path; /* clean, absolute, never "/" */
	char *host_path; /* MOUNT: absolute, as the policy has it, cleaned. POINT: what the executor
			    binds there read-only, or NULL for one that it makes itself (/proc) */
	StellaMountAccess access; /* MOUNT; POINT: "rw" when commands may write there (/tmp) */
	bool is_dir;		  /* MOUNT, POINT: a directory (else a regular file) */
	bool untold;		  /* MOUNT: view_plan_writable() leaves it out */
	bool cross_submounts;	  /* what is mounted on the host below belongs to it (runtime) */
	dev_t dev;		  /* MOUNT: the host object's identity when the plan was made */
	ino_t ino;
	uid_t owner_uid; /* MOUNT: its owner */
	gid_t owner_gid;
	const char *const
		*hide; /* what of the mount does not appear (/etc), or NULL: globs (* and ?)
				    relative to the mount's root, one a component, as many components
				    deep as written; what lies below a match is hidden with it. NULL
				    at the end; static storage */
	char *content; /* GENERATED */
	size_t content_size;
	char *target; /* LINK */
} ViewEntry;

/* A declared optional mount whose host path is absent. */
typedef struct {
	char *host_path;
	char *view_path;
} ViewDropped;

typedef struct {
	StellaPolicy *policy;
	ViewPresentation presentation;
	PolicyRuntime runtime; /* never DEFAULT */
	GPtrArray *entries;    /* ViewEntry, sorted by view path */
	GPtrArray *dropped;    /* ViewDropped */
	char *working_dir;     /* a view path */
	char *home;	       /* HOME, a view path: the workspace, or what the policy's own HOME
				  says with env_override */
	char *workspace_view;  /* the view path of the workspace */
	char *user_dir, *temp_dir; /* AS_HOST: the host paths behind /user and /tmp, or NULL */
} ViewPlan;

/* Looks at every host path (following links: the policy is trusted) and makes the plan. On failure
 * -errno, and *reterr_message is one line that names key and path, e.g. `filesystem.mounts[1].host_path
 * "/srv/x": No such file or directory`. */
int view_plan_new(const StellaPolicy *policy, ViewPresentation presentation, ViewPlan **ret_plan,
		  char **reterr_message);
void view_plan_free(ViewPlan *plan); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ViewPlan, view_plan_free)

/* The key that has said where the workspace is: where workspace_root is working_dir, nobody has set it. Static storage. */
const char *view_plan_workspace_key(const StellaPolicy *policy);

/* The deepest MOUNT or GENERATED entry that path (clean) is at or below, or NULL. */
const ViewEntry *view_plan_find_by_view_path(const ViewPlan *plan, const char *path);

/* The entry whose host directory is deepest above host_path; among entries of one host directory,
 * the one with the shortest view path, then the first in byte order. NULL when none. */
const ViewEntry *view_plan_find_by_host_path(const ViewPlan *plan, const char *host_path);

/* host path <-> view path by the two functions above; NULL when no mount covers it. The caller
 * frees. */
char *view_plan_to_host_path(const ViewPlan *plan, const char *view_path);
char *view_plan_to_view_path(const ViewPlan *plan, const char *host_path);

/* A path of the caller (view path, relative to working_dir, or a host path inside a mount) as a view
 * path; a path that is both is the host's, unless the view's mount is the deeper one. NULL when no mount, directory on the way to one, or sandbox place (/tmp, /usr) covers it. */
char *view_plan_locate(const ViewPlan *plan, const char *path);

/* Whether a view path (clean) names a mount, what is below one, a directory on the way to one, or a place of the
 * sandbox's own (/tmp, /usr): not that anything exists there. */
bool view_plan_names(const ViewPlan *plan, const char *path);

/* View paths of all writable entries, plus /tmp for a sandbox: what an agent is told, by commands and by tools the same. A
 * session's own /var/tmp is not: one place for temporary files is enough to know. NULL-terminated; the caller frees
 * with g_strfreev. */
char **view_plan_writable(const ViewPlan *plan);

/* Whether the policy's access makes an entry writable: "rw". */
bool view_entry_is_writable(const ViewEntry *entry);

/* The table that `check` and `mount` print: one row an entry, aligned, then the dropped ones. */
char *view_plan_format(const ViewPlan *plan);
