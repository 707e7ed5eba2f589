/* What a command may have of the host's environment: a fixed list of variables and a filtered PATH.
 *
 * Pure functions on strings: no file system, no global environment. Any thread at once. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Whether a PATH entry may be used: it is bin (the home's bin directory; "" for none), or is, or is
 * below, /usr, /bin, /sbin, /nix or /run/current-system/sw, in whole components after "." and ".."
 * are taken away. An empty or relative entry never may. */
bool host_env_path_allowed(const char *entry, const char *bin);

/* The PATH of commands that run with host paths: user_shims; home/.mise-tools/shims; home/bin; the
 * entries of host_path (the host's PATH, NULL for none) that are allowed; the system's standard
 * directories. Absolute clean entries without repeats; an empty user_shims or home, and an entry
 * that is not absolute or holds a colon, is left out. The caller frees. */
char *host_env_build_path(const char *home, const char *user_shims, const char *host_path);

/* A PATH of entries (char *): absolute clean ones without repeats, the rest left out. The caller
 * frees. */
char *host_env_join_path(const GPtrArray *entries);

/* Copies the allowed variables of environ (NAME=value, NULL-terminated; may be NULL) that are not
 * empty into env (char * to char *, both owned by the table, made with g_free for both): TERM
 * COLORTERM LANG LC_ALL LC_CTYPE TZ and the proxy variables in both cases. Of repeated names the
 * first counts, as for getenv. */
void host_env_copy(const char *const *environ_list, GHashTable *env);

/* The names of these variables. NULL-terminated, static storage. */
const char *const *host_env_names(void);

/* The value of name in such a list, or NULL. Borrowed. */
const char *host_env_get(const char *const *environ_list, const char *name);
