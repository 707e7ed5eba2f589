/* The StellaSession interface; see stella/session.h. What a caller gives is judged and made whole here, so that every
 * implementation sees options of this version's struct; a member that an implementation has not is answered; the
 * asynchronous twins are in api-session-async.c, what has to do with files in api-session-files.c. What blocks holds the
 * object meanwhile, so that one whose last reference is dropped by another thread, or by a sink, ends with the call. */
#include "stella/session.h"

#include "common/api-error.h"
#include "executor/api-options.h"
#include "executor/api-task.h"
#include "executor/cancel-fd.h"
#include "executor/session-id.h"

#include <errno.h>
#include <poll.h>

G_DEFINE_INTERFACE(StellaSession, stella_session, G_TYPE_OBJECT)

static void stella_session_default_init(StellaSessionInterface *iface)
{
	(void)iface;
}

static void refuse(const char *what, GError **error)
{
	api_error_set(error, STELLA_ERROR_NOT_SUPPORTED, "sessions of this kind cannot %s", what);
}

#define GETTER(type, name, otherwise)                                                              \
	type stella_session_##name(StellaSession *session)                                         \
	{                                                                                          \
		StellaSessionInterface *iface;                                                     \
                                                                                                   \
		g_return_val_if_fail(STELLA_IS_SESSION(session), otherwise);                       \
		iface = STELLA_SESSION_GET_IFACE(session);                                         \
		return iface->name ? iface->name(session) : (otherwise);                           \
	}

GETTER(const char *, get_id, NULL)
GETTER(const char *, get_backend, NULL)
GETTER(StellaPolicy *, dup_policy, NULL)
GETTER(char *, dup_working_dir, NULL)
GETTER(gboolean, is_alive, FALSE)
GETTER(int, get_done_fd, -1)

gboolean stella_session_close(StellaSession *session, GCancellable *cancellable, GError **error)
{
	g_autoptr(StellaSession) held = NULL;
	StellaSessionInterface *iface;

	g_return_val_if_fail(STELLA_IS_SESSION(session), FALSE);
	g_return_val_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable), FALSE);
	g_return_val_if_fail(!error || !*error, FALSE);
	iface = STELLA_SESSION_GET_IFACE(session);
	held = g_object_ref(session);
	if (iface->close)
		return iface->close(held, cancellable, error);
	refuse("be closed", error);
	return FALSE;
}

static gboolean wait_on(int done_fd, GCancellable *cancellable, GError **error)
{
	ExrCancelFd cancel;
	struct pollfd fds[] = { { .fd = done_fd, .events = POLLIN }, { .events = POLLIN } };
	int r = exr_cancel_fd_init(&cancel, cancellable);

	if (r < 0) {
		api_error_set_errno(error, STELLA_ERROR_FAILED, r, "a wait with a cancellable");
		return FALSE;
	}
	fds[1].fd = cancel.fd;
	while (poll(fds, 2, -1) < 0 && (errno == EINTR || errno == EAGAIN))
		;
	exr_cancel_fd_clear(&cancel, cancellable);
	/* Both at once: what was waited for has come. */
	return fds[0].revents != 0 || !api_task_canceled(cancellable, error);
}

gboolean stella_session_wait_done(StellaSession *session, GCancellable *cancellable, GError **error)
{
	g_autoptr(StellaSession) held = NULL;
	int done_fd;

	g_return_val_if_fail(STELLA_IS_SESSION(session), FALSE);
	g_return_val_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable), FALSE);
	g_return_val_if_fail(!error || !*error, FALSE);
	held = g_object_ref(session);
	if (!stella_session_is_alive(held))
		return TRUE;
	done_fd = stella_session_get_done_fd(held);
	if (done_fd >= 0)
		return wait_on(done_fd, cancellable, error);
	refuse("be waited for", error);
	return FALSE;
}

StellaExecResult *stella_session_exec(StellaSession *session, const char *command,
				      const StellaExecOptions *options, GCancellable *cancellable,
				      GError **error)
{
	g_autoptr(StellaSession) held = NULL;
	StellaSessionInterface *iface;
	StellaExecOptions given;

	g_return_val_if_fail(STELLA_IS_SESSION(session), NULL);
	g_return_val_if_fail(command != NULL, NULL);
	g_return_val_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable), NULL);
	g_return_val_if_fail(!error || !*error, NULL);
	iface = STELLA_SESSION_GET_IFACE(session);
	if (!api_exec_options_read(options, &given, error))
		return NULL;
	held = g_object_ref(session);
	if (iface->exec)
		return iface->exec(held, command, &given, cancellable, error);
	refuse("run commands", error);
	return NULL;
}

StellaProcess *stella_session_start_process(StellaSession *session,
					    const StellaProcessRequest *request,
					    GCancellable *cancellable, GError **error)
{
	g_autoptr(StellaSession) held = NULL;
	StellaSessionInterface *iface;
	StellaProcessRequest given;

	g_return_val_if_fail(STELLA_IS_SESSION(session), NULL);
	g_return_val_if_fail(request != NULL, NULL);
	g_return_val_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable), NULL);
	g_return_val_if_fail(!error || !*error, NULL);
	iface = STELLA_SESSION_GET_IFACE(session);
	if (!api_process_request_read(request, &given, error))
		return NULL;
	held = g_object_ref(session);
	if (iface->start_process)
		return iface->start_process(held, &given, cancellable, error);
	refuse("start processes", error);
	return NULL;
}

gboolean stella_session_refresh_env(StellaSession *session, const char *const *updates,
				    GError **error)
{
	StellaSessionInterface *iface;

	g_return_val_if_fail(STELLA_IS_SESSION(session), FALSE);
	g_return_val_if_fail(updates != NULL, FALSE);
	g_return_val_if_fail(!error || !*error, FALSE);
	iface = STELLA_SESSION_GET_IFACE(session);
	if (!api_env_check(updates, error))
		return FALSE;
	if (iface->refresh_env)
		return iface->refresh_env(session, updates, error);
	api_error_set(error, STELLA_ERROR_ENV_REFRESH_UNSUPPORTED,
		      "sessions of this kind cannot change the environment of later commands");
	return FALSE;
}

char *stella_new_session_id(void)
{
	return exr_session_id_new();
}
