/* The root of a session that has no gateway: a tmpfs with the kernel's own mounts on it.
 *
 * Sources were opened by the supervisor and staged by bubblewrap, which took them by path: each is looked at here once
 * more, and another file or directory than the supervisor's is refused. What a mount shows besides its content is put
 * right by further mounts: a read-only directory that also lies in a writable mount (PIN), what must not show (MASK),
 * files that are the view's own (FILE). Their mount points lie in content that agents may write, of other sessions even
 * while this one starts. So no link is followed to them, and the one that was found has to be the one that was meant, by
 * device and inode: a mount goes on that very directory, wherever it is by then. */
#include "executor/init.h"

#include "common/mount-util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Bytes of the tmpfs that is the root: names only. */
#define ROOT_SIZE 1048576
/* Bytes of the files of the view's own. */
#define FILES_SIZE 33554432

#define SOURCE_ATTR (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* The names of what masks are made of. */
#define EMPTY_FILE "file"
#define EMPTY_DIR  "directory"

static bool is_meant(const WireRow *row, const struct stat *st)
{
	bool is_dir = row->flags & WIRE_ROW_IS_DIR;

	return S_ISDIR(st->st_mode) == is_dir &&
	       ((row->dev == 0 && row->ino == 0) ||
		(st->st_dev == row->dev && st->st_ino == row->ino));
}

int init_native_collect(const WirePlan *plan, const WireRow *row)
{
	uint64_t read_only = row->flags & WIRE_ROW_READ_ONLY ? MOUNT_ATTR_RDONLY : 0;
	FD_AUTO fd = init_rootfs_clone(wire_text(plan, row->source), AT_SYMLINK_NOFOLLOW,
				       SOURCE_ATTR | read_only);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0)
		return -errno;
	return is_meant(row, &st) ? fd_steal(&fd) : -ESTALE;
}

static int make_files(int dir)
{
	FD_AUTO file = openat(dir, EMPTY_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (file < 0)
		return -errno;
	return mkdirat(dir, EMPTY_DIR, 0555) != 0 ? -errno : 0;
}

/* Attached, and taken off with the old root: what is not attached cannot be copied. */
int init_native_begin(InitRootfs *rootfs, InitFailure *failure)
{
	const WirePlan *plan = rootfs->plan;
	const char *place = wire_text(plan, plan->view_path);
	int r;

	rootfs->files_fd = init_tmpfs(plan, FILES_SIZE, "0700", SOURCE_ATTR | MOUNT_ATTR_NOEXEC);
	if (rootfs->files_fd < 0)
		return init_fail(failure, EXR_STAGE_ATTACH_VIEW, -1, rootfs->files_fd);
	if ((r = mount_attach(rootfs->files_fd, AT_FDCWD, place)) < 0 ||
	    (r = make_files(rootfs->files_fd)) < 0)
		return init_fail(failure, EXR_STAGE_ATTACH_VIEW, -1, r);
	rootfs->view_fd = init_tmpfs(plan, ROOT_SIZE, "0555", SOURCE_ATTR);
	return init_fail(failure, EXR_STAGE_ATTACH_VIEW, -1,
			 rootfs->view_fd < 0 ? rootfs->view_fd : 0);
}

/* The target, whatever it is by now, if it is what was meant: its fd or -errno. */
static int open_target(const WireRow *row, int dir, const char *name)
{
	FD_AUTO fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	return is_meant(row, &st) ? fd_steal(&fd) : -ESTALE;
}

static int copy_of(int dir, const char *name, uint64_t attr)
{
	unsigned int empty = *name == '\0' ? AT_EMPTY_PATH : 0;
	FD_AUTO fd = sys_open_tree(dir, name,
				   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | empty);
	int r;

	if (fd < 0)
		return fd;
	if (attr && (r = sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, attr, 0, 0)) < 0)
		return r;
	return fd_steal(&fd);
}

static int mount_pin(const WireRow *row, int dir, const char *name)
{
	FD_AUTO target = open_target(row, dir, name);
	FD_AUTO copy = -1;

	if (target < 0)
		return target;
	copy = copy_of(target, "", row->flags & WIRE_ROW_READ_ONLY ? MOUNT_ATTR_RDONLY : 0);
	return copy < 0 ? copy : mount_attach(copy, target, "");
}

static int mount_mask(const InitRootfs *rootfs, const WireRow *row, int dir, const char *name)
{
	FD_AUTO target = open_target(row, dir, name);
	FD_AUTO copy = -1;

	if (target < 0)
		return target;
	copy = copy_of(rootfs->files_fd, row->flags & WIRE_ROW_IS_DIR ? EMPTY_DIR : EMPTY_FILE,
		       MOUNT_ATTR_RDONLY);
	return copy < 0 ? copy : mount_attach(copy, target, "");
}

static int write_all(int fd, const char *data, uint64_t size)
{
	while (size > 0) {
		ssize_t written = write(fd, data, size);

		if (written < 0)
			return -errno;
		data += written;
		size -= (uint64_t)written;
	}
	return 0;
}

static int mount_file(const InitRootfs *rootfs, uint32_t i, int dir, const char *name)
{
	const WireRow *row = &wire_rows(rootfs->plan)[i];
	FD_AUTO file = -1;
	FD_AUTO copy = -1;
	char own[16];
	int r;

	snprintf(own, sizeof own, "%u", i);
	file = openat(rootfs->files_fd, own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (file < 0)
		return -errno;
	if ((r = write_all(file, wire_text(rootfs->plan, row->source), row->ino)) < 0)
		return r;
	copy = copy_of(rootfs->files_fd, own, MOUNT_ATTR_RDONLY);
	return copy < 0 ? copy : mount_attach(copy, dir, name);
}

int init_native_mount(InitRootfs *rootfs, uint32_t i, int dir, const char *name)
{
	const WireRow *row = &wire_rows(rootfs->plan)[i];

	if (row->kind == WIRE_ROW_PIN)
		return mount_pin(row, dir, name);
	if (row->kind == WIRE_ROW_MASK)
		return mount_mask(rootfs, row, dir, name);
	return mount_file(rootfs, i, dir, name);
}
