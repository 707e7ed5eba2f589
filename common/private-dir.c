/* Private directories; see private-dir.h.
 *
 * A directory is opened with O_PATH first, which has no side effect whatever stands there and needs
 * no permission bits of it, then judged by fstat and changed through /proc/self/fd. A name that is
 * swapped between mkdir and open is judged like any other that was there before. */
#include "common/private-dir.h"

#include "common/fd-util.h"
#include "common/limits.h"
#include "common/path-util.h"

#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>

static int open_dir(int dirfd, const char *name, bool follow, struct stat *ret_st)
{
	FD_AUTO fd = openat(dirfd, name, O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));

	if (fd < 0 || fstat(fd, ret_st) != 0)
		return -errno;
	if (S_ISLNK(ret_st->st_mode))
		return -ELOOP;
	if (!S_ISDIR(ret_st->st_mode))
		return -ENOTDIR;
	return fd_steal(&fd);
}

/* *ret_made: the directory was made by this call, though another may stand there already. */
static int open_or_make(int dirfd, const char *name, bool follow, struct stat *ret_st,
			bool *ret_made)
{
	int fd = open_dir(dirfd, name, follow, ret_st);

	*ret_made = false;
	if (fd != -ENOENT)
		return fd;
	if (mkdirat(dirfd, name, 0700) == 0)
		*ret_made = true;
	else if (errno != EEXIST) /* EEXIST: somebody was faster, or a dangling link */
		return -errno;
	return open_dir(dirfd, name, follow, ret_st);
}

int private_dir_walk(int dirfd, const char *path, bool follow)
{
	FD_AUTO at = fd_dup(dirfd);
	const char *component;
	size_t length;

	if (at < 0)
		return at;
	while ((component = path_next(&path, &length))) {
		g_autofree char *name = g_strndup(component, length);
		struct stat st;
		bool made;
		int r = path_check_name(name), fd;

		if (r < 0)
			return r;
		fd = open_or_make(at, name, follow, &st, &made);
		if (fd < 0)
			return fd;
		fd_close(&at);
		at = fd;
	}
	return fd_steal(&at);
}

int private_dir_ensure_at(int dirfd, const char *name, uid_t uid, gid_t gid)
{
	struct stat st;
	bool made;
	FD_AUTO fd = -1;
	int r = path_check_name(name);

	if (r < 0)
		return r;
	fd = open_or_make(dirfd, name, false, &st, &made);
	if (fd < 0)
		return fd;
	/* Only what is still ours is given away: another directory may have been put in the place
	 * of the one just made. */
	if (made && st.st_uid == geteuid() && st.st_uid != uid) {
		if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH) != 0)
			return -errno;
		st.st_uid = uid;
	}
	if (st.st_uid != uid)
		return -EPERM;
	if ((st.st_mode & 07777) != 0700) {
		char path[FD_PROC_PATH_SIZE];

		fd_proc_path(fd, path); /* fchmod refuses O_PATH fds */
		if (chmod(path, 0700) != 0)
			return -errno;
	}
	return fd_steal(&fd);
}

int private_dir_ensure(const char *path)
{
	g_autofree char *clean = path_clean(path);
	FD_AUTO root = -1;
	FD_AUTO parent = -1;
	FD_AUTO fd = -1;
	char *slash;

	if (!clean)
		return -EINVAL;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	slash = strrchr(clean, '/'); /* behind it "/" has no name, which is refused below */
	*slash = '\0';
	parent = private_dir_walk(root, clean, true);
	if (parent < 0)
		return parent;
	fd = private_dir_ensure_at(parent, slash + 1, geteuid(), getegid());
	return fd < 0 ? fd : 0;
}
