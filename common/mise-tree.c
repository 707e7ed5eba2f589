/* Single steps in a tree that others may be changing; see mise-tree.h. */
#include "common/mise-tree.h"

#include "common/fd-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "common/private-dir.h"
#include "common/syscall-wrap.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Times that a link is removed from a directory's place before giving up on whoever puts it
 * back. */
#define REPLACE_TRIES 8

int mise_tree_open_root(const char *path)
{
	int fd;

	if (path[0] != '/')
		return -EINVAL;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Nothing here holds a "..": RESOLVE_BENEATH is a second lock on the same door. */
int mise_tree_open_path(int dirfd, const char *path, int flags)
{
	return sys_openat2(dirfd, path[0] ? path : ".", (uint64_t)(O_PATH | O_CLOEXEC | flags), 0,
			   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int mise_tree_open_dir(int dirfd, const char *path)
{
	FD_AUTO at = mise_tree_open_path(dirfd, path, O_DIRECTORY);
	const char *component;
	size_t length;

	if (at != -ENOSYS)
		return fd_steal(&at);
	at = fd_dup(dirfd);
	if (at < 0)
		return at;
	while ((component = path_next(&path, &length))) {
		g_autofree char *name = g_strndup(component, length);
		struct stat st;
		FD_AUTO fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0 || fstat(fd, &st) != 0)
			return -errno;
		if (S_ISLNK(st.st_mode))
			return -ELOOP;
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
		fd_close(&at);
		at = fd_steal(&fd);
	}
	return fd_steal(&at);
}

int mise_tree_ensure_dir(int dirfd, const char *name, uid_t uid, gid_t gid)
{
	int fd = -ELOOP;

	for (int i = 0; i < REPLACE_TRIES && fd == -ELOOP; i++) {
		fd = private_dir_ensure_at(dirfd, name, uid, gid);
		/* The link, not its target. A directory that took its place is no longer a
		 * reason to remove anything (EISDIR), nor is nothing (ENOENT): the next round
		 * looks again. */
		if (fd == -ELOOP && unlinkat(dirfd, name, 0) != 0 && errno != EISDIR &&
		    errno != ENOENT)
			return -errno;
	}
	return fd;
}

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

int mise_tree_list(int dirfd, size_t *budget, GPtrArray **ret_names)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	FD_AUTO fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	__attribute__((cleanup(close_dir))) DIR *dir = NULL;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)fd_steal(&fd); /* closedir closes it */
	while (*budget > 0) {
		struct dirent *entry;

		errno = 0;
		entry = readdir(dir);
		if (!entry && errno != 0)
			return -errno;
		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		g_ptr_array_add(names, g_strdup(entry->d_name));
		(*budget)--;
	}
	*ret_names = g_steal_pointer(&names);
	return 0;
}

int mise_tree_read_link(int dirfd, const char *name, char **ret_text)
{
	char text[LIMIT_PATH_BYTES];
	ssize_t length = readlinkat(dirfd, name, text, sizeof text);

	if (length < 0)
		return -errno;
	if ((size_t)length == sizeof text)
		return -ENAMETOOLONG;
	*ret_text = g_strndup(text, (gsize)length);
	return 0;
}

int mise_tree_real_path(int fd, char **ret_path)
{
	g_autofree char *path = NULL;
	char proc[FD_PROC_PATH_SIZE];
	struct stat st;
	int r;

	fd_proc_path(fd, proc);
	r = mise_tree_read_link(AT_FDCWD, proc, &path);
	if (r < 0)
		return r;
	if (fstat(fd, &st) != 0)
		return -errno;
	if (path[0] != '/' || st.st_nlink == 0) /* not below our root, or removed */
		return -ENOENT;
	*ret_path = g_steal_pointer(&path);
	return 0;
}

char *mise_tree_relative(const char *from, const char *to)
{
	g_autoptr(GString) text = g_string_new(NULL);
	const char *from_rest = from, *to_rest = to, *a, *b;
	size_t a_length, b_length;

	do {
		from = from_rest;
		to = to_rest;
		a = path_next(&from_rest, &a_length);
		b = path_next(&to_rest, &b_length);
	} while (a && b && a_length == b_length && memcmp(a, b, a_length) == 0);
	while (path_next(&from, &a_length))
		g_string_append(text, "../");
	while ((b = path_next(&to, &b_length))) {
		g_string_append_len(text, b, (gssize)b_length);
		g_string_append_c(text, '/');
	}
	if (text->len == 0)
		return g_strdup(".");
	return g_strndup(text->str, text->len - 1);
}
