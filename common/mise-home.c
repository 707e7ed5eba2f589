/* Preparing a user's tool tree: see ensure_user_mise_home() in mise.h.
 *
 * The tree is the user's own machine-like mise home; what the system has installed appears in it as
 * links, which mise inside takes for installs. We run with the host's rights on what an agent can
 * write. Nothing here opens a name of the tree in any way but as a directory without following a
 * link, makes anything but directories and links, or removes anything but links. */
#include "common/mise.h"

#include "common/fd-util.h"
#include "common/mise-tree.h"
#include "common/path-util.h"
#include "common/private-dir.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
	MiseRoot home, user;
	char *home_path, *user_path; /* owned; the roots borrow them */
	uid_t uid;		     /* the tree's owner */
	gid_t gid;
	size_t budget; /* entries that may still be looked at in the user's tree */
	size_t steps;  /* names on the ways of its links, likewise */
	int installs;  /* fd of user/installs */
} Preparation;

static void preparation_clear(Preparation *p)
{
	fd_close(&p->home.fd);
	fd_close(&p->user.fd);
	fd_close(&p->installs);
	g_free(p->home_path);
	g_free(p->user_path);
}

/* Opens the directory that the tree's own directory is in. Below home no link is followed, for
 * agents can write to parts of it; elsewhere the caller chose the path. */
static int open_parent(int home_fd, const char *home, const char *dir, char **ret_name)
{
	bool below = home_fd >= 0 && path_is_below(dir, home);
	g_autofree char *parent = g_path_get_dirname(dir);
	FD_AUTO root = below ? fd_dup(home_fd) : mise_tree_open_root("/");

	if (root < 0)
		return root;
	*ret_name = g_path_get_basename(dir);
	return private_dir_walk(root, below ? path_below(parent, home) : parent, !below);
}

static int open_user_root(Preparation *p, const char *home, const char *dir)
{
	g_autofree char *name = NULL;
	struct stat st;
	FD_AUTO parent = open_parent(p->home.fd, home, dir, &name);

	if (parent < 0)
		return parent;
	/* A tree belongs to whom it belonged; a new one to us. */
	p->uid = geteuid();
	p->gid = getegid();
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
		p->uid = st.st_uid;
		p->gid = st.st_gid;
	}
	p->user.fd = mise_tree_ensure_dir(parent, name, p->uid, p->gid);
	return p->user.fd < 0 ? p->user.fd : 0;
}

static int make_structure(Preparation *p)
{
	static const char *const names[] = { "installs", "shims", "cache", "state", "config" };
	int first = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		FD_AUTO fd = mise_tree_ensure_dir(p->user.fd, names[i], p->uid, p->gid);

		if (fd < 0)
			mise_keep_first(&first, fd);
		else if (strcmp(names[i], "installs") == 0)
			p->installs = fd_steal(&fd);
	}
	return first;
}

/* Removes the dead links of one tool. */
static int prune_tool(Preparation *p, const char *tool)
{
	g_autoptr(GPtrArray) names = NULL;
	g_autofree char *dir = g_build_filename(p->user_path, "installs", tool, NULL);
	FD_AUTO fd = mise_tree_open_dir(p->installs, tool);
	int first = 0, r;

	if (fd < 0) /* mise keeps files beside the tools; a link there is not looked through */
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	r = mise_tree_list(fd, &p->budget, &names);
	if (r < 0)
		return r;
	for (guint i = 0; i < names->len; i++) {
		g_autofree char *text = NULL;
		const char *name = names->pdata[i];

		if (mise_tree_read_link(fd, name, &text) < 0)
			continue; /* an install, or gone */
		/* Should an install have taken its place by now, then unlink refuses the
		 * directory. */
		if (mise_link_is_dead(&p->home, &p->user, dir, text, &p->steps) &&
		    unlinkat(fd, name, 0) != 0 && errno != ENOENT && errno != EISDIR)
			mise_keep_first(&first, -errno);
	}
	return first;
}

static int prune(Preparation *p)
{
	g_autoptr(GPtrArray) tools = NULL;
	int first = 0;
	int r = mise_tree_list(p->installs, &p->budget, &tools);

	if (r < 0)
		return r;
	for (guint i = 0; i < tools->len; i++)
		mise_keep_first(&first, prune_tool(p, tools->pdata[i]));
	return first;
}

/* What the system has under that name is an install: a directory, or an alias that leads to one.
 * Files beside the versions are mise's notes, which it must be able to write for itself. */
static bool is_install(const Preparation *p, int tool_fd, const char *dir, const char *version)
{
	g_autofree char *text = NULL;
	size_t steps = SIZE_MAX; /* it is the administrator's */
	struct stat st;

	if (fstatat(tool_fd, version, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	if (S_ISDIR(st.st_mode))
		return true;
	return S_ISLNK(st.st_mode) && mise_tree_read_link(tool_fd, version, &text) == 0 &&
	       !mise_link_is_dead(&p->home, &p->user, dir, text, &steps);
}

/* The text of mise's own kind of alias, which names a version beside it ("20 -> ./20.1.0"): by the "./" mise tells it
 * from an install, and moves it to a newer version that comes. NULL for what is no such alias. */
static char *alias_text(int system_tool, const char *version)
{
	g_autofree char *text = NULL;

	if (mise_tree_read_link(system_tool, version, &text) < 0 || !g_str_has_prefix(text, "./") ||
	    path_check_name(text + 2) < 0)
		return NULL;
	return g_steal_pointer(&text);
}

static int seed_version(int user_tool, int system_tool, const char *user_dir,
			const char *system_dir, const char *version)
{
	g_autofree char *to = path_join(system_dir, version);
	g_autofree char *target = alias_text(system_tool, version);

	/* An alias is the user's own from the start: a link to the system's would be a version
	 * of that name, and hide whichever the user installs. */
	if (!target)
		target = mise_tree_relative(user_dir, to);

	/* An entry of that name, whatever it is, is the user's own version. */
	return symlinkat(target, user_tool, version) != 0 && errno != EEXIST ? -errno : 0;
}

/* The user's directory of a tool: as it is, or made, also in the place of a link. */
static int open_user_tool(Preparation *p, const char *tool)
{
	int fd = mise_tree_open_dir(p->installs, tool);

	if (fd != -ENOENT && fd != -ELOOP)
		return fd;
	return mise_tree_ensure_dir(p->installs, tool, p->uid, p->gid);
}

static int seed_tool(Preparation *p, int system_installs, const char *tool)
{
	g_autoptr(GPtrArray) versions = NULL;
	g_autofree char *system_dir =
		g_build_filename(p->home_path, ".mise-tools", "installs", tool, NULL);
	g_autofree char *user_dir = g_build_filename(p->user_path, "installs", tool, NULL);
	size_t budget = SIZE_MAX;
	FD_AUTO system_tool = mise_tree_open_dir(system_installs, tool);
	FD_AUTO user_tool = -1;
	int first = 0, r;

	/* Notes beside the tools, and a tool that is taken away at this moment, are none. */
	if (system_tool < 0)
		return system_tool == -ENOTDIR || system_tool == -ELOOP || system_tool == -ENOENT
			       ? 0
			       : system_tool;
	r = mise_tree_list(system_tool, &budget, &versions);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (guint i = 0; i < versions->len; i++) {
		const char *version = versions->pdata[i];

		if (!is_install(p, system_tool, system_dir, version))
			continue;
		if (user_tool < 0)
			user_tool = open_user_tool(p, tool);
		if (user_tool < 0)
			return user_tool;
		mise_keep_first(&first, seed_version(user_tool, system_tool, user_dir, system_dir,
						     version));
	}
	return first;
}

static int seed(Preparation *p)
{
	g_autoptr(GPtrArray) tools = NULL;
	size_t budget = SIZE_MAX;
	FD_AUTO installs = mise_tree_open_dir(p->home.fd, ".mise-tools/installs");
	int first = 0, r;

	if (installs < 0)
		return installs == -ENOENT ? 0 : installs;
	r = mise_tree_list(installs, &budget, &tools);
	if (r < 0)
		return r;
	for (guint i = 0; i < tools->len; i++)
		mise_keep_first(&first, seed_tool(p, installs, tools->pdata[i]));
	return first;
}

static int relink(Preparation *p)
{
	FD_AUTO shims = -1;
	int r = mise_has_program(p->home.fd);

	if (r <= 0)
		return r;
	shims = mise_tree_open_dir(p->user.fd, "shims");
	return shims < 0 ? shims : mise_relink_shims(shims, p->home_path, &p->budget);
}

/* Everything that links the two trees with each other. */
static int join_trees(Preparation *p)
{
	int first = 0;
	int r = mise_tree_real_path(p->home.fd, &p->home_path);

	if (r < 0)
		return r;
	r = mise_tree_real_path(p->user.fd, &p->user_path);
	if (r < 0)
		return r;
	p->home.path = p->home_path;
	p->user.path = p->user_path;
	if (p->installs >= 0) {
		mise_keep_first(&first, prune(p));
		mise_keep_first(&first, seed(p));
	}
	mise_keep_first(&first, relink(p));
	if (p->budget == 0 || p->steps == 0)
		mise_keep_first(&first, -E2BIG);
	return first;
}

int ensure_user_mise_home(const char *home, const char *user_tools_dir)
{
	__attribute__((cleanup(preparation_clear))) Preparation p = {
		.home.fd = -1,
		.user.fd = -1,
		.installs = -1,
		.budget = MISE_TREE_ENTRIES_MAX,
		.steps = MISE_TREE_STEPS_MAX,
	};
	g_autofree char *clean_home = path_clean(home);
	g_autofree char *dir = path_clean(user_tools_dir);
	int first = 0, r;

	if (!user_tools_dir[0])
		return 0;
	/* A tree that held its home would close the home to everybody else. */
	if (!dir || (home[0] && !clean_home) || path_is_below(clean_home ? clean_home : "/", dir))
		return -EINVAL;
	if (clean_home) {
		p.home.fd = mise_tree_open_root(clean_home);
		if (p.home.fd < 0)
			return p.home.fd;
	}
	r = open_user_root(&p, clean_home, dir);
	if (r < 0)
		return r;
	mise_keep_first(&first, make_structure(&p));
	if (p.home.fd >= 0)
		mise_keep_first(&first, join_trees(&p));
	return first;
}
