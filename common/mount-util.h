/* New mounts through the fd-based API, so that no path is looked up twice. Nothing here allocates. */
#pragma once

/* A new file system of that type, detached: the fd of its mount, or -errno. options is a NULL-terminated
 * list of key, value; a NULL value is a flag. attr is MOUNT_ATTR_*. */
int mount_new(const char *type, const char *const *options, unsigned int attr);

/* Attaches a detached mount to path below dirfd, or to dirfd itself when path is "". 0 or -errno. */
int mount_attach(int mount_fd, int dirfd, const char *path);
