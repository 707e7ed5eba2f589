/* See door-socket.h. Sockets are named through the directory's fd: a socket's address is short, a directory's path
 * need not be. */
#include "fsgate/door-socket.h"

#include "common/fd-util.h"
#include "common/private-dir.h"
#include "common/runtime-dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

int fsg_door_dir_open(char **ret_path)
{
	g_autofree char *path = runtime_dir_views();
	int r = path ? private_dir_ensure(path) : -EINVAL;

	if (r < 0)
		return r;
	r = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r < 0)
		return -errno;
	if (ret_path)
		*ret_path = g_steal_pointer(&path);
	return r;
}

static void name_socket(const FsgViewMount *mount, char name[static 32])
{
	g_snprintf(name, 32, "%u-%u.sock", mount->dev_major, mount->dev_minor);
}

static struct sockaddr_un address_of(int dirfd, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	g_snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dirfd, name);
	return address;
}

/* Non-blocking: a gateway that hangs, with others waiting already, must not hold us up. */
static int connect_to(int dirfd, const char *name)
{
	struct sockaddr_un address = address_of(dirfd, name);
	FD_AUTO fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		return -errno;
	return fd_steal(&fd);
}

/* What killed gateways have left: a socket that has its name listens as long as its gateway lives. */
static void sweep(int dirfd)
{
	int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir)
		fd_close(&copy);
	while (dir && (entry = readdir(dir))) {
		int fd;

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= 32 ||
		    !g_str_has_suffix(entry->d_name, ".sock"))
			continue;
		fd = connect_to(dirfd, entry->d_name);
		if (fd == -ECONNREFUSED)
			(void)unlinkat(dirfd, entry->d_name, 0); /* another may have been faster */
		fd_close(&fd);
	}
	if (dir)
		closedir(dir);
}

/* It gets its name when it listens. */
int fsg_door_listen(int dirfd, const FsgViewMount *mount, ino_t *ret_ino)
{
	FD_AUTO fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char name[32], made[40];
	struct sockaddr_un address;
	struct stat st;

	if (fd < 0)
		return -errno;
	sweep(dirfd);
	name_socket(mount, name);
	g_snprintf(made, sizeof made, ".%s", name);
	address = address_of(dirfd, made);
	(void)unlinkat(dirfd, made, 0); /* of one that was killed in between */
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
	    listen(fd, BACKLOG) != 0 || fstatat(dirfd, made, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    renameat(dirfd, made, dirfd, name) != 0)
		return -errno;
	*ret_ino = st.st_ino;
	return fd_steal(&fd);
}

void fsg_door_remove(int dirfd, const FsgViewMount *mount, ino_t ino)
{
	struct stat st;
	char name[32];

	name_socket(mount, name);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == ino)
		(void)unlinkat(dirfd, name,
			       0); /* what cannot be removed goes with the next mount */
}

static int connect_in(const char *path, const FsgViewMount *mount)
{
	FD_AUTO dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char name[32];

	if (dir < 0)
		return -errno;
	name_socket(mount, name);
	return connect_to(dir, name);
}

/* Root asks other users' gateways where a login session of theirs has them. */
int fsg_door_connect(const FsgViewMount *mount)
{
	g_autofree char *path = runtime_dir_views();
	g_autofree char *theirs = NULL;
	int r = path ? connect_in(path, mount) : -EINVAL;

	if (r >= 0 || geteuid() != 0 || mount->uid == 0)
		return r;
	theirs = g_strdup_printf("/run/user/%u/stella/views", mount->uid);
	return connect_in(theirs, mount);
}
