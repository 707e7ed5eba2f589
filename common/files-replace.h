/* Giving a file another content by putting another file in its place; for files-*.c only. */
#pragma once

#include "common/files-internal.h"

/* Whether the regular file in a place may be given other content, or one may be made where there is none. 0 or -errno,
 * failed. */
int files_replace_check(FilesCall *call, const PathPlace *place);

/* Does it. as_read: not if the file has changed since it was so: -ESTALE, not failed. */
int files_replace(FilesCall *call, const PathPlace *place, const struct stat *as_read,
		  const void *data, size_t size);

/* Whether a file's content can be taken for the same. */
bool files_is_unchanged(const struct stat *a, const struct stat *b);

/* Gives a new file the group and the ACL of the one in the place; where the host does not let the mount's owner give it the
 * group, *ret_mode is narrower than the other's. To be called while acting. 0 or -errno, not failed yet. */
int files_keep_access(const PathPlace *place, int fd, const struct stat *old, mode_t *ret_mode);
