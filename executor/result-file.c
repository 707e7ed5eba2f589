/* The file of --result; see result-file.h. The new content is an unnamed file (O_TMPFILE) until it is
 * complete, so that nothing is left behind however we end; where the file system has none, it is a
 * named one beside it, removed again unless it was renamed. */
#include "executor/result-file.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>

struct ExrResultFile {
	int dir_fd;
	int fd;
	char *name;
	char *temp_name; /* the named temporary file that has to go, or NULL */
	bool in_place;	 /* fd is the pipe, socket or device itself */
};

/* A name beside the file that nobody can guess, in a directory that others may write to. */
static char *new_temp_name(void)
{
	guint64 number = 0;

	while (getrandom(&number, sizeof(number), 0) != sizeof(number))
		;
	return g_strdup_printf(".stella-result-%016" G_GINT64_MODIFIER "x", number);
}

static bool is_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Links are followed in /proc only, where /dev/fd/N leads: nobody can plant one there. */
static int open_in_place(ExrResultFile *file, bool follow)
{
	file->fd = openat(file->dir_fd, file->name,
			  O_WRONLY | O_CLOEXEC | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
	if (file->fd < 0)
		return -errno;
	file->in_place = true;
	return 0;
}

static int open_temporary(ExrResultFile *file)
{
	file->fd = openat(file->dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	if (file->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
		return -errno;
	file->temp_name = new_temp_name();
	file->fd = openat(file->dir_fd, file->temp_name,
			  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (file->fd < 0) {
		int r = -errno;

		g_clear_pointer(&file->temp_name, g_free);
		return r;
	}
	return 0;
}

static int open_parts(ExrResultFile *file, const char *path)
{
	g_autofree char *dir = g_path_get_dirname(path);
	struct stat st;

	if (!*path || path[strlen(path) - 1] == '/')
		return *path ? -EISDIR : -ENOENT;
	file->name = g_path_get_basename(path);
	file->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file->dir_fd < 0)
		return -errno;
	if (fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? open_temporary(file) : -errno;
	if (S_ISREG(st.st_mode))
		return open_temporary(file);
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISLNK(st.st_mode))
		return is_proc(file->dir_fd) ? open_in_place(file, true) : -ELOOP;
	return open_in_place(file, false);
}

int exr_result_file_open(const char *path, ExrResultFile **ret_file, char **reterr_message)
{
	g_autoptr(ExrResultFile) file = g_new0(ExrResultFile, 1);
	int r;

	file->dir_fd = file->fd = -1;
	r = open_parts(file, path);
	if (r < 0) {
		g_autofree char *shown = path_escape(path);

		*reterr_message = g_strdup_printf(
			"\"%s\": %s", shown,
			r == -ELOOP ? "is a symbolic link; name the file itself" : errno_text(-r));
		return r;
	}
	*ret_file = g_steal_pointer(&file);
	return 0;
}

/* Gives the unnamed file a name, which linkat can only do where none is: so first another one. */
static int name_unnamed(ExrResultFile *file)
{
	char from[FD_PROC_PATH_SIZE];

	fd_proc_path(file->fd, from);
	file->temp_name = new_temp_name();
	if (linkat(AT_FDCWD, from, file->dir_fd, file->temp_name, AT_SYMLINK_FOLLOW) < 0) {
		int r = -errno;

		g_clear_pointer(&file->temp_name, g_free);
		return r;
	}
	return 0;
}

int exr_result_file_write(ExrResultFile *file, const char *text, gsize size)
{
	int r = io_write_all(file->fd, text, size);

	if (r < 0 || file->in_place)
		return r;
	if (!file->temp_name) {
		r = name_unnamed(file);
		if (r < 0)
			return r;
	}
	if (renameat(file->dir_fd, file->temp_name, file->dir_fd, file->name) < 0)
		return -errno;
	g_clear_pointer(&file->temp_name, g_free);
	return 0;
}

void exr_result_file_free(ExrResultFile *file)
{
	if (!file)
		return;
	if (file->temp_name)
		(void)unlinkat(file->dir_fd, file->temp_name, 0); /* only tidies up */
	fd_close(&file->fd);
	fd_close(&file->dir_fd);
	g_free(file->name);
	g_free(file->temp_name);
	g_free(file);
}
