/* view-plan-host: a plan in host paths, and the environment that is made of it. */
#include "common/environment.h"
#include "unit/view-plan-fixture.h"

static ViewPlan *make_plan(StellaPolicy *policy)
{
	g_autofree char *message = NULL;
	ViewPlan *plan = NULL;

	policy_set_path(&policy->working_dir, "/workspace/sub");
	policy_set_path(&policy->workspace_root, host("ws"));
	if (view_plan_new(policy, VIEW_AS_HOST, &plan, &message) < 0)
		fail_msg("%s", message);
	return plan;
}

static void view_paths_become_host_paths(void **state)
{
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	g_autoptr(ViewPlan) plan = NULL;

	(void)state;
	policy_add_mount(policy, host("user"), "/user", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("skills"), "/opt/a", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("skills"), "/opt/b", STELLA_MOUNT_READ_WRITE);
	plan = make_plan(policy);
	assert_string_equal(plan->working_dir, host("ws/sub"));
	assert_string_equal(plan->workspace_view, host("ws"));
	assert_string_equal(plan->home, host("ws"));
	assert_string_equal(plan->user_dir, host("user"));
	assert_null(plan->temp_dir);
	/* what is mounted twice is there once, and as it may be written to */
	assert_int_equal(plan->entries->len, 3);
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		assert_string_equal(entry->view_path, entry->host_path);
		assert_true(view_entry_is_writable(entry));
	}
}

static void a_path_is_the_hosts_and_in_a_mount(void **state)
{
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	g_autoptr(ViewPlan) plan = make_plan(policy);
	g_autofree char *inside = view_plan_locate(plan, host("ws/x"));
	g_autofree char *relative = view_plan_locate(plan, "../y");

	(void)state;
	assert_string_equal(inside, host("ws/x"));
	assert_string_equal(relative, host("ws/y"));
	assert_null(view_plan_locate(plan, "/workspace"));
	assert_null(view_plan_locate(plan, "/usr"));
	assert_null(view_plan_locate(plan, "/"));
	assert_null(view_plan_locate(plan, root));
}

static void the_environment_is_in_host_paths(void **state)
{
	static const char *const environment[] = { "PATH=/usr/x:/opt/x", "USER=me", "SECRET=1",
						   NULL };
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	g_autoptr(ViewPlan) plan = NULL;
	g_auto(GStrv) env = NULL;
	g_autofree char *message = NULL, *path = NULL;

	(void)state;
	policy_set_path(&policy->stella_home, host("home"));
	policy_set_path(&policy->user_tools_dir, host("home/users/u1/.mise-tools"));
	policy_add_env(policy, "MISE_DATA_DIR", host("home/users/u1/.mise-tools"));
	plan = make_plan(policy);
	EnvironmentOptions options = { .plan = plan, .host = environment };

	assert_int_equal(environment_new(&options, &env, &message), 0);
	assert_string_equal(g_environ_getenv(env, "HOME"), host("ws"));
	assert_string_equal(g_environ_getenv(env, "PWD"), host("ws/sub"));
	assert_string_equal(g_environ_getenv(env, "USER"), "me");
	assert_string_equal(g_environ_getenv(env, "STELLA_HOME"), host("home"));
	assert_string_equal(g_environ_getenv(env, "MISE_DATA_DIR"),
			    host("home/users/u1/.mise-tools"));
	assert_string_equal(g_environ_getenv(env, "XDG_CACHE_HOME"), host("ws/.cache"));
	assert_null(g_environ_getenv(env, "SECRET"));
	path = g_strconcat(host("home/users/u1/.mise-tools/shims"), ":",
			   host("home/.mise-tools/shims"), ":", host("home/bin"), ":/usr/x:", NULL);
	assert_true(g_str_has_prefix(g_environ_getenv(env, "PATH"), path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(view_paths_become_host_paths, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(a_path_is_the_hosts_and_in_a_mount, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(the_environment_is_in_host_paths, make_root,
						remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
