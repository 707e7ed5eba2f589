/* One exec: PID 1 of a pid namespace of its own, with a /proc of its own, around one command.
 *
 * The pid namespace is what makes an end an end: when this process exits, the kernel kills whatever the
 * command has left, however it hid (init-watch.c says when it does).
 *
 * It makes itself ready before it knows its command: its namespaces and mounts are there, its capabilities gone and the
 * filter loaded, which the command inherits, when its request comes. That may be at once, or much later: the supervisor
 * keeps one such process ahead (prepared.h). Only a terminal is mounted for its command, so that with one the
 * command's own process gives all that up.
 *
 * Of the view it looks up one name only, and that only while it is kept ahead: it waits in the directory that its command
 * most likely begins in, which saves the command a question to the gateway. It is not ready before it is there; from then on a
 * gateway that hangs can hang the command but not this process, which is still able to pass on signals. Until it is
 * ready its current directory is init's, the mask directory below the session's proc: a new mount namespace takes the
 * current directory along, so that "." is where the new proc goes and what the masks are made of, without a
 * path from the root.
 *
 * The command shares our user id. It cannot trace or signal us: we are not dumpable, and a PID 1
 * without handlers ignores what comes from inside its namespace. */
#include "executor/init-exec.h"

#include "common/mount-util.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>

#ifndef PIDFD_GET_MNT_NAMESPACE
#define PIDFD_GET_MNT_NAMESPACE _IO(0xFF, 3)
#endif

/* The fds of WIRE_EXEC, in their order. */
enum { FD_PAYLOAD, FD_STDOUT, FD_STDERR, FD_STDIN };
/* How many come with a terminal. */
#define FDS_WITH_TERMINAL FD_STDOUT

/* What of /proc is nobody's business inside, and what only root could misuse but is shut all the same:
 * the mount is of a user namespace, yet process.user may be 0. Names that a kernel does not have are
 * skipped. */
typedef enum { MASK_FILE, MASK_DIRECTORY, MASK_READ_ONLY } MaskKind;

static const struct {
	const char *name;
	MaskKind kind;
} masks[] = {
	{ "kcore", MASK_FILE },
	{ "keys", MASK_FILE },
	{ "timer_list", MASK_FILE },
	{ "sched_debug", MASK_FILE },
	{ "latency_stats", MASK_FILE },
	{ "acpi", MASK_DIRECTORY },
	{ "scsi", MASK_DIRECTORY },
	{ "sys", MASK_READ_ONLY },
	{ "bus", MASK_READ_ONLY },
	{ "fs", MASK_READ_ONLY },
	{ "irq", MASK_READ_ONLY },
	{ "sysrq-trigger", MASK_READ_ONLY },
	/* ourselves: to a command whose user is 0 our files belong, as do those of all that are not dumpable */
	{ "1", MASK_READ_ONLY },
};

static int mask(int proc_fd, const char *name, MaskKind kind)
{
	FD_AUTO cover = -1;
	int r;

	if (faccessat(proc_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (kind == MASK_READ_ONLY)
		cover = sys_open_tree(proc_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	else
		cover = sys_open_tree(AT_FDCWD, kind == MASK_FILE ? "file" : "directory",
				      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (cover < 0)
		return cover;
	if (kind == MASK_READ_ONLY &&
	    (r = sys_mount_setattr(cover, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0, 0)) < 0)
		return r;
	return mount_attach(cover, proc_fd, name);
}

static int mount_own_proc(int *ret_proc_fd)
{
	static const char *const options[] = { "source", "proc", NULL };
	FD_AUTO proc = mount_new("proc", options,
				 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	int r;

	if (proc < 0)
		return proc;
	if ((r = mount_attach(proc, AT_FDCWD, ".")) < 0)
		return r;
	for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
		if ((r = mask(proc, masks[i].name, masks[i].kind)) < 0)
			return r;
	*ret_proc_fd = fd_steal(&proc);
	return 0;
}

/* The vectors of the payload become pointers in place: the mapping is a private copy. */
static int relocate(WireExec *request, char ***ret_argv, char ***ret_env)
{
	uint64_t count = (uint64_t)request->argc + request->envc + 2;
	uint64_t *vector;

	_Static_assert(sizeof(char *) == sizeof(uint64_t), "offsets become pointers");
	if (request->argc == 0 || request->limit_count > WIRE_MAX_LIMITS ||
	    request->vectors % sizeof(uint64_t) != 0 || request->vectors > request->size ||
	    count > (request->size - request->vectors) / sizeof(uint64_t) ||
	    request->cwd >= request->size || ((const char *)request)[request->size - 1] != '\0')
		return -EBADMSG;
	vector = (uint64_t *)(void *)((char *)request + request->vectors);
	for (uint64_t i = 0; i < count; i++) {
		bool end = i == request->argc || i == count - 1;

		if (vector[i] >= request->size || (vector[i] == 0) != end)
			return -EBADMSG;
		if (!end)
			vector[i] += (uint64_t)(uintptr_t)request;
	}
	*ret_argv = (char **)(void *)vector;
	*ret_env = *ret_argv + request->argc + 1;
	return 0;
}

/* Closes everything from WIRE_INIT_FD on but those. */
static int close_all_but(int *keep, size_t count)
{
	unsigned int from = WIRE_INIT_FD;
	int r;

	/* Smallest first. */
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j > 0 && keep[j - 1] > keep[j]; j--) {
			int swap = keep[j];

			keep[j] = keep[j - 1];
			keep[j - 1] = swap;
		}
	for (size_t i = 0; i < count; i++) {
		if (keep[i] < WIRE_INIT_FD)
			continue; /* -1: there is no such one */
		if ((unsigned int)keep[i] > from &&
		    (r = sys_close_range(from, (unsigned int)keep[i] - 1, 0)) < 0)
			return r;
		from = (unsigned int)keep[i] + 1;
	}
	return sys_close_range(from, ~0u, 0);
}

/* In the place of namespaces. That init ends is told by a signal: only its processes hold us. */
static int begin_plain(ExecInit *exec)
{
	int r = init_plain_begin();

	if (r < 0)
		return r;
	if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0)
		return -errno;
	exec->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return exec->proc_fd < 0 ? -errno : 0;
}

/* The inode of our pid namespace. */
static int find_namespace(ExecInit *exec)
{
	struct stat st;

	if (fstatat(exec->proc_fd, "self/ns/pid", &st, 0) != 0)
		return -errno;
	exec->namespace = st.st_ino;
	return 0;
}

/* SIGTERM is init's death (begin_plain). */
static int signal_fd(const ExecInit *exec)
{
	sigset_t taken;
	int fd;

	sigemptyset(&taken);
	sigaddset(&taken, SIGCHLD);
	if (exec_init_is_plain(exec))
		sigaddset(&taken, SIGTERM);
	fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Which fds came has to be what the payload says. */
static bool are_its_fds(const WireExec *request, size_t fd_count)
{
	if (request->flags & WIRE_EXEC_TERMINAL)
		return fd_count == FDS_WITH_TERMINAL;
	return fd_count == (request->flags & WIRE_EXEC_STDIN_NULL ? FD_STDIN : FD_STDIN + 1);
}

/* stdio[0] is /dev/null until now. */
static void take_pipes(ChildSetup *child, const int *fds, size_t fd_count)
{
	if (fd_count > FD_STDIN) {
		fd_close(&child->stdio[0]);
		child->stdio[0] = fds[FD_STDIN];
	}
	child->stdio[1] = fds[FD_STDOUT];
	child->stdio[2] = fds[FD_STDERR];
}

/* The slave stays open here, so that the master sees no end before the exec's: commands may close their
 * terminal and open it again. The master does not, for its last end hangs them up. */
static void give_terminal(const ExecInit *exec, ChildSetup *child)
{
	int r = init_terminal_open(child->request, exec_init_is_plain(exec), &child->terminal);

	if (r < 0)
		exec_init_fail(exec, EXR_STAGE_TERMINAL, -r);
	fd_close(&child->stdio[0]);
	for (int i = 0; i < 3; i++)
		child->stdio[i] = child->terminal.slave_fd;
	child->control_fd = exec->control_fd;
}

/* Our copies of what is the command's alone. */
static void close_given(ChildSetup *child)
{
	if (child->terminal.slave_fd >= 0) {
		fd_close(&child->terminal.devpts_fd);
		fd_close(&child->terminal.master_fd);
	} else {
		for (int i = 0; i < 3; i++)
			fd_close(&child->stdio[i]);
	}
	fd_close(&child->status_fd);
	fd_close(&child->home_fd);
}

static int run_command(void *child)
{
	exr_child_setup(child);
}

/* The command as a copy of us, or, where nobody waits for its pidfd or terminal, in our memory until it executes its
 * program, which copies nothing. Then we stand still, for good if its directory or program lies on a gateway that hangs:
 * but for SIGKILL, which is how this exec ends in any case. The pid or -errno. */
static pid_t clone_command(ChildSetup *child, int *ret_pidfd)
{
	pid_t pid;

	if (!ret_pidfd && child->terminal.slave_fd < 0)
		return sys_clone_until_exec(0, run_command, child, NULL);
	pid = sys_clone_copy(ret_pidfd ? CLONE_PIDFD : 0, ret_pidfd);
	if (pid == 0)
		exr_child_setup(child);
	return pid;
}

static int make_own_world(ExecInit *exec, ChildSetup *child)
{
	struct statx stx;
	int r;

	if (exec_init_is_plain(exec))
		return begin_plain(exec);
	if (statx(AT_FDCWD, ".", 0, STATX_MNT_ID, &stx) != 0)
		return -errno;
	if (!(stx.stx_mask & STATX_MNT_ID))
		return -ENOSYS;
	child->mask_mount = stx.stx_mnt_id;
	r = mount_own_proc(&exec->proc_fd);
	return r < 0 ? r : find_namespace(exec);
}

/* init's own, opened anew without a look at the view's /dev: what a command does to it is its own affair. */
static int open_null(const ExecInit *exec)
{
	int fd = openat(exec->proc_fd, "self/fd/0", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The smallest page there is. */
#define TOUCH_BYTES 4096

/* Where most payloads fit: mapping one costs more than reading it. */
static _Alignas(WireExec) char small_payload[16384];

/* Of all memory the first use is dear, for we are a copy of init: what lies on the way from a request to its command is
 * used before that comes. Most payloads are smaller than a page. */
static __attribute__((noinline)) int touch_what_is_used(void)
{
	void *(*volatile copy)(void *, const void *, size_t) =
		memmove; /* the function, not what compilers make of it */
	char stack[SYS_CLONE_STACK_BYTES];
	struct timespec now;
	sigset_t blocked;

	for (size_t at = 0; at < sizeof stack; at += TOUCH_BYTES)
		*(volatile char *)&stack[at] = 0;
	*(volatile char *)small_payload = 0;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)copy(stack, small_payload, sizeof(WireExec));
	if (sigprocmask(SIG_BLOCK, NULL, &blocked) != 0)
		return -errno;
	__asm__ volatile("" : : "r"(stack) : "memory");
	return 0;
}

/* Everything that its request has no say in. Every signal is blocked here (init's mask), so that none is lost
 * before there is a signalfd. */
static void prepare(ExecInit *exec, ChildSetup *child, bool for_terminal)
{
	ExrStage stage = EXR_STAGE_EXEC_INIT;
	int status[2], r;

	if ((r = make_own_world(exec, child)) < 0 || (r = child->stdio[0] = open_null(exec)) < 0)
		exec_init_fail(exec, EXR_STAGE_EXEC_PROC, -r);
	/* Read once the command has ended: an empty pipe must not be waited for. */
	if (pipe2(status, O_CLOEXEC | O_NONBLOCK) != 0)
		exec_init_fail(exec, EXR_STAGE_EXEC_INIT, errno);
	exec->status_fd = status[0];
	child->status_fd = status[1];
	if ((exec->signal_fd = signal_fd(exec)) < 0)
		exec_init_fail(exec, EXR_STAGE_EXEC_INIT, -exec->signal_fd);
	if ((r = close_all_but((int[]){ exec->control_fd, exec->proc_fd, status[0], status[1],
					exec->signal_fd, child->stdio[0] },
			       6)) < 0)
		exec_init_fail(exec, EXR_STAGE_EXEC_INIT, -r);
	if (for_terminal || exec_init_is_plain(exec))
		return;
	if ((r = touch_what_is_used()) < 0)
		exec_init_fail(exec, EXR_STAGE_EXEC_INIT, -r);
	/* Nothing from here on needs a capability, or a call that the filter refuses. */
	if ((r = exr_child_drop_caps()) < 0)
		exec_init_fail(exec, EXR_STAGE_EXEC_INIT, -r);
	if ((r = exr_child_filter(child, &stage)) < 0)
		exec_init_fail(exec, stage, -r);
}

/* Where its command will be, unless its request says another directory: then nothing is lost. Should the gateway hang,
 * this process is not ready, and another one is made in its place. 0 or -errno. */
static int wait_in_view(const ExecInit *exec, ChildSetup *child)
{
	FD_AUTO home = -1;

	if (exec->plan->waiting_dir == 0)
		return 0;
	home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (home < 0 || chdir(wire_text(exec->plan, exec->plan->waiting_dir)) != 0)
		return -errno;
	child->home_fd = fd_steal(&home);
	return 0;
}

static void tell_prepared(const ExecInit *exec, int errnum)
{
	WireMessage message = {
		.type = WIRE_PREPARED,
		.number = exec->namespace,
		.errnum = errnum,
	};

	if (packet_send(exec->control_fd, &message, NULL, 0) < 0)
		exec_init_leave(exec);
}

/* Until such a message comes, or nobody is left to send it. How many fds came with it. */
static size_t await_message(const ExecInit *exec, WireType type, int fds[static WIRE_MAX_FDS])
{
	struct pollfd p[] = {
		{ .fd = exec->control_fd, .events = POLLIN },
		{ .fd = exec->signal_fd, .events = POLLIN },
	};

	for (;;) {
		WireMessage message;
		size_t count = 0;
		int r;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			exec_init_leave(exec);
		if (p[1].revents)
			exec_init_take_signals(exec);
		r = packet_receive(exec->control_fd, 0, &message, fds, &count);
		if (r == -EMFILE)
			exec_init_fail(exec, EXR_STAGE_PAYLOAD, EMFILE);
		if (r == 0 && message.type == type)
			return count;
		if (r != -ETIMEDOUT)
			exec_init_leave(exec);
	}
}

static int get_payload(int fd, void **ret_payload)
{
	ssize_t size = pread(fd, small_payload, sizeof small_payload, 0);

	if (size < 0)
		return -errno;
	/* It is larger, or the frame says so. */
	if ((size_t)size == sizeof small_payload || (size_t)size < sizeof(WireExec) ||
	    ((const WireExec *)(const void *)small_payload)->size != size)
		return init_map(fd, true, sizeof(WireExec), ret_payload);
	*ret_payload = small_payload;
	return ((const WireExec *)(const void *)small_payload)->magic == WIRE_MAGIC ? 0 : -EBADMSG;
}

static void take_request(ExecInit *exec, ChildSetup *child, bool for_terminal)
{
	int fds[WIRE_MAX_FDS];
	size_t count = await_message(exec, WIRE_EXEC, fds);
	char **argv, **env;
	void *payload;
	int r = count > 0 ? get_payload(fds[FD_PAYLOAD], &payload) : -EBADMSG;

	if (r < 0 || (r = relocate(payload, &argv, &env)) < 0)
		exec_init_fail(exec, EXR_STAGE_PAYLOAD, -r);
	exec->request = child->request = payload;
	child->argv = argv;
	child->env = env;
	if (!are_its_fds(child->request, count) ||
	    for_terminal != !!(child->request->flags & WIRE_EXEC_TERMINAL))
		exec_init_fail(exec, EXR_STAGE_PAYLOAD, EBADMSG);
	fd_close(&fds[FD_PAYLOAD]);
	if (for_terminal)
		give_terminal(exec, child);
	else
		take_pipes(child, fds, count);
	(void)await_message(exec, WIRE_GO, fds);
}

/* If the supervisor let go, nobody hears that either. */
static void tell_command(const ExecInit *exec, int pidfd)
{
	WireMessage message = { .type = WIRE_COMMAND };
	int r = packet_send(exec->control_fd, &message, &pidfd, 1);

	if (r < 0)
		exec_init_fail(exec, EXR_STAGE_FORK, -r);
}

/* All that can fail comes before the command's process exists, so that none runs of which it is said that it
 * did not; what comes after cannot, but for the capabilities that a terminal was mounted with: should they not go,
 * everything is killed. */
static _Noreturn void exec_init(const WirePlan *plan, int control_fd, int flags)
{
	ExecInit exec = { .plan = plan, .control_fd = control_fd, .proc_fd = -1 };
	ChildSetup child = {
		.plan = plan,
		.stdio = { -1, -1, -1 },
		.terminal = { -1, -1, -1 },
		.home_fd = -1,
	};
	const bool for_terminal = flags & WIRE_PREPARE_TERMINAL;
	int pidfd = -1, r;
	bool wants_pidfd;

	prepare(&exec, &child, for_terminal);
	r = flags & (WIRE_PREPARE_TERMINAL | WIRE_PREPARE_STAY) ? 0 : wait_in_view(&exec, &child);
	tell_prepared(&exec, -r);
	take_request(&exec, &child, for_terminal);
	wants_pidfd = exec.request->flags & WIRE_EXEC_LIVE;
	exec.command = clone_command(&child, wants_pidfd ? &pidfd : NULL);
	if (exec.command < 0)
		exec_init_fail(&exec, EXR_STAGE_FORK, -exec.command);
	close_given(&child);
	if (wants_pidfd)
		tell_command(&exec, pidfd);
	fd_close(&pidfd);
	if (for_terminal && !exec_init_is_plain(&exec) && (r = exr_child_drop_caps()) < 0)
		exec_init_fail(&exec, EXR_STAGE_FORK, -r);
	exec_init_watch(&exec);
}

/* Mount namespaces of execs that run. The last end of one takes all its mounts down, which takes longer than all else at
 * an exec's end: while we have it open that is not its init's affair, whose end is waited for, but ours, later. What
 * has no room, or no ioctl (before Linux 6.11), does it itself. */
#define HELD_MAX 128

static struct {
	pid_t pid; /* 0: unused */
	int fd;
} held[HELD_MAX];

static void hold_mounts(pid_t pid, int pidfd)
{
	size_t i = 0;
	int fd;

	while (i < HELD_MAX && held[i].pid != 0)
		i++;
	if (i == HELD_MAX || (fd = ioctl(pidfd, PIDFD_GET_MNT_NAMESPACE, 0)) < 0)
		return;
	held[i].pid = pid;
	held[i].fd = fd;
}

void init_exec_ended(pid_t pid)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (held[i].pid == pid) {
			held[i].pid = 0;
			fd_close(&held[i].fd);
			return;
		}
}

int init_exec_start(const WirePlan *plan, int control_fd, int flags, int *ret_pidfd)
{
	uint64_t namespaces = plan->flags & WIRE_PLAN_PLAIN ? 0 : CLONE_NEWPID | CLONE_NEWNS;
	int pidfd = -1;
	pid_t pid = sys_clone3(CLONE_PIDFD | namespaces, SIGCHLD, &pidfd);

	if (pid == 0)
		exec_init(plan, control_fd, flags);
	if (pid < 0)
		return pid;
	if (namespaces)
		hold_mounts(pid, pidfd);
	*ret_pidfd = pidfd;
	return 0;
}
