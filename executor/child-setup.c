/* The command's process between its birth and execve: what makes it harmless.
 *
 * It starts as a copy of exec init, which has given up its capabilities by then unless there is a terminal to be
 * mounted, and ends as the program. Each step is one function that returns 0 or -errno; the first that
 * fails is reported with its stage and nothing is run. Their order is the argument for their safety:
 *   - a terminal first, for it is mounted, and the supervisor waits for it; only then are there capabilities yet;
 *   - then the fds go, so that nothing of ours is open while paths of the view are walked;
 *   - ids and capabilities are what they were in exec init, and are set once more all the same; the
 *     bounding set is empty and the securebits are locked since init, so that a command whose user is 0
 *     inside gains nothing by an execve either, and here it is checked that they are;
 *   - chdir is done inside, by the process itself, and without capabilities: with them the links in /proc
 *     of exec init would lead somewhere. The kernel is asked where it led: a place outside the root
 *     would be "(unreachable)" or not absolute;
 *   - the filter last but for execve. Without a terminal exec init has loaded it before, for itself too: nothing of
 *     the above is then what it refuses.
 * Only system calls, no memory but the stack. The program's name is looked up here, in the view, never
 * before: a path that exists on the host only does not exist for it. */
#include "executor/init.h"
#include "executor/scope.h"
#include "executor/seccomp-filter.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Where a program is looked for when its environment has no PATH. */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define PATH_BYTES   4096
#define STATUS_FD    3

/* Dispositions are at their defaults since init started, for nothing here ever changes one. */
static int reset_signals(ChildSetup *child)
{
	sigset_t none;

	(void)child;
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) != 0 ? -errno : 0;
}

static int new_session(ChildSetup *child)
{
	if (setsid() < 0)
		return -errno;
	return child->terminal.slave_fd < 0 ? 0 : init_terminal_take(&child->terminal);
}

/* Its keys reach the command by now: none is lost that is typed as soon as the master is there. */
static int hand_terminal_up(ChildSetup *child)
{
	return child->terminal.slave_fd < 0
		       ? 0
		       : init_terminal_hand_up(&child->terminal, child->control_fd);
}

/* Standard streams at 0 to 2, the status pipe at 3, and nothing else. All of them are above 2 before,
 * init's own standard streams being open. */
static int take_fds(ChildSetup *child)
{
	for (int fd = 0; fd < 3; fd++)
		if (dup2(child->stdio[fd], fd) < 0)
			return -errno;
	if (child->status_fd != STATUS_FD) {
		if (dup3(child->status_fd, STATUS_FD, O_CLOEXEC) < 0)
			return -errno;
		child->status_fd = STATUS_FD;
	}
	return sys_close_range(STATUS_FD + 1, ~0u, 0);
}

/* Not in the directory that init keeps. What the kernel knows is enough for that. */
static int check_left(const ChildSetup *child)
{
	struct statx stx;

	if (child->plan->flags & WIRE_PLAN_PLAIN)
		return 0;
	if (statx(AT_FDCWD, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) != 0)
		return -errno;
	return stx.stx_mnt_id == child->mask_mount ? -ENOENT : 0;
}

static const char *wanted_cwd(const ChildSetup *child)
{
	return wire_text(child->request, child->request->cwd);
}

/* exec init has gone where its command was likely to begin. Where it is to begin elsewhere, it sets out from init's own
 * directory like one whose init has not: what a path through /proc means is the same for both. */
static int leave_waiting_dir(ChildSetup *child)
{
	if (child->home_fd < 0)
		return 0;
	child->is_there =
		strcmp(wanted_cwd(child), wire_text(child->plan, child->plan->waiting_dir)) == 0;
	return child->is_there || fchdir(child->home_fd) == 0 ? 0 : -errno;
}

/* Where we are is in the root, and not in the directory that init keeps. */
static int check_cwd(const ChildSetup *child)
{
	char where[PATH_BYTES];

	/* The system call, not libc's function, which would go looking for another answer. */
	if (syscall(SYS_getcwd, where, sizeof where) < 0)
		return -errno;
	return where[0] == '/' ? check_left(child) : -ENOENT;
}

static int enter_cwd(ChildSetup *child)
{
	static const char proc[] = "/proc";
	const char *cwd = wanted_cwd(child);

	/* Unless the kernel has dropped that name meanwhile. */
	if (child->is_there && check_cwd(child) == 0)
		return 0;

	/* /proc/self/cwd is a path like any other, and the root for one that was nowhere else. But for those paths, being
	 * there first would cost a question to the gateway. */
	if (strncmp(cwd, proc, sizeof proc - 1) == 0 && chdir("/") != 0)
		return -errno;
	return chdir(cwd) != 0 ? -errno : check_cwd(child);
}

/* A limit that is already lower stays: raising it is not ours to do. */
static int set_limit(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit now, wanted = { .rlim_cur = soft, .rlim_max = hard };

	if (getrlimit((__rlimit_resource_t)resource, &now) != 0)
		return -errno;
	if (wanted.rlim_max > now.rlim_max)
		wanted.rlim_max = now.rlim_max;
	if (wanted.rlim_cur > wanted.rlim_max)
		wanted.rlim_cur = wanted.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &wanted) != 0 ? -errno : 0;
}

static int set_limits(ChildSetup *child)
{
	int r = set_limit(RLIMIT_NOFILE, init_open_files, RLIM_INFINITY);

	umask(022);
	for (uint32_t i = 0; r == 0 && i < child->request->limit_count; i++)
		r = set_limit((int)child->request->limits[i].resource,
			      child->request->limits[i].soft, child->request->limits[i].hard);
	return r;
}

static int take_ids(ChildSetup *child)
{
	uid_t id = child->plan->uid;

	if (setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0)
		return -errno;
	return 0;
}

/* The rest went in init (lock_caps, init-main.c). */
int exr_child_drop_caps(void)
{
	uint64_t effective, permitted, inheritable;
	int r;

	if ((r = sys_capset(0, 0, 0)) < 0)
		return r;
	if ((r = sys_capget(&effective, &permitted, &inheritable)) < 0)
		return r;
	if (effective || permitted || inheritable || prctl(PR_CAPBSET_READ, 0, 0, 0, 0) != 0 ||
	    prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != EXR_SECUREBITS)
		return -EPERM;
	/* Changed credentials set it to the sysctl fs.suid_dumpable; execve decides anew. */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ? -errno : 0;
}

static int drop_caps(ChildSetup *child)
{
	(void)child;
	return exr_child_drop_caps();
}

static int set_no_new_privs(ChildSetup *child)
{
	(void)child;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -errno : 0;
}

static int enter_scope(ChildSetup *child)
{
	return child->plan->flags & WIRE_PLAN_SCOPE ? exr_scope_enter() : 0;
}

static int load_seccomp(ChildSetup *child)
{
	return exr_seccomp_load(wire_text(child->plan, child->plan->seccomp_code),
				child->plan->seccomp_size);
}

typedef enum {
	ALWAYS,
	ISOLATES, /* not for a plan that is PLAIN */
	FILTERS,  /* nor once exr_child_filter() was done */
} StepKind;

static const struct {
	int (*run)(ChildSetup *child);
	ExrStage stage;
	StepKind kind;
} steps[] = {
	{ leave_waiting_dir, EXR_STAGE_CWD, ALWAYS },
	{ new_session, EXR_STAGE_NEW_SESSION, ALWAYS },
	{ hand_terminal_up, EXR_STAGE_TERMINAL, ALWAYS },
	{ take_fds, EXR_STAGE_STDIO, ALWAYS },
	{ reset_signals, EXR_STAGE_SIGNALS, ALWAYS },
	{ take_ids, EXR_STAGE_IDS, ISOLATES },
	{ drop_caps, EXR_STAGE_DROP_CAPS, ISOLATES },
	{ enter_cwd, EXR_STAGE_CWD, ALWAYS },
	{ set_no_new_privs, EXR_STAGE_NO_NEW_PRIVS, FILTERS },
	{ enter_scope, EXR_STAGE_SCOPE, FILTERS },
	{ set_limits, EXR_STAGE_LIMITS, ALWAYS },     /* after what needs a descriptor */
	{ load_seccomp, EXR_STAGE_SECCOMP, FILTERS }, /* last */
};

#define STEPS (sizeof steps / sizeof steps[0])

int exr_child_filter(ChildSetup *child, ExrStage *ret_stage)
{
	for (size_t i = 0; i < STEPS; i++) {
		int r = steps[i].kind == FILTERS ? steps[i].run(child) : 0;

		if (r < 0) {
			*ret_stage = steps[i].stage;
			return r;
		}
	}
	child->is_filtered = true;
	return 0;
}

static bool is_left_out(const ChildSetup *child, StepKind kind)
{
	return kind != ALWAYS &&
	       ((child->plan->flags & WIRE_PLAN_PLAIN) || (kind == FILTERS && child->is_filtered));
}

static _Noreturn void fail(const ChildSetup *child, ExrStage stage, int errnum)
{
	ChildFailure failure = { .stage = stage, .errnum = errnum };

	/* Smaller than PIPE_BUF: written whole or not at all. */
	(void)!write(child->status_fd, &failure, sizeof failure);
	_exit(127);
}

/* ENOENT for a file that exists is about the interpreter in its first line, or its loader. */
static ExrStage exec_stage(const char *path, int errnum)
{
	return errnum == ENOENT && access(path, F_OK) == 0 ? EXR_STAGE_INTERPRETER : EXR_STAGE_EXEC;
}

static const char *find_path(char *const *env)
{
	for (; *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return DEFAULT_PATH;
}

/* As execvp, but for two things: an empty element is not the current directory, and a file that is
 * no program is an error, not a script for some shell. */
static _Noreturn void exec_by_path(const ChildSetup *child, const char *name)
{
	const char *at = find_path(child->env);
	size_t name_length = strlen(name);
	int refused = 0;

	while (*at) {
		size_t length = strcspn(at, ":");
		char path[PATH_BYTES];

		if (length > 0 && length + 1 + name_length < sizeof path) {
			ExrStage stage;
			int errnum;

			memcpy(path, at, length);
			path[length] = '/';
			memcpy(path + length + 1, name, name_length + 1);
			execve(path, child->argv, child->env);
			errnum = errno;
			stage = exec_stage(path, errnum);
			if (stage == EXR_STAGE_INTERPRETER)
				fail(child, stage, errnum);
			if (errnum == EACCES)
				refused = errnum;
			else if (errnum != ENOENT && errnum != ENOTDIR)
				fail(child, stage, errnum);
		}
		at += length;
		at += *at == ':';
	}
	fail(child, EXR_STAGE_EXEC, refused ? refused : ENOENT);
}

void exr_child_setup(const ChildSetup *given)
{
	ChildSetup child = *given;
	const char *program = child.argv[0];

	for (size_t i = 0; i < STEPS; i++) {
		int r = is_left_out(&child, steps[i].kind) ? 0 : steps[i].run(&child);

		if (r < 0)
			fail(&child, steps[i].stage, -r);
	}
	if (program[0] == '\0')
		fail(&child, EXR_STAGE_EXEC, ENOENT);
	if (!strchr(program, '/'))
		exec_by_path(&child, program);
	execve(program, child.argv, child.env);
	fail(&child, exec_stage(program, errno), errno);
}
