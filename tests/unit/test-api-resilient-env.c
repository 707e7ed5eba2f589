/* env-overlay, api-resilient: what lies over a session's environment. It works with sessions that cannot refresh theirs:
 * the fake ones say what each request brought. */
#include "resilient-fixture.h"

#include "executor/env-overlay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_list(char **list, const char *expected)
{
	g_autofree char *joined = g_strjoinv(" ", list);

	assert_string_equal(joined, expected);
	g_strfreev(list);
}

static void lists_lie_over_one_another(void **state)
{
	static const char *const under[] = { "A=1", "B=2", "AB=3", NULL };
	static const char *const over[] = { "A=4", "C=5", "C=6", NULL };
	static const char *const unset[] = { "B", "ABC", "", NULL };

	(void)state;
	assert_list(exr_env_overlay(under, over), "B=2 AB=3 A=4 C=6");
	assert_list(exr_env_overlay(NULL, over), "A=4 C=6");
	assert_list(exr_env_overlay(under, NULL), "A=1 B=2 AB=3");
	assert_list(exr_env_overlay(NULL, NULL), "");
	assert_list(exr_env_overlay_request(under, unset, over), "AB=3 A=4 C=6");
	assert_list(exr_env_overlay_request(under, NULL, NULL), "A=1 B=2 AB=3");
	assert_list(exr_env_overlay_request(NULL, unset, over), "A=4 C=6");
	/* what is no variable is left for who takes the request to refuse */
	assert_list(exr_env_overlay_request(under, NULL, (const char *const[]){ "A", NULL }),
		    "B=2 AB=3 A");
}

static void refresh(Resilient *resilient, const char *first, const char *second)
{
	const char *const updates[] = { first, second, NULL };

	assert_true(stella_session_refresh_env(resilient->session, updates, NULL));
}

static char *exec_with(Resilient *resilient, const char *const *env, const char *const *unset)
{
	g_autoptr(StellaExecResult) result = NULL;
	StellaExecOptions options;

	stella_exec_options_init(&options);
	options.env = env;
	options.unset_env = unset;
	result = stella_session_exec(resilient->session, "x", &options, NULL, NULL);
	assert_non_null(result);
	return g_strdup(stella_exec_result_get_stdout(result, NULL));
}

static void it_lies_below_the_request(void **state)
{
	static const char *const env[] = { "B=mine", NULL };
	static const char *const unset[] = { "A", "HOME", NULL };
	Resilient *resilient = *state;
	g_autofree char *plain = NULL;
	g_autofree char *with_env = NULL;
	g_autofree char *without = NULL;

	refresh(resilient, "A=1", "B=2");
	refresh(resilient, "A=3", NULL);
	plain = exec_with(resilient, NULL, NULL);
	assert_string_equal(plain, "sandbox-first\nB=2\nA=3");
	with_env = exec_with(resilient, env, NULL);
	assert_string_equal(with_env, "sandbox-first\nA=3\nB=mine");
	/* what a request takes away is gone, of the overlay as of what lies below it */
	without = exec_with(resilient, env, unset);
	assert_string_equal(without, "sandbox-first\nB=mine\n-A\n-HOME");
}

static void processes_have_it_too(void **state)
{
	static const char *const env[] = { "B=mine", NULL };
	static const char *const unset[] = { "A", NULL };
	Resilient *resilient = *state;
	g_autoptr(GError) error = NULL;
	StellaProcessRequest request;

	refresh(resilient, "A=1", "B=2");
	stella_process_request_init(&request);
	request.path = "x";
	assert_null(stella_session_start_process(resilient->session, &request, NULL, &error));
	assert_string_equal(error->message, "sandbox-first\nA=1\nB=2");
	g_clear_error(&error);
	request.env = env;
	request.unset_env = unset;
	assert_null(stella_session_start_process(resilient->session, &request, NULL, &error));
	assert_string_equal(error->message, "sandbox-first\nB=mine\n-A");
}

/* The variables of the policy as its JSON has them. */
static char *shown_env(Resilient *resilient)
{
	g_autoptr(StellaPolicy) policy = stella_session_dup_policy(resilient->session);
	g_autofree char *text = stella_policy_to_json(policy, FALSE);
	g_autoptr(StellaPolicy) read = stella_policy_new_from_json(text, -1, NULL);
	g_auto(GStrv) env = NULL;

	assert_non_null(read);
	env = stella_policy_dup_env(read);
	return g_strjoinv(" ", env);
}

static void the_policy_shows_it(void **state)
{
	Resilient *resilient = *state;
	g_autofree char *before = shown_env(resilient);
	g_autofree char *with = NULL;
	g_auto(GStrv) own = NULL;

	assert_string_equal(before, "first=policy SHARED=policy");
	refresh(resilient, "SHARED=over", "NEW=1");
	with = shown_env(resilient);
	assert_string_equal(with, "first=policy SHARED=over NEW=1");
	/* the session's own is as it was: a policy is never changed */
	own = stella_policy_dup_env(resilient->first->policy);
	assert_string_equal(own[1], "SHARED=policy");
}

static void it_is_forgotten_with_its_session(void **state)
{
	Resilient *resilient = *state;
	g_autofree char *shown = NULL;

	refresh(resilient, "A=1", "SHARED=over");
	expect_exec(resilient->session, "sandbox-first\nA=1\nSHARED=over");
	fake_session_die(resilient->first);
	expect_exec(resilient->session, "sandbox-made1");
	shown = shown_env(resilient);
	assert_string_equal(shown, "made1=policy SHARED=policy");
	refresh(resilient, "A=2", NULL);
	expect_exec(resilient->session, "sandbox-made1\nA=2");
}

static void it_lasts_while_there_is_no_new_session(void **state)
{
	Resilient *resilient = *state;
	g_autofree char *shown = NULL;

	refresh(resilient, "A=1", NULL);
	fake_session_die(resilient->first);
	atomic_store(&resilient->fails, true);
	expect_no_exec(resilient->session, STELLA_ERROR_START_FAILED);
	shown = shown_env(resilient);
	assert_string_equal(shown, "first=policy SHARED=policy A=1");
}

/* The creator has begun: it may have read the host's state already. */
static void what_comes_while_it_is_made_lies_over_the_new_one(void **state)
{
	Resilient *resilient = *state;
	g_autofree char *shown = NULL;
	Call *maker;

	refresh(resilient, "OLD=1", NULL);
	resilient->gate = gate_new();
	fake_session_die(resilient->first);
	maker = call_start(resilient->session, NULL);
	gate_await(resilient->gate, 1);
	refresh(resilient, "NEW=1", "SHARED=new");
	shown = shown_env(resilient);
	assert_string_equal(shown, "first=policy SHARED=new OLD=1 NEW=1");
	gate_open(resilient->gate);
	call_end_with(maker, "sandbox-made1\nNEW=1\nSHARED=new");
	expect_exec(resilient->session, "sandbox-made1\nNEW=1\nSHARED=new");
	gate_free(resilient->gate);
	resilient->gate = NULL;
}

static void assert_refused(Resilient *resilient, const char *entry)
{
	const char *const updates[] = { "A=changed", entry, NULL };
	g_autoptr(GError) error = NULL;

	assert_false(stella_session_refresh_env(resilient->session, updates, &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_INVALID_ARGUMENT));
	assert_null(strchr(error->message, '\n'));
	expect_exec(resilient->session, "sandbox-first\nA=1");
}

static void all_of_it_or_nothing(void **state)
{
	Resilient *resilient = *state;
	const size_t most = (size_t)sysconf(_SC_PAGESIZE) * 32;
	g_autofree char *value = g_strnfill(most, 'x');
	g_autofree char *long_one = g_strdup_printf("B=%s", value);
	g_autofree char *expected = NULL;

	refresh(resilient, "A=1", NULL);
	assert_refused(resilient, "no-variable");
	assert_refused(resilient, "=nameless");
	assert_refused(resilient, long_one);
	/* with its NUL as long as the kernel takes */
	long_one[most - 1] = '\0';
	refresh(resilient, long_one, NULL);
	expected = g_strdup_printf("sandbox-first\nA=1\n%s", long_one);
	expect_exec(resilient->session, expected);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, resilient_set_up, resilient_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_lie_over_one_another),
		CASE(it_lies_below_the_request),
		CASE(processes_have_it_too),
		CASE(the_policy_shows_it),
		CASE(it_is_forgotten_with_its_session),
		CASE(it_lasts_while_there_is_no_new_session),
		CASE(what_comes_while_it_is_made_lies_over_the_new_one),
		CASE(all_of_it_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
