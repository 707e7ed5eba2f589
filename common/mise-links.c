/* Whether a link of a tool tree is dead, found out without ever following one; see mise-tree.h.
 *
 * The text is made a path, and the path is walked name by name below the tree that it is in; a link
 * on the way is replaced by its own text, forty times at the most. Lexical ".." is exact as long as
 * what is before it is no link, which the walk has just seen. */
#include "common/mise-tree.h"

#include "common/fd-util.h"
#include "common/host-env.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "stella/types.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* The names of a path, taken from *steps: false when there are not that many left. */
static bool take_steps(const char *rest, size_t *steps)
{
	size_t names = 1, length;

	while (path_next(&rest, &length))
		names++;
	if (names > *steps)
		*steps = 0;
	else
		*steps -= names;
	return *steps > 0;
}

/* Takes one step: 0 when path exists and no link is on it; 1 with the path after the first link has
 * been replaced; -errno. */
static int walk(const MiseRoot *root, const char *path, char **ret_next)
{
	const char *rest = path_below(path, root->path), *component;
	FD_AUTO at = mise_tree_open_path(root->fd, rest, 0);
	size_t length;

	/* Mostly there is no link on the way, and what is asked is answered at once. */
	if (at >= 0)
		return 0;
	if (at != -ELOOP && at != -ENOSYS)
		return at;
	at = fd_dup(root->fd);
	if (at < 0)
		return at;
	while ((component = path_next(&rest, &length))) {
		g_autofree char *name = g_strndup(component, length);
		g_autofree char *before = NULL;
		g_autofree char *text = NULL;
		g_autofree char *target = NULL;
		struct stat st;
		FD_AUTO fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		int r;

		if (fd < 0 || fstat(fd, &st) != 0)
			return -errno;
		if (!S_ISLNK(st.st_mode)) {
			fd_close(&at);
			at = fd_steal(&fd);
			continue;
		}
		r = mise_tree_read_link(fd, "", &text);
		if (r < 0)
			return r;
		before = g_strndup(path, (gsize)(component - path));
		target = path_clean_from(before, text);
		*ret_next = path_clean_from(target, rest[0] ? rest + 1 : "");
		return 1;
	}
	return 0;
}

/* The tree that path is in: a user's tree may lie below its home. */
static const MiseRoot *find_root(const MiseRoot *home, const MiseRoot *user, const char *path)
{
	if (path_is_below(path, user->path))
		return user;
	return path_is_below(path, home->path) ? home : NULL;
}

/* An absolute text that an agent's tools wrote names the home as the view has it. */
static char *view_to_host(const MiseRoot *home, const char *path)
{
	if (!path_is_below(path, STELLA_MOUNT_STELLA_HOME))
		return g_strdup(path);
	return path_join(home->path, path_below(path, STELLA_MOUNT_STELLA_HOME));
}

static bool is_place_of_views(const char *path)
{
	return path_is_below(path, STELLA_MOUNT_WORKSPACE) ||
	       path_is_below(path, STELLA_MOUNT_USER_DATA) || host_env_path_allowed(path, "");
}

bool mise_link_is_dead(const MiseRoot *home, const MiseRoot *user, const char *dir,
		       const char *text, size_t *steps)
{
	g_autofree char *path = path_clean_from(dir, text);

	for (int links = 0; links <= LIMIT_LINKS; links++) {
		const MiseRoot *root = find_root(home, user, path);
		g_autofree char *next = NULL;
		int r;

		if (!root) {
			g_autofree char *host = view_to_host(home, path);

			g_free(path);
			path = g_steal_pointer(&host);
			root = find_root(home, user, path);
		}
		if (!root)
			return !is_place_of_views(path);
		if (!take_steps(path_below(path, root->path), steps))
			return false;
		r = walk(root, path, &next);
		/* What could not be found out is no reason to remove anything. */
		if (r <= 0)
			return r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG;
		g_free(path);
		path = g_steal_pointer(&next);
	}
	return true;
}
