/* A session that outlives its backend; see stella/resilient-session.h. Which session it is now, and the making of the next, are
 * api-inner.c's; here each function of a session is handed on to the one that is there.
 *
 * A command is never repeated: it is handed on once more only when the session that it was handed to was not there to take
 * it. What lies over the session's environment goes with each request, below the request's own variables, and less what it
 * takes away; so it works with sessions of any kind.
 *
 * The id is that of the session it was made with: a host that keeps things by it finds them again. */
#include "stella/resilient-session.h"

#include "common/api-error.h"
#include "common/policy.h"
#include "executor/api-inner.h"
#include "executor/api-task.h"
#include "executor/env-overlay.h"

#include <string.h>
#include <unistd.h>

/* As many bytes as the kernel hands to a program in one variable, as in an exec. */
#define VARIABLE_PAGES 32

struct _StellaResilientSession {
	GObject parent;
	ApiInner *inner;
	char *id;
};

static void session_init(StellaSessionInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(StellaResilientSession, stella_resilient_session, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_SESSION, session_init))

static ApiInner *inner_of(StellaSession *session)
{
	return STELLA_RESILIENT_SESSION(session)->inner;
}

static const char *get_id(StellaSession *session)
{
	return STELLA_RESILIENT_SESSION(session)->id;
}

/* Of the present one; its text has to last longer than that. There are few names. */
static const char *get_backend(StellaSession *session)
{
	g_auto(ApiPresent) present = API_NO_PRESENT;

	api_inner_get(inner_of(session), &present);
	return g_intern_string(stella_session_get_backend(present.session));
}

static void put_env(StellaPolicy *policy, const char *name, const char *value)
{
	for (guint i = 0; i < policy->env->len; i++) {
		PolicyEnv *variable = policy->env->pdata[i];

		if (strcmp(variable->name, name) == 0) {
			g_free(variable->value);
			variable->value = g_strdup(value);
			return;
		}
	}
	policy_add_env(policy, name, value);
}

static StellaPolicy *dup_policy(StellaSession *session)
{
	g_auto(ApiPresent) present = API_NO_PRESENT;
	g_autoptr(StellaPolicy) policy = NULL;
	StellaPolicy *shown;

	api_inner_get(inner_of(session), &present);
	policy = stella_session_dup_policy(present.session);
	if (!policy || !present.overlay)
		return g_steal_pointer(&policy);
	shown = policy_copy(policy);
	for (char **entry = present.overlay; *entry; entry++) {
		const char *equals = strchr(*entry, '=');
		g_autofree char *name = g_strndup(*entry, (gsize)(equals - *entry));

		put_env(shown, name, equals + 1);
	}
	return shown;
}

static char *dup_working_dir(StellaSession *session)
{
	g_auto(ApiPresent) present = API_NO_PRESENT;

	api_inner_get(inner_of(session), &present);
	return stella_session_dup_working_dir(present.session);
}

static gboolean is_alive(StellaSession *session)
{
	g_auto(ApiPresent) present = API_NO_PRESENT;

	api_inner_get(inner_of(session), &present);
	return !api_inner_is_closed(inner_of(session)) && stella_session_is_alive(present.session);
}

static int get_done_fd(StellaSession *session)
{
	return api_inner_done_fd(inner_of(session));
}

static gboolean close_session(StellaSession *session, GCancellable *cancellable, GError **error)
{
	if (api_task_canceled(cancellable, error))
		return FALSE;
	return api_inner_close(inner_of(session), API_INNER_PATIENCE_MS, error);
}

/* Whether the session that was asked was not there any more, so that nothing has been done; and is not one that was made
 * for this very call. */
static gboolean was_not_there(const ApiPresent *asked, const GError *why)
{
	return g_error_matches(why, STELLA_ERROR, STELLA_ERROR_SESSION_CLOSED) && !asked->is_new &&
	       !stella_session_is_alive(asked->session);
}

static StellaExecResult *exec_once(StellaSession *session, const char *command,
				   const StellaExecOptions *options, GCancellable *cancellable,
				   gboolean *ret_again, GError **error)
{
	g_auto(ApiPresent) present = API_NO_PRESENT;
	g_auto(GStrv) env = NULL;
	StellaExecOptions given = *options;
	StellaExecResult *result;

	*ret_again = FALSE;
	if (!api_inner_get_live(inner_of(session), cancellable, &present, error))
		return NULL;
	env = exr_env_overlay_request((const char *const *)present.overlay, options->unset_env,
				      options->env);
	given.env = (const char *const *)env;
	result = stella_session_exec(present.session, command, &given, cancellable, error);
	*ret_again = !result && was_not_there(&present, *error);
	return result;
}

static StellaExecResult *canceled_result(void)
{
	StellaExecResultFields fields;

	stella_exec_result_fields_init(&fields);
	fields.ended = STELLA_ENDED_CANCELED;
	return stella_exec_result_new(&fields);
}

static StellaExecResult *exec(StellaSession *session, const char *command,
			      const StellaExecOptions *options, GCancellable *cancellable,
			      GError **error)
{
	g_autoptr(StellaSession) held = g_object_ref(session);
	g_autoptr(GError) why = NULL;
	StellaExecResult *result;
	gboolean again;

	result = exec_once(held, command, options, cancellable, &again, &why);
	if (!result && again) {
		g_clear_error(&why);
		result = exec_once(held, command, options, cancellable, &again, &why);
	}
	/* That a caller cancels is a result of every command, also of one that still waits for its session. */
	if (!result && g_error_matches(why, STELLA_ERROR, STELLA_ERROR_CANCELED) &&
	    g_cancellable_is_cancelled(cancellable))
		return canceled_result();
	if (why)
		g_propagate_error(error, g_steal_pointer(&why));
	return result;
}

static StellaProcess *start_once(StellaSession *session, const StellaProcessRequest *request,
				 GCancellable *cancellable, gboolean *ret_again, GError **error)
{
	g_auto(ApiPresent) present = API_NO_PRESENT;
	g_auto(GStrv) env = NULL;
	StellaProcessRequest given = *request;
	StellaProcess *process;

	*ret_again = FALSE;
	if (!api_inner_get_live(inner_of(session), cancellable, &present, error))
		return NULL;
	env = exr_env_overlay_request((const char *const *)present.overlay, request->unset_env,
				      request->env);
	given.env = (const char *const *)env;
	process = stella_session_start_process(present.session, &given, cancellable, error);
	*ret_again = !process && was_not_there(&present, *error);
	return process;
}

static StellaProcess *start_process(StellaSession *session, const StellaProcessRequest *request,
				    GCancellable *cancellable, GError **error)
{
	g_autoptr(StellaSession) held = g_object_ref(session);
	g_autoptr(GError) why = NULL;
	StellaProcess *process;
	gboolean again;

	process = start_once(held, request, cancellable, &again, &why);
	if (!process && again) {
		g_clear_error(&why);
		process = start_once(held, request, cancellable, &again, &why);
	}
	if (why)
		g_propagate_error(error, g_steal_pointer(&why));
	return process;
}

/* For what has neither an environment nor a cancellable. */
static StellaSession *dup_live(StellaSession *session, GError **error)
{
	g_autoptr(StellaSession) held = g_object_ref(session);
	g_auto(ApiPresent) present = API_NO_PRESENT;

	if (!api_inner_get_live(inner_of(held), NULL, &present, error))
		return NULL;
	return g_steal_pointer(&present.session);
}

static char *resolve(StellaSession *session, const char *path, GError **error)
{
	g_autoptr(StellaSession) present = dup_live(session, error);

	return present ? stella_session_resolve(present, path, error) : NULL;
}

static char *resolve_write(StellaSession *session, const char *path, GError **error)
{
	g_autoptr(StellaSession) present = dup_live(session, error);

	return present ? stella_session_resolve_write(present, path, error) : NULL;
}

static int open_path(StellaSession *session, const char *path, int flags, mode_t mode,
		     GError **error)
{
	g_autoptr(StellaSession) present = dup_live(session, error);

	return present ? stella_session_open(present, path, flags, mode, error) : -1;
}

static StellaPathResolver *dup_resolver(StellaSession *session, GError **error)
{
	g_autoptr(StellaSession) present = dup_live(session, error);

	return present ? stella_session_dup_resolver(present, error) : NULL;
}

/* What no command can be given is refused now: it would be every later command that fails. */
static gboolean check_sizes(const char *const *updates, GError **error)
{
	size_t most = (size_t)sysconf(_SC_PAGESIZE) * VARIABLE_PAGES;

	for (; *updates; updates++)
		if (strlen(*updates) >= most) {
			api_error_set(
				error, STELLA_ERROR_INVALID_ARGUMENT,
				"a variable is longer than the kernel takes: pass it in a file");
			return FALSE;
		}
	return TRUE;
}

static gboolean refresh_env(StellaSession *session, const char *const *updates, GError **error)
{
	return check_sizes(updates, error) && api_inner_overlay(inner_of(session), updates, error);
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
	iface->resolve = resolve;
	iface->resolve_write = resolve_write;
	iface->open = open_path;
	iface->dup_resolver = dup_resolver;
	iface->refresh_env = refresh_env;
}

static void finalize(GObject *object)
{
	StellaResilientSession *self = STELLA_RESILIENT_SESSION(object);

	if (self->inner)
		api_inner_free(self->inner);
	g_free(self->id);
	G_OBJECT_CLASS(stella_resilient_session_parent_class)->finalize(object);
}

static void stella_resilient_session_class_init(StellaResilientSessionClass *class)
{
	G_OBJECT_CLASS(class)->finalize = finalize;
}

static void stella_resilient_session_init(StellaResilientSession *self)
{
	(void)self;
}

StellaResilientSession *stella_resilient_session_new(StellaSession *session,
						     StellaSessionCreator creator,
						     gpointer user_data, GDestroyNotify destroy)
{
	StellaResilientSession *self;

	g_return_val_if_fail(STELLA_IS_SESSION(session), NULL);
	g_return_val_if_fail(creator != NULL, NULL);
	self = g_object_new(STELLA_TYPE_RESILIENT_SESSION, NULL);
	self->id = g_strdup(stella_session_get_id(session));
	self->inner = api_inner_new(session, creator, user_data, destroy);
	return self;
}

StellaSession *stella_resilient_session_dup_inner(StellaResilientSession *session)
{
	g_auto(ApiPresent) present = API_NO_PRESENT;

	g_return_val_if_fail(STELLA_IS_RESILIENT_SESSION(session), NULL);
	api_inner_get(session->inner, &present);
	return g_steal_pointer(&present.session);
}
