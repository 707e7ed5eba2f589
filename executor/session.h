/* A session: one gateway, one sandbox in its namespaces, and the commands that run in it.
 *
 *   exr_session_new()   state directory, gateway, namespaces, root file system: once
 *   exr_session_exec()  one command to its end, in session-exec.h; live-process.h: one that is talked to
 *   exr_exec_start()    what both are made of: own pid namespace, own /proc, pipes of ours as its stdio
 *   exr_exec_finish()   its end: every process of it is gone when this returns
 *   exr_session_close() ends what still runs, the sandbox, the gateway; removes what was made
 *
 * A session is used from any thread at once, and one runs many commands at the same time; an ExrExec belongs to one
 * thread at a time. No signal handler is installed, no foreign child reaped, no main loop
 * needed; nothing here touches the view itself, so that a hung gateway cannot hang the caller. */
#pragma once

#include "common/json.h"
#include "common/policy.h"
#include "common/view-plan.h"
#include "executor/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ExrSession ExrSession;
typedef struct ExrBackend ExrBackend; /* backend.h */
typedef struct ExrExec ExrExec;

typedef struct {
	const StellaPolicy *policy; /* what was asked for */
	const ExrBackend *backend;  /* what runs its commands; NULL: fsgate */
	bool temporary_user; /* make a private directory of the session and mount it at /user */
	const char *const *
		host_env; /* the caller's environment, of which commands get what the policy lets through;
					NULL: this process's, as it is now */
	const char *home; /* HOME of commands, a view path; NULL: that of the workspace */
	bool one_exec; /* it is closed after its first command; a second one might see names a second late */
} ExrSessionConfig;

/* Starts everything. On failure -errno with *reterr_error filled (stage, errno, message, hint), nothing
 * left behind. Takes some milliseconds; every wait inside has a deadline. */
int exr_session_new(const ExrSessionConfig *config, ExrSession **ret_session,
		    ExrError *reterr_error);

/* Kills all that runs in it, ends the sandbox and the gateway, removes what was made: all of it is gone when this
 * returns. Bounded: 2 s for processes that do not die, then the gateway is killed. Who waits for a command of it in
 * another thread gets its result (canceled). Any thread, any number of times; a closed session refuses commands. */
void exr_session_close(ExrSession *session);

ExrSession *exr_session_ref(ExrSession *session);
/* The last one closes. NULL is allowed. */
void exr_session_unref(ExrSession *session);
/* Closes, and drops the reference that exr_session_new() gave. NULL is allowed. */
void exr_session_free(ExrSession *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrSession, exr_session_unref)

const char *exr_session_id(const ExrSession *session); /* "sandbox-0123456789abcdef" */
const ExrBackend *exr_session_backend(const ExrSession *session);
const StellaPolicy *
exr_session_policy(const ExrSession *session);		     /* with the session's own mounts */
const ViewPlan *exr_session_plan(const ExrSession *session); /* the plan with all implied mounts */
/* Whether that place, when it is a session's own, is left out where it is told what is writable (view_plan_writable()): of two
 * for temporary files, /tmp is named. */
bool exr_session_leaves_untold(const char *view_path);
bool exr_session_alive(const ExrSession *session);  /* gateway and init are running; never blocks */
bool exr_session_closed(const ExrSession *session); /* exr_session_close() was called */

/* Its directories on the host, or NULL when they are gone: for as long as nobody can close it. */
const struct ExrStateDir *exr_session_state_dir(const ExrSession *session);

/* For poll, and for that only: readable from the moment that the session is not alive any more. Valid as long as the
 * reference. */
int exr_session_done_fd(const ExrSession *session);

/* Variables (NAME=value, NULL-terminated) that every command gets which starts later, in the place of earlier values of
 * theirs; the request's own win over them. All of it or, on failure, nothing. -errno with *reterr_error:
 * "request-invalid" for what is no variable, "session-closed". */
int exr_session_refresh_env(ExrSession *session, const char *const *updates,
			    ExrError *reterr_error);

/* Where the files of outputs go (spill.h); NULL when the policy wants none, or none can be made. As long as the
 * reference. */
const struct ExrSpillDir *exr_session_spill_dir(const ExrSession *session);

/* What the policy implies and cannot be enforced here: "memory_bytes" and "processes" as session-limits.h says,
 * "network.abstract_sockets" when commands share the host's network and its abstract unix sockets are open to
 * them; "filesystem.sockets" when they can connect to a socket that a host process has bound in a mounted directory
 * (every backend but fsgate); "filesystem.hidden" when a secret of /etc shows that the host makes or replaces later
 * (bwrap). NULL-terminated; the session's. */
const char *const *exr_session_unenforced(const ExrSession *session);

/* One command, all of it decided by the caller. Borrowed until exr_exec_start() returns. */
typedef struct {
	const char *const
		*argv;		/* at least one; argv[0] without a slash is looked up in env's PATH,
				    inside the view */
	const char *const *env; /* NAME=value, complete */
	const char *cwd;	/* a view path */
	bool stdin_null;	/* stdin is /dev/null; no stdin pipe is made */
	bool merge_stderr;	/* stderr is stdout's pipe: the program's order is kept */
	bool wait_left_over;	/* the end is that of the last process, not of the command */
	bool tty; /* stdin, stdout and stderr are a terminal of its own; stdin_null and merge_stderr say nothing then */
	uint16_t rows; /* the terminal's size; 0: not known */
	uint16_t columns;
	bool is_live; /* exr_exec_await_program() and exr_exec_command_pidfd() are called later */
} ExrRequest;

/* Starts the command. That the program could not be executed is an end (exr_exec_finish tells), not
 * an error here; -errno with *reterr_error only when the session could not take the request
 * (closed, payload too large, no memory). */
int exr_exec_start(ExrSession *session, const ExrRequest *request, ExrExec **ret_exec,
		   ExrError *reterr_error);

/* Our ends of its pipes, non-blocking; owned by the exec. -1 when there is none (any more). There is no stderr of a
 * request that merges it. */
int exr_exec_stdin_fd(const ExrExec *exec);
int exr_exec_stdout_fd(const ExrExec *exec);
int exr_exec_stderr_fd(const ExrExec *exec);
void exr_exec_close_stdin(ExrExec *exec);
void exr_exec_close_stdout(ExrExec *exec);
void exr_exec_close_stderr(ExrExec *exec);

/* With tty the first two are the terminal's master, a descriptor each of one description, and there is no third.
 * When both are closed the command is hung up. Closing the one for input tells the command nothing: on a terminal the
 * end of input is a character. The other one is at its end (EIO) no earlier than the exec. */

/* The terminal has another size now, which its processes in the foreground are told. -ENOTTY: there is none (any more). */
int exr_exec_resize(ExrExec *exec, uint16_t rows, uint16_t columns);

/* Readable (POLLIN) once the whole exec has ended: all its processes are gone. */
int exr_exec_end_fd(const ExrExec *exec);

/* Readable once the command itself has ended, or cannot say any more that it has: its end fd follows as soon as
 * all its processes are gone, which a process that waits in a gateway that does not answer can hold up. */
int exr_exec_status_fd(const ExrExec *exec);

/* Sends a signal to the command's process group. With tty SIGINT and SIGQUIT are as if typed: they go to
 * the group in the foreground. 0, or -ESRCH after its end. */
int exr_exec_signal(ExrExec *exec, int sig);

/* Of a live request, once: waits, bounded, until the program has been executed. 0; -ETIMEDOUT; -ECHILD: it was not, and
 * exr_exec_finish() says why. */
int exr_exec_await_program(ExrExec *exec);
/* The command's pidfd, when the request is live and the command was started; else -1. */
int exr_exec_command_pidfd(const ExrExec *exec);

/* SIGKILL for every process of the exec, whatever it did to hide. Idempotent. */
void exr_exec_kill(ExrExec *exec);
/* Its status fd is readable: takes what is told there of its end, and kills what may be left. true: no process of the
 * command is, and exr_exec_finish() will not wait for anything. */
bool exr_exec_take_told(ExrExec *exec);

typedef struct {
	int exec_id;	       /* counted in the session, from 1 */
	bool start_failed;     /* nothing was run: error says why */
	int exit_code;	       /* when it exited by itself */
	int signal;	       /* the signal that ended it, or 0 */
	int64_t cpu_ms;	       /* user and system time of all its processes; -1 not known */
	int64_t max_rss_bytes; /* the largest process; -1 not known */
	int left_over_killed; /* processes that were still there when the command ended; -1 not known */
	ExrError error;	      /* when start_failed */
	unsigned int
		limits_hit; /* EXR_LIMIT_* (session-limits.h), by it or by another that ran meanwhile */
	bool told; /* exec init has told the end; else it was killed, and signal is SIGKILL */
	JsonObject *
		observed; /* what the gateway knows of it (common/control.h, {"boundary": "end"}), or NULL */
} ExrEnd;

void exr_end_clear(ExrEnd *end);

/* Waits until the exec has ended (at most 2 s longer than it takes to die when it was killed), gives
 * what became of it, and frees the exec. Pipes should have been drained before: they are closed. 0;
 * -EIO when it could not be made to die, in which case the session is dead. */
int exr_exec_finish(ExrExec *take_exec, ExrEnd *ret_end);
