/* Directories that only their owner may enter (0700): state, temporary directories, tool trees.
 *
 * All of it works relative to directory fds. A name that others could have replaced is looked at
 * through the fd that was opened, never a second time by its path, so what was checked is what is
 * used. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Makes path (absolute, not "/"; cleaned lexically) a directory of ours with mode 0700: creates
 * it and missing parents (0700 too), and enforces the mode of one that exists. Links on the way
 * to the last name are followed, for the caller chose the path; the last name itself must be no
 * link. 0; -EINVAL: not such a path; -ELOOP: a symlink is in its place; -ENOTDIR: something else
 * that is no directory; -EPERM: it belongs to somebody else; or what the system call gave. Any
 * thread at once. */
int private_dir_ensure(const char *path);

/* The same for one name below dirfd, belonging to uid and gid: a new directory is given to them
 * when they are not ours (which takes root); an existing one of another uid is -EPERM. Returns an
 * O_PATH fd that the caller owns, or -errno as above. */
int private_dir_ensure_at(int dirfd, const char *name, uid_t uid, gid_t gid);

/* Opens the directory at path, relative to dirfd ("" is dirfd itself; no ".."), making each missing
 * name on the way (0700). Without follow a link anywhere on the way is -ELOOP. Returns an O_PATH fd
 * that the caller owns, or -errno. */
int private_dir_walk(int dirfd, const char *path, bool follow);
