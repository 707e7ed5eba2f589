/* Programs of ours; see spawn.h. */
#include "executor/spawn.h"

#include "common/fd-util.h"
#include "common/syscall-wrap.h"

#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Above every number that a child gives a meaning to. */
#define HIGH_FD	   10
#define CONTROL_FD 3

/* For one that has failed already to be gone. */
#define EXEC_TIMEOUT_MS 10000

void exr_signals_block_all(void *ret_mask)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, ret_mask);
}

void exr_signals_restore(const void *mask)
{
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

/* What a terminal has sent to the group that we were in until a moment ago was not meant for us: ignoring a
 * signal forgets those that wait. */
static void forget_keys(void)
{
	static const int keys[] = { SIGINT, SIGQUIT, SIGTSTP, SIGHUP };

	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		(void)signal(keys[i], SIG_IGN);
}

int exr_signals_to_default(void)
{
	struct sigaction standard;
	sigset_t none;

	forget_keys();
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

int exr_socketpair(int type, int ret_fds[static 2])
{
	FD_AUTO first = -1;
	FD_AUTO second = -1;
	int pair[2];

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	first = pair[0];
	second = pair[1];
	for (int i = 0; i < 2; i++) {
		int *fd = i == 0 ? &first : &second;
		int moved;

		if (*fd > 2)
			continue;
		if ((moved = fd_dup(*fd)) < 0)
			return moved;
		fd_close(fd);
		*fd = moved;
	}
	ret_fds[0] = fd_steal(&first);
	ret_fds[1] = fd_steal(&second);
	return 0;
}

int exr_wait_readable(int fd, int timeout_ms)
{
	gint64 deadline = g_get_monotonic_time() + (gint64)timeout_ms * 1000;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		gint64 left = deadline - g_get_monotonic_time();
		int r = poll(&p, 1,
			     timeout_ms < 0 ? -1
			     : left < 0	    ? 0
					    : (int)((left + 999) / 1000));

		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

char **exr_spawn_env(void)
{
	/* G_SLICE: ThreadSanitizer does not see that glib's own allocator gives memory to another thread. */
	static const char *const passed[] = { "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",
					      "UBSAN_OPTIONS", "G_SLICE" };
	GPtrArray *env = g_ptr_array_new();

	g_ptr_array_add(env, g_strdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
				      "/sbin:/bin"));
	g_ptr_array_add(env, g_strdup("LANG=C.UTF-8"));
	for (size_t i = 0; i < G_N_ELEMENTS(passed); i++) {
		const char *value = g_getenv(passed[i]);

		if (value)
			g_ptr_array_add(env, g_strconcat(passed[i], "=", value, NULL));
	}
	g_ptr_array_add(env, NULL);
	return (char **)g_ptr_array_free(env, FALSE);
}

/* Between the clone and execve: only system calls. */
static int take_leash(int leash_fd)
{
	if (dup2(leash_fd, STDIN_FILENO) < 0 || fcntl(STDIN_FILENO, F_SETOWN, getpid()) < 0 ||
	    fcntl(STDIN_FILENO, F_SETSIG, SIGCONT) < 0 || fcntl(STDIN_FILENO, F_SETFL, O_ASYNC) < 0)
		return -errno;
	return 0;
}

static int child_fds(int control_fd, int leash_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, HIGH_FD);
	int r;

	if (high < 0)
		return -errno;
	/* A closed stderr may have become the number of null itself: high is no stream's. */
	if (fcntl(STDERR_FILENO, F_GETFD) < 0 && dup2(high, STDERR_FILENO) < 0)
		return -errno;
	if (dup2(high, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
	    dup2(STDERR_FILENO, STDERR_FILENO) < 0)
		return -errno;
	if (fd_set_cloexec(STDERR_FILENO, false) < 0)
		return -errno;
	if (control_fd >= 0 && dup2(control_fd, CONTROL_FD) < 0)
		return -errno;
	if (leash_fd >= 0 && (r = take_leash(leash_fd)) < 0)
		return r;
	return sys_close_range(control_fd >= 0 ? CONTROL_FD + 1 : CONTROL_FD, ~0u,
			       CLOSE_RANGE_CLOEXEC);
}

typedef struct {
	const char *path;
	const char *const *argv;
	const char *const *env;
	int control_fd;
	int leash_fd;
	int *result; /* in memory that the child shares also where it is a copy of us (ThreadSanitizer) */
} Child;

static int child(void *data)
{
	const Child *child = data;
	int r = setsid() < 0 ? -errno : child_fds(child->control_fd, child->leash_fd);

	if (r == 0)
		r = exr_signals_to_default();
	if (r == 0) {
		/* execve takes pointers to what it does not change. */
		execve(child->path, (char *const *)(uintptr_t)child->argv,
		       (char *const *)(uintptr_t)child->env);
		r = -errno;
	}
	*child->result = r;
	_exit(127);
}

static int high_copy(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	return copy < 0 ? -errno : copy;
}

int exr_spawn(const char *path, const char *const *argv, const char *const *env, int control_fd,
	      int leash_fd, ExrProcess *ret_process)
{
	ExrProcess process = EXR_NO_PROCESS;
	Child started = {
		.path = path, .argv = argv, .env = env, .control_fd = -1, .leash_fd = -1
	};
	FD_AUTO control = -1;
	FD_AUTO leash = -1;
	sigset_t mask;
	int *result, r;

	if (control_fd >= 0 && (started.control_fd = control = high_copy(control_fd)) < 0)
		return control;
	if (leash_fd >= 0 && (started.leash_fd = leash = high_copy(leash_fd)) < 0)
		return leash;
	result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (result == MAP_FAILED)
		return -errno;
	started.result = result;
	exr_signals_block_all(&mask);
	process.pid = sys_clone_until_exec(CLONE_PIDFD, child, &started, &process.pidfd);
	exr_signals_restore(&mask);
	r = *result;
	(void)munmap(result, sizeof *result);
	if (process.pid < 0)
		return process.pid;
	if (r < 0) {
		(void)exr_process_end(&process, 0, EXEC_TIMEOUT_MS);
		return r;
	}
	*ret_process = process;
	return 0;
}

static void reap(ExrProcess *process)
{
	siginfo_t info;

	/* ECHILD: the host ignores SIGCHLD, or has waited for every child there is. */
	while (waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | __WALL) != 0 &&
	       errno == EINTR)
		;
	fd_close(&process->pidfd);
	process->pid = 0;
}

int exr_process_wait(ExrProcess *process, int timeout_ms)
{
	int r;

	if (process->pidfd < 0)
		return 0;
	if ((r = exr_wait_readable(process->pidfd, timeout_ms)) < 0)
		return r;
	reap(process);
	return 0;
}

void exr_process_kill(const ExrProcess *process)
{
	if (process->pidfd >= 0)
		(void)sys_pidfd_send_signal(process->pidfd, SIGKILL);
}

int exr_process_end(ExrProcess *process, int timeout_ms, int kill_timeout_ms)
{
	if (exr_process_wait(process, timeout_ms) == 0)
		return 0;
	exr_process_kill(process);
	if (exr_process_wait(process, kill_timeout_ms) == 0)
		return 0;
	fd_close(&process->pidfd);
	process->pid = 0;
	return -ETIMEDOUT;
}
