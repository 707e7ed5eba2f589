/* api-registry, api-registry-pick: the order, and the choice, over factories that a host has made; what the log is told
 * of it. */
#include "fake-factory.h"

#include "common/policy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
	StellaFactoryRegistry *registry;
	FakeFactory *a, *b, *c; /* registered in this order */
	StellaPolicy *policy;
	GPtrArray *records; /* what the log was told: "EVENT FIELD=value ..." */
} Fixture;

static Fixture *present; /* for the log's writer */

static GLogWriterOutput keep(GLogLevelFlags level, const GLogField *fields, gsize count,
			     gpointer data)
{
	(void)level;
	(void)data;
	for (gsize i = 0; present && i < count; i++)
		if (strcmp(fields[i].key, "MESSAGE") == 0)
			g_ptr_array_add(present->records, g_strdup(fields[i].value));
	return G_LOG_WRITER_HANDLED;
}

static StellaPolicy *new_policy(void)
{
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = "/workspace";
	options.network_mode = STELLA_NETWORK_DISABLED;
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
	fixture->policy = new_policy();
	fixture->records = g_ptr_array_new_with_free_func(g_free);
	fixture->a = add(fixture, "a");
	fixture->b = add(fixture, "b");
	fixture->c = add(fixture, "c");
	present = fixture;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	present = NULL;
	g_object_unref(fixture->registry);
	g_object_unref(fixture->a);
	g_object_unref(fixture->b);
	g_object_unref(fixture->c);
	stella_policy_unref(fixture->policy);
	g_ptr_array_unref(fixture->records);
	g_free(fixture);
	return 0;
}

static void assert_list(GPtrArray *take_list, const char *expected)
{
	g_autoptr(GString) names = g_string_new(NULL);

	for (guint i = 0; i < take_list->len; i++)
		g_string_append_printf(names, "%s%s", i > 0 ? " " : "",
				       stella_factory_get_name(take_list->pdata[i]));
	assert_string_equal(names->str, expected);
	g_ptr_array_unref(take_list);
}

static void assert_picked(Fixture *fixture, FakeFactory *expected)
{
	g_autoptr(StellaFactory) picked =
		stella_factory_registry_pick(fixture->registry, fixture->policy, NULL);

	assert_ptr_equal(picked, expected);
}

static void assert_record(const Fixture *fixture, guint i, const char *expected)
{
	assert_true(i < fixture->records->len);
	assert_string_equal(fixture->records->pdata[i], expected);
}

static void they_are_kept_in_order(void **state)
{
	Fixture *fixture = *state;

	assert_list(stella_factory_registry_list(fixture->registry), "a b c");
	fixture->b->unavailable = "no b here";
	assert_list(stella_factory_registry_list_available(fixture->registry), "a c");
	assert_list(stella_factory_registry_list(fixture->registry), "a b c");
}

static void a_name_is_there_once(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(FakeFactory) again = fake_factory_new("b");
	g_autoptr(StellaFactory) found = NULL;
	g_autoptr(GError) error = NULL;

	assert_false(
		stella_factory_registry_register(fixture->registry, STELLA_FACTORY(again), &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_EXISTS));
	assert_non_null(strstr(error->message, "\"b\""));
	found = stella_factory_registry_get(fixture->registry, "b");
	assert_ptr_equal(found, fixture->b);
	assert_list(stella_factory_registry_list(fixture->registry), "a b c");
	/* once it is gone there is room, at the end */
	assert_true(stella_factory_registry_unregister(fixture->registry, "b"));
	assert_true(
		stella_factory_registry_register(fixture->registry, STELLA_FACTORY(again), NULL));
	assert_list(stella_factory_registry_list(fixture->registry), "a c b");
}

static void what_is_not_there_is_not_found(void **state)
{
	Fixture *fixture = *state;

	assert_null(stella_factory_registry_get(fixture->registry, "d"));
	assert_false(stella_factory_registry_unregister(fixture->registry, "d"));
	assert_true(stella_factory_registry_unregister(fixture->registry, "a"));
	assert_false(stella_factory_registry_unregister(fixture->registry, "a"));
	assert_null(stella_factory_registry_get(fixture->registry, "a"));
}

static void the_default_has_those_that_enforce(void **state)
{
	g_autoptr(StellaFactoryRegistry) registry = stella_factory_registry_new_default();
	g_autoptr(StellaFactoryRegistry) empty = stella_factory_registry_new();

	(void)state;
	assert_list(stella_factory_registry_list(registry), "fsgate bwrap");
	assert_null(stella_factory_registry_get(registry, "none"));
	assert_null(stella_factory_registry_get(registry, "nop"));
	assert_list(stella_factory_registry_list(empty), "");
}

static void a_session_outlives_its_factory(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(StellaSession) session = stella_factory_registry_create_session(
		fixture->registry, fixture->policy, NULL, NULL);
	g_autoptr(StellaExecResult) result = NULL;

	assert_non_null(session);
	assert_true(stella_factory_registry_unregister(fixture->registry, "a"));
	result = stella_session_exec(session, "x", NULL, NULL, NULL);
	assert_non_null(result);
	assert_true(stella_session_is_alive(session));
}

static void the_first_that_can_is_picked(void **state)
{
	Fixture *fixture = *state;

	assert_picked(fixture, fixture->a);
	assert_int_equal(fixture->records->len, 0);
	assert_int_equal(atomic_load(&fixture->b->checks), 0);
	fixture->a->unavailable = "no a here";
	assert_picked(fixture, fixture->b);
	/* one that is not there is not asked about policies */
	assert_int_equal(atomic_load(&fixture->a->checks), 1);
	assert_int_equal(fixture->records->len, 1);
	assert_record(fixture, 0,
		      "sandbox.backend_skipped backend=a reason=no a here "
		      "network_mode=disabled working_dir=/workspace");
	fixture->b->incompatible = "b cannot";
	assert_picked(fixture, fixture->c);
	assert_int_equal(fixture->records->len, 3);
	assert_record(fixture, 2,
		      "sandbox.backend_skipped backend=b reason=b cannot "
		      "network_mode=disabled working_dir=/workspace");
	/* nothing was started for a question */
	assert_int_equal(atomic_load(&fixture->c->starts), 0);
}

/* All that an error tells, and that its copy tells the same. */
static void assert_none(Fixture *fixture, const GError *given)
{
	g_autoptr(GError) copy = g_error_copy(given);
	const GError *errors[] = { given, copy };

	for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
		assert_true(stella_error_is_policy_incompatible(errors[i]));
		assert_string_equal(stella_error_get_backend(errors[i]), "a, b, c");
		assert_string_equal(stella_error_get_reason(errors[i]),
				    "a: no a here; b: b cannot; c: c cannot");
		assert_ptr_equal(stella_error_get_policy(errors[i]), fixture->policy);
		assert_non_null(strstr(errors[i]->message, "b: b cannot"));
	}
}

static void when_none_can_the_error_has_all_of_them(void **state)
{
	Fixture *fixture = *state;
	StellaPolicy *policy = fixture->policy;
	g_autoptr(GError) error = NULL;

	fixture->a->unavailable = "no a here";
	fixture->b->incompatible = "b cannot";
	fixture->c->incompatible = "c cannot";
	assert_null(stella_factory_registry_pick(fixture->registry, policy, &error));
	assert_none(fixture, error);
	assert_int_equal(fixture->records->len, 4);
	assert_record(fixture, 3,
		      "sandbox.unsupported_backend attempted_backends=a, b, c "
		      "reason=a: no a here; b: b cannot; c: c cannot "
		      "network_mode=disabled working_dir=/workspace");
	/* the policy of an error lasts as long as that */
	fixture->policy = new_policy();
	stella_policy_unref(policy);
	assert_string_equal(stella_policy_get_working_dir(stella_error_get_policy(error)),
			    "/workspace");
	/* and nobody has to take it */
	assert_null(stella_factory_registry_pick(fixture->registry, fixture->policy, NULL));
}

static void an_empty_registry_has_none(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(StellaFactoryRegistry) empty = stella_factory_registry_new();
	g_autoptr(GError) error = NULL;

	assert_null(stella_factory_registry_create_session(empty, fixture->policy, NULL, &error));
	assert_true(stella_error_is_policy_incompatible(error));
	assert_null(stella_error_get_backend(error));
	assert_string_equal(stella_error_get_reason(error), "no backend is registered");
	assert_int_equal(fixture->records->len, 1);
}

static void a_policy_that_is_none_is_refused_before_all(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(StellaPolicy) none = policy_new_defaults();
	g_autoptr(GError) error = NULL;

	assert_null(stella_factory_registry_pick(fixture->registry, none, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_POLICY_INVALID));
	assert_string_equal(stella_error_get_key(error), "filesystem.working_dir");
	g_clear_error(&error);
	assert_null(stella_factory_registry_create_session(fixture->registry, none, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_POLICY_INVALID));
	assert_int_equal(atomic_load(&fixture->a->checks), 0);
	assert_int_equal(atomic_load(&fixture->a->starts), 0);
	assert_int_equal(fixture->records->len, 0);
}

static void assert_session_of(Fixture *fixture, const char *id)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(StellaSession) session = stella_factory_registry_create_session(
		fixture->registry, fixture->policy, NULL, &error);

	if (!session)
		fail_msg("%s", error->message);
	assert_string_equal(stella_session_get_id(session), id);
}

static void what_the_host_lacks_is_passed_over(void **state)
{
	Fixture *fixture = *state;

	assert_session_of(fixture, "sandbox-a");
	fixture->a->start_code = STELLA_ERROR_HOST_UNSUPPORTED;
	assert_session_of(fixture, "sandbox-b");
	assert_int_equal(fixture->records->len, 1);
	assert_record(fixture, 0,
		      "sandbox.backend_skipped backend=a reason=a does not start "
		      "network_mode=disabled working_dir=/workspace");
	fixture->b->unavailable = "no b here";
	assert_session_of(fixture, "sandbox-c");
	assert_int_equal(atomic_load(&fixture->b->starts), 1);
}

static void when_host_and_policy_leave_none_the_error_has_all_of_them(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(GError) error = NULL;

	fixture->a->start_code = STELLA_ERROR_HOST_UNSUPPORTED;
	fixture->b->unavailable = "no b here";
	fixture->c->incompatible = "c cannot";
	assert_null(stella_factory_registry_create_session(fixture->registry, fixture->policy, NULL,
							   &error));
	assert_true(stella_error_is_policy_incompatible(error));
	assert_string_equal(stella_error_get_backend(error), "a, b, c");
	assert_string_equal(stella_error_get_reason(error),
			    "a: a does not start; b: no b here; c: c cannot");
	assert_ptr_equal(stella_error_get_policy(error), fixture->policy);
	assert_int_equal(fixture->records->len, 4);
	assert_true(g_str_has_prefix(fixture->records->pdata[3], "sandbox.unsupported_backend "));
}

/* No other policy would help, so that none is blamed: here all are passed over for the host's sake, in both ways. */
static void when_only_the_host_is_to_blame_the_error_says_so(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(GError) error = NULL;

	fixture->a->unavailable = "no a here";
	fixture->b->start_code = STELLA_ERROR_HOST_UNSUPPORTED;
	fixture->c->start_code = STELLA_ERROR_HOST_UNSUPPORTED;
	assert_null(stella_factory_registry_create_session(fixture->registry, fixture->policy, NULL,
							   &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_HOST_UNSUPPORTED));
	assert_string_equal(error->message,
			    "no backend works on this host: a: no a here; b: b does not start; "
			    "c: c does not start");
	assert_string_equal(stella_error_get_hint(error), "b needs help");
	assert_string_equal(stella_error_get_stage(error), "b-step");
	assert_int_equal(stella_error_get_errno(error), ENODEV);
	assert_null(stella_error_get_key(error));
	assert_string_equal(stella_error_get_backend(error), "a, b, c");
	assert_ptr_equal(stella_error_get_policy(error), fixture->policy);
	assert_true(g_str_has_prefix(fixture->records->pdata[3], "sandbox.unsupported_backend "));
	g_clear_error(&error);
	/* without a start there is as little to choose from */
	fixture->b->unavailable = fixture->c->unavailable = "nor this";
	assert_null(stella_factory_registry_pick(fixture->registry, fixture->policy, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_HOST_UNSUPPORTED));
	/* and one that the policy keeps from it is enough for the policy to be named */
	fixture->c->unavailable = NULL;
	fixture->c->incompatible = "c cannot";
	g_clear_error(&error);
	assert_null(stella_factory_registry_pick(fixture->registry, fixture->policy, &error));
	assert_true(stella_error_is_policy_incompatible(error));
}

/* Every other failure: the next one would run the commands where nobody has looked why. */
static void any_other_failure_is_the_callers(void **state)
{
	Fixture *fixture = *state;

	for (int code = 0; code < STELLA_N_ERRORS; code++) {
		g_autoptr(GError) error = NULL;

		if (code == STELLA_ERROR_HOST_UNSUPPORTED)
			continue;
		fixture->a->start_code = code;
		assert_null(stella_factory_registry_create_session(fixture->registry,
								   fixture->policy, NULL, &error));
		assert_true(g_error_matches(error, STELLA_ERROR, code));
		assert_string_equal(error->message, "a does not start");
	}
	assert_int_equal(atomic_load(&fixture->a->starts), STELLA_N_ERRORS - 1);
	assert_int_equal(atomic_load(&fixture->b->starts), 0);
	assert_int_equal(atomic_load(&fixture->c->starts), 0);
}

static void who_has_cancelled_gets_none(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(GError) error = NULL;

	g_cancellable_cancel(cancellable);
	assert_null(stella_factory_registry_create_session(fixture->registry, fixture->policy,
							   cancellable, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_CANCELED));
	assert_int_equal(atomic_load(&fixture->a->starts), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(they_are_kept_in_order),
		CASE(a_name_is_there_once),
		CASE(what_is_not_there_is_not_found),
		CASE(the_default_has_those_that_enforce),
		CASE(a_session_outlives_its_factory),
		CASE(the_first_that_can_is_picked),
		CASE(when_none_can_the_error_has_all_of_them),
		CASE(an_empty_registry_has_none),
		CASE(a_policy_that_is_none_is_refused_before_all),
		CASE(what_the_host_lacks_is_passed_over),
		CASE(when_host_and_policy_leave_none_the_error_has_all_of_them),
		CASE(when_only_the_host_is_to_blame_the_error_says_so),
		CASE(any_other_failure_is_the_callers),
		CASE(who_has_cancelled_gets_none),
	};

	g_log_set_writer_func(keep, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
