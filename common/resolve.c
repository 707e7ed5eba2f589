/* One step of every walk; see resolve.h for what rests on it. */
#include "common/resolve.h"

#include "common/fd-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"

#include <fcntl.h>
#include <string.h>

#define CHILD_FLAGS (O_PATH | O_NOFOLLOW | O_CLOEXEC)

int resolve_mount_id(int fd, uint64_t *ret_id)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &stx) != 0)
		return -errno;
	if (!(stx.stx_mask & STATX_MNT_ID))
		return -ENOSYS;
	*ret_id = stx.stx_mnt_id;
	return 0;
}

/* openat with O_NOFOLLOW on one checked name cannot leave the directory but by a mount on the entry,
 * so comparing mounts is all that openat2 does beyond it. */
static int child_without_openat2(int dirfd, const char *name, bool cross_mounts)
{
	uint64_t dir_id, child_id;
	FD_AUTO fd = openat(dirfd, name, CHILD_FLAGS);
	int r;

	if (fd < 0)
		return -errno;
	if (cross_mounts)
		return fd_steal(&fd);
	if ((r = resolve_mount_id(dirfd, &dir_id)) < 0 || (r = resolve_mount_id(fd, &child_id)) < 0)
		return r;
	return dir_id == child_id ? fd_steal(&fd) : -EXDEV;
}

int resolve_child(int dirfd, const char *name, bool cross_mounts)
{
	uint64_t how = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	int r;

	if ((r = path_check_name(name)) < 0)
		return r;
	if (!cross_mounts)
		how |= RESOLVE_NO_XDEV;
	/* EAGAIN: a rename somewhere made the kernel unsure about its ".." bookkeeping. */
	for (int tries = 0; tries < LIMIT_OPENAT2_TRIES; tries++) {
		r = sys_openat2(dirfd, name, CHILD_FLAGS, 0, how);
		if (r != -EAGAIN)
			break;
	}
	/* EXDEV: a mount on the entry; or the entry was moved out of the directory while it was opened, for then
	 * the kernel finds it not beneath any more (tried). That must not be taken for a mount. */
	if (r == -ENOSYS || r == -EPERM || r == -EXDEV)
		return child_without_openat2(dirfd, name, cross_mounts);
	return r;
}

static int below_one_by_one(int dirfd, const char *path, bool cross_mounts)
{
	FD_AUTO here = fd_dup(dirfd);
	const char *start;
	size_t length;

	while (here >= 0 && (start = path_next(&path, &length))) {
		char name[LIMIT_NAME_BYTES + 1];
		int next;

		if (length > LIMIT_NAME_BYTES)
			return -ENAMETOOLONG;
		memcpy(name, start, length);
		name[length] = '\0';
		next = resolve_child(here, name, cross_mounts);
		fd_close(&here);
		here = next;
	}
	return fd_steal(&here);
}

int resolve_dir_below(int dirfd, const char *path, bool cross_mounts)
{
	uint64_t how = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	int r = -EAGAIN;

	if (!cross_mounts)
		how |= RESOLVE_NO_XDEV;
	for (int tries = 0; r == -EAGAIN && tries < LIMIT_OPENAT2_TRIES; tries++)
		r = sys_openat2(dirfd, path[0] ? path : ".", CHILD_FLAGS, 0, how);
	/* As in resolve_child; a path that is too long for one call is walked too. */
	if (r == -ENOSYS || r == -EPERM || r == -EXDEV || r == -ENAMETOOLONG)
		return below_one_by_one(dirfd, path, cross_mounts);
	return r;
}

int resolve_stat_child(int dirfd, const char *name, unsigned int mask, uint64_t mount_id,
		       struct statx *ret_stx)
{
	int r;

	if ((r = path_check_name(name)) < 0)
		return r;
	if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, mask | STATX_MNT_ID,
		  ret_stx) != 0)
		return -errno;
	if (mount_id == RESOLVE_ANY_MOUNT)
		return 0;
	if (!(ret_stx->stx_mask & STATX_MNT_ID))
		return -ENOSYS;
	return ret_stx->stx_mnt_id == mount_id ? 0 : -EXDEV;
}

int resolve_open_child(int dirfd, const char *name, int flags, bool cross_mounts)
{
	uint64_t how = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	int r;

	if ((r = path_check_name(name)) < 0)
		return r;
	if (!cross_mounts)
		how |= RESOLVE_NO_XDEV;
	return sys_openat2(dirfd, name,
			   (uint64_t)(flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), 0,
			   how);
}

int resolve_check_connected(int dirfd)
{
	/* In a mount clone the kernel gives ENOENT for ".." of a directory that is not below the
	 * clone's root any more, and the root itself for ".." of the root. Nothing is asked of the
	 * directory above but that it is found. */
	struct statx stx;

	if (statx(dirfd, "..", AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0, &stx) != 0)
		return errno == ENOENT ? -ESTALE : -errno;
	return 0;
}
