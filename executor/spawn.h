/* Starting a program of ours, and waiting for one with a deadline.
 *
 * Processes are known by their pidfd. No signal handler is touched and no child but ours is waited for,
 * so that a host agent's own way with SIGCHLD is not disturbed, whatever it is. */
#pragma once

#include <sys/types.h>

/* A process of ours; -1 and 0 when there is none. */
typedef struct {
	int pidfd;
	pid_t pid;
} ExrProcess;

#define EXR_NO_PROCESS                                                                             \
	{                                                                                          \
		.pidfd = -1, .pid = 0                                                              \
	}

/* Executes path (absolute) in a session of its own: stdin is /dev/null, stdout and stderr are the caller's
 * stderr, control_fd (borrowed; -1: none) is fd 3, nothing else is open. Returns 0 once the program
 * runs, or -errno, also that of execve.
 *
 * leash_fd (borrowed; -1: none), a pipe to which nothing is written, is its stdin instead: when the other end is
 * closed, be it by the caller's death, a program that is stopped gets SIGCONT, and so comes to see the end of its
 * control socket. */
int exr_spawn(const char *path, const char *const *argv, const char *const *env, int control_fd,
	      int leash_fd, ExrProcess *ret_process);

/* What a program of ours gets as its environment: fixed, but for the options of sanitizers. NULL-ended;
 * g_strfreev. */
char **exr_spawn_env(void);

/* Waits until the process has ended, and reaps it. 0, or -ETIMEDOUT. 0 too for EXR_NO_PROCESS. */
int exr_process_wait(ExrProcess *process, int timeout_ms);
/* SIGKILL. No error when it has ended. */
void exr_process_kill(const ExrProcess *process);
/* Waits, kills after timeout_ms, waits kill_timeout_ms, and lets go in any case. 0 or -ETIMEDOUT. */
int exr_process_end(ExrProcess *process, int timeout_ms, int kill_timeout_ms);

/* Whether an fd becomes readable within timeout_ms (< 0: for ever). 0, -ETIMEDOUT or -errno. */
int exr_wait_readable(int fd, int timeout_ms);

/* A pair of close-on-exec sockets, both above 2. 0 or -errno. */
int exr_socketpair(int type, int ret_fds[static 2]);

/* Around a raw clone: signals neither reach our handlers in the child nor get lost. */
void exr_signals_block_all(void *ret_mask);
void exr_signals_restore(const void *mask);
/* In the child, in a session of its own, before execve: defaults, none blocked. 0 or -errno. */
int exr_signals_to_default(void);
