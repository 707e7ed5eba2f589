/* Paths as strings: cleaned, compared, split by component. No function here looks at a file system. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The lexically cleaned form of an absolute path: no "//", no "." or "..", no trailing slash but for
 * "/" itself; ".." at the root stays at the root. NULL if path is not absolute. The caller frees. */
char *path_clean(const char *path);

/* As path_clean, a relative path being taken from base (absolute). */
char *path_clean_from(const char *base, const char *path);

/* Whether path is dir or lies below it, component by component: /workspace-evil is not below
 * /workspace. Both are clean absolute paths. */
bool path_is_below(const char *path, const char *dir);

/* The part of path below dir, without a leading slash ("" when they are equal). Only when
 * path_is_below(path, dir). Points into path. */
const char *path_below(const char *path, const char *dir);

/* dir/name, with one slash between them; name may be "" (then dir itself). The caller frees. */
char *path_join(const char *dir, const char *name);

/* The next component of *path, which is moved past it; NULL at the end. *ret_length is its length.
 * Slashes are skipped; "." and ".." are components like any other. */
const char *path_next(const char **path, size_t *ret_length);

/* Whether name can be one directory entry: not empty, ".", "..", at most 255 bytes, no slash.
 * Returns 0, -EINVAL or -ENAMETOOLONG. */
int path_check_name(const char *name);

/* A printable copy of any bytes: control characters, backslash and bytes that are not valid UTF-8
 * become \xNN, so that one message stays one line. The caller frees. */
char *path_escape(const char *text);
