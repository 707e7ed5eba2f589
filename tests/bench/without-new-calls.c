/* The system calls that valgrind 3.19 does not know, by older ones, linked under the gateway's own objects so that
 * its instructions can be counted. Not for use: the anchors are no clones of mounts here, and enforce nothing. */
#include "common/syscall-wrap.h"

#include <errno.h>
#include <fcntl.h>

int __wrap_sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode,
		       uint64_t resolve);
int __wrap_sys_open_tree(int dirfd, const char *path, unsigned int flags);
int __wrap_sys_mount_setattr(int dirfd, const char *path, unsigned int flags, uint64_t attr_set,
			     uint64_t attr_clr, uint64_t propagation);
int __wrap_sys_fsopen(const char *fsname, unsigned int flags);

int __wrap_sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	int fd = openat(dirfd, path, (int)flags | O_CLOEXEC, (mode_t)mode);

	(void)resolve;
	return fd < 0 ? -errno : fd;
}

int __wrap_sys_open_tree(int dirfd, const char *path, unsigned int flags)
{
	int fd = openat(dirfd, *path ? path : ".", O_PATH | O_CLOEXEC);

	(void)flags;
	return fd < 0 ? -errno : fd;
}

int __wrap_sys_mount_setattr(int dirfd, const char *path, unsigned int flags, uint64_t attr_set,
			     uint64_t attr_clr, uint64_t propagation)
{
	(void)dirfd;
	(void)path;
	(void)flags;
	(void)attr_set;
	(void)attr_clr;
	(void)propagation;
	return 0;
}

/* Then libfuse mounts, in the way that valgrind knows. */
int __wrap_sys_fsopen(const char *fsname, unsigned int flags)
{
	(void)fsname;
	(void)flags;
	return -EPERM;
}
