/* One command of a session from its request to its result: what `stella-exec run` does, and what a host agent calls.
 *
 * Everything that can become of a command is a result, also that it could not be started; there is no second way to
 * learn of an error. Output is taken in while the command runs, kept up to a cap, and given to sinks as it comes. */
#pragma once

#include "executor/env-list.h"
#include "executor/relay.h"
#include "executor/result.h"
#include "executor/session.h"

#include <gio/gio.h>

/* Called for every piece of a stream, in order, from the thread that runs the command; data lives until it returns. While
 * it runs nothing else of that command moves, its timeout included: it should not take long. */
typedef ExrRelayCapture ExrSink;

#define EXR_NO_TIMEOUT (-1)

typedef struct {
	int fd;	      /* where the stream goes live as well, borrowed; -1: nowhere */
	ExrSink sink; /* or NULL */
	void *sink_data;
} ExrOutputOptions;

/* All of it borrowed until the command has ended; exr_exec_options_init() gives the defaults. */
typedef struct {
	const char *const
		*argv; /* at least one; argv[0] without a slash is looked up in PATH, in the view */
	const char *
		cwd; /* a view path, a host path inside a mount, or relative; NULL: the policy's directory */
	const ExrEnvList *env; /* the request's own variables, or NULL */
	int64_t timeout_ms;    /* 0: the policy's; EXR_NO_TIMEOUT: none */
	int64_t kill_grace_ms; /* SIGTERM so long before SIGKILL, at a timeout or cancel; 0: SIGKILL at once */
	bool wait_left_over; /* the end is that of the last process, not of the command */
	bool merge_stderr;   /* both in stdout, in the program's order */

	/* Input: bytes, or a descriptor that is read as far as the command takes it. Neither: empty. */
	const void *input;
	size_t input_size;
	int input_fd; /* -1: none */

	bool capture; /* keep what comes out for the result, up to the policy's limits; default true */
	bool spill_lasts; /* with limits.spill: a file only where it outlives the session */
	ExrOutputOptions out, err;

	GCancellable *cancellable; /* or NULL: kills the command; the result says canceled */

	/* For a program in the foreground of a terminal: signals that come here go to the command. */
	int signal_fd;	       /* a non-blocking signalfd, or -1 */
	int64_t kill_after_ms; /* from the first of them to SIGKILL */

	/* A terminal of its own instead of pipes: there is no stderr then. At the end of the input the command gets
	 * the terminal's end-of-input character, whenever it has read what came before. */
	bool tty;
	uint16_t rows, columns; /* its size; 0: not known */
	ExrRelayEvent on_event; /* as of ExrRelayConfig, to resize it; or NULL */
	void *event_data;
	int event_fd;
} ExrExecOptions;

void exr_exec_options_init(ExrExecOptions *options);

/* A result with what it points to. */
typedef struct {
	ExrResult result;
	int out_errno; /* why a live stream stopped early (positive), or 0 */
	int err_errno;
} ExrOutcome;

/* Runs it; blocks until all of its processes are gone. Never NULL. Any thread; many at the same time in one session. */
ExrOutcome *exr_session_exec(ExrSession *session, const ExrExecOptions *options);
/* The same without options->cancellable, but with a descriptor that says it by being readable, or -1. */
ExrOutcome *exr_session_exec_until(ExrSession *session, const ExrExecOptions *options,
				   int cancel_fd);
/* Drops a reference: the caller's one, or of exr_outcome_ref(). NULL is allowed. */
void exr_outcome_free(ExrOutcome *outcome);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrOutcome, exr_outcome_free)

/* One more reference to an outcome that is complete, as that of a live process is longer than the handle. */
ExrOutcome *exr_outcome_ref(const ExrOutcome *outcome);

/* The same in a thread of its own. The options are copied, but for what sinks and descriptors lead to, which has to
 * last until callback is called, in the main context that was the thread default of the caller. */
void exr_session_exec_async(ExrSession *session, const ExrExecOptions *options,
			    GAsyncReadyCallback callback, void *user_data);
/* The caller owns it. */
ExrOutcome *exr_session_exec_finish(GAsyncResult *async);

/* The error of one that could not be started, for a hint to be added; or NULL. */
ExrError *exr_outcome_error(ExrOutcome *outcome);

/* How a command ended, from what its exec and the relay know: fills ended, exit_code, signal, cpu_ms, max_rss_bytes,
 * left_over_killed and the observations of outcome, and takes over end. finish_result is exr_exec_finish()'s. */
void exr_outcome_take_end(ExrOutcome *outcome, ExrSession *session, const ExrRelayEnd *relay_end,
			  int finish_result, ExrEnd *end);
/* An outcome of a session, nothing having run yet; of NULL: of no session. */
ExrOutcome *exr_outcome_new(const ExrSession *session);
/* Nothing was run: takes error over. */
void exr_outcome_fail(ExrOutcome *outcome, ExrError *error);
