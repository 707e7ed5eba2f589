/* The choice among factories; its rules are in api-registry.c. */
#include "executor/api-factory.h"

#include "common/api-error.h"
#include "common/log-events.h"
#include "executor/api-task.h"

#include <stdbool.h>

/* A choice on its way through the list. */
typedef struct {
	const StellaPolicy *policy;
	GPtrArray *list; /* StellaFactory, in order; what is registered meanwhile is not seen */
	guint next;
	GString *names;	     /* of those that were passed over, ", " between them */
	GString *reasons;    /* `NAME: REASON`, "; " between them */
	bool refused_policy; /* one of them was for what the policy asks for */
	/* What the first that knew had to say beyond that, for the error when there is none. */
	ApiErrorDetails first;
} Choice;

static Choice *choice_new(StellaFactoryRegistry *registry, const StellaPolicy *policy)
{
	Choice *choice = g_new0(Choice, 1);

	choice->policy = policy;
	choice->list = stella_factory_registry_list(registry);
	choice->names = g_string_new(NULL);
	choice->reasons = g_string_new(NULL);
	return choice;
}

static void choice_free(Choice *choice)
{
	g_ptr_array_unref(choice->list);
	g_string_free(choice->names, TRUE);
	g_string_free(choice->reasons, TRUE);
	g_free(choice->first.stage);
	g_free(choice->first.hint);
	g_free(choice->first.key);
	g_free(choice);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Choice, choice_free)

/* The errno and the stage belong together: they are of the first error that has one of them. */
static void keep_details(ApiErrorDetails *first, const GError *why)
{
	if (!first->key)
		first->key = g_strdup(stella_error_get_key(why));
	if (!first->hint)
		first->hint = g_strdup(stella_error_get_hint(why));
	if (!first->stage && first->errnum == 0) {
		first->stage = g_strdup(stella_error_get_stage(why));
		first->errnum = stella_error_get_errno(why);
	}
}

/* why: NULL when it is not available at all. */
static void pass_over(Choice *choice, StellaFactory *factory, const char *reason, const GError *why)
{
	const char *name = stella_factory_get_name(factory);

	if (why && !g_error_matches(why, STELLA_ERROR, STELLA_ERROR_HOST_UNSUPPORTED))
		choice->refused_policy = true;
	log_backend_skipped(choice->policy, name, reason);
	g_string_append_printf(choice->names, "%s%s", choice->names->len > 0 ? ", " : "", name);
	g_string_append_printf(choice->reasons, "%s%s: %s", choice->reasons->len > 0 ? "; " : "",
			       name, reason);
	keep_details(&choice->first, why);
}

/* The next one that this host can run and that accepts the policy, borrowed; NULL: there is none left. */
static StellaFactory *choice_next(Choice *choice)
{
	while (choice->next < choice->list->len) {
		StellaFactory *factory = choice->list->pdata[choice->next++];
		g_autofree char *reason = NULL;
		g_autoptr(GError) why = NULL;

		if (!stella_factory_is_available(factory, &reason))
			pass_over(choice, factory, reason, NULL);
		else if (!api_factory_accepts(factory, choice->policy, &why))
			pass_over(choice, factory, why->message, why);
		else
			return factory;
	}
	return NULL;
}

/* Where the host is to blame for all, another policy is of no use; where one of them was refused for the policy, one is. */
static void set_none(Choice *choice, GError **error)
{
	bool is_host = choice->list->len > 0 && !choice->refused_policy;
	g_autoptr(GError) made = NULL;
	ApiErrorDetails *details;

	if (choice->list->len == 0)
		g_string_append(choice->reasons, "no backend is registered");
	log_unsupported_backend(choice->policy, choice->names->str, choice->reasons->str);
	api_error_set(&made,
		      is_host ? STELLA_ERROR_HOST_UNSUPPORTED : STELLA_ERROR_POLICY_INCOMPATIBLE,
		      "no backend %s: %s",
		      is_host ? "works on this host" : "can do what the policy asks for",
		      choice->reasons->str);
	details = api_error_details(made);
	*details = choice->first;
	choice->first = (ApiErrorDetails){ 0 };
	details->reason = g_strdup(choice->reasons->str);
	details->policy = stella_policy_ref(choice->policy);
	if (choice->list->len > 0)
		details->backend = g_strdup(choice->names->str);
	g_propagate_error(error, g_steal_pointer(&made));
}

StellaFactory *stella_factory_registry_pick(StellaFactoryRegistry *registry,
					    const StellaPolicy *policy, GError **error)
{
	g_autoptr(Choice) choice = NULL;
	StellaFactory *factory;

	g_return_val_if_fail(STELLA_IS_FACTORY_REGISTRY(registry), NULL);
	g_return_val_if_fail(policy != NULL, NULL);
	if (!stella_policy_validate(policy, error))
		return NULL;
	choice = choice_new(registry, policy);
	factory = choice_next(choice);
	if (!factory)
		set_none(choice, error);
	return factory ? g_object_ref(factory) : NULL;
}

StellaSession *stella_factory_registry_create_session(StellaFactoryRegistry *registry,
						      const StellaPolicy *policy,
						      GCancellable *cancellable, GError **error)
{
	g_autoptr(Choice) choice = NULL;
	StellaFactory *factory;

	g_return_val_if_fail(STELLA_IS_FACTORY_REGISTRY(registry), NULL);
	g_return_val_if_fail(policy != NULL, NULL);
	if (!stella_policy_validate(policy, error))
		return NULL;
	choice = choice_new(registry, policy);
	while ((factory = choice_next(choice))) {
		g_autoptr(GError) why = NULL;
		StellaSession *session = api_factory_start(factory, policy, cancellable, &why);

		if (session)
			return session;
		if (!g_error_matches(why, STELLA_ERROR, STELLA_ERROR_HOST_UNSUPPORTED)) {
			g_propagate_error(error, g_steal_pointer(&why));
			return NULL;
		}
		pass_over(choice, factory, why->message, why);
	}
	set_none(choice, error);
	return NULL;
}

static gpointer create_in_thread(gpointer source, gpointer policy, GCancellable *cancellable,
				 GError **error)
{
	return stella_factory_registry_create_session(source, policy, cancellable, error);
}

static void drop_policy(gpointer policy)
{
	stella_policy_unref(policy);
}

void stella_factory_registry_create_session_async(StellaFactoryRegistry *registry,
						  const StellaPolicy *policy,
						  GCancellable *cancellable,
						  GAsyncReadyCallback callback, gpointer user_data)
{
	GTask *task;

	g_return_if_fail(STELLA_IS_FACTORY_REGISTRY(registry));
	g_return_if_fail(policy != NULL);
	g_return_if_fail(!cancellable || G_IS_CANCELLABLE(cancellable));
	task = api_task_new(registry, cancellable, callback, user_data,
			    stella_factory_registry_create_session_async);
	g_task_set_task_data(task, stella_policy_ref(policy), drop_policy);
	api_task_call(task, create_in_thread, g_object_unref);
}

StellaSession *stella_factory_registry_create_session_finish(StellaFactoryRegistry *registry,
							     GAsyncResult *async_result,
							     GError **error)
{
	g_return_val_if_fail(g_task_is_valid(async_result, registry), NULL);
	g_return_val_if_fail(g_async_result_is_tagged(async_result,
						      stella_factory_registry_create_session_async),
			     NULL);
	return g_task_propagate_pointer(G_TASK(async_result), error);
}
