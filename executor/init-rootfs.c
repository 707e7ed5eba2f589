/* The root file system of a session: the view, with the sandbox's own mounts on it.
 *
 * Everything is assembled through fds. Host objects are cloned (open_tree) while their paths still
 * mean the host's; mount points are names below the view's root, in directories that the gateway makes
 * up or that we have just made. None is ever made or looked up in content that an agent can write, so
 * no link of the agent's can move a mount. An existing mount flag is only ever added to.
 *
 * The view is attached at the session's directory first, since a detached tree can neither carry mounts
 * (before Linux 6.15) nor become the root. */
#include "executor/init.h"

#include "common/mount-util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

/* Bytes of /run: sockets and pid files. */
#define RUN_SIZE 16777216
/* The mask directory holds one empty file and one empty directory. */
#define MASK_SIZE 4096

#define RUNTIME_ATTR (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

int init_tmpfs(const WirePlan *plan, uint64_t bytes, const char *mode, unsigned int attr)
{
	char id[16], size[24];

	if (plan->tmpfs_bytes && bytes > plan->tmpfs_bytes)
		bytes = plan->tmpfs_bytes;
	snprintf(id, sizeof id, "%u", plan->uid);
	snprintf(size, sizeof size, "%llu", (unsigned long long)bytes);
	const char *const options[] = { "source", "tmpfs", "size", size, "mode", mode,
					"uid",	  id,	   "gid",  id,	 NULL };

	return mount_new("tmpfs", options, attr);
}

/* A detached copy with what is mounted below: a copy without is refused where the user namespace
 * has locked the mounts together. */
int init_rootfs_clone(const char *path, unsigned int flags, uint64_t attr)
{
	FD_AUTO fd = sys_open_tree(AT_FDCWD, path,
				   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | flags);
	int r;

	if (fd < 0)
		return fd;
	if ((r = sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, attr, 0, 0)) < 0)
		return r;
	return fd_steal(&fd);
}

/* The directory must be the one that the supervisor made. */
static int clone_private(const WireRow *row, const char *path)
{
	uint64_t follow = row->flags & WIRE_ROW_NO_FOLLOW ? MOUNT_ATTR_NOSYMFOLLOW : 0;
	FD_AUTO fd = init_rootfs_clone(path, AT_SYMLINK_NOFOLLOW,
				       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | follow);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_dev != row->dev || st.st_ino != row->ino)
		return -ESTALE;
	return fd_steal(&fd);
}

static int collect_row(const WirePlan *plan, const WireRow *row)
{
	const char *source = wire_text(plan, row->source);

	switch ((WireRowKind)row->kind) {
	case WIRE_ROW_HOST:
		return init_rootfs_clone(source, 0, RUNTIME_ATTR);
	case WIRE_ROW_PRIVATE:
		return clone_private(row, source);
	case WIRE_ROW_SOURCE:
		return init_native_collect(plan, row);
	case WIRE_ROW_VIEW:
	case WIRE_ROW_LINK:
	case WIRE_ROW_PROC:
	case WIRE_ROW_DEV:
	case WIRE_ROW_RUN:
	case WIRE_ROW_PIN:
	case WIRE_ROW_MASK:
	case WIRE_ROW_FILE:
		return -1; /* made later */
	}
	return -EBADMSG;
}

int init_rootfs_collect(InitRootfs *rootfs, InitFailure *failure)
{
	const WirePlan *plan = rootfs->plan;
	const WireRow *rows = wire_rows(plan);
	int r;

	for (size_t i = 0; i < WIRE_MAX_ROWS; i++)
		rootfs->row_fds[i] = -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return init_fail(failure, EXR_STAGE_PRIVATE_MOUNTS, -1, -errno);
	rootfs->session_fd = open(wire_text(plan, plan->session_dir),
				  O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (rootfs->session_fd < 0)
		return init_fail(failure, EXR_STAGE_ATTACH_VIEW, -1, -errno);
	for (uint32_t i = 0; i < plan->row_count; i++) {
		bool now = rows[i].kind == WIRE_ROW_HOST || rows[i].kind == WIRE_ROW_PRIVATE ||
			   rows[i].kind == WIRE_ROW_SOURCE;

		rootfs->row_fds[i] = r = collect_row(plan, &rows[i]);
		if (now && r < 0)
			return init_fail(failure, EXR_STAGE_SOURCE, (int)i, r);
	}
	if ((r = init_dev_collect(rootfs)) < 0)
		return init_fail(failure, EXR_STAGE_MOUNT_DEV, -1, r);
	return 0;
}

int init_rootfs_mount_view(InitRootfs *rootfs, int *ret_device_fd, InitFailure *failure)
{
	/* The kernel wants it opened in the user namespace that mounts. */
	FD_AUTO device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char device_text[16], id[16];
	struct stat st;

	if (device < 0)
		return init_fail(failure, EXR_STAGE_FUSE_DEVICE, -1, -errno);
	if (fstat(device, &st) != 0)
		return init_fail(failure, EXR_STAGE_FUSE_DEVICE, -1, -errno);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(10, 229))
		return init_fail(failure, EXR_STAGE_FUSE_DEVICE, -1, -ENODEV);
	snprintf(device_text, sizeof device_text, "%d", device);
	snprintf(id, sizeof id, "%u", rootfs->plan->uid);
	/* No default_permissions: the gateway decides, and has to be asked for access(2). */
	const char *const options[] = { "source",    "stella",	 "subtype",	"stella",  "fd",
					device_text, "rootmode", "40000",	"user_id", id,
					"group_id",  id,	 "allow_other", NULL,	   NULL };

	rootfs->view_fd = mount_new("fuse", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (rootfs->view_fd < 0)
		return init_fail(failure, EXR_STAGE_FUSE_MOUNT, -1, rootfs->view_fd);
	*ret_device_fd = fd_steal(&device);
	return 0;
}

int init_rootfs_hold_view(InitRootfs *rootfs, InitFailure *failure)
{
	const char *path = wire_text(rootfs->plan, rootfs->plan->view_path);

	rootfs->view_fd =
		init_rootfs_clone(path, AT_SYMLINK_NOFOLLOW, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return init_fail(failure, EXR_STAGE_HOLD_VIEW, -1,
			 rootfs->view_fd < 0 ? rootfs->view_fd : 0);
}

/* The directory that a target lies in, each missing one made when make is set. *ret_name is the
 * last component. */
int init_rootfs_open_parent(int view_fd, const char *target, bool make, const char **ret_name)
{
	FD_AUTO dir = fd_dup(view_fd);

	if (dir < 0)
		return dir;
	for (const char *slash; (slash = strchr(target, '/')); target = slash + 1) {
		char name[256];
		size_t length = (size_t)(slash - target);
		int next;

		if (length >= sizeof name)
			return -ENAMETOOLONG;
		memcpy(name, target, length);
		name[length] = '\0';
		if (make && mkdirat(dir, name, 0755) != 0 && errno != EEXIST)
			return -errno;
		next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		fd_close(&dir);
		dir = next;
	}
	*ret_name = target;
	return fd_steal(&dir);
}

int init_rootfs_make_point(int dir, const char *name, bool is_dir)
{
	FD_AUTO file = -1;

	if (is_dir)
		return mkdirat(dir, name, 0755) != 0 && errno != EEXIST ? -errno : 0;
	file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	return file < 0 && errno != EEXIST ? -errno : 0;
}

int init_rootfs_new_proc(void)
{
	static const char *const options[] = { "source", "proc", NULL };

	return mount_new("proc", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

/* What masks are made of: one empty file, one empty directory, both read-only for good. It lies below
 * the session's proc, where it is found by init's current directory and by nothing else. */
static int mount_proc(InitRootfs *rootfs, int dir, const char *name)
{
	FD_AUTO mask = init_tmpfs(rootfs->plan, MASK_SIZE, "0555",
				  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	FD_AUTO file = -1, proc = -1;
	int r;

	if (mask < 0)
		return mask;
	file = openat(mask, "file", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (file < 0 || mkdirat(mask, "directory", 0555) != 0)
		return -errno;
	fd_close(&file);
	if ((r = sys_mount_setattr(mask, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0, 0)) < 0)
		return r;
	proc = init_rootfs_new_proc();
	if (proc < 0)
		return proc;
	if ((r = mount_attach(mask, dir, name)) < 0)
		return r;
	rootfs->mask_fd = fd_steal(&mask);
	return mount_attach(proc, dir, name);
}

static int mount_run(const InitRootfs *rootfs, int dir, const char *name)
{
	FD_AUTO run =
		init_tmpfs(rootfs->plan, RUN_SIZE, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	return run < 0 ? run : mount_attach(run, dir, name);
}

static int mount_row(InitRootfs *rootfs, uint32_t i, ExrStage *ret_stage)
{
	const WireRow *row = &wire_rows(rootfs->plan)[i];
	const char *name;
	FD_AUTO dir = init_rootfs_open_parent(rootfs->view_fd, wire_text(rootfs->plan, row->target),
					      row->flags & WIRE_ROW_MAKE, &name);
	int r;

	*ret_stage = EXR_STAGE_MOUNT_POINT;
	if (dir < 0)
		return dir;
	if ((row->flags & WIRE_ROW_MAKE) && row->kind != WIRE_ROW_LINK &&
	    (r = init_rootfs_make_point(dir, name, row->flags & WIRE_ROW_IS_DIR)) < 0)
		return r;
	*ret_stage = EXR_STAGE_BIND;
	switch ((WireRowKind)row->kind) {
	case WIRE_ROW_HOST:
	case WIRE_ROW_PRIVATE:
	case WIRE_ROW_VIEW:
	case WIRE_ROW_SOURCE:
		r = mount_attach(rootfs->row_fds[i], dir, name);
		fd_close(&rootfs->row_fds[i]);
		return r;
	case WIRE_ROW_LINK:
		return symlinkat(wire_text(rootfs->plan, row->source), dir, name) != 0 ? -errno : 0;
	case WIRE_ROW_PROC:
		*ret_stage = EXR_STAGE_MOUNT_PROC;
		return mount_proc(rootfs, dir, name);
	case WIRE_ROW_DEV:
		*ret_stage = EXR_STAGE_MOUNT_DEV;
		return init_dev_mount(rootfs, wire_text(rootfs->plan, row->target));
	case WIRE_ROW_RUN:
		*ret_stage = EXR_STAGE_MOUNT_RUN;
		return mount_run(rootfs, dir, name);
	case WIRE_ROW_PIN:
	case WIRE_ROW_MASK:
	case WIRE_ROW_FILE:
		return init_native_mount(rootfs, i, dir, name);
	}
	return -EBADMSG;
}

/* The kernel comes to know all names of the view's root by two questions, not by one for each row and each part of it that
 * the first command uses. */
static int look_around(int view_fd)
{
	_Alignas(8) char entries[4096];
	FD_AUTO dir = openat(view_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return -errno;
	while (syscall(SYS_getdents64, dir, entries, sizeof entries) > 0)
		;
	return 0;
}

/* Parts of the view that the sandbox's mounts are going to cover, cloned while they can be seen. */
static int collect_view_rows(InitRootfs *rootfs, InitFailure *failure)
{
	const WireRow *rows = wire_rows(rootfs->plan);

	for (uint32_t i = 0; i < rootfs->plan->row_count; i++) {
		const char *name;
		FD_AUTO dir = -1;

		if (rows[i].kind != WIRE_ROW_VIEW)
			continue;
		dir = init_rootfs_open_parent(
			rootfs->view_fd, wire_text(rootfs->plan, rows[i].target), false, &name);
		if (dir < 0)
			return init_fail(failure, EXR_STAGE_ATTACH_VIEW, (int)i, dir);
		rootfs->row_fds[i] = sys_open_tree(
			dir, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
		if (rootfs->row_fds[i] < 0)
			return init_fail(failure, EXR_STAGE_ATTACH_VIEW, (int)i,
					 rootfs->row_fds[i]);
	}
	return 0;
}

/* The old root ends up mounted over the new one and is taken off from there. */
static int pivot(int view_fd)
{
	int r;

	if (fchdir(view_fd) != 0)
		return -errno;
	if ((r = sys_pivot_root(".", ".")) < 0)
		return r;
	/* Where that leaves us is nowhere; leave_host() (init-main.c) takes us to where init stays. */
	return umount2(".", MNT_DETACH) != 0 ? -errno : 0;
}

int init_rootfs_build(InitRootfs *rootfs, InitFailure *failure)
{
	int r;

	if ((r = mount_attach(rootfs->view_fd, rootfs->session_fd, "")) < 0)
		return init_fail(failure, EXR_STAGE_ATTACH_VIEW, -1, r);
	if (!(rootfs->plan->flags & WIRE_PLAN_NATIVE) && (r = look_around(rootfs->view_fd)) < 0)
		return init_fail(failure, EXR_STAGE_ATTACH_VIEW, -1, r);
	if ((r = collect_view_rows(rootfs, failure)) < 0)
		return r;
	for (uint32_t i = 0; i < rootfs->plan->row_count; i++) {
		ExrStage stage;

		if ((r = mount_row(rootfs, i, &stage)) < 0)
			return init_fail(failure, stage, (int)i, r);
	}
	if (rootfs->mask_fd < 0)
		return init_fail(failure, EXR_STAGE_MOUNT_PROC, -1, -ENOENT);
	/* A tmpfs of ours, which is no more to be written to. */
	if ((rootfs->plan->flags & WIRE_PLAN_NATIVE) &&
	    (r = sys_mount_setattr(rootfs->view_fd, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0, 0)) <
		    0)
		return init_fail(failure, EXR_STAGE_ATTACH_VIEW, -1, r);
	if ((r = pivot(rootfs->view_fd)) < 0)
		return init_fail(failure, EXR_STAGE_PIVOT, -1, r);
	return 0;
}
