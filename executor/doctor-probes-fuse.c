/* What the view needs: the device, a way to mount it, and for root the kernel's passthrough; see doctor.h. What is
 * mounted here is never attached, so that nobody can walk into it, and its one request is answered by nobody or
 * by us; fusermount3's, which has a place, is in a private directory and taken off at once. */
#include "executor/doctor.h"

#include "common/fd-util.h"
#include "common/mount-util.h"
#include "common/syscall-wrap.h"
#include "executor/hints.h"
#include "executor/spawn.h"
#include "executor/stage.h"
#include "executor/state-dir.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FUSE_DEVICE   makedev(10, 229)
#define FUSERMOUNT_MS 3000
#define INIT_MS	      2000
#define INSIDE_ID     "1000"

/* Newer than Debian 12's header; bits 32 and up of the flags are in flags2. */
#define INIT_EXT	   (1u << 30)
#define INIT2_PASSTHROUGH  (1u << 5)
#define INIT_OUT_MAX_STACK 2

typedef struct {
	struct fuse_out_header header;
	struct {
		uint32_t major, minor, max_readahead, flags;
		uint16_t max_background, congestion_threshold;
		uint32_t max_write, time_gran;
		uint16_t max_pages, map_alignment;
		uint32_t flags2, max_stack_depth;
		uint32_t unused[6];
	} init;
} InitReply;

typedef struct {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
} BackingMap;
#define BACKING_OPEN _IOW(229, 1, BackingMap)

/* fd or -errno. */
static int open_device(void)
{
	FD_AUTO fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode) || st.st_rdev != FUSE_DEVICE)
		return -ENODEV;
	return fd_steal(&fd);
}

static int new_mount(int device, const char *id)
{
	char number[16];

	snprintf(number, sizeof number, "%d", device);
	const char *const options[] = { "source",   "stella",	"subtype",     "stella",  "fd",
					number,	    "rootmode", "40000",       "user_id", id,
					"group_id", id,		"allow_other", NULL,	  NULL };

	return mount_new("fuse", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* -EOWNERDEAD: the device could not be opened, which is another line's concern. */
static int try_mount(void)
{
	FD_AUTO device = open_device(), mounted = -1;

	if (device < 0)
		return -EOWNERDEAD;
	mounted = new_mount(device, INSIDE_ID);
	return mounted < 0 ? mounted : 0;
}

void exr_probe_fuse_device(ExrFinding *ret_finding)
{
	FD_AUTO device = open_device();

	if (device < 0)
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_MISSING, "fuse-device", -device,
				       exr_stage_info(EXR_STAGE_FUSE_DEVICE)->sentence);
}

void exr_probe_fuse_mount(ExrFinding *ret_finding)
{
	ExrError error = { 0 };
	int r = exr_doctor_in_sandbox(0, try_mount, &error);

	if (error.code)
		exr_finding_set(ret_finding, EXR_DOCTOR_UNKNOWN, error.errnum, NULL,
				"not tried, for there are no namespaces to try it in");
	else if (r == -EOWNERDEAD)
		exr_finding_set(ret_finding, EXR_DOCTOR_UNKNOWN, 0, NULL,
				"not tried, for /dev/fuse cannot be opened");
	else if (r < 0)
		exr_finding_set_failed(
			ret_finding, geteuid() == 0 ? EXR_DOCTOR_MISSING : EXR_DOCTOR_DEGRADED,
			"fuse-mount", -r, exr_stage_info(EXR_STAGE_FUSE_MOUNT)->sentence);
	exr_error_clear(&error);
}

/* fusermount3 hands over the device of what it has mounted. */
static int receive_device(int socket, int *ret_device)
{
	char byte;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *header;
	int r = exr_wait_readable(socket, FUSERMOUNT_MS);

	if (r < 0)
		return r;
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0)
		return -EPERM;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -EPERM;
	memcpy(ret_device, CMSG_DATA(header), sizeof *ret_device);
	return 0;
}

static int try_fusermount(const char *program, const char *path)
{
	const char *const argv[] = { program, "-o", "rw,nosuid,nodev,fsname=stella,subtype=stella",
				     "--",    path, NULL };
	g_auto(GStrv) env = g_environ_setenv(exr_spawn_env(), "_FUSE_COMMFD", "3", TRUE);
	ExrProcess process = EXR_NO_PROCESS;
	FD_AUTO ours = -1, theirs = -1, device = -1;
	int pair[2], r;

	if ((r = exr_socketpair(SOCK_STREAM, pair)) < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	if ((r = exr_spawn(program, argv, (const char *const *)env, theirs, -1, &process)) < 0)
		return r;
	fd_close(&theirs);
	r = receive_device(ours, &device);
	(void)exr_process_end(&process, FUSERMOUNT_MS, FUSERMOUNT_MS);
	/* Closed before anything looks at the mount: a dead file system answers, one that nobody serves hangs. */
	fd_close(&device);
	(void)exr_state_dir_detach(path);
	return r;
}

void exr_probe_fusermount(ExrFinding *ret_finding)
{
	ExrIdentity identity = exr_identity_choose(0);
	g_autofree char *program = exr_find_fusermount(), *path = NULL, *said = NULL;
	g_autoptr(ExrStateDir) dir = NULL;
	ExrError error = { 0 };
	int r;

	if (geteuid() == 0) {
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL, "root does without it");
		return;
	}
	if (!program) {
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_DEGRADED, "fusermount3", ENOENT,
				       "fusermount3");
		return;
	}
	if (exr_state_dir_new(&identity, false, &dir, &error) < 0) {
		exr_finding_set(ret_finding, EXR_DOCTOR_UNKNOWN, error.errnum, NULL,
				"not tried, for the state directory cannot be used");
		exr_error_clear(&error);
		return;
	}
	/* The name that a start which finds this directory without an owner takes a mount off from. */
	path = exr_state_dir_join(dir, "view");
	if (mkdir(path, 0700) != 0) {
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_UNKNOWN, "", errno, path);
		return;
	}
	r = try_fusermount(program, path);
	said = exr_doctor_take_stderr();
	if (r < 0)
		exr_finding_set(ret_finding, EXR_DOCTOR_DEGRADED, -r, exr_hint("fusermount3", -r),
				"%s cannot mount%s%s", program, *said ? ": " : "", said);
	else
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL, "%s", program);
}

/* Reads INIT and accepts passthrough. 0; -EOPNOTSUPP when it is not offered. */
static int answer_init(int device)
{
	/* The least that the kernel lets anybody read with. */
	static char buffer[1 << 17];
	InitReply reply = { 0 };
	struct fuse_in_header header;
	struct fuse_init_in init;
	ssize_t size;
	int r = exr_wait_readable(device, INIT_MS);

	if (r < 0)
		return r;
	size = read(device, buffer, sizeof buffer);
	if (size < (ssize_t)(sizeof header + sizeof init))
		return size < 0 ? -errno : -EOPNOTSUPP; /* of a kernel before INIT_EXT */
	memcpy(&header, buffer, sizeof header);
	memcpy(&init, buffer + sizeof header, sizeof init);
	if (header.opcode != FUSE_INIT || !(init.flags & INIT_EXT) ||
	    !(init.flags2 & INIT2_PASSTHROUGH))
		return -EOPNOTSUPP;
	reply.header.len = sizeof reply;
	reply.header.unique = header.unique;
	reply.init.major = init.major;
	reply.init.minor = init.minor;
	reply.init.flags = INIT_EXT;
	reply.init.flags2 = INIT2_PASSTHROUGH;
	reply.init.max_write = 4096;
	reply.init.max_stack_depth = INIT_OUT_MAX_STACK;
	return write(device, &reply, sizeof reply) != sizeof reply ? -errno : 0;
}

static int try_passthrough(void)
{
	FD_AUTO device = open_device(), mounted = -1, file = -1;
	BackingMap map = { 0 };
	int r;

	if (device < 0)
		return -EOWNERDEAD;
	mounted = new_mount(device, "0");
	if (mounted < 0)
		return mounted;
	if ((r = answer_init(device)) < 0)
		return r;
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -errno;
	map.fd = file;
	return ioctl(device, BACKING_OPEN, &map) < 0 ? -errno : 0;
}

void exr_probe_passthrough(ExrFinding *ret_finding)
{
	int r;

	if (geteuid() != 0) {
		exr_finding_set(ret_finding, EXR_DOCTOR_DEGRADED, EPERM, "run as root",
				"for root only");
		return;
	}
	r = try_passthrough();
	if (r == -EOWNERDEAD)
		exr_finding_set(ret_finding, EXR_DOCTOR_UNKNOWN, 0, NULL,
				"not tried, for /dev/fuse cannot be opened");
	else if (r == -EPERM)
		exr_finding_set_failed(
			ret_finding, EXR_DOCTOR_DEGRADED, "passthrough", -r,
			"the kernel gives it to CAP_SYS_ADMIN outside of containers");
	else if (r < 0)
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_DEGRADED, "passthrough", -r,
				       "the kernel does not give it");
}
