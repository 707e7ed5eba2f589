/* One exec: PID 1 of a pid namespace of its own, with a /proc of its own, around one command.
 *
 * The pid namespace is what makes an end an end: when this process exits, the kernel kills whatever the
 * command has left, however it hid. It exits when the command does, when the supervisor kills it, and
 * when the supervisor's end of its socket is closed.
 *
 * It never looks anything up in the view, so that a gateway that hangs can hang the command but not this
 * process, which is still able to pass on signals. That is why init's current directory is the mask
 * directory below the session's proc: a new mount namespace takes the current directory along, so that
 * "." is where the new proc goes and what the masks are made of, without a path from the root.
 *
 * The command shares our user id. It cannot trace or signal us: we are not dumpable, and a PID 1
 * without handlers ignores what comes from inside its namespace. */
#include "executor/init.h"

#include "common/mount-util.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The fds of WIRE_EXEC, in their order. */
enum { FD_PAYLOAD, FD_CONTROL, FD_STDOUT, FD_STDERR, FD_STDIN };

typedef struct {
	const WirePlan *plan;
	const WireExec *request;
	int control_fd;
	int proc_fd; /* the root of this exec's proc */
	pid_t command;
} ExecInit;

/* What of /proc is nobody's business inside, and what only root could misuse but is shut all the same:
 * the mount is of a user namespace, yet process.user may be 0. Names that a kernel does not have are
 * skipped. */
typedef enum { MASK_FILE, MASK_DIRECTORY, MASK_READ_ONLY } MaskKind;

static const struct {
	const char *name;
	MaskKind kind;
} masks[] = {
	{ "kcore", MASK_FILE },		{ "keys", MASK_FILE },
	{ "timer_list", MASK_FILE },	{ "sched_debug", MASK_FILE },
	{ "latency_stats", MASK_FILE }, { "acpi", MASK_DIRECTORY },
	{ "scsi", MASK_DIRECTORY },	{ "sys", MASK_READ_ONLY },
	{ "bus", MASK_READ_ONLY },	{ "fs", MASK_READ_ONLY },
	{ "irq", MASK_READ_ONLY },	{ "sysrq-trigger", MASK_READ_ONLY },
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

static _Noreturn void end_with(const ExecInit *exec, const WireMessage *message)
{
	(void)packet_send(exec->control_fd, message, NULL, 0);
	_exit(0);
}

static _Noreturn void end_failed(const ExecInit *exec, unsigned int stage, int errnum)
{
	WireMessage message = {
		.type = WIRE_FAILED, .stage = stage, .errnum = errnum, .value = -1
	};

	end_with(exec, &message);
}

static bool is_alive(int proc_fd, const char *pid)
{
	char path[32], text[512];
	const char *state;
	ssize_t size;
	FD_AUTO fd = -1;

	snprintf(path, sizeof path, "%.16s/stat", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size = read(fd, text, sizeof text - 1);
	if (size <= 0)
		return false;
	text[size] = '\0';
	/* The name in parentheses is the process's own choice: the state is behind the last one. */
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] != 'Z' && state[2] != 'X';
}

/* Processes of this pid namespace but ourselves; they come and go while we count. -1 when it cannot be
 * known. */
static int count_left_over(int proc_fd)
{
	struct {
		uint64_t ino;
		int64_t off;
		uint16_t size;
		uint8_t type;
		char name[];
	} * entry;
	_Alignas(8) char buffer[4096];
	FD_AUTO dir = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int count = 0;
	long got = -1;

	while (dir >= 0 && (got = syscall(SYS_getdents64, dir, buffer, sizeof buffer)) > 0) {
		for (long at = 0; at < got; at += entry->size) {
			entry = (void *)(buffer + at);
			if (entry->name[0] < '1' || entry->name[0] > '9' ||
			    strcmp(entry->name, "1") == 0)
				continue;
			count += is_alive(proc_fd, entry->name);
		}
	}
	return got < 0 ? -1 : count;
}

/* The command has ended. Its failure to start, if that is what it was, is in the status pipe. */
static _Noreturn void end_of_command(const ExecInit *exec, int status_fd, int status)
{
	WireMessage message = { .type = WIRE_ENDED, .value = status };
	ChildFailure failure;
	struct rusage usage;

	if (read(status_fd, &failure, sizeof failure) == sizeof failure)
		end_failed(exec, failure.stage, failure.errnum);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
		message.cpu_us =
			(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) +
			usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
		message.max_rss_kib = usage.ru_maxrss;
	}
	message.left_over = count_left_over(exec->proc_fd);
	end_with(exec, &message);
}

static void reap(const ExecInit *exec, int status_fd)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == exec->command)
			end_of_command(exec, status_fd, status);
}

static void pass_signal_on(const ExecInit *exec)
{
	WireMessage message;
	int r = packet_receive(exec->control_fd, 0, &message, NULL, NULL);

	if (r == -ETIMEDOUT)
		return;
	if (r < 0)
		_exit(1); /* the supervisor let go of this exec: everything of it dies */
	if (message.type != WIRE_SIGNAL)
		return;
	/* Until the command has made its own session it has no group of its own. */
	if (kill(-exec->command, message.value) != 0)
		(void)kill(exec->command, message.value);
}

static _Noreturn void watch(const ExecInit *exec, int status_fd, int signals)
{
	struct pollfd p[] = {
		{ .fd = exec->control_fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	struct signalfd_siginfo info;

	for (;;) {
		if (poll(p, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			_exit(1);
		}
		if (p[1].revents) {
			while (read(signals, &info, sizeof info) > 0)
				;
			reap(exec, status_fd);
		}
		if (p[0].revents)
			pass_signal_on(exec);
	}
}

static void close_all_but(int first, int second, int third)
{
	int keep[] = { first, second, third };

	/* Smallest first. */
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			if (keep[j] > keep[j + 1]) {
				int swap = keep[j];

				keep[j] = keep[j + 1];
				keep[j + 1] = swap;
			}
	for (int i = 0, from = WIRE_INIT_FD; i <= 3; i++) {
		int next = i < 3 ? keep[i] : -1;

		if (i == 3)
			(void)sys_close_range((unsigned int)from, ~0u, 0);
		else if (next > from)
			(void)sys_close_range((unsigned int)from, (unsigned int)next - 1, 0);
		from = next + 1;
	}
}

static int signal_fd(void)
{
	sigset_t child;
	int fd;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Every signal is blocked here (init's mask), so none is lost between the clone and the signalfd. */
static _Noreturn void exec_init(const WirePlan *plan, const int *fds, size_t fd_count)
{
	ExecInit exec = { .plan = plan, .control_fd = fds[FD_CONTROL], .proc_fd = -1 };
	ChildSetup child = {
		.plan = plan,
		.stdio = { fd_count > FD_STDIN ? fds[FD_STDIN] : -1, fds[FD_STDOUT],
			   fds[FD_STDERR] },
	};
	int status[2], signals, r;
	char **argv, **env;
	void *payload;

	if ((r = init_map(fds[FD_PAYLOAD], true, sizeof(WireExec), &payload)) < 0 ||
	    (r = relocate(payload, &argv, &env)) < 0)
		end_failed(&exec, EXR_STAGE_PAYLOAD, -r);
	child.request = payload;
	child.argv = argv;
	child.env = env;
	if ((fd_count > FD_STDIN) == (child.request->stdin_null != 0))
		end_failed(&exec, EXR_STAGE_PAYLOAD, EBADMSG);
	if ((r = mount_own_proc(&exec.proc_fd)) < 0)
		end_failed(&exec, EXR_STAGE_EXEC_PROC, -r);
	if (pipe2(status, O_CLOEXEC) != 0)
		end_failed(&exec, EXR_STAGE_FORK, errno);
	child.status_fd = status[1];
	exec.command = sys_clone3(0, SIGCHLD, NULL);
	if (exec.command < 0)
		end_failed(&exec, EXR_STAGE_FORK, -exec.command);
	if (exec.command == 0)
		exr_child_setup(&child);
	close_all_but(exec.control_fd, exec.proc_fd, status[0]);
	/* A failure to give up what is not needed any more must not go unnoticed either. */
	if ((r = exr_child_drop_caps()) < 0 || (r = signals = signal_fd()) < 0)
		end_failed(&exec, EXR_STAGE_FORK, -r);
	watch(&exec, status[0], signals);
}

int init_exec_start(const WirePlan *plan, int *take_fds, size_t fd_count, int *ret_pidfd)
{
	int pidfd = -1;
	pid_t pid = -EBADMSG;

	if (fd_count == FD_STDIN || fd_count == FD_STDIN + 1) {
		pid = sys_clone3(CLONE_NEWPID | CLONE_NEWNS | CLONE_PIDFD, SIGCHLD, &pidfd);
		if (pid == 0)
			exec_init(plan, take_fds, fd_count);
	}
	for (size_t i = 0; i < fd_count; i++)
		fd_close(&take_fds[i]);
	if (pid < 0)
		return pid;
	*ret_pidfd = pidfd;
	return 0;
}
