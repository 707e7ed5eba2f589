/* The StellaSession of this library's own sessions; see stella/session.h and session.h, which does the work.
 *
 * Everything but the resolver, which is made when it is first asked for, is made with the object and not changed, so that
 * nothing here needs a lock. The object owns its session: the last reference closes it, and process handles that are still
 * there then see their end. */
#include "executor/api-session.h"

#include "common/api-error.h"
#include "common/api-path-resolver.h"
#include "executor/api-exec.h"
#include "executor/api-exr-error.h"
#include "executor/api-live.h"
#include "executor/api-options.h"
#include "executor/api-session-policy.h"
#include "executor/api-task.h"
#include "executor/backend.h"
#include "executor/script.h"
#include "executor/session-policy.h"
#include "executor/state-dir.h"

#include <errno.h>
#include <pthread.h>

#define API_TYPE_SESSION (api_session_get_type())
G_DECLARE_FINAL_TYPE(ApiSession, api_session, API, SESSION, GObject)

struct _ApiSession {
	GObject parent;
	ExrSession *session;
	StellaPolicy *policy;	       /* effective, as it is shown */
	StellaPolicy *resolver_policy; /* of the view as a resolver has it */
	char *state_root;	       /* what of the host no resolver shows; or NULL */
	pthread_mutex_t lock;
	StellaPathResolver *resolver; /* NULL until it is asked for */
};

static void session_init(StellaSessionInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(ApiSession, api_session, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_SESSION, session_init))

static const char *get_id(StellaSession *session)
{
	return exr_session_id(API_SESSION(session)->session);
}

static const char *get_backend(StellaSession *session)
{
	return exr_session_backend(API_SESSION(session)->session)->name;
}

static StellaPolicy *dup_policy(StellaSession *session)
{
	return stella_policy_ref(API_SESSION(session)->policy);
}

static char *dup_working_dir(StellaSession *session)
{
	return g_strdup(exr_session_plan(API_SESSION(session)->session)->working_dir);
}

static gboolean is_alive(StellaSession *session)
{
	return exr_session_alive(API_SESSION(session)->session);
}

static int get_done_fd(StellaSession *session)
{
	return exr_session_done_fd(API_SESSION(session)->session);
}

static gboolean close_session(StellaSession *session, GCancellable *cancellable, GError **error)
{
	if (api_task_canceled(cancellable, error))
		return FALSE;
	exr_session_close(API_SESSION(session)->session);
	return TRUE;
}

static gboolean check_alive(ExrSession *session, GError **error)
{
	if (exr_session_alive(session))
		return TRUE;
	api_error_set(error, STELLA_ERROR_SESSION_CLOSED, "%s",
		      exr_session_closed(session)
			      ? "the session is closed"
			      : "the session has ended: its gateway or its sandbox is gone");
	return FALSE;
}

static const char *given_cwd(const char *cwd)
{
	return cwd && *cwd ? cwd : NULL;
}

/* Whether nobody took the request at all: it made no sense, or the session has ended before it was taken. */
static bool was_not_taken(const ExrError *error)
{
	StellaError code = error ? api_exr_error_code(error->code) : STELLA_ERROR_FAILED;

	return code == STELLA_ERROR_INVALID_ARGUMENT ||
	       (code == STELLA_ERROR_SESSION_CLOSED && g_strcmp0(error->stage, "request") == 0);
}

static StellaExecResult *exec(StellaSession *session, const char *command,
			      const StellaExecOptions *options, GCancellable *cancellable,
			      GError **error)
{
	ExrSession *inner = API_SESSION(session)->session;
	g_autoptr(ExrEnvList) env = api_env_list_new(options->env, options->unset_env);
	g_auto(GStrv) argv = exr_script_argv(command);
	g_autoptr(ExrOutcome) outcome = NULL;
	ExrExecOptions given;

	if (!check_alive(inner, error))
		return NULL;
	exr_exec_options_init(&given);
	given.argv = (const char *const *)argv;
	given.cwd = given_cwd(options->cwd);
	given.env = env;
	given.timeout_ms = options->timeout_ms;
	given.kill_grace_ms = options->kill_grace_ms;
	given.wait_left_over = options->wait_left_over;
	given.merge_stderr = options->merge_stderr;
	given.input = options->input;
	given.input_size = options->input_size;
	given.out = (ExrOutputOptions){ -1, options->stdout_func, options->stdout_data };
	given.err = (ExrOutputOptions){ -1, options->stderr_func, options->stderr_data };
	given.cancellable = cancellable;
	given.tty = options->tty;
	given.rows = options->rows;
	given.columns = options->columns;
	outcome = exr_session_exec(inner, &given);
	if (was_not_taken(exr_outcome_error(outcome))) {
		api_exr_error_take(error, exr_outcome_error(outcome));
		return NULL;
	}
	return api_exec_result_new(g_steal_pointer(&outcome));
}

/* The program and what comes behind its name; borrows the texts. The caller frees the list. */
static const char **argv_of(const StellaProcessRequest *request)
{
	gsize n_args = request->args ? g_strv_length((char **)(uintptr_t)request->args) : 0;
	const char **argv = g_new0(const char *, n_args + 2);

	argv[0] = request->path;
	for (gsize i = 0; i < n_args; i++)
		argv[i + 1] = request->args[i];
	return argv;
}

static StellaProcess *start_process(StellaSession *session, const StellaProcessRequest *request,
				    GCancellable *cancellable, GError **error)
{
	ExrSession *inner = API_SESSION(session)->session;
	g_autoptr(ExrEnvList) env = api_env_list_new(request->env, request->unset_env);
	g_autofree const char **argv = argv_of(request);
	g_autoptr(ExrLive) live = NULL;
	ExrError failed = { 0 };
	ExrExecOptions given;

	if (api_task_canceled(cancellable, error) || !check_alive(inner, error))
		return NULL;
	exr_exec_options_init(&given);
	given.argv = argv;
	given.cwd = given_cwd(request->cwd);
	given.env = env;
	given.timeout_ms = request->timeout_ms;
	given.kill_grace_ms = request->kill_grace_ms;
	given.wait_left_over = request->wait_left_over;
	given.merge_stderr = request->merge_stderr;
	given.tty = request->tty;
	given.rows = request->rows;
	given.columns = request->columns;
	if (exr_live_start(inner, &given, &live, &failed) < 0) {
		api_exr_error_take(error, &failed);
		return NULL;
	}
	/* The start itself is not interrupted; its end undoes it. */
	if (api_task_canceled(cancellable, error)) {
		(void)exr_live_close(live);
		return NULL;
	}
	return api_live_new(g_steal_pointer(&live));
}

static gboolean refresh_env(StellaSession *session, const char *const *updates, GError **error)
{
	ExrSession *inner = API_SESSION(session)->session;
	ExrError failed = { 0 };

	if (!check_alive(inner, error))
		return FALSE;
	if (exr_session_refresh_env(inner, updates, &failed) == 0)
		return TRUE;
	api_exr_error_take(error, &failed);
	return FALSE;
}

/* Without a lock, for it opens the mounts' directories, which may be slow. */
static StellaPathResolver *make_resolver(ApiSession *self, GError **error)
{
	g_autofree char *message = NULL;
	PathResolver *resolver = NULL;
	ViewPlan *plan = NULL;
	StellaError code;
	int r = view_plan_new(self->resolver_policy,
			      api_session_resolver_presentation(self->session), &plan, &message);

	if (r == 0)
		r = path_resolver_new(plan, self->state_root, exr_session_id(self->session),
				      &resolver, &message);
	if (r == 0)
		return api_path_resolver_from_inner(resolver);
	code = r == -EINVAL ? STELLA_ERROR_POLICY_INVALID : api_error_code_from_errno(-r);
	if (code != STELLA_ERROR_POLICY_INVALID && code != STELLA_ERROR_NOT_FOUND)
		code = STELLA_ERROR_IO;
	api_error_set(error, code, "the session's view: %s", message);
	if (error)
		api_error_details(*error)->errnum = -r;
	return NULL;
}

/* One for all who ask: what the host puts in a mount's place later is then seen by none of them. */
static StellaPathResolver *dup_resolver(StellaSession *session, GError **error)
{
	ApiSession *self = API_SESSION(session);
	g_autoptr(StellaPathResolver) made = NULL;
	StellaPathResolver *resolver = NULL;

	pthread_mutex_lock(&self->lock);
	if (self->resolver)
		resolver = stella_path_resolver_ref(self->resolver);
	pthread_mutex_unlock(&self->lock);
	if (resolver || !(made = make_resolver(self, error)))
		return resolver;
	pthread_mutex_lock(&self->lock);
	if (!self->resolver) /* else another thread was faster */
		self->resolver = g_steal_pointer(&made);
	resolver = stella_path_resolver_ref(self->resolver);
	pthread_mutex_unlock(&self->lock);
	return resolver;
}

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
	iface->dup_resolver = dup_resolver;
	iface->refresh_env = refresh_env;
}

static void finalize(GObject *object)
{
	ApiSession *self = API_SESSION(object);

	exr_session_free(self->session);
	stella_policy_unref(self->policy);
	stella_policy_unref(self->resolver_policy);
	stella_path_resolver_unref(self->resolver);
	pthread_mutex_destroy(&self->lock);
	g_free(self->state_root);
	G_OBJECT_CLASS(api_session_parent_class)->finalize(object);
}

static void api_session_class_init(ApiSessionClass *class)
{
	G_OBJECT_CLASS(class)->finalize = finalize;
}

static void api_session_init(ApiSession *self)
{
	pthread_mutex_init(&self->lock, NULL);
}

StellaSession *api_session_new(ExrSession *take_session)
{
	ApiSession *self = g_object_new(API_TYPE_SESSION, NULL);

	self->session = take_session;
	self->policy = exr_session_effective_policy_new(take_session);
	self->resolver_policy = api_session_resolver_policy_new(take_session);
	if (exr_session_state_dir(take_session))
		self->state_root =
			g_strdup(exr_state_dir_root(exr_session_state_dir(take_session)));
	return STELLA_SESSION(self);
}
