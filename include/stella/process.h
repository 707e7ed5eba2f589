/* A program that a host agent talks to while it runs: live stdin, stdout and stderr, and a life that may be longer than
 * any one call. Its processes are gone once it has ended, was closed, or its session was closed.
 *
 * An interface: sessions of this library give handles of theirs, and a host that implements a session implements this too.
 * Its time limit holds although nobody waits. Any thread at once, but for the three streams, which belong to whoever uses
 * them. */
#ifndef STELLA_PROCESS_H
#define STELLA_PROCESS_H

#include <gio/gio.h>
#include <stella/exec.h>

G_BEGIN_DECLS

/* What to start. All pointers are borrowed for the call. Use stella_process_request_init(), set path and what is to differ,
 * keep `size` as it is. */
typedef struct {
	gsize size; /* of the struct the caller was compiled with; set by the init function */

	const char *
		path; /* the program; without a slash it is looked up in PATH, in the view. Required */
	const char *const *args; /* behind the program's name; NULL: none */
	const char *cwd;	 /* as in StellaExecOptions, and so are the following */
	const char *const *env;
	const char *const *unset_env;
	gint64 timeout_ms;
	gint64 kill_grace_ms;
	gboolean merge_stderr;
	gboolean wait_left_over;
	gboolean tty;
	guint16 rows;
	guint16 columns;
} StellaProcessRequest;

/* Fills in the defaults. Any thread at once; does not block. */
STELLA_API void stella_process_request_init(StellaProcessRequest *request);

#define STELLA_TYPE_PROCESS (stella_process_get_type())
STELLA_API G_DECLARE_INTERFACE(StellaProcess, stella_process, STELLA, PROCESS, GObject)

/* What an implementation fills in; each does what the function of its name below says. A member that is NULL is answered
 * with STELLA_ERROR_NOT_SUPPORTED, or -1; the asynchronous twins run the blocking ones in a thread, and need nothing. */
struct _StellaProcessInterface {
	GTypeInterface parent;

	pid_t (*get_pid)(StellaProcess *process);
	int (*dup_pidfd)(StellaProcess *process, GError **error);
	int (*get_stdin_fd)(StellaProcess *process);
	int (*get_stdout_fd)(StellaProcess *process);
	int (*get_stderr_fd)(StellaProcess *process);
	void (*close_stdin)(StellaProcess *process);
	gboolean (*send_signal)(StellaProcess *process, int signum, GError **error);
	gboolean (*resize)(StellaProcess *process, guint16 rows, guint16 columns, GError **error);
	int (*get_end_fd)(StellaProcess *process);
	StellaExecResult *(*wait)(StellaProcess *process, gint64 timeout_ms,
				  GCancellable *cancellable, GError **error);
	void (*kill)(StellaProcess *process);
	gboolean (*close)(StellaProcess *process, GError **error);
	gpointer reserved[8];
};

/* Its process id as the host counts it; -1 once it has ended. Does not block. */
STELLA_API pid_t stella_process_get_pid(StellaProcess *process);
/* A pidfd of it, which the caller closes; -1 with an error once it has ended. Does not block. */
STELLA_API int stella_process_dup_pidfd(StellaProcess *process, GError **error);

/* The host's ends of its streams: blocking unless the caller sets O_NONBLOCK, without a cap, so that a program whose output
 * nobody reads waits. Owned by the handle, valid until stella_process_close() although the program has ended. -1: closed, or
 * with merge_stderr or tty the third. Writing to a program that reads no more raises SIGPIPE, as with any pipe, which ends a host
 * that does not ignore it; then write(2) says EPIPE. With tty the other two are its terminal, and reading gives EIO when the program
 * has ended. */
STELLA_API int stella_process_get_stdin_fd(StellaProcess *process);
STELLA_API int stella_process_get_stdout_fd(StellaProcess *process);
STELLA_API int stella_process_get_stderr_fd(StellaProcess *process);
/* Its input ends. On a terminal its end-of-input character is typed. A second call does nothing. Does not block. */
STELLA_API void stella_process_close_stdin(StellaProcess *process);

/* Sends a signal to the command's process group. FALSE with STELLA_ERROR_FAILED (errno ESRCH) after its end,
 * STELLA_ERROR_INVALID_ARGUMENT for what is no signal. Does not block. */
STELLA_API gboolean stella_process_send_signal(StellaProcess *process, int signum, GError **error);
/* Its terminal has another size now. FALSE after its end, or (errno ENOTTY) when it has none. Does not block. */
STELLA_API gboolean stella_process_resize(StellaProcess *process, guint16 rows, guint16 columns,
					  GError **error);

/* A descriptor that is readable once it has ended and stella_process_wait() does not block any more; for poll only, as long
 * as the handle. */
STELLA_API int stella_process_get_end_fd(StellaProcess *process);

/* Blocks until it has ended. Any number of times, from any thread, with the same answer. When timeout_ms is over (0: at
 * once; STELLA_NO_TIMEOUT: never) or cancellable (may be NULL) is cancelled, the program is killed, and the result says so.
 * What it wrote to the streams is not in the result. The caller owns a reference; NULL with an error only from an
 * implementation that cannot wait, and with STELLA_ERROR_INVALID_ARGUMENT for a timeout_ms below STELLA_NO_TIMEOUT. */
STELLA_API StellaExecResult *stella_process_wait(StellaProcess *process, gint64 timeout_ms,
						 GCancellable *cancellable, GError **error);
/* The same without blocking: callback is called in the thread-default main context of the caller. */
STELLA_API void stella_process_wait_async(StellaProcess *process, gint64 timeout_ms,
					  GCancellable *cancellable, GAsyncReadyCallback callback,
					  gpointer user_data);
STELLA_API StellaExecResult *stella_process_wait_finish(StellaProcess *process,
							GAsyncResult *async_result, GError **error);

/* SIGKILL for everything that it started; its end follows. Does not block. */
STELLA_API void stella_process_kill(StellaProcess *process);

/* Kills what still runs, waits until it is gone, closes the streams; blocks for that, bounded (some seconds at most). Any
 * number of times. Dropping the last reference does the same. FALSE with an error when something could not be
 * made to die. */
STELLA_API gboolean stella_process_close(StellaProcess *process, GError **error);
STELLA_API void stella_process_close_async(StellaProcess *process, GCancellable *cancellable,
					   GAsyncReadyCallback callback, gpointer user_data);
STELLA_API gboolean stella_process_close_finish(StellaProcess *process, GAsyncResult *async_result,
						GError **error);

G_END_DECLS

#endif
