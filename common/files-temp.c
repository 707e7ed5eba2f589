/* A new file that takes its name when it is finished, so that others see the old content or all of the new.
 *
 * It stands in the directory of its name, for only there renaming is possible, under a name of 64 random bits. An agent
 * may see it there, and take it away or put something else in its place: then that is what is renamed, or nothing. It
 * could have done the same with the name itself, before or after.
 *
 * A file that replaces another one is on disk before it takes its name: else a power failure could leave
 * neither content. One that is new is not waited for, as after any write(2). */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/syscall-wrap.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

int files_random_name(char buf[static 40])
{
	uint64_t number;

	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return -EIO;
	(void)snprintf(buf, 40, ".stella-%016llx.tmp", (unsigned long long)number);
	return 0;
}

int files_temp_new(const PathPlace *place, mode_t mode, FilesTemp *ret_temp)
{
	FilesTemp temp = { .place = place, .fd = -1 };
	ACTING_AUTO acting = { 0 };
	int r;

	if ((r = files_random_name(temp.name)) < 0 ||
	    (r = path_resolver_act_begin(place, &acting)) < 0)
		return r;
	temp.fd = openat(place->parent_fd, temp.name,
			 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (temp.fd < 0)
		return -errno;
	*ret_temp = temp;
	return 0;
}

void files_temp_clear(FilesTemp *temp)
{
	ACTING_AUTO acting = { 0 };

	if (temp->fd < 0)
		return;
	fd_close(&temp->fd);
	if (path_resolver_act_begin(temp->place, &acting) == 0)
		(void)unlinkat(temp->place->parent_fd, temp->name,
			       0); /* or an agent has taken it */
}

/* Some file systems (NFS) rename, but not only if there is nothing: EINVAL. A second name does the same in two steps, of
 * which the first one decides. */
static int link_and_unlink(const PathPlace *place, const char *name)
{
	if (linkat(place->parent_fd, name, place->parent_fd, place->name, 0) != 0)
		return -errno;
	(void)unlinkat(place->parent_fd, name, 0); /* or an agent has taken it */
	return 0;
}

static int commit(const FilesTemp *temp, mode_t mode, bool replace)
{
	const PathPlace *place = temp->place;
	ACTING_AUTO acting = { 0 };
	int r = path_resolver_act_begin(place, &acting);

	if (r < 0)
		return r;
	/* Set-id bits would be for a content that nobody has looked at. */
	if (fchmod(temp->fd, mode & 01777) != 0)
		return -errno;
	r = sys_renameat2(place->parent_fd, temp->name, place->parent_fd, place->name,
			  replace ? 0 : RENAME_NOREPLACE);
	return r == -EINVAL && !replace ? link_and_unlink(place, temp->name) : r;
}

int files_temp_commit(FilesTemp *take_temp, mode_t mode, bool replace, bool sync)
{
	int r = sync && fdatasync(take_temp->fd) != 0 ? -errno : 0;

	if (r == 0)
		r = commit(take_temp, mode, replace);
	if (r == 0)
		fd_close(&take_temp->fd);
	else
		files_temp_clear(take_temp);
	return r;
}
