/* api-factory, api-backends: what is asked of a factory of a host's, and what becomes of its answers; and what the library's
 * own say of policies. Sessions of theirs are really started in integration/it-api-factory.c; the asynchronous calls are in
 * integration/it-api-factory-loop.c, for ThreadSanitizer cannot see into a main loop. */
#include "fake-factory.h"

#include "common/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static StellaPolicy *new_policy(void)
{
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = "/workspace";
	return stella_policy_new(&options);
}

typedef struct {
	FakeFactory *fake;
	StellaFactory *factory; /* the same */
	StellaPolicy *policy;
} Fixture;

static int set_up(void **state)
{
	Fixture *fixture = g_new0(Fixture, 1);

	fixture->fake = fake_factory_new("mine");
	fixture->factory = STELLA_FACTORY(fixture->fake);
	fixture->policy = new_policy();
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	g_object_unref(fixture->fake);
	stella_policy_unref(fixture->policy);
	g_free(fixture);
	return 0;
}

static void a_host_can_implement_one(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(StellaSession) session = NULL;

	assert_string_equal(stella_factory_get_name(fixture->factory), "mine");
	assert_true(stella_factory_is_available(fixture->factory, NULL));
	assert_true(stella_factory_check_policy(fixture->factory, fixture->policy, NULL));
	session = stella_factory_create_session(fixture->factory, fixture->policy, NULL, NULL);
	assert_ptr_equal(session, fixture->fake->made);
}

static void why_it_is_not_available_is_told(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *reason = NULL;

	assert_true(stella_factory_is_available(fixture->factory, &reason));
	assert_null(reason);
	fixture->fake->unavailable = "no such thing here";
	assert_false(stella_factory_is_available(fixture->factory, NULL));
	assert_false(stella_factory_is_available(fixture->factory, &reason));
	assert_string_equal(reason, "no such thing here");
}

/* A host has no way to say of an error which backend and which policy it is about. */
static void assert_whole(Fixture *fixture, const GError *error, const char *message)
{
	assert_true(stella_error_is_policy_incompatible(error));
	assert_string_equal(error->message, message);
	assert_string_equal(stella_error_get_backend(error), "mine");
	assert_string_equal(stella_error_get_reason(error), message);
	assert_ptr_equal(stella_error_get_policy(error), fixture->policy);
}

static void a_refusal_is_made_whole(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(GError) error = NULL;

	fixture->fake->incompatible = "no GPU here";
	assert_false(stella_factory_check_policy(fixture->factory, fixture->policy, &error));
	assert_whole(fixture, error, "no GPU here");
	g_clear_error(&error);
	fixture->fake->refuses_as_io = true;
	assert_false(stella_factory_check_policy(fixture->factory, fixture->policy, &error));
	assert_whole(fixture, error, "no GPU here");
	g_clear_error(&error);
	fixture->fake->refuses_in_silence = true;
	assert_false(stella_factory_check_policy(fixture->factory, fixture->policy, &error));
	assert_whole(fixture, error, "it cannot, and does not say why");
	g_clear_error(&error);
	/* nothing is started of what is refused */
	assert_null(stella_factory_create_session(fixture->factory, fixture->policy, NULL, &error));
	assert_true(stella_error_is_policy_incompatible(error));
	assert_int_equal(atomic_load(&fixture->fake->starts), 0);
	assert_false(stella_factory_check_policy(fixture->factory, fixture->policy, NULL));
}

static void a_start_that_finds_it_impossible_is_made_whole_too(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(GError) error = NULL;

	fixture->fake->start_code = STELLA_ERROR_POLICY_INCOMPATIBLE;
	assert_null(stella_factory_create_session(fixture->factory, fixture->policy, NULL, &error));
	assert_whole(fixture, error, "mine does not start");
}

static void a_policy_that_is_none_is_refused_before_it_is_asked(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(StellaPolicy) none = policy_new_defaults();
	g_autoptr(GError) error = NULL;

	assert_false(stella_factory_check_policy(fixture->factory, none, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_POLICY_INVALID));
	g_clear_error(&error);
	assert_null(stella_factory_create_session(fixture->factory, none, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_POLICY_INVALID));
	assert_int_equal(atomic_load(&fixture->fake->checks), 0);
	assert_int_equal(atomic_load(&fixture->fake->starts), 0);
}

static void a_start_that_gives_nothing_is_a_failure(void **state)
{
	Fixture *fixture = *state;
	g_autoptr(GError) error = NULL;

	fixture->fake->starts_nothing = true;
	assert_null(stella_factory_create_session(fixture->factory, fixture->policy, NULL, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_FAILED));
	assert_non_null(strstr(error->message, "\"mine\""));
}

typedef struct {
	Fixture *fixture;
	GCancellable *cancellable;
	StellaSession *session;
	GError *error;
} Start;

static void *start(void *data)
{
	Start *self = data;

	self->session = stella_factory_create_session(self->fixture->factory, self->fixture->policy,
						      self->cancellable, &self->error);
	return NULL;
}

/* A start that is at work when its caller cancels. */
static void cancel_a_start(Fixture *fixture, bool heeds)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	Start self = { .fixture = fixture, .cancellable = cancellable };
	pthread_t thread;

	fixture->fake->gate = gate_new();
	fixture->fake->heeds_cancel = heeds;
	assert_int_equal(pthread_create(&thread, NULL, start, &self), 0);
	gate_await(fixture->fake->gate, 1);
	g_cancellable_cancel(cancellable);
	if (!heeds)
		gate_open(fixture->fake->gate);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_null(self.session);
	assert_true(g_error_matches(self.error, STELLA_ERROR, STELLA_ERROR_CANCELED));
	g_clear_error(&self.error);
	gate_free(fixture->fake->gate);
	fixture->fake->gate = NULL;
}

static void a_start_can_be_cancelled(void **state)
{
	cancel_a_start(*state, true);
}

static void what_was_started_in_spite_of_a_cancel_is_closed(void **state)
{
	Fixture *fixture = *state;

	cancel_a_start(fixture, false);
	assert_true(atomic_load(&fixture->fake->made->closes) > 0);
}

/* Of the library's own: what a policy asks for, and the key that is named. */
static const struct {
	const char *key;
	const char *filesystem; /* in the object filesystem */
	const char *mount;	/* in its mount */
	const char *rest;	/* beside filesystem */
	bool fsgate_can;
} asked[] = {
	{ "plain", "", "", "", true },
	{ "network.timeout_ms", "", "", ", \"network\": {\"timeout_ms\": 1}", false },
	{ "filesystem.hide", ", \"hide\": [\"**/.env\"]", "", "", false },
	{ "filesystem.protect", ", \"protect\": [\"**/.git/**\"]", "", "", false },
	{ "filesystem.mounts[0].quota_bytes", "", ", \"quota_bytes\": 1", "", false },
	{ "filesystem.mounts[0].quota_files", "", ", \"quota_files\": 1", "", false },
	{ "filesystem.symlinks", ", \"symlinks\": \"deny\"", "", "", true },
};

static StellaPolicy *policy_of(size_t i)
{
	g_autofree char *text = g_strdup_printf(
		"{\"version\": 1, \"filesystem\": {\"working_dir\": \"/workspace\", \"mounts\": "
		"[{\"host_path\": \"/srv/ws\", \"view_path\": \"/workspace\", \"access\": "
		"\"rw\"%s}]%s}%s}",
		asked[i].mount, asked[i].filesystem, asked[i].rest);
	g_autoptr(GError) error = NULL;
	StellaPolicy *policy = stella_policy_new_from_json(text, -1, &error);

	if (!policy)
		fail_msg("%s", error->message);
	return policy;
}

static void fsgate_says_which_key_it_cannot_do(void **state)
{
	g_autoptr(StellaFactory) factory = stella_factory_new_fsgate();

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(asked); i++) {
		g_autoptr(StellaPolicy) policy = policy_of(i);
		g_autoptr(GError) error = NULL;
		gboolean can = stella_factory_check_policy(factory, policy, &error);

		assert_int_equal(can, asked[i].fsgate_can);
		if (can)
			continue;
		assert_true(stella_error_is_policy_incompatible(error));
		assert_string_equal(stella_error_get_key(error), asked[i].key);
		assert_string_equal(stella_error_get_backend(error), "fsgate");
		assert_ptr_equal(stella_error_get_policy(error), policy);
		assert_string_equal(stella_error_get_reason(error), error->message);
	}
}

static void no_backend_has_a_timeout_of_the_network(void **state)
{
	StellaFactory *const factories[] = { stella_factory_new_fsgate(),
					     stella_factory_new_bwrap(), stella_factory_new_none(),
					     stella_factory_new_nop() };
	static const char *const names[] = { "fsgate", "bwrap", "none", "nop" };
	g_autoptr(StellaPolicy) plain = policy_of(0);
	g_autoptr(StellaPolicy) policy = policy_of(1);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(factories); i++) {
		g_autoptr(GError) error = NULL;

		assert_string_equal(stella_factory_get_name(factories[i]), names[i]);
		assert_true(stella_factory_check_policy(factories[i], plain, NULL));
		assert_false(stella_factory_check_policy(factories[i], policy, &error));
		assert_true(stella_error_is_policy_incompatible(error));
		assert_string_equal(stella_error_get_key(error), "network.timeout_ms");
		assert_string_equal(stella_error_get_backend(error), names[i]);
		g_clear_error(&error);
		/* and none of them starts what it refuses */
		assert_null(stella_factory_create_session(factories[i], policy, NULL, &error));
		assert_true(stella_error_is_policy_incompatible(error));
		g_object_unref(factories[i]);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_host_can_implement_one),
		CASE(why_it_is_not_available_is_told),
		CASE(a_refusal_is_made_whole),
		CASE(a_start_that_finds_it_impossible_is_made_whole_too),
		CASE(a_policy_that_is_none_is_refused_before_it_is_asked),
		CASE(a_start_that_gives_nothing_is_a_failure),
		CASE(a_start_can_be_cancelled),
		CASE(what_was_started_in_spite_of_a_cancel_is_closed),
		cmocka_unit_test(fsgate_says_which_key_it_cannot_do),
		cmocka_unit_test(no_backend_has_a_timeout_of_the_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
