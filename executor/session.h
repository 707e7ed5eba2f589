/* A session: one gateway, one sandbox in its namespaces, and the commands that run in it.
 *
 *   exr_session_new()   state directory, gateway, namespaces, root file system: once
 *   exr_exec_start()    one command: own pid namespace, own /proc, pipes of ours as its stdio
 *   exr_exec_finish()   its end: every process of it is gone when this returns
 *   exr_session_free()  ends what still runs, the sandbox, the gateway; removes what was made
 *
 * A session belongs to one thread at a time. No signal handler is installed, no foreign child reaped;
 * nothing here touches the view itself, so that a hung gateway cannot hang the caller. */
#pragma once

#include "common/policy.h"
#include "common/view-plan.h"
#include "executor/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ExrSession ExrSession;
typedef struct ExrExec ExrExec;

typedef struct {
	const StellaPolicy *policy; /* what was asked for */
	bool temporary_user; /* make a private directory of the session and mount it at /user */
} ExrSessionConfig;

/* Starts everything. On failure -errno with *reterr_error filled (stage, errno, message, hint), nothing
 * left behind. Takes some milliseconds; every wait inside has a deadline. */
int exr_session_new(const ExrSessionConfig *config, ExrSession **ret_session,
		    ExrError *reterr_error);
/* NULL is allowed. Bounded: 2 s for processes that do not die, then the gateway is killed. */
void exr_session_free(ExrSession *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrSession, exr_session_free)

const char *exr_session_id(const ExrSession *session);	     /* "sandbox-0123456789abcdef" */
const ViewPlan *exr_session_plan(const ExrSession *session); /* the plan with all implied mounts */
bool exr_session_alive(const ExrSession *session);	     /* gateway and init are running */

/* What the policy implies and this kernel cannot enforce: "network.abstract_sockets" when commands share
 * the host's network and its abstract unix sockets are open to them. NULL-ended, static storage. */
const char *const *exr_session_unenforced(const ExrSession *session);

/* One command, all of it decided by the caller. Borrowed until exr_exec_start() returns. */
typedef struct {
	const char *const
		*argv;		/* at least one; argv[0] without a slash is looked up in env's PATH,
				    inside the view */
	const char *const *env; /* NAME=value, complete */
	const char *cwd;	/* a view path */
	bool stdin_null;	/* stdin is /dev/null; no stdin pipe is made */
} ExrRequest;

/* Starts the command. That the program could not be executed is an end (exr_exec_finish tells), not
 * an error here; -errno with *reterr_error only when the session could not take the request
 * (closed, payload too large, no memory). */
int exr_exec_start(ExrSession *session, const ExrRequest *request, ExrExec **ret_exec,
		   ExrError *reterr_error);

/* Our ends of its pipes, non-blocking; owned by the exec. -1 when there is none (any more). */
int exr_exec_stdin_fd(const ExrExec *exec);
int exr_exec_stdout_fd(const ExrExec *exec);
int exr_exec_stderr_fd(const ExrExec *exec);
void exr_exec_close_stdin(ExrExec *exec);
void exr_exec_close_stdout(ExrExec *exec);
void exr_exec_close_stderr(ExrExec *exec);

/* Readable (POLLIN) once the whole exec has ended: all its processes are gone. */
int exr_exec_end_fd(const ExrExec *exec);

/* Readable once the command itself has ended, or cannot say any more that it has: its end fd follows as soon as
 * all its processes are gone, which a process that waits in a gateway that does not answer can hold up. */
int exr_exec_status_fd(const ExrExec *exec);

/* Sends a signal to the command's process group. 0, or -ESRCH after its end. */
int exr_exec_signal(ExrExec *exec, int sig);

/* SIGKILL for every process of the exec, whatever it did to hide. Idempotent. */
void exr_exec_kill(ExrExec *exec);

typedef struct {
	bool start_failed;     /* nothing was run: error says why */
	int exit_code;	       /* when it exited by itself */
	int signal;	       /* the signal that ended it, or 0 */
	int64_t cpu_ms;	       /* user and system time of all its processes; -1 not known */
	int64_t max_rss_bytes; /* the largest process; -1 not known */
	int left_over_killed; /* processes that were still there when the command ended; -1 not known */
	ExrError error;	      /* when start_failed */
} ExrEnd;

void exr_end_clear(ExrEnd *end);

/* Waits until the exec has ended (at most 2 s longer than it takes to die when it was killed), gives
 * what became of it, and frees the exec. Pipes should have been drained before: they are closed. 0;
 * -EIO when it could not be made to die, in which case the session is dead. */
int exr_exec_finish(ExrExec *take_exec, ExrEnd *ret_end);
