/* Programs of ours; see spawn.h. */
#include "executor/spawn.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/syscall-wrap.h"

#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Above every number that a child gives a meaning to. */
#define HIGH_FD	   10
#define CONTROL_FD 3

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

void exr_signals_to_default(void)
{
	struct sigaction standard;
	sigset_t none;

	memset(&standard, 0, sizeof standard);
	standard.sa_handler = SIG_DFL;
	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &standard, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
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
	static const char *const passed[] = { "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",
					      "UBSAN_OPTIONS" };
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
static int child_fds(int control_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, HIGH_FD);

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
	return sys_close_range(control_fd >= 0 ? CONTROL_FD + 1 : CONTROL_FD, ~0u,
			       CLOSE_RANGE_CLOEXEC);
}

static _Noreturn void child(const char *path, const char *const *argv, const char *const *env,
			    int control_fd, int status_fd)
{
	int r;

	(void)setsid();
	r = child_fds(control_fd);
	if (r == 0) {
		exr_signals_to_default();
		/* execve takes pointers to what it does not change. */
		execve(path, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
		r = -errno;
	}
	(void)!write(status_fd, &r, sizeof r);
	_exit(127);
}

static int high_copy(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	return copy < 0 ? -errno : copy;
}

int exr_spawn(const char *path, const char *const *argv, const char *const *env, int control_fd,
	      ExrProcess *ret_process)
{
	ExrProcess process = EXR_NO_PROCESS;
	FD_AUTO control = -1;
	FD_AUTO status_read = -1;
	FD_AUTO status_write = -1;
	sigset_t mask;
	int pipe_fds[2], result = 0;

	if (control_fd >= 0 && (control = high_copy(control_fd)) < 0)
		return control;
	if (pipe2(pipe_fds, O_CLOEXEC) != 0)
		return -errno;
	status_read = pipe_fds[0];
	status_write = high_copy(pipe_fds[1]);
	fd_close(&pipe_fds[1]);
	if (status_write < 0)
		return status_write;
	exr_signals_block_all(&mask);
	process.pid = sys_clone3(CLONE_PIDFD, SIGCHLD, &process.pidfd);
	if (process.pid == 0)
		child(path, argv, env, control, status_write);
	exr_signals_restore(&mask);
	if (process.pid < 0)
		return process.pid;
	fd_close(&status_write);
	/* The end of file means that execve happened. It has a deadline because a process that another
	 * thread forks at this moment holds a copy of the pipe. */
	if (exr_wait_readable(status_read, EXEC_TIMEOUT_MS) < 0)
		result = -ETIMEDOUT;
	else
		(void)io_read_all(status_read, &result, sizeof result);
	if (result < 0) {
		(void)exr_process_end(&process, 0, EXEC_TIMEOUT_MS);
		return result;
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
