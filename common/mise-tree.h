/* Steps that the preparation of mise trees is made of; used by the mise-*.c files only.
 *
 * An agent may write to a user's tree while these run, so each step takes the fd of a directory and
 * one name, never follows a link, and takes any answer of the file system for possible. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Remembers the first failure of several steps. */
static inline void mise_keep_first(int *first, int r)
{
	if (*first == 0 && r < 0)
		*first = r;
}

/* Opens a root that a caller named (absolute; links on the way are followed): O_PATH fd, or
 * -errno. */
int mise_tree_open_root(const char *path);

/* Opens what is at path ("a/b"; "" is dirfd itself) below dirfd, in one call, with O_PATH and flags: -ELOOP when one of the
 * names is a link. -ENOSYS where the kernel cannot: then name by name. */
int mise_tree_open_path(int dirfd, const char *path, int flags);

/* Opens the directory at path ("a/b") below dirfd. An O_PATH fd, or -errno: -ELOOP when one of the
 * names is a link, -ENOTDIR when one is something else. */
int mise_tree_open_dir(int dirfd, const char *path);

/* Makes dirfd/name a real directory, 0700, of uid and gid; a link in its place is removed. An
 * O_PATH fd, or -errno as private_dir_ensure_at() has them. */
int mise_tree_ensure_dir(int dirfd, const char *name, uid_t uid, gid_t gid);

/* The names in the directory dirfd (any fd of it), without "." and "..", at most *budget, which is
 * lowered by their number: 0 afterwards means that there may be more. The caller owns the array. */
int mise_tree_list(int dirfd, size_t *budget, GPtrArray **ret_names);

/* The text of the link dirfd/name (name "" for an O_PATH fd of the link itself); -EINVAL or -ENOENT
 * when there is none. */
int mise_tree_read_link(int dirfd, const char *name, char **ret_text);

/* The path of an open directory, free of links, as the kernel knows it. */
int mise_tree_real_path(int fd, char **ret_path);

/* The relative link text that leads from a link inside the directory from to the path to; both are
 * absolute, clean and free of links. The caller frees. */
char *mise_tree_relative(const char *from, const char *to);

/* One of the trees that links may lead to. */
typedef struct {
	const char *path; /* real */
	int fd;
} MiseRoot;

/* Whether a link inside dir (real path) with that text leads to nothing, in the two trees and in a
 * view of them. Only the trees are looked at: what an agent writes into a link must not decide
 * which other files of the host are asked for, nor may it learn from a link's fate whether they
 * exist. Elsewhere the text alone decides: a link to a place that every view may have (/workspace,
 * /user, the runtime directories) is alive, any other is dead. What is looked at is taken from *steps, which is 0
 * when that was not enough: forty links at the ends of long paths cost tens of thousands of steps, and an agent
 * can make any number of such links. Then the link is not dead as far as is known. */
bool mise_link_is_dead(const MiseRoot *home, const MiseRoot *user, const char *dir,
		       const char *text, size_t *steps);

/* Whether home (O_PATH) has bin/mise: 1, 0, or -errno. */
int mise_has_program(int home_fd);

/* Makes every link in the directory shims_fd point at home/bin/mise (home: a real path). 0 or the
 * first -errno; *budget as for mise_tree_list(). */
int mise_relink_shims(int shims_fd, const char *home, size_t *budget);
