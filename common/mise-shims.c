/* Relinking shims: every link in a shims directory becomes the relative one to home/bin/mise, which
 * holds on the host and in every view. See mise.h.
 *
 * A shim is exchanged for a new link, so that a session that runs it meanwhile finds the old one or
 * the new one, and what has come to its place in the meantime is not lost. Our temporary names are recognised by later calls: one whose maker was killed is
 * removed once it is old, a fresh one is another call's, in progress. */
#include "common/mise.h"

#include "common/fd-util.h"
#include "common/mise-tree.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TEMP_PREFIX	 ".stella-link-"
#define TEMP_OLD_AFTER_S 60
#define TEMP_TRIES	 16

int mise_has_program(int home_fd)
{
	struct stat st;
	FD_AUTO bin = mise_tree_open_dir(home_fd, "bin");

	if (bin < 0)
		return bin == -ENOENT ? 0 : bin;
	if (fstatat(bin, "mise", &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode);
}

static int make_temp_link(int dirfd, const char *target, char name[static 64])
{
	for (int i = 0; i < TEMP_TRIES; i++) {
		snprintf(name, 64, TEMP_PREFIX "%08x%08x", g_random_int(), g_random_int());
		if (symlinkat(target, dirfd, name) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* What was taken out of a shim's place is under the name temp: a link goes, anything else, which has come there since
 * it was a link, goes back, for what was put there instead of it. */
static int dispose(int dirfd, const char *temp, const char *name)
{
	for (int i = 0; i < TEMP_TRIES; i++) {
		struct stat st;
		int r;

		if (fstatat(dirfd, temp, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return -errno;
		if (S_ISLNK(st.st_mode))
			return unlinkat(dirfd, temp, 0) != 0 ? -errno : 0;
		r = sys_renameat2(dirfd, temp, dirfd, name, RENAME_EXCHANGE);
		if (r == -ENOENT) /* by now there is nothing */
			return sys_renameat2(dirfd, temp, dirfd, name, RENAME_NOREPLACE);
		if (r < 0)
			return r;
	}
	return -EAGAIN; /* somebody puts in file after file: the last one stays under that name */
}

static int replace_link(int dirfd, const char *name, const char *target)
{
	char temp[64];
	int r = make_temp_link(dirfd, target, temp);

	if (r < 0)
		return r;
	r = sys_renameat2(dirfd, temp, dirfd, name, RENAME_EXCHANGE);
	if (r == 0)
		return dispose(dirfd, temp, name);
	/* A file system that exchanges nothing. */
	if (r == -EINVAL && renameat(dirfd, temp, dirfd, name) == 0)
		return 0;
	(void)unlinkat(dirfd, temp, 0); /* the rename's error is the one to tell */
	return r == -ENOENT ? 0 : r;	/* no shim any more: none is made */
}

static int remove_old_temp(int dirfd, const char *name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISLNK(st.st_mode) || time(NULL) - st.st_mtime < TEMP_OLD_AFTER_S)
		return 0;
	return unlinkat(dirfd, name, 0) != 0 && errno != ENOENT ? -errno : 0;
}

static int relink_one(int dirfd, const char *name, const char *target)
{
	g_autofree char *text = NULL;
	int r;

	if (g_str_has_prefix(name, TEMP_PREFIX))
		return remove_old_temp(dirfd, name);
	r = mise_tree_read_link(dirfd, name, &text);
	if (r == -EINVAL || r == -ENOENT) /* no link; gone meanwhile */
		return 0;
	if (r < 0)
		return r;
	return strcmp(text, target) == 0 ? 0 : replace_link(dirfd, name, target);
}

int mise_relink_shims(int shims_fd, const char *home, size_t *budget)
{
	g_autoptr(GPtrArray) names = NULL;
	g_autofree char *from = NULL;
	g_autofree char *program = path_join(home, "bin/mise");
	g_autofree char *target = NULL;
	int first = 0;
	int r = mise_tree_real_path(shims_fd, &from);

	if (r < 0)
		return r;
	r = mise_tree_list(shims_fd, budget, &names);
	if (r < 0)
		return r;
	target = mise_tree_relative(from, program);
	for (guint i = 0; i < names->len; i++)
		mise_keep_first(&first, relink_one(shims_fd, names->pdata[i], target));
	return first;
}

int relink_system_mise_shims(const char *home)
{
	g_autofree char *real = NULL;
	size_t budget = SIZE_MAX; /* nobody but the administrator writes there */
	FD_AUTO home_fd = -1;
	FD_AUTO shims = -1;
	int r;

	if (!home[0])
		return 0;
	home_fd = mise_tree_open_root(home);
	if (home_fd < 0)
		return home_fd == -ENOENT ? 0 : home_fd;
	r = mise_has_program(home_fd);
	if (r <= 0)
		return r;
	shims = mise_tree_open_dir(home_fd, ".mise-tools/shims");
	if (shims < 0)
		return shims == -ENOENT ? 0 : shims;
	r = mise_tree_real_path(home_fd, &real);
	return r < 0 ? r : mise_relink_shims(shims, real, &budget);
}

int ensure_mise_shims(const char *home, const char *user_tools_dir)
{
	int first = relink_system_mise_shims(home);

	mise_keep_first(&first, ensure_user_mise_home(home, user_tools_dir));
	return first;
}
