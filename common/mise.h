/* The layout of the tools that mise manages, and the preparation of it before a session.
 *
 *   HOME/bin/mise                                   the program; every shim is a link to it
 *   HOME/.mise-tools/{installs,shims}               the system's tree, read-only for agents
 *   HOME/users/ID/.mise-tools/{installs,shims,...}  a user's tree, writable for agents
 *
 * All links between the trees are relative, so that they hold on the host and in the view, where
 * HOME is /opt/stella. mise itself is never run here. The preparing functions run outside the
 * sandbox on trees that agents can write, also while they do: they work relative to directory fds,
 * never follow a link below the two roots they are given, replace links atomically, and can be
 * called any number of times, by several processes at once. Any thread at once; they block on file
 * I/O. */
#pragma once

#include <glib.h>

/* Entries of a user's tree that one call looks at: an agent can make any number of them, and a
 * session's start must not take for ever. A real tree holds some hundred. */
#define MISE_TREE_ENTRIES_MAX 16384
/* And names on the ways of its links, for a link can lead over many others by long paths: at the most a second or
 * two, and several times what a tree of a thousand links needs. */
#define MISE_TREE_STEPS_MAX 131072

/* home/.mise-tools: MISE_DATA_DIR of the system's tools. "" for a home of "". The caller frees, as
 * for all names below. */
char *mise_tools_dir(const char *home);
/* home/.mise-tools/shims, which belongs on PATH. "" for a home of "". */
char *mise_shims_dir(const char *home);
/* home/users/id/.mise-tools, only for the principal "users" and an id of [A-Za-z0-9_-]+ of at most
 * 255 bytes; else "". */
char *mise_user_tools_dir(const char *home, const char *principal, const char *id);
/* user_tools_dir/shims; "" for "". */
char *mise_user_shims_dir(const char *user_tools_dir);

/* The MISE_DATA_DIR of env (char * to char *), or "" when it is absent, empty or the system's tree
 * of home. Both are host paths, or both view paths. */
char *per_user_mise_data_dir(GHashTable *env, const char *home);

/* The names below a home that a sandbox shows: "bin", ".mise-tools". NULL-terminated, static
 * storage. */
const char *const *mise_home_dirs(void);

/* Makes every symlink of home's shims directory point, relatively, at home/bin/mise. Does nothing
 * when home is "" or has no bin/mise or no shims; leaves what is no symlink alone. 0, or the first
 * -errno, after having done the rest: -ELOOP: a part of home's tree is itself a symlink; -EROFS,
 * -EACCES: home cannot be written. */
int relink_system_mise_shims(const char *home);

/* Prepares the user's tree at user_tools_dir ("" is nothing to do): it and its directories
 * `installs shims cache state config` become real directories with mode 0700 of the tree's owner (a
 * symlink in the place of one is removed); links below installs/TOOL that lead nowhere are removed;
 * each version that the system's tree has and this one has not is linked, and an alias of mise's
 * ("20 -> ./20.1.0") made again, so that mise goes on moving it; the shims are relinked.
 * Installs that are directories are never touched. 0, or the first -errno after having done what
 * could be done: -EINVAL: paths that are not absolute, or a tree that holds home; -ENOTDIR:
 * something else is in the place of a directory; -EPERM: a directory in it belongs to somebody
 * else; -ELOOP: a directory above it but below home is a symlink; -E2BIG: more than
 * MISE_TREE_ENTRIES_MAX entries, or links that lead over more than MISE_TREE_STEPS_MAX names. */
int ensure_user_mise_home(const char *home, const char *user_tools_dir);

/* Both of them, for a session of home ("": none) and user_tools_dir ("": none). The first -errno,
 * after both were tried; a caller logs it and goes on. */
int ensure_mise_shims(const char *home, const char *user_tools_dir);
