/* Whole reads and writes, and removing trees; see io-util.h. */
#include "common/io-util.h"

#include "common/fd-util.h"

#include <dirent.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
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

/* The signal goes to the thread that writes: it is blocked there, and taken away again unless one was pending before,
 * which is somebody else's. */
ssize_t io_write_without_sigpipe(int fd, const void *data, size_t size)
{
	static const struct timespec at_once;
	sigset_t sigpipe, old, pending;
	ssize_t written;

	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &sigpipe, &old);
	sigpending(&pending);
	written = write(fd, data, size);
	if (written < 0)
		written = -errno;
	if (written == -EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&sigpipe, NULL, &at_once) < 0 && errno == EINTR)
			;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return written;
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

/* Removing a tree that an agent has shaped. There is no recursion and there are never more than a few fds: a
 * directory that is not empty is moved out of the tree, into a queue directory of our own beside it, and the
 * queue is worked off. So depth costs nothing, and no name that the agent has chosen is in our way. */
typedef struct {
	int parent_fd;	   /* holds the tree and the queue; borrowed */
	const char *queue; /* name of the queue in it */
	int queue_fd;
	uint64_t first,
		next; /* names of directories in the queue; from a random start, so that those
				 of an interrupted removal are other ones */
	int first_error;
} Removal;

static void note_error(Removal *removal, int r)
{
	if (r < 0 && removal->first_error == 0)
		removal->first_error = r;
}

/* All rights for the owner, on the directory itself whatever the name has become meanwhile: moving a
 * directory changes its "..", for which it must be writable. */
static int make_accessible(int dirfd, const char *name)
{
	char path[FD_PROC_PATH_SIZE];
	struct stat st;
	FD_AUTO fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	if ((st.st_mode & 0700) == 0700)
		return 0;
	fd_proc_path(fd, path);
	return chmod(path, 0700) == 0 ? 0 : -errno;
}

static int open_dir(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void queue_name(uint64_t number, char buf[static 24])
{
	snprintf(buf, 24, "%llx", (unsigned long long)number);
}

/* Made when something needs it: a tree of one level does not. */
static int open_queue(Removal *removal)
{
	uint32_t start;

	if (getrandom(&start, sizeof start, 0) != sizeof start)
		return -EIO;
	removal->first = removal->next = (uint64_t)start << 24;
	if (mkdirat(removal->parent_fd, removal->queue, 0700) != 0 && errno != EEXIST)
		return -errno;
	removal->queue_fd = open_dir(removal->parent_fd, removal->queue);
	return removal->queue_fd < 0 ? removal->queue_fd : 0;
}

/* A directory that is not empty goes to the queue. */
static void queue_dir(Removal *removal, int dirfd, const char *name)
{
	int r = make_accessible(dirfd, name);

	if (r == 0 && removal->queue_fd < 0)
		r = open_queue(removal);
	for (int tries = 0; r == 0 && tries < 2; tries++) {
		char number[24];

		queue_name(removal->next++, number);
		if (renameat(dirfd, name, removal->queue_fd, number) == 0)
			return;
		r = errno == EEXIST || errno == ENOTEMPTY ? 0 : -errno;
	}
	note_error(removal, r < 0 ? r : -EBUSY);
}

static void remove_entry(Removal *removal, int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return;
	if (errno != EISDIR && errno != EPERM) { /* EPERM: POSIX for a directory */
		note_error(removal, -errno);
		return;
	}
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return;
	if (errno == ENOTEMPTY || errno == EEXIST)
		queue_dir(removal, dirfd, name);
	else
		note_error(removal, -errno);
}

/* One pass over a directory. Takes dirfd. */
static void empty_dir(Removal *removal, int take_dirfd)
{
	DIR *dir = fdopendir(take_dirfd);
	struct dirent *entry;

	if (!dir) {
		note_error(removal, -errno);
		fd_close(&take_dirfd);
		return;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			remove_entry(removal, dirfd(dir), entry->d_name);
	closedir(dir);
}

/* Empties what is at dirfd/name, a directory that may be large: readdir may miss names while others go, so
 * it is done until nothing is left, or nothing more goes. */
#define EMPTY_PASSES 64

static int empty_and_remove(Removal *removal, int dirfd, const char *name)
{
	int r = make_accessible(dirfd, name);

	for (int pass = 0; r == 0 && pass < EMPTY_PASSES; pass++) {
		int fd = open_dir(dirfd, name);

		if (fd < 0)
			return fd;
		empty_dir(removal, fd);
		if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		if (removal->first_error != 0)
			return removal->first_error;
	}
	return r < 0 ? r : -ENOTEMPTY;
}

/* The queue holds only what we put there: numbers. */
static int work_off_queue(Removal *removal)
{
	for (uint64_t done = removal->first; done < removal->next; done++) {
		char number[24];
		int r;

		queue_name(done, number);
		r = empty_and_remove(removal, removal->queue_fd, number);
		if (r < 0 && r != -ENOENT)
			note_error(removal, r);
	}
	if (unlinkat(removal->parent_fd, removal->queue, AT_REMOVEDIR) != 0)
		note_error(removal, -errno);
	return removal->first_error;
}

int io_remove_tree(int dirfd, const char *name)
{
	g_autofree char *queue = g_strconcat(name, ".removing", NULL);
	Removal removal = { .parent_fd = dirfd, .queue = queue, .queue_fd = -1 };
	int r = unlinkat(dirfd, name, 0) == 0 ? 0 : -errno;
	bool interrupted;

	if (r == 0)
		return 0;
	/* An earlier removal of it was. */
	interrupted = faccessat(dirfd, queue, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (r == -ENOENT && !interrupted)
		return 0;
	if (r != -EISDIR && r != -EPERM && r != -ENOENT)
		return r;
	/* What it has moved aside gets new names, and is done with the rest. */
	if (interrupted) {
		FD_AUTO left = open_dir(dirfd, queue);

		if ((r = open_queue(&removal)) < 0)
			return r;
		if (left >= 0)
			empty_dir(&removal, fd_steal(&left));
	}
	r = empty_and_remove(&removal, dirfd, name);
	if (r < 0 && r != -ENOENT)
		note_error(&removal, r);
	r = removal.queue_fd < 0 ? removal.first_error : work_off_queue(&removal);
	fd_close(&removal.queue_fd);
	return r;
}
