/* What a session needs of namespaces and mounts, step by step in the order of a session; see doctor.h. A step
 * that cannot be tried, because an earlier one is missing, is unknown and not missing: the earlier line is the
 * one to mend. */
#include "executor/doctor.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/mount-util.h"
#include "common/syscall-wrap.h"
#include "executor/hints.h"
#include "executor/stage.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

/* A mount point that every host has. */
#define SOMEWHERE "/proc"

static int make_private(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ? -errno : 0;
}

static int unshare_cgroup(void)
{
	return unshare(CLONE_NEWCGROUP) != 0 ? -errno : 0;
}

static int new_tmpfs(void)
{
	static const char *const options[] = { "source", "tmpfs", "size", "4096", NULL };

	return mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int try_mount_calls(void)
{
	FD_AUTO tree = -1, tmpfs = -1;
	int r;

	if ((r = make_private()) < 0)
		return r;
	tree = sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree < 0)
		return tree;
	if ((r = sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
				   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0,
				   0)) < 0)
		return r;
	tmpfs = new_tmpfs();
	return tmpfs < 0 ? tmpfs : mount_attach(tmpfs, AT_FDCWD, SOMEWHERE);
}

static int try_proc(void)
{
	static const char *const options[] = { "source", "proc", NULL };
	FD_AUTO proc = mount_new("proc", options,
				 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	return proc < 0 ? proc : 0;
}

static int try_pivot_root(void)
{
	FD_AUTO tmpfs = -1;
	int r = make_private();

	if (r == 0)
		r = tmpfs = new_tmpfs();
	if (r >= 0)
		r = mount_attach(tmpfs, AT_FDCWD, SOMEWHERE);
	if (r < 0)
		return r;
	if (fchdir(tmpfs) != 0)
		return -errno;
	if ((r = sys_pivot_root(".", ".")) < 0)
		return r;
	return umount2(".", MNT_DETACH) != 0 ? -errno : 0;
}

static int try_nothing(void)
{
	return 0;
}

static int try_loopback(void)
{
	FD_AUTO fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0)
		return -errno;
	return ioctl(fd, SIOCSIFFLAGS, &request) != 0 ? -errno : 0;
}

/* Tries a step whose failure is that of a stage. */
static void probe_step(int (*step)(void), ExrStage stage, const char *what, ExrFinding *ret_finding)
{
	ExrError error = { 0 };
	int r = exr_doctor_in_sandbox(0, step, &error);

	if (error.code)
		exr_finding_set(ret_finding, EXR_DOCTOR_UNKNOWN, error.errnum, NULL,
				"not tried, for there are no namespaces to try it in");
	else if (r < 0)
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_MISSING, exr_stage_info(stage)->name,
				       -r, what);
	exr_error_clear(&error);
}

/* Namespaces by themselves, and the power in them, which AppArmor may take away. */
static void probe_namespaces(uint64_t more_flags, int (*step)(void), ExrStage stage,
			     ExrFinding *ret_finding)
{
	ExrError error = { 0 };
	int r = exr_doctor_in_sandbox(more_flags, step, &error);

	if (error.code)
		exr_finding_set(ret_finding, EXR_DOCTOR_MISSING, error.errnum,
				exr_hint(error.stage, error.errnum), "%s (%s)", error.message,
				errno_name(error.errnum));
	else if (r < 0)
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_MISSING, exr_stage_info(stage)->name,
				       -r, exr_stage_info(stage)->sentence);
	exr_error_clear(&error);
}

void exr_probe_user_namespaces(ExrFinding *ret_finding)
{
	probe_namespaces(0, make_private, EXR_STAGE_PRIVATE_MOUNTS, ret_finding);
	if (ret_finding->state == EXR_DOCTOR_OK)
		probe_namespaces(0, unshare_cgroup, EXR_STAGE_CGROUP_NAMESPACE, ret_finding);
}

void exr_probe_network_namespaces(ExrFinding *ret_finding)
{
	ExrError error = { 0 };

	(void)exr_doctor_in_sandbox(0, try_nothing, &error);
	if (error.code)
		exr_finding_set(ret_finding, EXR_DOCTOR_UNKNOWN, error.errnum, NULL,
				"not tried, for there are no user namespaces to try it in");
	else
		probe_namespaces(CLONE_NEWNET, try_loopback, EXR_STAGE_LOOPBACK, ret_finding);
	exr_error_clear(&error);
}

void exr_probe_mount_calls(ExrFinding *ret_finding)
{
	probe_step(try_mount_calls, EXR_STAGE_SOURCE,
		   "open_tree, mount_setattr, fsopen and move_mount cannot be used", ret_finding);
}

void exr_probe_proc(ExrFinding *ret_finding)
{
	probe_step(try_proc, EXR_STAGE_MOUNT_PROC, exr_stage_info(EXR_STAGE_MOUNT_PROC)->sentence,
		   ret_finding);
}

void exr_probe_pivot_root(ExrFinding *ret_finding)
{
	probe_step(try_pivot_root, EXR_STAGE_PIVOT, exr_stage_info(EXR_STAGE_PIVOT)->sentence,
		   ret_finding);
}
