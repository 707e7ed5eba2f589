/* Writing whole files, and at their end. */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/files-replace.h"
#include "common/io-util.h"

#include <errno.h>
#include <string.h>

#define NEW_FILE_MODE 0644
#define WRITE_STEP    ((size_t)4 * 1024 * 1024)

/* The host decides as it does for who opens the file: that its directory may be written is not enough. A program that
 * runs, and a file that somebody holds a lease on, cannot be opened now; they can be replaced. */
static int check_host_permission(const PathPlace *place)
{
	FD_AUTO fd = path_resolver_reopen(place, O_WRONLY | O_NONBLOCK | O_NOCTTY);

	return fd < 0 && fd != -ETXTBSY && fd != -EAGAIN ? fd : 0;
}

int files_replace_check(FilesCall *call, const PathPlace *place)
{
	size_t length = strlen(call->path);
	int r;

	if (place->type == 0 && length > 0 && call->path[length - 1] == '/')
		return files_fail(call, -EISDIR, place, NULL);
	if (place->type != 0 && !S_ISREG(place->type))
		return files_fail(call, S_ISDIR(place->type) ? -EISDIR : -ENXIO, place, NULL);
	if ((r = files_check_writable(call, place)) < 0)
		return r;
	if (place->type == 0)
		return 0;
	if ((r = files_check_movable(call, place)) < 0)
		return r;
	r = check_host_permission(place);
	return r < 0 ? files_fail(call, r, place, NULL) : 0;
}

static int fill(FilesCall *call, int fd, const char *data, size_t size)
{
	while (size > 0) {
		size_t step = MIN(size, WRITE_STEP);
		int r;

		if (call->is_canceled && call->is_canceled(call->data))
			return -ECANCELED;
		if ((r = io_write_all(fd, data, step)) < 0)
			return r;
		data += step;
		size -= step;
	}
	return 0;
}

/* The mode of a new file, or of one that takes another's place. as_read: see files_replace(). */
static int find_mode(const PathPlace *place, int fd, const struct stat *as_read, mode_t *ret_mode)
{
	ACTING_AUTO acting = { 0 };
	struct stat st;
	int r;

	/* Its mode as it is now: between there was time to take a permission away. */
	if (fstat(place->type == 0 ? fd : place->fd, &st) != 0)
		return -errno;
	if (as_read && !files_is_unchanged(&st, as_read))
		return -ESTALE;
	if ((r = path_resolver_act_begin(place, &acting)) < 0)
		return r;
	if (place->type != 0)
		return files_keep_access(place, fd, &st, ret_mode);
	if ((r = path_resolver_give_mode(place, fd, NEW_FILE_MODE)) < 0)
		return r;
	if (fstat(fd, &st) != 0)
		return -errno;
	*ret_mode = st.st_mode;
	return 0;
}

int files_replace(FilesCall *call, const PathPlace *place, const struct stat *as_read,
		  const void *data, size_t size)
{
	FILES_TEMP_AUTO temp = { .fd = -1 };
	mode_t mode;
	int r = files_temp_new(place, place->type == 0 ? NEW_FILE_MODE : 0600, &temp);

	if (r == 0)
		r = fill(call, temp.fd, data, size);
	if (r < 0)
		return files_fail(call, r, place, NULL);
	if ((r = files_check_canceled(call)) < 0)
		return r;
	r = find_mode(place, temp.fd, as_read, &mode);
	if (r == -ESTALE)
		return r;
	if (r < 0)
		return files_fail(call, r, place, NULL);
	r = files_temp_commit(&temp, mode, place->type != 0, place->type != 0);
	return r < 0 ? files_fail(call, r, place, NULL) : 0;
}

bool files_is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_nlink == b->st_nlink &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* A file that another one makes between the walk and the renaming is then one that is there: it is replaced as if it
 * had been there before. */
#define WRITE_TRIES 3

static int write_once(FilesCall *call, const char *path, const void *data, size_t size,
		      unsigned int flags)
{
	bool exclusive = flags & FILES_EXCLUSIVE;
	PLACE_AUTO place = PLACE_NONE;
	int r = files_walk(call, path, exclusive ? PATH_WALK_NOFOLLOW : 0, flags & FILES_PARENTS,
			   &place);

	if (r < 0)
		return r;
	if (exclusive && place.type != 0)
		return files_fail(call, -EEXIST, &place, NULL);
	if ((r = files_replace_check(call, &place)) < 0)
		return r;
	return files_replace(call, &place, NULL, data, size);
}

int files_write(FilesCall *call, const char *path, const void *data, size_t size,
		unsigned int flags)
{
	files_begin(call, "write", NULL, path, NULL);
	if (size > FILES_MAX_BYTES)
		return files_fail(call, -EFBIG, NULL, NULL);
	for (int tries = 1;; tries++) {
		int r = write_once(call, path, data, size, flags);

		if (r != -EEXIST || (flags & FILES_EXCLUSIVE) || tries == WRITE_TRIES)
			return r;
		path_problem_clear(call->problem);
	}
}

int files_append(FilesCall *call, const char *path, const void *data, size_t size,
		 unsigned int flags)
{
	const int open_flags = O_WRONLY | O_APPEND | O_CREAT;
	PLACE_AUTO opened = PLACE_NONE;
	FD_AUTO fd = -1;
	int r;

	files_begin(call, "append", "append to", path, NULL);
	if (size > FILES_MAX_BYTES)
		return files_fail(call, -EFBIG, NULL, NULL);
	if ((r = files_check_canceled(call)) < 0)
		return r;
	if (flags & FILES_PARENTS) {
		PLACE_AUTO place = PLACE_NONE;

		if ((r = files_walk(call, path, 0, true, &place)) < 0)
			return r;
	}
	fd = path_resolver_open_place(call->resolver, path, open_flags, NEW_FILE_MODE, &opened,
				      call->problem);
	if (fd < 0)
		return files_reword(call, path, fd);
	r = io_write_all(fd, data, size);
	return r < 0 ? files_fail(call, r, &opened, NULL) : 0;
}
