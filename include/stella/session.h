/* A session: one view under one policy, and the commands that run in it. An interface, which a host may implement and
 * register a factory for (factory.h).
 *
 *   StellaSession *session = stella_factory_create_session(factory, policy, NULL, &error);
 *   StellaExecResult *result = stella_session_exec(session, "make test", NULL, NULL, &error);
 *   stella_session_close(session, NULL, NULL);
 *
 * A command takes up to ten descriptors of the host's while it runs; a host that runs hundreds at a time raises its soft limit
 * of open files. Where there are none left, a command is not started (errno EMFILE), and nothing else is lost.
 *
 * Any thread at once, for every function here; several commands of one session run at the same time. No main loop is
 * needed, no signal handler is installed, no child of the host's is reaped. Which functions block is said at each. */
#ifndef STELLA_SESSION_H
#define STELLA_SESSION_H

#include <gio/gio.h>
#include <stella/exec.h>
#include <stella/files.h>
#include <stella/path-resolver.h>
#include <stella/policy.h>
#include <stella/process.h>

G_BEGIN_DECLS

#define STELLA_TYPE_SESSION (stella_session_get_type())
STELLA_API G_DECLARE_INTERFACE(StellaSession, stella_session, STELLA, SESSION, GObject)

/* What an implementation fills in; each does what the function of its name below says, from any thread at once. A member
 * that is NULL is answered with STELLA_ERROR_NOT_SUPPORTED (refresh_env: STELLA_ERROR_ENV_REFRESH_UNSUPPORTED), NULL or -1.
 * The asynchronous twins run the blocking ones in a thread, and need nothing. resolve, resolve_write, open and
 * the files go through dup_resolver unless they are given themselves. */
struct _StellaSessionInterface {
	GTypeInterface parent;

	const char *(*get_id)(StellaSession *session);
	const char *(*get_backend)(StellaSession *session);
	StellaPolicy *(*dup_policy)(StellaSession *session);
	char *(*dup_working_dir)(StellaSession *session);
	gboolean (*is_alive)(StellaSession *session);
	int (*get_done_fd)(StellaSession *session);
	gboolean (*close)(StellaSession *session, GCancellable *cancellable, GError **error);
	StellaExecResult *(*exec)(StellaSession *session, const char *command,
				  const StellaExecOptions *options, GCancellable *cancellable,
				  GError **error);
	StellaProcess *(*start_process)(StellaSession *session, const StellaProcessRequest *request,
					GCancellable *cancellable, GError **error);
	char *(*resolve)(StellaSession *session, const char *path, GError **error);
	char *(*resolve_write)(StellaSession *session, const char *path, GError **error);
	int (*open)(StellaSession *session, const char *path, int flags, mode_t mode,
		    GError **error);
	StellaPathResolver *(*dup_resolver)(StellaSession *session, GError **error);
	gboolean (*refresh_env)(StellaSession *session, const char *const *updates, GError **error);
	gpointer reserved[8];
};

/* "sandbox-" and 16 hexadecimal digits; borrowed, as long as the session. Does not block. */
STELLA_API const char *stella_session_get_id(StellaSession *session);
/* The backend that runs it ("fsgate"); borrowed. Does not block. */
STELLA_API const char *stella_session_get_backend(StellaSession *session);
/* The effective policy: with implied mounts, and with the working directory as a view path. The caller owns a reference.
 * Does not block. */
STELLA_API StellaPolicy *stella_session_dup_policy(StellaSession *session);
/* The view path that commands start in. Does not block. */
STELLA_API char *stella_session_dup_working_dir(StellaSession *session);
/* Whether commands can be run: not closed, and nothing of it has died. Does not block. */
STELLA_API gboolean stella_session_is_alive(StellaSession *session);
/* A descriptor that is readable from the moment that the session is not alive any more; for poll only, as long as the
 * session; -1: there is none. Does not block. */
STELLA_API int stella_session_get_done_fd(StellaSession *session);

/* Kills all that it runs, ends the sandbox, removes what was made for it; all of it is gone when this returns. Who waits for
 * a command of it in another thread gets its result (canceled). Any number of times. Blocks, some seconds at most.
 * cancellable is not asked once it has begun (STELLA_ERROR_CANCELED before); NULL is allowed. Dropping the last reference closes
 * too. */
STELLA_API gboolean stella_session_close(StellaSession *session, GCancellable *cancellable,
					 GError **error);
STELLA_API void stella_session_close_async(StellaSession *session, GCancellable *cancellable,
					   GAsyncReadyCallback callback, gpointer user_data);
STELLA_API gboolean stella_session_close_finish(StellaSession *session, GAsyncResult *async_result,
						GError **error);

/* Blocks until the session is not alive any more. TRUE; FALSE with STELLA_ERROR_CANCELED, or NOT_SUPPORTED where it is alive
 * and has no descriptor to wait for. The asynchronous twin needs no thread, and holds the session until it answers. */
STELLA_API gboolean stella_session_wait_done(StellaSession *session, GCancellable *cancellable,
					     GError **error);
STELLA_API void stella_session_wait_done_async(StellaSession *session, GCancellable *cancellable,
					       GAsyncReadyCallback callback, gpointer user_data);
STELLA_API gboolean stella_session_wait_done_finish(StellaSession *session,
						    GAsyncResult *async_result, GError **error);

/* Runs `sh -c command` in the view and blocks until all of its processes are gone. options may be NULL: the defaults.
 * Whatever became of it is a result, also a time limit, a cancel, and that it could not be started; its output so far
 * is in it. NULL only when there was nobody to ask: STELLA_ERROR_SESSION_CLOSED, or STELLA_ERROR_INVALID_ARGUMENT for options
 * that make no sense. The caller owns a reference. */
STELLA_API StellaExecResult *stella_session_exec(StellaSession *session, const char *command,
						 const StellaExecOptions *options,
						 GCancellable *cancellable, GError **error);
STELLA_API void stella_session_exec_async(StellaSession *session, const char *command,
					  const StellaExecOptions *options,
					  GCancellable *cancellable, GAsyncReadyCallback callback,
					  gpointer user_data);
STELLA_API StellaExecResult *stella_session_exec_finish(StellaSession *session,
							GAsyncResult *async_result, GError **error);

/* Starts a program and returns once it runs; it lives until it ends, is closed, or the session is. NULL with
 * STELLA_ERROR_SESSION_CLOSED; PROGRAM_NOT_FOUND, PROGRAM_NOT_EXECUTABLE, CWD_INVALID; INVALID_ARGUMENT; START_FAILED with
 * stage and errno; CANCELED; NOT_SUPPORTED where sessions start no process. Blocks some milliseconds. The caller owns a
 * reference. */
STELLA_API StellaProcess *stella_session_start_process(StellaSession *session,
						       const StellaProcessRequest *request,
						       GCancellable *cancellable, GError **error);
STELLA_API void stella_session_start_process_async(StellaSession *session,
						   const StellaProcessRequest *request,
						   GCancellable *cancellable,
						   GAsyncReadyCallback callback,
						   gpointer user_data);
STELLA_API StellaProcess *stella_session_start_process_finish(StellaSession *session,
							      GAsyncResult *async_result,
							      GError **error);

/* The host path that a path of the agent's leads to, for reading; and for writing. The strict form of path-resolver.h, with
 * its errors. Between this and the caller's own open there is a race: prefer stella_session_open() or the files. Blocks
 * on file I/O. */
STELLA_API char *stella_session_resolve(StellaSession *session, const char *path, GError **error);
STELLA_API char *stella_session_resolve_write(StellaSession *session, const char *path,
					      GError **error);
/* stella_path_resolver_open() of this session's view: a descriptor that the caller closes, or -1. Blocks on file I/O. */
STELLA_API int stella_session_open(StellaSession *session, const char *path, int flags, mode_t mode,
				   GError **error);
/* The resolver and the file functions of this session's view; usable after the session's end, where its mounts still are.
 * The caller owns a reference. NULL with STELLA_ERROR_NOT_SUPPORTED where a session has none. The first call opens the mounts'
 * directories. */
STELLA_API StellaPathResolver *stella_session_dup_resolver(StellaSession *session, GError **error);
STELLA_API StellaFiles *stella_session_dup_files(StellaSession *session, GError **error);

/* Variables (NAME=value) that every later command gets, in the place of earlier values of theirs; a command's own win over
 * them. All of them or, on failure, none: STELLA_ERROR_INVALID_ARGUMENT, STELLA_ERROR_SESSION_CLOSED,
 * STELLA_ERROR_ENV_REFRESH_UNSUPPORTED. Does not block. */
STELLA_API gboolean stella_session_refresh_env(StellaSession *session, const char *const *updates,
					       GError **error);

/* A fresh session id: "sandbox-" and 16 hexadecimal digits from the kernel's random source. Any thread at once. */
STELLA_API char *stella_new_session_id(void);

/* A session for tests: policy allow_all, exec exits 0 with empty output, start_process gives STELLA_ERROR_NOT_SUPPORTED,
 * resolve gives its argument back, alive until closed. Its environment cannot be refreshed. Never NULL. */
STELLA_API StellaSession *stella_session_new_nop(void);

G_END_DECLS

#endif
