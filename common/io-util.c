/* Whole reads and writes, and removing trees; see io-util.h. */
#include "common/io-util.h"

#include "common/fd-util.h"

#include <dirent.h>
#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int io_write_all(int fd, const void *data, size_t size)
{
	const char *from = data;

	while (size > 0) {
		ssize_t written = write(fd, from, size);

		if (written < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		from += written;
		size -= (size_t)written;
	}
	return 0;
}

ssize_t io_read_all(int fd, void *data, size_t size)
{
	char *to = data;
	size_t done = 0;

	while (done < size) {
		ssize_t got = read(fd, to + done, size - done);

		if (got < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int io_read_to_end(int fd, size_t limit, char **ret_data, size_t *ret_size)
{
	g_autofree char *data = NULL;
	size_t size = 0, room = 0;

	for (;;) {
		ssize_t got;

		if (room - size < 2) {
			room = room ? room * 2 : 4096;
			data = g_realloc(data, room);
		}
		got = io_read_all(fd, data + size, room - size - 1);
		if (got < 0)
			return (int)got;
		size += (size_t)got;
		if (size > limit)
			return -EFBIG;
		if (size < room - 1)
			break;
	}
	data[size] = '\0';
	*ret_data = g_steal_pointer(&data);
	*ret_size = size;
	return 0;
}

int io_memfd_new(const char *name, const void *data, size_t size)
{
	FD_AUTO fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	if ((r = io_write_all(fd, data, size)) < 0)
		return r;
	if (fchmod(fd, 0444) != 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
		return -errno;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return fd_steal(&fd);
}

/* Directories nested deeper than this are moved up next to the tree's root and done from there, so
 * that depth costs neither fds nor stack. */
#define REMOVE_DEPTH 32

typedef struct {
	int top_fd;	   /* the root of the tree that goes; borrowed */
	unsigned int next; /* numbers for directories that were moved up */
	int first_error;
} Removal;

static void note_error(Removal *removal, int r)
{
	if (r < 0 && removal->first_error == 0)
		removal->first_error = r;
}

static void remove_content(Removal *removal, int dirfd, int depth);

static void remove_entry(Removal *removal, int dirfd, const char *name, int depth)
{
	struct stat st;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return;
	if (errno != EISDIR && errno != EPERM) {
		note_error(removal, -errno);
		return;
	}
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode)) {
		note_error(removal, -EPERM);
		return;
	}
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return;
	if (depth >= REMOVE_DEPTH) {
		char moved[32];

		snprintf(moved, sizeof moved, ".removed-%u", removal->next++);
		if (renameat(dirfd, name, removal->top_fd, moved) == 0)
			return; /* the root's own loop comes by it again */
	}
	FD_AUTO child =
		openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (child < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		child = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (child < 0) {
		note_error(removal, -errno);
		return;
	}
	remove_content(removal, child, depth + 1);
	if (unlinkat(dirfd, name, AT_REMOVEDIR) != 0)
		note_error(removal, -errno);
}

/* Entries that failed once stay: the loop ends when a whole pass removes nothing. */
static void remove_content(Removal *removal, int dirfd, int depth)
{
	struct stat st;

	/* As the owner; as root without a capability over it this fails and so does what follows. */
	if (fstat(dirfd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(dirfd, st.st_mode | 0700);
	for (;;) {
		size_t seen = 0, failed = 0;
		int copy = fd_dup(dirfd);
		DIR *dir = copy < 0 ? NULL : fdopendir(copy);
		struct dirent *entry;

		if (!dir) {
			note_error(removal, copy < 0 ? copy : -errno);
			fd_close(&copy);
			return;
		}
		rewinddir(dir);
		while ((entry = readdir(dir))) {
			int before = removal->first_error;

			if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
				continue;
			seen++;
			removal->first_error = 0;
			remove_entry(removal, dirfd, entry->d_name, depth);
			if (removal->first_error != 0)
				failed++;
			if (before != 0)
				removal->first_error = before;
		}
		closedir(dir);
		if (seen == failed)
			return;
	}
}

int io_remove_tree(int dirfd, const char *name)
{
	Removal removal = { .top_fd = -1 };
	FD_AUTO top = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (top < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		top = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0) {
		if (errno == ENOENT)
			return 0;
		if (errno == ENOTDIR || errno == ELOOP)
			return unlinkat(dirfd, name, 0) == 0 ? 0 : -errno;
		return -errno;
	}
	removal.top_fd = top;
	remove_content(&removal, top, 0);
	if (unlinkat(dirfd, name, AT_REMOVEDIR) != 0 && removal.first_error == 0)
		return -errno;
	return removal.first_error;
}
