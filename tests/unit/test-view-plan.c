/* view-plan: what the mounts of a policy become when the host is looked at, and what is refused then. */
#include "unit/view-plan-fixture.h"

static void a_workspace_that_no_mount_shows_is_added(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = plan_or_fail(policy, VIEW_FOR_HOST);

	(void)state;
	assert_int_equal(plan->entries->len, 1);
	assert_mount(plan, "/workspace", host("ws"), STELLA_MOUNT_READ_WRITE,
		     VIEW_ORIGIN_WORKSPACE);
	assert_string_equal(plan->working_dir, "/workspace");
	assert_string_equal(plan->home, "/workspace");
	assert_string_equal(plan->workspace_view, "/workspace");
	assert_int_equal(plan->runtime, POLICY_RUNTIME_NONE);
}

/* For hosts that do not remap. */
static void a_plan_for_tools_has_the_workspace_at_its_own_path_and_no_runtime(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL;

	(void)state;
	policy->runtime = POLICY_RUNTIME_HOST;
	policy_set_path(&policy->working_dir, host("ws"));
	policy_set_path(&policy->temp_dir_host, host("tmp"));
	plan = plan_or_fail(policy, VIEW_FOR_TOOLS);
	assert_mount(plan, host("ws"), host("ws"), STELLA_MOUNT_READ_WRITE, VIEW_ORIGIN_WORKSPACE);
	assert_mount(plan, "/tmp", host("tmp"), STELLA_MOUNT_READ_WRITE, VIEW_ORIGIN_TEMP);
	assert_int_equal(plan->entries->len, 2);
	assert_int_equal(plan->runtime, POLICY_RUNTIME_NONE);
	assert_string_equal(plan->working_dir, host("ws"));
	assert_string_equal(plan->workspace_view, host("ws"));
}

static void a_plan_for_tools_leaves_a_declared_workspace_where_it_is(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL;

	(void)state;
	policy_add_mount(policy, host("ws"), "/workspace", STELLA_MOUNT_READ_ONLY);
	plan = plan_or_fail(policy, VIEW_FOR_TOOLS);
	assert_int_equal(plan->entries->len, 1);
	assert_mount(plan, "/workspace", host("ws"), STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_DECLARED);
}

static void a_workspace_that_has_no_place_of_its_own_is_an_error(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autofree char *expected = g_strdup_printf(
		"filesystem.workspace_root \"%s\": cannot be mounted at its own path; declare a "
		"mount for it",
		host("ws"));

	(void)state;
	policy_set_path(&policy->working_dir, "/skills");
	policy_add_mount(policy, host("skills"), "/skills", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("user"), host("ws"), STELLA_MOUNT_READ_WRITE);
	assert_no_plan(policy, VIEW_FOR_TOOLS, -EINVAL, expected);
	policy_set_path(&policy->workspace_root, "/");
	assert_no_plan(policy, VIEW_FOR_TOOLS, -EINVAL,
		       "filesystem.workspace_root \"/\": cannot be mounted at its own path; "
		       "declare a mount for it");
}

static void a_workspace_that_a_mount_shows_is_not_added(void **state)
{
	g_autoptr(StellaPolicy) elsewhere = new_policy(), covered = new_policy(),
				twice = new_policy();
	g_autoptr(ViewPlan) first = NULL, second = NULL, third = NULL;

	(void)state;
	policy_add_mount(elsewhere, host("ws"), "/proj", STELLA_MOUNT_READ_ONLY);
	policy_set_path(&elsewhere->working_dir, "/proj");
	first = plan_or_fail(elsewhere, VIEW_FOR_HOST);
	assert_int_equal(first->entries->len, 1);
	assert_string_equal(first->home, "/proj");

	policy_add_mount(covered, host("user"), "/workspace", STELLA_MOUNT_READ_WRITE);
	second = plan_or_fail(covered, VIEW_FOR_HOST);
	assert_int_equal(second->entries->len, 1);
	assert_mount(second, "/workspace", host("user"), STELLA_MOUNT_READ_WRITE,
		     VIEW_ORIGIN_DECLARED);
	assert_string_equal(second->home, "/workspace");

	policy_add_mount(twice, host("ws"), "/a", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(twice, host("ws"), "/workspace", STELLA_MOUNT_READ_WRITE);
	third = plan_or_fail(twice, VIEW_FOR_HOST);
	assert_int_equal(third->entries->len, 2);
	assert_string_equal(third->home, "/workspace");
}

/* workspace_root is then the view path too, by default, and must not become a host path. */
static void a_view_path_as_working_dir_brings_in_no_host_directory(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL;

	(void)state;
	policy_add_mount(policy, host("user"), host("a"), STELLA_MOUNT_READ_WRITE);
	policy_set_path(&policy->working_dir, host("a/b"));
	policy_set_path(&policy->workspace_root, host("a/b"));
	plan = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_int_equal(plan->entries->len, 1);
	assert_string_equal(plan->working_dir, host("a/b"));
	assert_string_equal(plan->home, host("a/b"));
}

static void a_home_of_the_policys_own_is_kept_with_override(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) without = NULL, with = NULL;

	(void)state;
	policy_add_env(policy, "HOME", "/user/");
	without = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	assert_string_equal(without->home, "/workspace");
	policy->env_override = true;
	with = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	assert_string_equal(with->home, "/user");
	assert_string_equal(with->workspace_view, "/workspace");
}

static void a_working_dir_on_the_host_becomes_a_view_path(void **state)
{
	const struct {
		const char *given, *view;
	} cases[] = {
		{ host("ws"), "/workspace" },	    { host("ws/src/x"), "/workspace/src/x" },
		{ "/workspace/y", "/workspace/y" }, { host("a/b/c"), "/deep/c" },
		{ host("a/c"), "/deep/../wide/c" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(StellaPolicy) policy = new_policy();
		g_autofree char *expected = path_clean(cases[i].view);
		g_autoptr(ViewPlan) plan = NULL;

		policy_add_mount(policy, host("a"), "/wide", STELLA_MOUNT_READ_WRITE);
		policy_add_mount(policy, host("a/b"), "/deep", STELLA_MOUNT_READ_WRITE);
		policy_set_path(&policy->working_dir, cases[i].given);
		plan = plan_or_fail(policy, VIEW_FOR_HOST);
		assert_string_equal(plan->working_dir, expected);
	}
}

static void a_working_dir_that_no_mount_covers_is_an_error(void **state)
{
	static const char *const outside[] = { "/", "/workspace-evil", "/tmp", "/usr/bin", "/opt" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(outside); i++) {
		g_autoptr(StellaPolicy) policy = new_policy();
		g_autofree char *expected = g_strdup_printf(
			"filesystem.working_dir \"%s\": no mount covers it", outside[i]);

		policy->runtime = POLICY_RUNTIME_HOST;
		policy_add_mount(policy, host("skills"), "/opt/x", STELLA_MOUNT_READ_ONLY);
		policy_set_path(&policy->working_dir, outside[i]);
		assert_no_plan(policy, VIEW_FOR_HOST, -EINVAL, expected);
		assert_no_plan(policy, VIEW_FOR_SANDBOX, -EINVAL, expected);
	}
}

static void a_mount_may_be_a_file_or_be_reached_by_a_link(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL;

	(void)state;
	policy_add_mount(policy, host("file"), "/f", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("link"), "/l", STELLA_MOUNT_READ_WRITE);
	plan = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_false(
		assert_mount(plan, "/f", host("file"), STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_DECLARED)
			->is_dir);
	assert_true(assert_mount(plan, "/l", host("link"), STELLA_MOUNT_READ_WRITE,
				 VIEW_ORIGIN_DECLARED)
			    ->is_dir);
	assert_sorted_and_unique(plan);
}

static void a_host_path_that_cannot_be_mounted_is_named(void **state)
{
	const struct {
		const char *host_path;
		int r;
		const char *what;
	} cases[] = {
		{ host("absent"), -ENOENT, "No such file or directory" },
		{ host("file/x"), -ENOTDIR, "Not a directory" },
		{ host("fifo"), -EINVAL, "is neither a directory nor a regular file" },
		{ "/dev/null", -EINVAL, "is neither a directory nor a regular file" },
		{ "/proc", -EINVAL, "is on a proc or sys file system, which no mount may show" },
		{ "/proc/self/status", -EINVAL,
		  "is on a proc or sys file system, which no mount may show" },
		{ "/sys/kernel", -EINVAL,
		  "is on a proc or sys file system, which no mount may show" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(StellaPolicy) policy = new_policy();
		g_autofree char *expected =
			g_strdup_printf("filesystem.mounts[1].host_path \"%s\": %s",
					cases[i].host_path, cases[i].what);

		policy_add_mount(policy, host("a"), "/a", STELLA_MOUNT_READ_ONLY);
		policy_add_mount(policy, cases[i].host_path, "/m", STELLA_MOUNT_READ_ONLY);
		assert_no_plan(policy, VIEW_FOR_HOST, cases[i].r, expected);
		policy_set_path(&((PolicyMount *)policy->mounts->pdata[1])->host_path, host("a/b"));
		view_plan_free(plan_or_fail(policy, VIEW_FOR_HOST));
	}
}

static void an_absent_optional_mount_is_dropped_and_listed(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL;
	g_autofree char *table = NULL;
	const ViewDropped *dropped;

	(void)state;
	policy_add_mount(policy, host("absent"), "/m", STELLA_MOUNT_READ_ONLY)->optional = true;
	policy_add_mount(policy, host("a"), "/n", STELLA_MOUNT_READ_ONLY)->optional = true;
	plan = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_null(entry_at(plan, "/m"));
	assert_mount(plan, "/n", host("a"), STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_DECLARED);
	assert_int_equal(plan->dropped->len, 1);
	dropped = plan->dropped->pdata[0];
	assert_string_equal(dropped->view_path, "/m");
	assert_string_equal(dropped->host_path, host("absent"));
	table = view_plan_format(plan);
	assert_non_null(strstr(table, "optional, absent: dropped\n"));

	/* Optional does not make something mountable. */
	policy_set_path(&((PolicyMount *)policy->mounts->pdata[0])->host_path, "/proc/self");
	assert_no_plan(policy, VIEW_FOR_HOST, -EINVAL,
		       "filesystem.mounts[0].host_path \"/proc/self\": is on a proc or sys file "
		       "system, which no mount may show");
}

static void an_absent_workspace_or_home_is_named(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autofree char *no_workspace = g_strdup_printf(
		"filesystem.workspace_root \"%s\": No such file or directory", host("absent"));
	g_autofree char *no_home = g_strdup_printf(
		"filesystem.stella_home \"%s\": No such file or directory", host("absent"));
	g_autofree char *file_home =
		g_strdup_printf("filesystem.stella_home \"%s\": Not a directory", host("file"));

	(void)state;
	policy_set_path(&policy->workspace_root, host("absent"));
	assert_no_plan(policy, VIEW_FOR_HOST, -ENOENT, no_workspace);
	policy_set_path(&policy->workspace_root, host("ws"));
	view_plan_free(plan_or_fail(policy, VIEW_FOR_HOST));
	policy_set_path(&policy->stella_home, host("absent"));
	assert_no_plan(policy, VIEW_FOR_HOST, -ENOENT, no_home);
	policy_set_path(&policy->stella_home, host("file"));
	assert_no_plan(policy, VIEW_FOR_HOST, -ENOTDIR, file_home);
}

static void a_working_directory_that_is_the_workspace_is_blamed_itself(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autofree char *missing = g_strdup_printf(
		"filesystem.working_dir \"%s\": No such file or directory", host("absent"));

	(void)state;
	policy_set_path(&policy->working_dir, host("absent"));
	policy_set_path(&policy->workspace_root, host("absent"));
	assert_no_plan(policy, VIEW_FOR_HOST, -ENOENT, missing);
	policy_set_path(&policy->working_dir, "/");
	policy_set_path(&policy->workspace_root, "/");
	assert_no_plan(policy, VIEW_FOR_TOOLS, -EINVAL,
		       "filesystem.working_dir \"/\": cannot be mounted at its own path; declare "
		       "a mount for it");
	policy_set_path(&policy->working_dir, host("ws"));
	policy_set_path(&policy->workspace_root, host("ws"));
	view_plan_free(plan_or_fail(policy, VIEW_FOR_HOST));
}

static void the_tool_home_shows_only_its_tools(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL, without_bin = NULL, declared = NULL;

	(void)state;
	policy_set_path(&policy->stella_home, host("home"));
	policy_set_path(&policy->user_tools_dir, host("home/users/u1/.mise-tools"));
	plan = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_int_equal(plan->entries->len, 4);
	assert_mount(plan, "/opt/stella/bin", host("home/bin"), STELLA_MOUNT_READ_ONLY,
		     VIEW_ORIGIN_TOOLS);
	assert_mount(plan, "/opt/stella/.mise-tools", host("home/.mise-tools"),
		     STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_TOOLS);
	assert_mount(plan, "/opt/stella/users/u1/.mise-tools", host("home/users/u1/.mise-tools"),
		     STELLA_MOUNT_READ_WRITE, VIEW_ORIGIN_TOOLS);

	assert_int_equal(rmdir(host("home/bin")), 0);
	without_bin = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_null(entry_at(without_bin, "/opt/stella/bin"));
	assert_non_null(entry_at(without_bin, "/opt/stella/.mise-tools"));

	policy_add_mount(policy, host("a"), "/opt/stella/.mise-tools", STELLA_MOUNT_READ_ONLY);
	declared = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_mount(declared, "/opt/stella/.mise-tools", host("a"), STELLA_MOUNT_READ_ONLY,
		     VIEW_ORIGIN_DECLARED);
	assert_sorted_and_unique(declared);
}

static void a_given_temporary_directory_is_made_and_mounted(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL, sandbox = NULL, declared = NULL;
	struct stat st;

	(void)state;
	policy_set_path(&policy->temp_dir_host, host("t/mp"));
	plan = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_mount(plan, "/tmp", host("t/mp"), STELLA_MOUNT_READ_WRITE, VIEW_ORIGIN_TEMP);
	assert_int_equal(stat(host("t/mp"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	sandbox = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	assert_mount(sandbox, "/tmp", host("t/mp"), STELLA_MOUNT_READ_WRITE, VIEW_ORIGIN_TEMP);
	assert_int_equal(assert_entry(sandbox, "/var/tmp")->kind, VIEW_ENTRY_POINT);

	policy_set_path(&policy->temp_dir_host, host("not-made"));
	policy_add_mount(policy, host("a"), "/tmp", STELLA_MOUNT_READ_ONLY);
	declared = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	assert_mount(declared, "/tmp", host("a"), STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_DECLARED);
	assert_int_equal(stat(host("not-made"), &st), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROOTED(a_workspace_that_no_mount_shows_is_added),
		ROOTED(a_plan_for_tools_has_the_workspace_at_its_own_path_and_no_runtime),
		ROOTED(a_plan_for_tools_leaves_a_declared_workspace_where_it_is),
		ROOTED(a_workspace_that_has_no_place_of_its_own_is_an_error),
		ROOTED(a_workspace_that_a_mount_shows_is_not_added),
		ROOTED(a_view_path_as_working_dir_brings_in_no_host_directory),
		ROOTED(a_home_of_the_policys_own_is_kept_with_override),
		ROOTED(a_working_dir_on_the_host_becomes_a_view_path),
		ROOTED(a_working_dir_that_no_mount_covers_is_an_error),
		ROOTED(a_mount_may_be_a_file_or_be_reached_by_a_link),
		ROOTED(a_host_path_that_cannot_be_mounted_is_named),
		ROOTED(an_absent_optional_mount_is_dropped_and_listed),
		ROOTED(an_absent_workspace_or_home_is_named),
		ROOTED(a_working_directory_that_is_the_workspace_is_blamed_itself),
		ROOTED(the_tool_home_shows_only_its_tools),
		ROOTED(a_given_temporary_directory_is_made_and_mounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
