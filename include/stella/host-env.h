/* What a command may have of the host's environment, for hosts that run commands in another way than by a session (which
 * does all of this by itself); and private directories.
 *
 * The environment is not changed by anything here. It is read by two functions, and as with getenv() no thread may be
 * changing it (setenv()) at that moment. */
#ifndef STELLA_HOST_ENV_H
#define STELLA_HOST_ENV_H

#include <glib.h>
#include <stella/error.h>
#include <stella/types.h>

G_BEGIN_DECLS

/* The PATH of commands that run with host paths.
 *
 * home: host path of the installed tools, absolute, or "" for none. user_shims: host path of a user's shims
 * (stella_mise_user_shims_dir()), absolute, or "" for none.
 *
 * In this order: user_shims; HOME/.mise-tools/shims; HOME/bin; those entries of this process's PATH that
 * stella_host_env_path_allowed() allows; /run/current-system/sw/bin, /usr/local/sbin, /usr/local/bin, /usr/sbin, /usr/bin,
 * /sbin, /bin. Entries are absolute and clean ("//", "/./", "/../" and a trailing "/" are gone), none twice; what is empty,
 * relative or holds a colon is left out. Whether they exist is not looked at.
 *
 * The text, to be freed with g_free(); never empty. NULL for a NULL argument, which is a programming error. Any thread at
 * once; it does not block. */
STELLA_API char *stella_host_env_build_path(const char *home, const char *user_shims);

/* Whether an entry of PATH may be used: it is bin, or it is, or is below, one of the directories that only the system's
 * administrator writes to: /usr, /bin, /sbin, /nix, /run/current-system/sw. In whole names ("/usrx" is not below "/usr"),
 * after "." and ".." are taken away.
 *
 * entry: as it stands in PATH; an empty or relative one never may. bin: the bin directory of the installed tools, or "" for
 * none. FALSE for a NULL argument, which is a programming error. Any thread at once; it does not block, and looks at no
 * file. */
STELLA_API gboolean stella_host_env_path_allowed(const char *entry, const char *bin);

/* Sets in env those variables of this process's environment that every command may have: TERM COLORTERM LANG LC_ALL LC_CTYPE
 * TZ, and HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY and the same in lower case; each only if it is set and not empty. They
 * take the place of env's own of the same name; the rest of env stays.
 *
 * env: NAME=value, NULL-terminated, or NULL for an empty one; it is taken, as by g_environ_setenv(): use what comes back.
 * The new list, to be freed with g_strfreev(). Any thread at once, each with its own env; it does not block. */
STELLA_API char **stella_host_env_copy(char **env) G_GNUC_WARN_UNUSED_RESULT;

/* Makes path a directory that only its owner may enter (0700), for what a host keeps: state, temporary directories, tools.
 *
 * path: absolute, other than "/"; cleaned lexically. It is made if it is missing, with its missing parents (0700 too);
 * one that exists and is ours is given mode 0700. Links on the way to the last name are followed; the last name itself must
 * be no link. What it holds is not touched. A second call changes nothing.
 *
 * TRUE; or FALSE with
 *   STELLA_ERROR_INVALID_ARGUMENT   path is empty, relative or "/", or a name of it is too long
 *   STELLA_ERROR_SYMLINK            a link is in its place, or there are too many on the way
 *   STELLA_ERROR_READ_ONLY          it would have to be made on a file system that is read-only
 *   STELLA_ERROR_IO                 anything else that the host says: something else in its place or on the way (ENOTDIR), a
 *                                   directory of somebody else's (EPERM), no permission (EACCES), no room (ENOSPC)
 * Any thread at once; it blocks on file I/O. */
STELLA_API gboolean stella_ensure_private_dir(const char *path, GError **error);

G_END_DECLS

#endif
