/* Factories as an interface; see stella/factory.h. What an implementation answers is not taken on trust: a policy is
 * judged before any of them sees it, a refusal is made whole (a host has no way to say which backend and which
 * policy an error is about), and one that gives nothing, or gives a session to who has cancelled, leaves nothing behind.
 *
 * The asynchronous twins run the blocking call in a thread, and end when that has: a start that was cancelled is told when
 * nothing of it is left. */
#include "executor/api-factory.h"

#include "common/api-error.h"
#include "executor/api-task.h"

G_DEFINE_INTERFACE(StellaFactory, stella_factory, G_TYPE_OBJECT)

static void stella_factory_default_init(StellaFactoryInterface *iface)
{
	(void)iface;
}

const char *stella_factory_get_name(StellaFactory *factory)
{
	const StellaFactoryInterface *iface;
	const char *name;

	g_return_val_if_fail(STELLA_IS_FACTORY(factory), NULL);
	iface = STELLA_FACTORY_GET_IFACE(factory);
	g_return_val_if_fail(iface->get_name != NULL, "");
	name = iface->get_name(factory);
	return name ? name : "";
}

gboolean stella_factory_is_available(StellaFactory *factory, char **ret_reason)
{
	const StellaFactoryInterface *iface;
	g_autofree char *reason = NULL;

	g_return_val_if_fail(STELLA_IS_FACTORY(factory), FALSE);
	iface = STELLA_FACTORY_GET_IFACE(factory);
	if (!iface->is_available || iface->is_available(factory, &reason))
		return TRUE;
	if (ret_reason)
		*ret_reason = reason ? g_steal_pointer(&reason)
				     : g_strdup("it is not available on this host");
	return FALSE;
}

/* An error that this function of the library may give: the two about policies as they are, any other turned into the
 * second. What an implementation cannot say is added. */
static GError *whole_refusal(StellaFactory *factory, const StellaPolicy *policy, GError *take_given)
{
	g_autoptr(GError) given = take_given;
	GError *error = NULL;
	ApiErrorDetails *details;

	if (g_error_matches(given, STELLA_ERROR, STELLA_ERROR_POLICY_INVALID))
		return g_steal_pointer(&given);
	if (stella_error_is_policy_incompatible(given))
		error = g_steal_pointer(&given);
	else
		api_error_set(&error, STELLA_ERROR_POLICY_INCOMPATIBLE, "%s",
			      given ? given->message : "it cannot, and does not say why");
	details = api_error_details(error);
	if (!details->backend)
		details->backend = g_strdup(stella_factory_get_name(factory));
	if (!details->policy)
		details->policy = stella_policy_ref(policy);
	if (!details->reason)
		details->reason = g_strdup(error->message);
	return error;
}

gboolean api_factory_accepts(StellaFactory *factory, const StellaPolicy *policy, GError **error)
{
	const StellaFactoryInterface *iface = STELLA_FACTORY_GET_IFACE(factory);
	g_autoptr(GError) given = NULL;

	/* One that does not judge accepts nothing. */
	if (iface->check_policy && iface->check_policy(factory, policy, &given))
		return TRUE;
	g_propagate_error(error, whole_refusal(factory, policy, g_steal_pointer(&given)));
	return FALSE;
}

gboolean stella_factory_check_policy(StellaFactory *factory, const StellaPolicy *policy,
				     GError **error)
{
	g_return_val_if_fail(STELLA_IS_FACTORY(factory), FALSE);
	g_return_val_if_fail(policy != NULL, FALSE);
	return stella_policy_validate(policy, error) && api_factory_accepts(factory, policy, error);
}

static GError *whole_failure(StellaFactory *factory, const StellaPolicy *policy, GError *take_given)
{
	g_autoptr(GError) given = take_given;
	GError *error = NULL;

	if (stella_error_is_policy_incompatible(given))
		return whole_refusal(factory, policy, g_steal_pointer(&given));
	if (g_error_matches(given, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		api_error_set(&error, STELLA_ERROR_CANCELED, "%s", given->message);
	else if (!given)
		api_error_set(&error, STELLA_ERROR_FAILED,
			      "backend \"%s\" gave no session, and does not say why",
			      stella_factory_get_name(factory));
	return error ? error : g_steal_pointer(&given);
}

StellaSession *api_factory_start(StellaFactory *factory, const StellaPolicy *policy,
				 GCancellable *cancellable, GError **error)
{
	const StellaFactoryInterface *iface = STELLA_FACTORY_GET_IFACE(factory);
	g_autoptr(StellaSession) session = NULL;
	g_autoptr(GError) given = NULL;

	g_return_val_if_fail(iface->create_session != NULL, NULL);
	if (api_task_canceled(cancellable, error))
		return NULL;
	session = iface->create_session(factory, policy, cancellable, &given);
	if (!session) {
		g_propagate_error(error, whole_failure(factory, policy, g_steal_pointer(&given)));
		return NULL;
	}
	/* Who has cancelled does not wait for a session any more, and would not close it. */
	if (api_task_canceled(cancellable, error)) {
		(void)stella_session_close(session, NULL, NULL);
		return NULL;
	}
	return g_steal_pointer(&session);
}

StellaSession *stella_factory_create_session(StellaFactory *factory, const StellaPolicy *policy,
					     GCancellable *cancellable, GError **error)
{
	if (!stella_factory_check_policy(factory, policy, error))
		return NULL;
	return api_factory_start(factory, policy, cancellable, error);
}

static gpointer create_in_thread(gpointer source, gpointer policy, GCancellable *cancellable,
				 GError **error)
{
	return stella_factory_create_session(source, policy, cancellable, error);
}

static void drop_policy(gpointer policy)
{
	stella_policy_unref(policy);
}

void stella_factory_create_session_async(StellaFactory *factory, const StellaPolicy *policy,
					 GCancellable *cancellable, GAsyncReadyCallback callback,
					 gpointer user_data)
{
	GTask *task;

	g_return_if_fail(STELLA_IS_FACTORY(factory));
	g_return_if_fail(policy != NULL);
	g_return_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable));
	task = api_task_new(factory, cancellable, callback, user_data,
			    stella_factory_create_session_async);
	g_task_set_task_data(task, stella_policy_ref(policy), drop_policy);
	api_task_call(task, create_in_thread, g_object_unref);
}

StellaSession *stella_factory_create_session_finish(StellaFactory *factory,
						    GAsyncResult *async_result, GError **error)
{
	g_return_val_if_fail(g_task_is_valid(async_result, factory), NULL);
	g_return_val_if_fail(
		g_async_result_is_tagged(async_result, stella_factory_create_session_async), NULL);
	return g_task_propagate_pointer(G_TASK(async_result), error);
}
