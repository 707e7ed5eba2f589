/* A program that a host agent talks to while it runs: live stdin, stdout and stderr, and a life that may be longer than
 * any one call. Its processes are gone once it has ended, was closed, or its session was closed.
 *
 * A thread of its own watches it, so that its timeout holds although nobody waits. Any thread at once, but for the three
 * streams, which belong to whoever uses them. */
#pragma once

#include "executor/session-exec.h"

typedef struct ExrLive ExrLive;

/* Starts options->argv; of the options, input and capture have no meaning here, and no sink is called. Not being able to
 * execute the program is a start failure: -errno with *reterr_error, as every other. */
int exr_live_start(ExrSession *session, const ExrExecOptions *options, ExrLive **ret_live,
		   ExrError *reterr_error);
ExrLive *exr_live_ref(ExrLive *live);
/* The last one closes. NULL is allowed. */
void exr_live_unref(ExrLive *live);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrLive, exr_live_unref)

/* The command's process as the host counts it, or -1 once it has ended. */
pid_t exr_live_pid(const ExrLive *live);
/* Its pidfd, a copy for the caller; -errno. */
int exr_live_dup_pidfd(const ExrLive *live);

/* Our ends of its pipes, blocking unless the caller says otherwise; uncapped, and a program whose output nobody reads
 * waits. Owned by the handle, open until exr_live_close() though the program has ended. -1: closed, or with
 * merge_stderr or tty the third. With tty the other two are the terminal's master; the program has ended when reading it
 * gives EIO. */
int exr_live_stdin(const ExrLive *live);
int exr_live_stdout(const ExrLive *live);
int exr_live_stderr(const ExrLive *live);
/* Its input ends; to a terminal its end-of-input character is typed, which the program may take so. Once; again does
 * nothing. */
void exr_live_close_stdin(ExrLive *live);

/* To the command's process group. 0, or -ESRCH after its end. */
int exr_live_signal(ExrLive *live, int sig);

/* Its terminal has another size. 0; -ESRCH after its end; -ENOTTY: it has none. */
int exr_live_resize(ExrLive *live, uint16_t rows, uint16_t columns);

/* Readable once it has ended and exr_live_wait() does not block any more. For poll only. */
int exr_live_end_fd(const ExrLive *live);

/* SIGKILL for everything that it started, whatever kill_grace_ms says; its end follows. */
void exr_live_kill(ExrLive *live);
/* As its timeout does it: SIGTERM first where there is a kill_grace_ms. */
void exr_live_stop(ExrLive *live);

/* Waits until it has ended; any number of threads, any number of times, with the same answer. The program is killed when
 * timeout_ms (0: at once, EXR_NO_TIMEOUT: none) is over or cancellable (NULL: none) cancelled, and the answer says so.
 * Borrowed, as long as the handle; never NULL. */
const ExrOutcome *exr_live_wait(ExrLive *live, int64_t timeout_ms, GCancellable *cancellable);
/* The same without a cancellable, and without GIO. */
const ExrOutcome *exr_live_await(ExrLive *live, int64_t timeout_ms);

/* Kills what still runs, waits until it is gone (some seconds at most), closes the streams. Any thread, any number of times.
 * 0; -EIO when something could not be made to die. */
int exr_live_close(ExrLive *live);
