/* See fake-factory.h. */
#include "fake-factory.h"

#include "common/api-error.h"

#include <errno.h>

static void factory_init(StellaFactoryInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(FakeFactory, fake_factory, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_FACTORY, factory_init))

static const char *get_name(StellaFactory *factory)
{
	return FAKE_FACTORY(factory)->name;
}

static gboolean is_available(StellaFactory *factory, char **ret_reason)
{
	FakeFactory *fake = FAKE_FACTORY(factory);

	if (!fake->unavailable)
		return TRUE;
	*ret_reason = g_strdup(fake->unavailable);
	return FALSE;
}

static gboolean check_policy(StellaFactory *factory, const StellaPolicy *policy, GError **error)
{
	FakeFactory *fake = FAKE_FACTORY(factory);

	(void)policy;
	atomic_fetch_add(&fake->checks, 1);
	if (fake->refuses_in_silence)
		return FALSE;
	if (!fake->incompatible)
		return TRUE;
	if (fake->refuses_as_io)
		g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
				    fake->incompatible);
	else
		g_set_error_literal(error, STELLA_ERROR, STELLA_ERROR_POLICY_INCOMPATIBLE,
				    fake->incompatible);
	return FALSE;
}

/* With all that the library's own tell of a start. */
static void set_start_error(const FakeFactory *fake, GError **error)
{
	ApiErrorDetails *details;

	g_set_error(error, STELLA_ERROR, fake->start_code, "%s does not start", fake->name);
	if (!error)
		return;
	details = api_error_details(*error);
	details->hint = g_strdup_printf("%s needs help", fake->name);
	details->stage = g_strdup_printf("%s-step", fake->name);
	details->errnum = ENODEV;
}

static StellaSession *create_session(StellaFactory *factory, const StellaPolicy *policy,
				     GCancellable *cancellable, GError **error)
{
	FakeFactory *fake = FAKE_FACTORY(factory);

	(void)policy;
	atomic_fetch_add(&fake->starts, 1);
	if (fake->gate)
		gate_pass(fake->gate, fake->heeds_cancel ? cancellable : NULL);
	if (fake->heeds_cancel && g_cancellable_set_error_if_cancelled(cancellable, error))
		return NULL;
	if (fake->starts_nothing)
		return NULL;
	if (fake->start_code >= 0) {
		set_start_error(fake, error);
		return NULL;
	}
	g_clear_object(&fake->made);
	fake->made = fake_session_new(fake->name);
	return STELLA_SESSION(g_object_ref(fake->made));
}

static void factory_init(StellaFactoryInterface *iface)
{
	iface->get_name = get_name;
	iface->is_available = is_available;
	iface->check_policy = check_policy;
	iface->create_session = create_session;
}

static void finalize(GObject *object)
{
	FakeFactory *fake = FAKE_FACTORY(object);

	g_clear_object(&fake->made);
	g_free(fake->name);
	G_OBJECT_CLASS(fake_factory_parent_class)->finalize(object);
}

static void fake_factory_class_init(FakeFactoryClass *class)
{
	G_OBJECT_CLASS(class)->finalize = finalize;
}

static void fake_factory_init(FakeFactory *fake)
{
	fake->start_code = -1;
}

FakeFactory *fake_factory_new(const char *name)
{
	FakeFactory *fake = g_object_new(FAKE_TYPE_FACTORY, NULL);

	fake->name = g_strdup(name);
	return fake;
}
