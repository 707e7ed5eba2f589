/* The one loop that runs while a command runs: its three streams, its end, deadlines and signals.
 *
 * The caller's descriptors are never handed to the command: what passes are bytes, through pipes of
 * ours. Nothing here blocks but poll, so neither a consumer that stopped reading nor a command that
 * does not read can hold up a timeout or a signal. */
#pragma once

#include "executor/session.h"

#include <stddef.h>
#include <stdint.h>

/* Given every byte of a stream as it comes. */
typedef void (*ExrRelayCapture)(const void *data, size_t size, void *user_data);

typedef void (*ExrRelayEvent)(ExrExec *exec, void *user_data);

typedef struct {
	int fd;			 /* the caller's, where the stream goes live; -1: nowhere */
	ExrRelayCapture capture; /* NULL: none */
	void *capture_data;
} ExrRelayOutput;

typedef struct {
	int stdin_fd; /* the caller's; -1: the command's input is these bytes, or ends at once */
	const void *input; /* borrowed */
	size_t input_size;
	ExrRelayOutput out, err;
	int signal_fd;	       /* a non-blocking signalfd, or -1 */
	int cancel_fd;	       /* readable: the command is to be killed; or -1 */
	int kill_fd;	       /* readable: the same, and kill_grace_ms is not waited for; or -1 */
	int ended_fd;	       /* readable: the session has ended, its gateway or its init; or -1 */
	int64_t timeout_ms;    /* from now; 0: none */
	int64_t kill_grace_ms; /* SIGTERM so long before SIGKILL, at a timeout or at cancel_fd */
	int64_t kill_after_ms; /* from the first signal that was passed on */
	/* Called before anything else, and whenever event_fd, if any, is readable, which it has to read. NULL: none. */
	ExrRelayEvent on_event;
	void *event_data;
	int event_fd;
} ExrRelayConfig;

typedef struct {
	bool timed_out;	    /* we killed it, at its deadline */
	bool canceled;	    /* we killed it, for cancel_fd or kill_fd */
	int canceled_by;    /* the signal at which we killed it, or 0 */
	bool session_ended; /* we killed it, for ended_fd */
	int out_errno;	    /* why live output stopped early (positive), or 0. EPIPE is no error */
	int err_errno;
} ExrRelayEnd;

/* Returns once the command has ended (or 2 s after it was killed and has not) and its output was
 * passed on. Output that the caller does not take any more is given up 2 s after it last took some, if
 * the command timed out or was sent a signal; at once when a signal comes after its end. Then
 * exr_exec_finish() is due. */
void exr_relay_run(ExrExec *exec, const ExrRelayConfig *config, ExrRelayEnd *ret_end);
