/* The library's own factories, really started: by the registry's choice, by name, beside a main loop, with a caller who
 * cancels, and on a host that lacks FUSE. What fails leaves nothing. */
#include "api-fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
	ApiFixture *api;
	StellaFactoryRegistry *registry;
	StellaPolicy *policy;
	char *sessions; /* what each session has a directory in */
} Host;

/* What the log was told: the messages. */
static GPtrArray *records;
static GMutex records_lock;

static GLogWriterOutput keep(GLogLevelFlags level, const GLogField *fields, gsize count,
			     gpointer data)
{
	(void)level;
	(void)data;
	g_mutex_lock(&records_lock);
	for (gsize i = 0; i < count; i++)
		if (strcmp(fields[i].key, "MESSAGE") == 0)
			g_ptr_array_add(records, g_strdup(fields[i].value));
	g_mutex_unlock(&records_lock);
	return G_LOG_WRITER_HANDLED;
}

/* How many records begin with that. */
static int count_records(const char *start)
{
	int count = 0;

	for (guint i = 0; i < records->len; i++)
		count += g_str_has_prefix(records->pdata[i], start);
	return count;
}

static int set_up(void **state)
{
	Host *host = g_new0(Host, 1);

	g_ptr_array_set_size(records, 0);
	host->api = api_fixture_new();
	host->registry = stella_factory_registry_new_default();
	host->policy = fixture_policy(host->api->dirs, "");
	host->sessions = g_build_filename(host->api->dirs->state, "sessions", NULL);
	*state = host;
	return 0;
}

static void assert_nothing_left(const Host *host)
{
	if (g_file_test(host->sessions, G_FILE_TEST_EXISTS))
		assert_int_equal(count_entries(host->sessions), 0);
	assert_int_equal(count_children(), 0);
}

static int tear_down(void **state)
{
	Host *host = *state;

	assert_nothing_left(host);
	g_object_unref(host->registry);
	stella_policy_unref(host->policy);
	g_free(host->sessions);
	api_fixture_free(host->api);
	g_free(host);
	return 0;
}

/* What is not there cannot be tested, which is no success where all tests have to run. */
static bool has_bwrap(void)
{
	g_autoptr(StellaFactory) bwrap = stella_factory_new_bwrap();
	g_autofree char *reason = NULL;

	if (stella_factory_is_available(bwrap, &reason))
		return true;
	if (g_strcmp0(g_getenv("STELLA_TESTS_MUST_RUN"), "1") == 0)
		fail_msg("%s", reason);
	return false;
}

/* It runs commands in the workspace, and ends without a trace. */
static void use(const Host *host, StellaSession *take_session, const char *backend)
{
	g_autofree char *text = NULL;

	assert_string_equal(stella_session_get_backend(take_session), backend);
	api_assert_out(take_session, "echo text >used; cat used", NULL, "text\n");
	text = api_host_text(host->api, "used");
	assert_string_equal(text, "text\n");
	assert_true(stella_session_close(take_session, NULL, NULL));
	assert_nothing_left(host);
	g_object_unref(take_session);
}

static void the_registry_takes_the_gateway_first(void **state)
{
	Host *host = *state;
	g_autoptr(StellaFactory) picked = NULL;
	g_autoptr(GError) error = NULL;
	StellaSession *session;
	g_autofree char *created = NULL;
	g_autofree char *closed = NULL;

	picked = stella_factory_registry_pick(host->registry, host->policy, NULL);
	assert_string_equal(stella_factory_get_name(picked), "fsgate");
	session =
		stella_factory_registry_create_session(host->registry, host->policy, NULL, &error);
	if (!session)
		fail_msg("%s", error->message);
	created = g_strdup_printf("sandbox.session_created session_id=%s backend=fsgate "
				  "network_mode=allow_all working_dir=/workspace",
				  stella_session_get_id(session));
	closed =
		g_strdup_printf("sandbox.session_closed session_id=%s backend=fsgate reason=closed",
				stella_session_get_id(session));
	use(host, session, "fsgate");
	assert_int_equal(count_records(created), 1);
	assert_int_equal(count_records(closed), 1);
	assert_int_equal(count_records("sandbox."), 2);
}

static void each_can_be_had_by_name(void **state)
{
	Host *host = *state;
	StellaFactory *const factories[] = { stella_factory_new_fsgate(),
					     stella_factory_new_bwrap() };

	for (size_t i = 0; i < G_N_ELEMENTS(factories); i++) {
		g_autoptr(GError) error = NULL;
		StellaSession *session;

		if (i == 1 && !has_bwrap()) {
			g_object_unref(factories[i]);
			continue;
		}
		session = stella_factory_create_session(factories[i], host->policy, NULL, &error);
		if (!session)
			fail_msg("%s: %s", stella_factory_get_name(factories[i]), error->message);
		use(host, session, stella_factory_get_name(factories[i]));
		g_object_unref(factories[i]);
	}
}

static void none_runs_on_the_host(void **state)
{
	Host *host = *state;
	g_autoptr(StellaFactory) factory = stella_factory_new_none();
	g_autoptr(StellaPolicy) offline =
		fixture_policy(host->api->dirs, "\"network\": {\"mode\": \"disabled\"},");
	g_autoptr(GError) error = NULL;
	StellaSession *session = stella_factory_create_session(factory, host->policy, NULL, &error);

	if (!session)
		fail_msg("%s", error->message);
	use(host, session, "none");
	/* nor does it take a policy that it would have to break */
	assert_null(stella_factory_create_session(factory, offline, NULL, &error));
	api_assert_error(error, STELLA_ERROR_POLICY_INCOMPATIBLE);
	assert_string_equal(stella_error_get_backend(error), "none");
	assert_string_equal(stella_error_get_key(error), "network.mode");
}

/* Another one would run it without what is wrong with it having been seen. */
static void a_start_that_fails_is_not_tried_elsewhere(void **state)
{
	Host *host = *state;
	g_autofree char *missing = g_build_filename(host->api->dirs->dir, "missing", NULL);
	g_autoptr(StellaPolicy) policy = NULL;
	g_autoptr(GError) error = NULL;
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = "/workspace";
	options.workspace_root = missing;
	policy = stella_policy_new(&options);
	assert_null(stella_factory_registry_create_session(host->registry, policy, NULL, &error));
	api_assert_error(error, STELLA_ERROR_POLICY_INVALID);
	assert_string_equal(stella_error_get_stage(error), "policy");
	assert_string_equal(stella_error_get_key(error), "filesystem.workspace_root");
	assert_int_equal(count_records("sandbox."), 0);
}

static void what_none_can_do_is_told_once(void **state)
{
	Host *host = *state;
	g_autoptr(StellaPolicy) policy =
		fixture_policy(host->api->dirs, "\"network\": {\"timeout_ms\": 5},");
	g_autoptr(GError) error = NULL;

	assert_null(stella_factory_registry_create_session(host->registry, policy, NULL, &error));
	api_assert_error(error, STELLA_ERROR_POLICY_INCOMPATIBLE);
	assert_string_equal(stella_error_get_backend(error), "fsgate, bwrap");
	assert_string_equal(stella_error_get_key(error), "network.timeout_ms");
	assert_ptr_equal(stella_error_get_policy(error), policy);
	assert_int_equal(count_records("sandbox.unsupported_backend "), 1);
	assert_int_equal(
		count_records("sandbox.unsupported_backend attempted_backends=fsgate, bwrap "), 1);
	assert_int_equal(count_records("sandbox.backend_skipped "), 2);
	assert_int_equal(count_records("sandbox.session"), 0);
}

static void a_session_is_made_beside_a_main_loop(void **state)
{
	Host *host = *state;
	g_autoptr(StellaFactory) factory = stella_factory_new_fsgate();
	API_ASYNC_AUTO by_registry = { 0 };
	API_ASYNC_AUTO by_factory = { 0 };
	g_autoptr(GError) error = NULL;
	StellaSession *first, *second;

	stella_factory_registry_create_session_async(host->registry, host->policy, NULL,
						     api_async_ready, &by_registry);
	stella_factory_create_session_async(factory, host->policy, NULL, api_async_ready,
					    &by_factory);
	first = stella_factory_registry_create_session_finish(host->registry,
							      api_await(&by_registry), &error);
	second = stella_factory_create_session_finish(factory, api_await(&by_factory), &error);
	if (!first || !second)
		fail_msg("%s", error->message);
	assert_string_not_equal(stella_session_get_id(first), stella_session_get_id(second));
	api_assert_out(second, "echo second", NULL, "second\n");
	g_object_unref(second);
	use(host, first, "fsgate");
}

/* Whenever the cancel comes: a session, or an error and nothing else. */
static void a_cancel_leaves_nothing(void **state)
{
	Host *host = *state;

	for (int i = 0; i < 8; i++) {
		g_autoptr(GCancellable) cancellable = g_cancellable_new();
		API_ASYNC_AUTO async = { 0 };
		g_autoptr(StellaSession) session = NULL;
		g_autoptr(GError) error = NULL;

		if (i == 0)
			g_cancellable_cancel(cancellable);
		stella_factory_registry_create_session_async(host->registry, host->policy,
							     cancellable, api_async_ready, &async);
		for (int step = 0; step < i * 40; step++)
			sched_yield();
		g_cancellable_cancel(cancellable);
		session = stella_factory_registry_create_session_finish(host->registry,
									api_await(&async), &error);
		if (session)
			assert_true(stella_session_close(session, NULL, NULL));
		else
			api_assert_error(error, STELLA_ERROR_CANCELED);
		assert_true(i > 0 || !session);
		assert_nothing_left(host);
	}
}

/* What the host lacks is in the error of a registry too, with what to do about it. */
static bool tells_what_to_do(const Host *host, StellaFactory *fsgate)
{
	g_autoptr(StellaFactoryRegistry) alone = stella_factory_registry_new();
	g_autoptr(GError) error = NULL;

	return stella_factory_registry_register(alone, fsgate, NULL) &&
	       !stella_factory_registry_create_session(alone, host->policy, NULL, &error) &&
	       g_error_matches(error, STELLA_ERROR, STELLA_ERROR_HOST_UNSUPPORTED) &&
	       stella_error_get_hint(error) &&
	       g_strcmp0(stella_error_get_stage(error), "fuse-device") == 0 &&
	       g_strcmp0(stella_error_get_backend(error), "fsgate") == 0 &&
	       count_records("sandbox.unsupported_backend attempted_backends=fsgate ") == 1;
}

/* In a child, whose /dev/fuse is something else: 0, or the line that has failed. */
static int without_fuse(const Host *host)
{
	g_autoptr(StellaFactory) fsgate = stella_factory_new_fsgate();
	g_autoptr(StellaSession) session = NULL;
	g_autoptr(StellaExecResult) result = NULL;
	g_autoptr(GError) error = NULL;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("/dev/null", "/dev/fuse", NULL, MS_BIND, NULL) != 0)
		return __LINE__ % 256;
	/* it is there to be opened, and only the start finds out */
	if (stella_factory_create_session(fsgate, host->policy, NULL, &error))
		return __LINE__ % 256;
	if (!g_error_matches(error, STELLA_ERROR, STELLA_ERROR_HOST_UNSUPPORTED) ||
	    !stella_error_get_hint(error) || !stella_error_get_stage(error))
		return __LINE__ % 256;
	if (!tells_what_to_do(host, fsgate))
		return __LINE__ % 256;
	g_ptr_array_set_size(records, 0);
	session = stella_factory_registry_create_session(host->registry, host->policy, NULL, NULL);
	if (!session || strcmp(stella_session_get_backend(session), "bwrap") != 0)
		return __LINE__ % 256;
	if (count_records("sandbox.backend_skipped backend=fsgate ") != 1 ||
	    count_records("sandbox.unsupported_backend ") != 0)
		return __LINE__ % 256;
	result = stella_session_exec(session, "echo inside >by-bwrap", NULL, NULL, NULL);
	if (!result || !stella_exec_result_check(result, NULL) ||
	    !stella_session_close(session, NULL, NULL))
		return __LINE__ % 256;
	return 0;
}

/* Likewise, with one that cannot be opened: that is seen beforehand. */
static int without_device(const Host *host)
{
	g_autoptr(StellaFactory) fsgate = stella_factory_new_fsgate();
	g_autoptr(StellaFactory) picked = NULL;
	g_autoptr(GPtrArray) available = NULL;
	g_autofree char *reason = NULL;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("/dev/fuse", "/dev/fuse", NULL, MS_BIND, NULL) != 0)
		return __LINE__ % 256;
	if (!stella_factory_is_available(fsgate, NULL))
		return __LINE__ % 256;
	if (mount(NULL, "/dev/fuse", NULL, MS_BIND | MS_REMOUNT | MS_NODEV, NULL) != 0)
		return __LINE__ % 256;
	if (stella_factory_is_available(fsgate, &reason) || !strstr(reason, "/dev/fuse: "))
		return __LINE__ % 256;
	picked = stella_factory_registry_pick(host->registry, host->policy, NULL);
	if (!picked || strcmp(stella_factory_get_name(picked), "bwrap") != 0)
		return __LINE__ % 256;
	available = stella_factory_registry_list_available(host->registry);
	if (available->len != 1 || count_records("sandbox.backend_skipped backend=fsgate ") != 1)
		return __LINE__ % 256;
	return 0;
}

static void expect_in_child(const Host *host, int (*check)(const Host *host))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(check(host));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	/* the line that has failed */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_fuse_the_registry_goes_on_to_bwrap(void **state)
{
	Host *host = *state;
	g_autofree char *text = NULL;

	if (geteuid() != 0 || !has_bwrap())
		skip();
	expect_in_child(host, without_device);
	expect_in_child(host, without_fuse);
	text = api_host_text(host->api, "by-bwrap");
	assert_string_equal(text, "inside\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: it forks, which a process with threads had better not */
		CASE(without_fuse_the_registry_goes_on_to_bwrap),
		CASE(the_registry_takes_the_gateway_first),
		CASE(each_can_be_had_by_name),
		CASE(none_runs_on_the_host),
		CASE(a_start_that_fails_is_not_tried_elsewhere),
		CASE(what_none_can_do_is_told_once),
		CASE(a_session_is_made_beside_a_main_loop),
		CASE(a_cancel_leaves_nothing),
	};
	int failed;

	records = g_ptr_array_new_with_free_func(g_free);
	g_log_set_writer_func(keep, NULL, NULL);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	g_ptr_array_unref(records);
	return failed;
}
