/* The tools that mise manages: where they are, and what has to be done before a session uses them.
 *
 *   HOME/bin/mise                                     the program; every shim is a link to it
 *   HOME/.mise-tools/{installs,shims}                 the system's tree, read-only for agents
 *   HOME/users/ID/.mise-tools/{installs,shims,...}    a user's tree, writable for that user's agents
 *
 * HOME is a policy's stella_home and appears at /opt/stella. All links that are made here are relative, so that they hold
 * on the host and in every view. A user's tree belongs to all agents of that user: what one of them puts there, the
 * others run.
 *
 * Sessions prepare the trees of their policy by themselves (stella_ensure_mise_shims()); a host that runs commands in
 * another way calls it. mise itself is never run on the host by this library.
 *
 * Paths are host paths, unless said otherwise, and absolute. An empty home is none: names made from it are empty, and
 * preparing it does nothing. */
#ifndef STELLA_MISE_H
#define STELLA_MISE_H

#include <glib.h>
#include <stella/error.h>
#include <stella/types.h>

G_BEGIN_DECLS

/* The names. None of these looks at a file, and none of their arguments may be NULL; a trailing slash of an argument is
 * dropped. They give a text that the caller frees with g_free(), never NULL (but for a NULL argument, which is a
 * programming error). Any thread at once; they do not block. */

/* HOME/.mise-tools: the MISE_DATA_DIR of the system's tools. "" for a home of "". */
STELLA_API char *stella_mise_tools_dir(const char *home);

/* HOME/.mise-tools/shims, which belongs on PATH. "" for a home of "". */
STELLA_API char *stella_mise_shims_dir(const char *home);

/* HOME/users/ID/.mise-tools: the MISE_DATA_DIR of one user, which all agents of that user share.
 *
 * principal: the kind of owner, of which there is one: "users". id: 1 to 255 letters, digits, "_" and "-"; a group of a
 * channel may be told from a user by a prefix ("group-42"). "" for another principal, an id that is none, so that no id
 * leads out of HOME/users or to another's tree, and for a home of "": the caller falls back to the system's tree. */
STELLA_API char *stella_mise_user_tools_dir(const char *home, const char *principal,
					    const char *id);

/* USER_TOOLS_DIR/shims, which belongs on PATH before the system's. "" for "". */
STELLA_API char *stella_mise_user_shims_dir(const char *user_tools_dir);

/* The MISE_DATA_DIR that an environment names, when it is a user's: "" when it is not set, empty, or the system's tree of
 * home, whatever the spelling of that.
 *
 * env: NAME=value, NULL-terminated; may be NULL; of repeated names the first counts. Both env's value and home are host
 * paths, or both are view paths. */
STELLA_API char *stella_per_user_mise_data_dir(const char *const *env, const char *home);

/* The names of the directories below a home that a sandbox shows, read-only: "bin", ".mise-tools". Nothing else of a home is
 * to be mounted. NULL-terminated, static storage. */
STELLA_API const char *const *stella_home_sandbox_dirs(void);

/* The preparation. It works on trees that agents can write to, also while they do: it never follows a link below home or
 * below user_tools_dir, removes nothing but links, and makes nothing but directories and links. It does what it can, and
 * then tells the first thing that failed; a caller logs that and goes on, for the tools that were there are still there.
 * Any number of calls is allowed, by any number of processes at once; a second call changes nothing. Any thread at once;
 * they block on file I/O. */

/* Makes every symbolic link of HOME/.mise-tools/shims lead, relatively, to HOME/bin/mise, each by one atomic replacement.
 * What is no link is left alone. Without HOME/bin/mise, without shims, without home and for a home of "" there is nothing
 * to do, which is success.
 *
 * TRUE; or FALSE with
 *   STELLA_ERROR_INVALID_ARGUMENT   home is not absolute
 *   STELLA_ERROR_SYMLINK            HOME/bin, HOME/.mise-tools or its shims is itself a link
 *   STELLA_ERROR_READ_ONLY          home is on a file system that is read-only
 *   STELLA_ERROR_IO                 anything else that the host says: no permission (EACCES), no room (ENOSPC), a file in
 *                                   the place of a directory (ENOTDIR) */
STELLA_API gboolean stella_relink_system_mise_shims(const char *home, GError **error);

/* Prepares the tree of a user; a user_tools_dir of "" is none, and success.
 *
 * The directory, its parents, and its `installs shims cache state config` are made (0700), or given mode 0700; a link in the
 * place of one of the five, or of the directory itself, is removed and replaced. Links below installs/TOOL/ that lead
 * nowhere go. Each install of the system's tree that has no entry here is linked, and an alias between installs
 * ("20 -> ./20.1.0") made again, for mise to move; an entry that is here, whatever it is, is
 * the user's own and stays. Then the user's shims are made to lead to HOME/bin/mise, as above. A new tree belongs to whom
 * the process is, and what is made in an existing one to that one's owner. With a home of "" the directories are made and
 * nothing is linked.
 *
 * TRUE; or FALSE with
 *   STELLA_ERROR_INVALID_ARGUMENT   a path is not absolute, or user_tools_dir holds home
 *   STELLA_ERROR_NOT_FOUND          there is no home
 *   STELLA_ERROR_SYMLINK            a directory between home and the tree is a link
 *   STELLA_ERROR_READ_ONLY          the tree is on a file system that is read-only
 *   STELLA_ERROR_TOO_LARGE          the tree has more than 16384 entries, or links over more than 131072 names: what is
 *                                   beyond was not looked at
 *   STELLA_ERROR_IO                 anything else that the host says: something else in the place of a directory (ENOTDIR),
 *                                   a directory that is another's (EPERM), no permission (EACCES), no room (ENOSPC) */
STELLA_API gboolean stella_ensure_user_mise_home(const char *home, const char *user_tools_dir,
						 GError **error);

/* Both of these, for a session of home and user_tools_dir, either of which may be "". Both are tried whatever becomes of the
 * first; the errors are those above. */
STELLA_API gboolean stella_ensure_mise_shims(const char *home, const char *user_tools_dir,
					     GError **error);

G_END_DECLS

#endif
