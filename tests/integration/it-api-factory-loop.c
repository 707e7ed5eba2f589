/* The asynchronous calls of factories and registries, beside a main loop, with factories of a host that fail, hang and are
 * cancelled. Those of the library: it-api-factory.c. */
#include "unit/fake-factory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct {
	StellaFactoryRegistry *registry;
	FakeFactory *first, *second; /* registered in this order */
	StellaPolicy *policy;
	Gate *gate;
} Fixture;

static StellaPolicy *new_policy(void)
{
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = "/workspace";
	return stella_policy_new(&options);
}

static FakeFactory *add(Fixture *fixture, const char *name)
{
	FakeFactory *factory = fake_factory_new(name);

	assert_true(
		stella_factory_registry_register(fixture->registry, STELLA_FACTORY(factory), NULL));
	return factory;
}

static int set_up(void **state)
{
	Fixture *fixture = g_new0(Fixture, 1);

	fixture->registry = stella_factory_registry_new();
	fixture->first = add(fixture, "first");
	fixture->second = add(fixture, "second");
	fixture->policy = new_policy();
	fixture->gate = gate_new();
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	g_object_unref(fixture->registry);
	g_object_unref(fixture->first);
	g_object_unref(fixture->second);
	stella_policy_unref(fixture->policy);
	gate_free(fixture->gate);
	g_free(fixture);
	return 0;
}

static void keep_result(GObject *source, GAsyncResult *async_result, gpointer data)
{
	(void)source;
	*(GAsyncResult **)data = g_object_ref(async_result);
}

static GAsyncResult *iterate(GAsyncResult **result)
{
	while (!*result)
		g_main_context_iteration(NULL, TRUE);
	return *result;
}

static void a_factory_makes_a_session(void **state)
{
	Fixture *fixture = *state;
	StellaFactory *factory = STELLA_FACTORY(fixture->first);
	g_autoptr(GAsyncResult) made = NULL;
	g_autoptr(StellaSession) session = NULL;
	StellaPolicy *policy = new_policy();

	stella_factory_create_session_async(factory, policy, NULL, keep_result, &made);
	stella_policy_unref(policy); /* the call has its own */
	session = stella_factory_create_session_finish(factory, iterate(&made), NULL);
	assert_non_null(session);
	assert_ptr_equal(session, fixture->first->made);
}

static void a_registry_makes_a_session(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(GAsyncResult) made = NULL;
	g_autoptr(StellaSession) session = NULL;

	fixture->first->start_code = STELLA_ERROR_HOST_UNSUPPORTED;
	stella_factory_registry_create_session_async(fixture->registry, fixture->policy, NULL,
						     keep_result, &made);
	session = stella_factory_registry_create_session_finish(fixture->registry, iterate(&made),
								NULL);
	assert_non_null(session);
	assert_string_equal(stella_session_get_id(session), "sandbox-second");
}

static void what_fails_is_told(void **state)
{
	Fixture *fixture = *state;
	StellaFactory *factory = STELLA_FACTORY(fixture->first);
	g_autoptr(GAsyncResult) by_factory = NULL;
	g_autoptr(GAsyncResult) by_registry = NULL;
	g_autoptr(GError) error = NULL;

	fixture->first->start_code = STELLA_ERROR_START_FAILED;
	stella_factory_create_session_async(factory, fixture->policy, NULL, keep_result,
					    &by_factory);
	stella_factory_registry_create_session_async(fixture->registry, fixture->policy, NULL,
						     keep_result, &by_registry);
	assert_null(stella_factory_create_session_finish(factory, iterate(&by_factory), &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_START_FAILED));
	g_clear_error(&error);
	assert_null(stella_factory_registry_create_session_finish(fixture->registry,
								  iterate(&by_registry), &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_START_FAILED));
	assert_int_equal(atomic_load(&fixture->second->starts), 0);
}

/* The callback comes when nothing is left, not when it is cancelled. */
static void cancel_at_work(Fixture *fixture, bool heeds)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(GAsyncResult) result = NULL;
	g_autoptr(GError) error = NULL;

	fixture->first->gate = fixture->gate;
	fixture->first->heeds_cancel = heeds;
	stella_factory_registry_create_session_async(fixture->registry, fixture->policy,
						     cancellable, keep_result, &result);
	gate_await(fixture->gate, 1);
	g_cancellable_cancel(cancellable);
	if (!heeds) {
		assert_false(g_main_context_iteration(NULL, FALSE));
		gate_open(fixture->gate);
	}
	assert_null(stella_factory_registry_create_session_finish(fixture->registry,
								  iterate(&result), &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_CANCELED));
	assert_int_equal(atomic_load(&fixture->second->starts), 0);
}

static void a_start_can_be_cancelled(void **state)
{
	Fixture *fixture = *state;

	cancel_at_work(fixture, true);
	assert_null(fixture->first->made);
}

static void what_was_started_in_spite_of_a_cancel_is_closed(void **state)
{
	Fixture *fixture = *state;

	cancel_at_work(fixture, false);
	assert_true(atomic_load(&fixture->first->made->closes) > 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_factory_makes_a_session),
		CASE(a_registry_makes_a_session),
		CASE(what_fails_is_told),
		CASE(a_start_can_be_cancelled),
		CASE(what_was_started_in_spite_of_a_cancel_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
