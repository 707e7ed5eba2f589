/* stella-sandbox-init: makes the session's root file system, then takes exec requests from the
 * supervisor until the socket ends.
 *
 * The supervisor has made the namespaces, written the id maps and executed this program with every
 * capability of the new user namespace. Order matters, and each step is reported by name when it fails:
 *   1. while still the supervisor's user: everything of the host is opened (a 0700 state directory, a
 *      0600 /dev/fuse), and only then
 *   2. the sandbox's user: what is made from now on belongs to it;
 *   3. the view is mounted, but not touched before the gateway answers;
 *   4. the rows of the plan are mounted on it, and it becomes the root.
 * Ids are changed with capabilities kept: init goes on making namespaces for execs. When init ends,
 * the kernel ends all that the session ever ran. */
#include "executor/init.h"

#include "config.h"

#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

rlim_t init_open_files;

/* The supervisor's answers; it gives up earlier than this and closes the socket. */
#define ANSWER_TIMEOUT_MS 60000

int init_map(int fd, bool private_copy, size_t frame_size, void **ret_data)
{
	struct stat st;
	uint32_t frame[2];
	void *data;

	if (fstat(fd, &st) != 0)
		return -errno;
	if ((size_t)st.st_size < frame_size || st.st_size > UINT32_MAX)
		return -EBADMSG;
	data = mmap(NULL, (size_t)st.st_size, private_copy ? PROT_READ | PROT_WRITE : PROT_READ,
		    MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	memcpy(frame, data, sizeof frame);
	if (frame[0] != WIRE_MAGIC || frame[1] != st.st_size)
		return -EBADMSG;
	*ret_data = data;
	return 0;
}

/* The mount of our own program (cover_program, launcher.c) lets nobody execute it again: see there. */
static int leave_program(void)
{
	FD_AUTO fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return sys_mount_setattr(fd, "", AT_EMPTY_PATH, MOUNT_ATTR_NOEXEC, 0, 0);
}

static int receive_plan(WirePlan **ret_plan)
{
	WireMessage message;
	int fds[WIRE_MAX_FDS];
	size_t fd_count;
	void *data;
	int r = packet_receive(WIRE_INIT_FD, ANSWER_TIMEOUT_MS, &message, fds, &fd_count);

	if (r < 0)
		return r;
	if (message.type != WIRE_PLAN || fd_count != 1)
		return -EBADMSG;
	if ((r = init_map(fds[0], false, sizeof(WirePlan), &data)) < 0)
		return r;
	fd_close(&fds[0]);
	*ret_plan = data;
	return (*ret_plan)->row_count > WIRE_MAX_ROWS ? -EBADMSG : 0;
}

static int wait_for(WireType type)
{
	WireMessage message;
	int r = packet_receive(WIRE_INIT_FD, ANSWER_TIMEOUT_MS, &message, NULL, NULL);

	if (r < 0)
		return r;
	return message.type == type ? 0 : -EBADMSG;
}

/* What this kernel has no number for is EINVAL to both calls, and ends the list: the failure of one alone never does. */
static int drop_bounding_set(void)
{
	for (unsigned long cap = 0;; cap++) {
		int r = prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0 ? -errno : 0;
		int left = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (left < 0 && r == -EINVAL && errno == EINVAL)
			return cap > CAP_SYS_ADMIN ? 0 : -EINVAL;
		if (r < 0 || left < 0)
			return r < 0 ? r : -errno;
		if (left != 0)
			return -EPERM;
	}
}

/* Init itself keeps what it has, for it never executes a program; nobody after it can get any back. */
static int lock_caps(void)
{
	int r;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return -errno;
	if ((r = drop_bounding_set()) < 0)
		return r;
	return prctl(PR_SET_SECUREBITS, EXR_SECUREBITS, 0, 0, 0) != 0 ? -errno : 0;
}

/* Without the fix-ups a change of ids leaves all capability sets alone. The parent's groups would
 * otherwise stay and open files to the sandbox; an unprivileged supervisor cannot shed them, and the
 * kernel denies setgroups then. */
static int take_session_ids(const WirePlan *plan)
{
	uid_t uids[3];
	gid_t gids[3];
	int r;

	if ((r = lock_caps()) < 0)
		return r;
	if ((plan->flags & WIRE_PLAN_CLEAR_GROUPS) && setgroups(0, NULL) != 0)
		return -errno;
	if (setresgid(plan->uid, plan->uid, plan->uid) != 0)
		return -errno;
	if (setresuid(plan->uid, plan->uid, plan->uid) != 0)
		return -errno;
	if (getresuid(&uids[0], &uids[1], &uids[2]) != 0 ||
	    getresgid(&gids[0], &gids[1], &gids[2]) != 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (uids[i] != plan->uid || gids[i] != plan->uid)
			return -EPERM;
	/* A change of ids sets it to the sysctl fs.suid_dumpable. */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ? -errno : 0;
}

static int loopback_up(void)
{
	FD_AUTO fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request;

	if (fd < 0)
		return -errno;
	memset(&request, 0, sizeof request);
	strcpy(request.ifr_name, "lo");
	if (ioctl(fd, SIOCGIFFLAGS, &request) != 0)
		return -errno;
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &request) != 0 ? -errno : 0;
}

static int view_from_device(InitRootfs *rootfs, InitFailure *failure)
{
	WireMessage message = { .type = WIRE_DEVICE };
	FD_AUTO device = -1, tasks = -1;
	int r;

	if ((r = init_rootfs_mount_view(rootfs, &device, failure)) < 0)
		return r;
	/* In requests the kernel gives pids of this namespace: what they are is found in its procfs. */
	tasks = init_rootfs_new_proc();
	if (tasks < 0)
		return init_fail(failure, EXR_STAGE_MOUNT_PROC, -1, tasks);
	/* Our copy is closed at the end of this function: the gateway's is then the last one, and its
	 * death aborts the connection. */
	return init_fail(failure, EXR_STAGE_FUSE_MOUNT, -1,
			 packet_send(WIRE_INIT_FD, &message, (int[]){ device, tasks }, 2));
}

static int view_from_path(InitRootfs *rootfs, InitFailure *failure)
{
	WireMessage message = { .type = WIRE_HELD };
	int r;

	if ((r = init_rootfs_hold_view(rootfs, failure)) < 0)
		return r;
	return init_fail(failure, EXR_STAGE_HOLD_VIEW, -1,
			 packet_send(WIRE_INIT_FD, &message, NULL, 0));
}

/* Standard streams of our own: those that init was started with are the host's /dev/null. */
static int own_stdio(void)
{
	FD_AUTO null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	return 0;
}

/* Nothing of the host stays open: the mask directory, which lies below every /proc to come, is the
 * current directory (init-exec.c says why), the socket is 3. */
static int leave_host(InitRootfs *rootfs)
{
	int r;

	if (fchdir(rootfs->mask_fd) != 0)
		return -errno;
	if ((r = own_stdio()) < 0)
		return r;
	return sys_close_range(WIRE_INIT_FD + 1, ~0u, 0);
}

static int make_session(InitRootfs *rootfs, InitFailure *failure)
{
	const WirePlan *plan = rootfs->plan;
	bool at_path = plan->flags & WIRE_PLAN_VIEW_AT_PATH;
	int r;

	if ((r = init_rootfs_collect(rootfs, failure)) < 0)
		return r;
	if (plan->flags & WIRE_PLAN_NATIVE) {
		/* nothing has to be waited for */
	} else if (at_path) {
		if ((r = view_from_path(rootfs, failure)) < 0)
			return r;
	} else if ((r = view_from_device(rootfs, failure)) < 0) {
		return r;
	}
	if ((r = take_session_ids(plan)) < 0)
		return init_fail(failure, EXR_STAGE_SESSION_IDS, -1, r);
	if (plan->flags & WIRE_PLAN_NATIVE)
		r = init_native_begin(rootfs, failure);
	else
		r = init_fail(failure, EXR_STAGE_PLAN, -1, wait_for(WIRE_SERVING));
	if (r < 0)
		return r;
	if ((r = init_rootfs_build(rootfs, failure)) < 0)
		return r;
	if (sethostname("sandbox", strlen("sandbox")) != 0)
		return init_fail(failure, EXR_STAGE_HOSTNAME, -1, -errno);
	if ((plan->flags & WIRE_PLAN_LOOPBACK) && (r = loopback_up()) < 0)
		return init_fail(failure, EXR_STAGE_LOOPBACK, -1, r);
	if ((r = leave_host(rootfs)) < 0)
		return init_fail(failure, EXR_STAGE_CLOSE_FDS, -1, r);
	return 0;
}

static int begin_plain(void)
{
	int r = own_stdio();

	if (r < 0 || (r = init_plain_begin()) < 0)
		return r;
	return chdir("/") != 0 ? -errno : 0;
}

static void reap(const WirePlan *plan)
{
	bool killed = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		killed |= WIFSIGNALED(status);
		init_exec_ended(pid);
	}
	/* An exec init that was killed has left what it would have killed to us. */
	if (killed && (plan->flags & WIRE_PLAN_PLAIN))
		init_plain_kill(true);
}

/* Whoever asked may have let go by now, and hears nothing of it. -EPIPE: the supervisor is gone. */
static int serve_one(const WirePlan *plan)
{
	WireMessage message, answer = { .type = WIRE_STARTED, .value = -1 };
	int fds[WIRE_MAX_FDS];
	size_t fd_count;
	FD_AUTO control = -1;
	FD_AUTO pidfd = -1;
	int r = packet_receive(WIRE_INIT_FD, 0, &message, fds, &fd_count);

	if (r == -ETIMEDOUT)
		return 0;
	if (r == 0 && (message.type != WIRE_PREPARE || fd_count != 1))
		r = -EBADMSG;
	if (r < 0)
		return r;
	control = fds[0];
	r = init_exec_start(plan, control, message.value, &pidfd);
	if (r == 0 && (r = packet_send(control, &answer, &pidfd, 1)) < 0)
		/* Commands can have as many descriptors under way as a user may: without one for its end it is none. */
		(void)sys_pidfd_send_signal(pidfd, SIGKILL);
	if (r < 0) {
		answer.type = WIRE_NOT_STARTED;
		answer.stage = EXR_STAGE_EXEC_INIT;
		answer.errnum = -r;
		(void)packet_send(control, &answer, NULL, 0);
	}
	return 0;
}

static int serve(const WirePlan *plan)
{
	sigset_t all;
	FD_AUTO signals = -1;

	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) != 0)
		return -errno;
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return -errno;
	for (;;) {
		struct pollfd p[] = {
			{ .fd = WIRE_INIT_FD, .events = POLLIN },
			{ .fd = signals, .events = POLLIN },
		};
		struct signalfd_siginfo info;
		int r;

		if (poll(p, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (p[1].revents) {
			while (read(signals, &info, sizeof info) > 0)
				;
			reap(plan);
		}
		if (!p[0].revents)
			continue;
		/* An exec whose end was seen must not count any more among the session's processes (limits.processes), and
		 * its signal may be a moment late. */
		reap(plan);
		if ((r = serve_one(plan)) < 0)
			return r;
	}
}

/* What a host ignores or blocks is not the commands': they get the defaults, from here on. */
static int reset_signals(void)
{
	struct sigaction standard;
	sigset_t none;

	memset(&standard, 0, sizeof standard);
	standard.sa_handler = SIG_DFL;
	for (int sig = 1; sig < NSIG; sig++) {
		/* Two have no disposition, and libc keeps some for itself and refuses them. */
		if (sig == SIGKILL || sig == SIGSTOP || (sig > SIGSYS && sig < SIGRTMIN))
			continue;
		if (sigaction(sig, &standard, NULL) != 0)
			return -errno;
	}
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) != 0 ? -errno : 0;
}

/* What is under way on sockets counts against the limit of whom it is sent by, and commands of our user may send up to
 * theirs: ours is as high as may be. They get back what it was (child-setup.c). */
static int raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -errno;
	init_open_files = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) != 0 ? -errno : 0;
}

/* Everything before the first request. */
static int start(InitRootfs *rootfs, InitFailure *failure)
{
	WirePlan *plan = NULL;
	int r;

	if ((r = reset_signals()) < 0)
		return init_fail(failure, EXR_STAGE_SIGNALS, -1, r);
	umask(022);
	if ((r = raise_open_files()) < 0)
		return init_fail(failure, EXR_STAGE_START_INIT, -1, r);
	if ((r = receive_plan(&plan)) < 0)
		return init_fail(failure, EXR_STAGE_PLAN, -1, r);
	if (strncmp(plan->version, STELLA_VERSION, WIRE_VERSION_SIZE) != 0)
		return init_fail(failure, EXR_STAGE_VERSION, -1, -EPROTO);
	rootfs->plan = plan;
	if (plan->flags & WIRE_PLAN_PLAIN)
		return init_fail(failure, EXR_STAGE_START_INIT, -1, begin_plain());
	if ((r = leave_program()) < 0)
		return init_fail(failure, EXR_STAGE_START_INIT, -1, r);
	if ((r = make_session(rootfs, failure)) < 0)
		return r;
	/* The signal at the parent's death is tied to one thread of it, and threads may end: it is for
	 * the start only. From now on the socket tells. */
	if (prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) != 0)
		return init_fail(failure, EXR_STAGE_SIGNALS, -1, -errno);
	return 0;
}

/* For whoever wants to know whether the programs belong together. */
static _Noreturn void print_version(void)
{
	static const char text[] = "stella-sandbox-init " STELLA_VERSION "\n";

	_exit(write(STDOUT_FILENO, text, sizeof text - 1) == (ssize_t)(sizeof text - 1) ? 0 : 1);
}

/* Whoever is not our parent gets a handle on us from nobody else. */
static int tell_ready(const WirePlan *plan)
{
	WireMessage ready = { .type = WIRE_READY };
	FD_AUTO pidfd = -1;

	if (!(plan->flags & WIRE_PLAN_NATIVE))
		return packet_send(WIRE_INIT_FD, &ready, NULL, 0);
	pidfd = sys_pidfd_open(getpid(), 0);
	return pidfd < 0 ? pidfd : packet_send(WIRE_INIT_FD, &ready, &pidfd, 1);
}

int main(int argc, char **argv)
{
	static InitRootfs rootfs = {
		.session_fd = -1, .view_fd = -1, .mask_fd = -1, .files_fd = -1
	};
	InitFailure failure = { .stage = EXR_STAGE_NONE, .row = -1 };
	int r;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		print_version();
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		_exit(1);
	if ((r = start(&rootfs, &failure)) < 0) {
		WireMessage failed = {
			.type = WIRE_FAILED,
			.stage = failure.stage,
			.errnum = -r,
			.value = failure.row,
		};

		(void)packet_send(WIRE_INIT_FD, &failed, NULL, 0);
		_exit(1);
	}
	if (tell_ready(rootfs.plan) == 0)
		(void)serve(rootfs.plan);
	if (rootfs.plan->flags & WIRE_PLAN_PLAIN)
		init_plain_kill(false);
	_exit(0);
}
