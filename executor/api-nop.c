/* The session for tests of what uses sessions; see stella_session_new_nop(). There is no sandbox below it: it has a policy,
 * an id and an end, and every command that is asked of it is one that exits with 0 and says nothing. Paths lead to
 * themselves, for no view is there to be judged by. */
#include "executor/api-nop.h"

#include "common/api-error.h"
#include "common/fd-util.h"
#include "common/log-events.h"
#include "executor/api-task.h"

#include <stdatomic.h>
#include <sys/eventfd.h>

#define BACKEND "nop"

#define API_TYPE_NOP_SESSION (api_nop_session_get_type())
G_DECLARE_FINAL_TYPE(ApiNopSession, api_nop_session, API, NOP_SESSION, GObject)

struct _ApiNopSession {
	GObject parent;
	char *id;
	StellaPolicy *policy;
	int done_fd; /* an eventfd: readable once it is closed; -1: none could be made */
	atomic_bool closed;
};

static void session_init(StellaSessionInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(ApiNopSession, api_nop_session, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_SESSION, session_init))

static const char *get_id(StellaSession *session)
{
	return API_NOP_SESSION(session)->id;
}

static const char *get_backend(StellaSession *session)
{
	(void)session;
	return BACKEND;
}

static StellaPolicy *dup_policy(StellaSession *session)
{
	return stella_policy_ref(API_NOP_SESSION(session)->policy);
}

static char *dup_working_dir(StellaSession *session)
{
	return g_strdup(stella_policy_get_working_dir(API_NOP_SESSION(session)->policy));
}

static gboolean is_alive(StellaSession *session)
{
	return !atomic_load(&API_NOP_SESSION(session)->closed);
}

static int get_done_fd(StellaSession *session)
{
	return API_NOP_SESSION(session)->done_fd;
}

static void end(ApiNopSession *nop)
{
	if (atomic_exchange(&nop->closed, true))
		return;
	if (nop->done_fd >= 0)
		(void)eventfd_write(nop->done_fd, 1);
	log_session_closed(nop->id, BACKEND, "closed");
}

static gboolean close_session(StellaSession *session, GCancellable *cancellable, GError **error)
{
	if (api_task_canceled(cancellable, error))
		return FALSE;
	end(API_NOP_SESSION(session));
	return TRUE;
}

static gboolean check_alive(StellaSession *session, GError **error)
{
	if (is_alive(session))
		return TRUE;
	api_error_set(error, STELLA_ERROR_SESSION_CLOSED, "the session is closed");
	return FALSE;
}

static StellaExecResult *exec(StellaSession *session, const char *command,
			      const StellaExecOptions *options, GCancellable *cancellable,
			      GError **error)
{
	StellaExecResultFields fields;

	(void)command;
	(void)options;
	if (!check_alive(session, error))
		return NULL;
	stella_exec_result_fields_init(&fields);
	fields.ended = g_cancellable_is_cancelled(cancellable) ? STELLA_ENDED_CANCELED
							       : STELLA_ENDED_EXITED;
	return stella_exec_result_new(&fields);
}

static StellaProcess *start_process(StellaSession *session, const StellaProcessRequest *request,
				    GCancellable *cancellable, GError **error)
{
	(void)request;
	if (check_alive(session, error) && !api_task_canceled(cancellable, error))
		api_error_set(error, STELLA_ERROR_NOT_SUPPORTED, "a nop session starts no process");
	return NULL;
}

static char *resolve(StellaSession *session, const char *path, GError **error)
{
	(void)session;
	(void)error;
	return g_strdup(path);
}

/* No open, resolver or files: there is no view to open anything in. No refresh_env: a host sees in its tests what it has
 * to do for sessions that cannot. */
static void session_init(StellaSessionInterface *iface)
{
	iface->get_id = get_id;
	iface->get_backend = get_backend;
	iface->dup_policy = dup_policy;
	iface->dup_working_dir = dup_working_dir;
	iface->is_alive = is_alive;
	iface->get_done_fd = get_done_fd;
	iface->close = close_session;
	iface->exec = exec;
	iface->start_process = start_process;
	iface->resolve = resolve;
	iface->resolve_write = resolve;
}

static void finalize(GObject *object)
{
	ApiNopSession *nop = API_NOP_SESSION(object);

	end(nop);
	fd_close(&nop->done_fd);
	stella_policy_unref(nop->policy);
	g_free(nop->id);
	G_OBJECT_CLASS(api_nop_session_parent_class)->finalize(object);
}

static void api_nop_session_class_init(ApiNopSessionClass *class)
{
	G_OBJECT_CLASS(class)->finalize = finalize;
}

static void api_nop_session_init(ApiNopSession *nop)
{
	nop->id = stella_new_session_id();
	nop->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

StellaSession *api_nop_session_new(const StellaPolicy *policy)
{
	ApiNopSession *nop = g_object_new(API_TYPE_NOP_SESSION, NULL);

	nop->policy = policy_copy(policy);
	nop->policy->network_mode = STELLA_NETWORK_ALLOW_ALL;
	log_session_created(nop->id, BACKEND, nop->policy);
	return STELLA_SESSION(nop);
}

StellaSession *stella_session_new_nop(void)
{
	g_autoptr(StellaPolicy) policy = policy_new_defaults();

	policy_set_path(&policy->working_dir, STELLA_MOUNT_WORKSPACE);
	policy_set_path(&policy->workspace_root, STELLA_MOUNT_WORKSPACE);
	return api_nop_session_new(policy);
}
