/* One step of every walk: the entry `name` of a directory fd, as an O_PATH fd.
 *
 * The safety of the whole view rests on this function being the only way from a directory to its
 * entries. One name at a time, relative to a directory fd, never through a link: what an agent can
 * change is the name, the kind of the entry, and what both are at the next moment. None of them can
 * lead out, for there is no second component that a link could redirect, and the fd that comes back
 * is the object itself, whatever is renamed afterwards. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Opens dirfd/name with O_PATH: a symlink is opened itself. A name that is no single component
 * (path_check_name) gives -EINVAL or -ENAMETOOLONG before any system call. What is mounted on the
 * entry is not crossed into, -EXDEV, unless cross_mounts. Returns the fd or -errno; -EAGAIN only after
 * LIMIT_OPENAT2_TRIES tries. Where openat2 is missing or filtered (ENOSYS, EPERM) a plain openat with
 * the same checks gives the same verdicts. Any thread at once. */
int resolve_child(int dirfd, const char *name, bool cross_mounts);

/* Several steps at once, each as above: path is "a/b/c", names without "." and ".." ("": dirfd's own directory, or file, again). The
 * fd (O_PATH) of what is there or -errno: -ELOOP or -ENOTDIR for a link or file on the way, -EXDEV for a mount. */
int resolve_dir_below(int dirfd, const char *path, bool cross_mounts);

/* The same step for a look alone: the attributes of the entry itself, of which nothing is opened. What holds for
 * resolve_child holds here: one name, no link followed, no automount set off, and another mount than the one with
 * mount_id (of dirfd, by resolve_mount_id), is -EXDEV. RESOLVE_ANY_MOUNT: mounts are crossed into. -ENOSYS where the
 * kernel tells no mount ids. By the next moment the name may be something else: who opens it then compares. */
#define RESOLVE_ANY_MOUNT 0
int resolve_stat_child(int dirfd, const char *name, unsigned int mask, uint64_t mount_id,
		       struct statx *ret_stx);

/* The id of the mount that fd was opened in; never RESOLVE_ANY_MOUNT. 0, or -errno: -ENOSYS before Linux 5.8. */
int resolve_mount_id(int fd, uint64_t *ret_id);

/* The same step, but the entry is opened for I/O, with flags (an access mode, O_SYNC and the like; never O_CREAT or
 * O_TRUNC), without waiting for anything. The caller checks what it got before it uses it. An optimisation: for any
 * failure the way by O_PATH is tried, which also tells the right error. */
int resolve_open_child(int dirfd, const char *name, int flags, bool cross_mounts);

/* Whether dirfd is still below the root of the mount clone that it was opened in: 0, or -ESTALE for a
 * directory that was moved out on the host since. To be asked before something is changed in, or
 * looked up in, a directory whose fd has been held for a while. */
int resolve_check_connected(int dirfd);
