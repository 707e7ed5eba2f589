/* The sandbox's /dev: a few harmless devices, terminals of its own, shared memory of its own.
 *
 * A user namespace cannot make device nodes, so each is the host's, bound in. Each is checked through
 * its own fd to be the character device that its name promises: a host whose /dev/null is a file, or a
 * link to a disk, gets an error and not a sandbox. Afterwards /dev itself is read-only, so that no
 * command can put something else in a device's place. */
#include "executor/init.h"

#include "common/mount-util.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>

/* Bytes of /dev itself: names only. */
#define DEV_SIZE 65536
/* Bytes of /dev/shm: what programs that share memory between processes (browsers, PyTorch) get by. */
#define SHM_SIZE 1073741824

#define DEVICE_ATTR (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

static const struct {
	const char *name;
	const char *host_path;
	unsigned int minor;
	unsigned int major;
} devices[] = {
	{ "null", "/dev/null", 3, 1 },	     { "zero", "/dev/zero", 5, 1 },
	{ "full", "/dev/full", 7, 1 },	     { "random", "/dev/random", 8, 1 },
	{ "urandom", "/dev/urandom", 9, 1 }, { "tty", "/dev/tty", 0, 5 },
};
#define DEVICE_COUNT (sizeof devices / sizeof devices[0])

static const struct {
	const char *name;
	const char *text;
} links[] = {
	{ "fd", "/proc/self/fd" },	 { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

int init_dev_collect(InitRootfs *rootfs)
{
	_Static_assert(DEVICE_COUNT == sizeof rootfs->device_fds / sizeof(int), "one fd a device");

	for (size_t i = 0; i < DEVICE_COUNT; i++) {
		struct stat st;
		int fd = sys_open_tree(AT_FDCWD, devices[i].host_path,
				       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
					       AT_SYMLINK_NOFOLLOW);
		int r;

		if (fd < 0)
			return fd;
		rootfs->device_fds[i] = fd;
		if (fstat(fd, &st) != 0)
			return -errno;
		if (!S_ISCHR(st.st_mode) ||
		    st.st_rdev != makedev(devices[i].major, devices[i].minor))
			return -ENODEV;
		r = sys_mount_setattr(fd, "", AT_EMPTY_PATH, DEVICE_ATTR, 0, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_devices(InitRootfs *rootfs, int dev)
{
	for (size_t i = 0; i < DEVICE_COUNT; i++) {
		FD_AUTO file = openat(dev, devices[i].name,
				      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
		int r;

		if (file < 0)
			return -errno;
		if ((r = mount_attach(rootfs->device_fds[i], dev, devices[i].name)) < 0)
			return r;
		fd_close(&rootfs->device_fds[i]);
	}
	return 0;
}

static int add_pts(int dev)
{
	FD_AUTO pts = -1;

	if (mkdirat(dev, "pts", 0755) != 0)
		return -errno;
	pts = init_devpts_new();
	return pts < 0 ? pts : mount_attach(pts, dev, "pts");
}

static int add_shm(const WirePlan *plan, int dev)
{
	FD_AUTO shm = -1;

	if (mkdirat(dev, "shm", 0755) != 0)
		return -errno;
	shm = init_tmpfs(plan, SHM_SIZE, "1777", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return shm < 0 ? shm : mount_attach(shm, dev, "shm");
}

int init_dev_mount(InitRootfs *rootfs, const char *target)
{
	FD_AUTO dev =
		init_tmpfs(rootfs->plan, DEV_SIZE, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	int r;

	if (dev < 0)
		return dev;
	if ((r = mount_attach(dev, rootfs->view_fd, target)) < 0)
		return r;
	if ((r = add_devices(rootfs, dev)) < 0 || (r = add_pts(dev)) < 0 ||
	    (r = add_shm(rootfs->plan, dev)) < 0)
		return r;
	for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
		if (symlinkat(links[i].text, dev, links[i].name) != 0)
			return -errno;
	return sys_mount_setattr(dev, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0, 0);
}
