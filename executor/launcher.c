/* The namespaces of a session; see launcher.h.
 *
 * The child is a raw clone: until it executes init it makes system calls only, with all signals blocked.
 * It has every capability of the new user namespace, but its user there is not 0 (nobody at all, when
 * the maps lend another id), so that execve would take them away: they are made ambient first.
 * It waits until the maps are written and it is in the session's cgroups; if we die meanwhile its socket ends and so
 * does it. Only then does it make its cgroup namespace, whose root is where it is at that moment: made with the others,
 * it would show the way from our cgroup to the sandbox's. */
#include "executor/launcher.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/mount-util.h"
#include "common/program-path.h"
#include "common/syscall-wrap.h"
#include "executor/packet.h"
#include "executor/stage.h"

#include <fcntl.h>
#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define CODE	"namespace-failed"
#define HIGH_FD 10
#define GO_MS	60000

static int keep_caps(void)
{
	uint64_t effective, permitted, inheritable;
	int r;

	if ((r = sys_capget(&effective, &permitted, &inheritable)) < 0 ||
	    (r = sys_capset(permitted, permitted, permitted)) < 0)
		return r;
	for (unsigned long cap = 0; cap < 64; cap++)
		if ((permitted & UINT64_C(1) << cap) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) != 0)
			return -errno;
	return 0;
}

/* What a service manager gave its service is not the commands': a protection from the OOM killer, a
 * priority over others. Lowering oneself is allowed to everyone. */
int exr_launch_be_ordinary(void)
{
	FD_AUTO fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16];
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);

	if (size < 0)
		return -errno;
	if (size > 0 && text[0] == '-' && pwrite(fd, "0", 1, 0) < 0)
		return -errno;
	return getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) != 0 ? -errno
											: 0;
}

static int init_fds(int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return -errno;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(high, fd) < 0)
			return -errno;
	/* socket is far above, so 3 is another one and the copy stays open over execve. */
	if (dup2(socket, WIRE_INIT_FD) < 0)
		return -errno;
	return sys_close_range(WIRE_INIT_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC);
}

/* Init's file under a mount of its own, in the mount namespace that is the sandbox's. A command's process is made by
 * init: until its execve its /proc/self/exe is this file, which a script can name as its interpreter. Nobody
 * writes to it by that name, and once init runs (leave_program, init-main.c) nobody executes it. */
static int cover_program(const char *program)
{
	FD_AUTO fd = sys_open_tree(AT_FDCWD, program, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int r;

	if (fd < 0)
		return fd;
	if ((r = sys_mount_setattr(fd, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0, 0)) < 0)
		return r;
	return mount_attach(fd, AT_FDCWD, program);
}

static _Noreturn void child_fail(int socket, ExrStage stage, int r)
{
	WireMessage message = { .type = WIRE_FAILED, .stage = stage, .errnum = -r, .value = -1 };

	(void)packet_send(socket, &message, NULL, 0);
	_exit(127);
}

/* Closes everything from 3 up but the socket, which becomes another number. */
static int keep_only(int *socket)
{
	int r;

	if (dup2(*socket, HIGH_FD) < 0)
		return -errno;
	*socket = HIGH_FD;
	if ((r = sys_close_range(HIGH_FD + 1, ~0u, 0)) < 0)
		return r;
	return sys_close_range(WIRE_INIT_FD, HIGH_FD - 1, 0);
}

static _Noreturn void init_child(const char *program, char *const *env, int socket)
{
	static char name[] = "stella-sandbox-init";
	char *const argv[] = { name, NULL };
	WireMessage message;
	int r;

	sys_clone3_alone();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		child_fail(socket, EXR_STAGE_START_INIT, -errno);
	/* Our copy of the other end is still open: the end of file would not come without this. */
	if ((r = keep_only(&socket)) < 0 ||
	    (r = packet_receive(socket, GO_MS, &message, NULL, NULL)) < 0)
		child_fail(socket, EXR_STAGE_START_INIT, r);
	if (message.type != WIRE_GO)
		_exit(127);
	if (unshare(CLONE_NEWCGROUP) != 0)
		child_fail(socket, EXR_STAGE_CGROUP_NAMESPACE, -errno);
	if ((r = keep_caps()) < 0)
		child_fail(socket, EXR_STAGE_KEEP_CAPS, r);
	if (setsid() < 0)
		child_fail(socket, EXR_STAGE_START_INIT, -errno);
	if ((r = exr_launch_be_ordinary()) < 0 || (r = cover_program(program)) < 0 ||
	    (r = init_fds(socket)) < 0)
		child_fail(socket, EXR_STAGE_START_INIT, r);
	/* With all signals blocked: init sets all that, as soon as it is itself. */
	execve(program, argv, env);
	child_fail(socket, EXR_STAGE_START_INIT, -errno);
}

static int write_file(pid_t pid, const char *name, const char *text)
{
	char path[64];
	FD_AUTO fd = -1;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int write_map(pid_t pid, const char *name, unsigned int inside, unsigned int outside)
{
	char text[64];

	snprintf(text, sizeof text, "%u %u 1\n", inside, outside);
	return write_file(pid, name, text);
}

int exr_launch_write_maps(pid_t pid, const ExrIdentity *identity, ExrError *error)
{
	int r;

	/* Without privileges the kernel takes a gid map only after setgroups is shut for good. */
	if (!identity->lent && (r = write_file(pid, "setgroups", "deny")) < 0)
		return exr_error_set(error, CODE, "setgroups", -r,
				     "cannot deny setgroups in the user namespace: %s",
				     errno_text(-r));
	if ((r = write_map(pid, "uid_map", identity->inside, identity->outside_uid)) < 0)
		return exr_error_set(error, CODE, "uid-map", -r,
				     "cannot write the user namespace's uid_map: %s",
				     errno_text(-r));
	if ((r = write_map(pid, "gid_map", identity->inside, identity->outside_gid)) < 0)
		return exr_error_set(error, CODE, "gid-map", -r,
				     "cannot write the user namespace's gid_map: %s",
				     errno_text(-r));
	return 0;
}

static pid_t clone_init(const ExrLaunch *launch, int socket, int *ret_pidfd)
{
	g_autofree char *program = program_path("stella-sandbox-init");
	g_auto(GStrv) env = exr_spawn_env();
	uint64_t flags = EXR_LAUNCH_FLAGS | CLONE_PIDFD;
	sigset_t mask;
	pid_t pid;

	if (launch->own_network)
		flags |= CLONE_NEWNET;
	exr_signals_block_all(&mask);
	pid = sys_clone3_into(exr_session_limits_clone_fd(launch->limits), flags, SIGCHLD,
			      ret_pidfd);
	if (pid == 0)
		init_child(program, env, socket);
	exr_signals_restore(&mask);
	return pid;
}

int exr_launch_cannot_limit(int r, ExrError *error)
{
	return exr_error_set(error, "limit-unenforceable", "limits", -r,
			     "cannot put the sandbox into its cgroup: %s", errno_text(-r));
}

/* By errnos that no namespace is refused with. */
bool exr_launch_is_refused_by_cgroup(const ExrSessionLimits *limits, int r)
{
	return exr_session_limits_clone_fd(limits) >= 0 &&
	       (r == -EACCES || r == -EBUSY || r == -EOPNOTSUPP || r == -ENODEV);
}

static int send_start(int socket, int plan_fd, ExrError *error)
{
	WireMessage go = { .type = WIRE_GO }, plan = { .type = WIRE_PLAN };
	int r;

	/* An init that has failed by now has said why. */
	if ((r = packet_send(socket, &go, NULL, 0)) < 0 ||
	    (r = packet_send(socket, &plan, &plan_fd, 1)) < 0) {
		if (r == -EPIPE)
			return 0;
		return exr_error_set(error, CODE, "start-init", -r,
				     "cannot send the sandbox's init its plan: %s", errno_text(-r));
	}
	return 0;
}

int exr_launch_init(const ExrLaunch *launch, int *ret_socket, ExrProcess *ret_init,
		    ExrError *reterr_error)
{
	ExrProcess init = EXR_NO_PROCESS;
	FD_AUTO ours = -1;
	FD_AUTO theirs = -1;
	int pair[2], r;

	if ((r = exr_socketpair(SOCK_SEQPACKET, pair)) < 0)
		return exr_error_set(reterr_error, CODE, "start-init", -r, "socket: %s",
				     errno_text(-r));
	ours = pair[0];
	theirs = pair[1];
	init.pid = clone_init(launch, theirs, &init.pidfd);
	if (exr_launch_is_refused_by_cgroup(launch->limits, init.pid))
		return exr_launch_cannot_limit(init.pid, reterr_error);
	if (init.pid < 0) {
		r = exr_error_set(reterr_error, CODE, "clone", -init.pid,
				  "cannot make the sandbox's namespaces: %s",
				  errno_text(-init.pid));
		exr_error_set_known_hint(reterr_error);
		return r;
	}
	fd_close(&theirs);
	r = exr_launch_write_maps(init.pid, launch->identity, reterr_error);
	if (r < 0)
		exr_error_set_known_hint(reterr_error);
	if (r == 0 && (r = exr_session_limits_add(launch->limits, init.pid)) < 0)
		r = exr_launch_cannot_limit(r, reterr_error);
	if (r == 0)
		r = send_start(ours, launch->plan_fd, reterr_error);
	if (r < 0) {
		(void)exr_process_end(&init, 0, 2000);
		return r;
	}
	*ret_socket = fd_steal(&ours);
	*ret_init = init;
	return 0;
}
