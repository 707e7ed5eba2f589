/* One step of every walk: the entry `name` of a directory fd, as an O_PATH fd.
 *
 * The safety of the whole view rests on this function being the only way from a directory to its
 * entries. One name at a time, relative to a directory fd, never through a link: what an agent can
 * change is the name, the kind of the entry, and what both are at the next moment. None of them can
 * lead out, for there is no second component that a link could redirect, and the fd that comes back
 * is the object itself, whatever is renamed afterwards. */
#pragma once

#include <stdbool.h>

/* Opens dirfd/name with O_PATH: a symlink is opened itself. A name that is no single component
 * (path_check_name) gives -EINVAL or -ENAMETOOLONG before any system call. What is mounted on the
 * entry is not crossed into, -EXDEV, unless cross_mounts. Returns the fd or -errno; -EAGAIN only after
 * LIMIT_OPENAT2_TRIES tries. Where openat2 is missing or filtered (ENOSYS, EPERM) a plain openat with
 * the same checks gives the same verdicts. Any thread at once. */
int resolve_child(int dirfd, const char *name, bool cross_mounts);

/* The same step, but the entry is opened for I/O, with flags (an access mode, O_SYNC and the like; never O_CREAT or
 * O_TRUNC), without waiting for anything. The caller checks what it got before it uses it. An optimisation: for any
 * failure the way by O_PATH is tried, which also tells the right error. */
int resolve_open_child(int dirfd, const char *name, int flags, bool cross_mounts);

/* Whether dirfd is still below the root of the mount clone that it was opened in: 0, or -ESTALE for a
 * directory that was moved out on the host since. To be asked before something is changed in, or
 * looked up in, a directory whose fd has been held for a while. */
int resolve_check_connected(int dirfd);
