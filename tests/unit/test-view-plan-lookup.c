/* view-plan-lookup, view-plan-format: the two directions of paths, and the table. */
#include "unit/view-plan-fixture.h"

/* ws -> /workspace, a -> /a (ro), a/b -> /a/inner, skills -> /a/b (hides a/b there), user -> /user and
 * /usr2, file -> /f */
static ViewPlan *lookup_plan(ViewPresentation presentation)
{
	g_autoptr(StellaPolicy) policy = new_policy();

	policy_add_mount(policy, host("a"), "/a", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("skills"), "/a/b", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("user"), "/usr2", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("user"), "/user", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("file"), "/f", STELLA_MOUNT_READ_WRITE);
	return plan_or_fail(policy, presentation);
}

static void a_view_path_leads_to_the_deepest_mount(void **state)
{
	const struct {
		const char *view, *host;
	} cases[] = {
		{ "/workspace", host("ws") },
		{ "/workspace/x/y", host("ws/x/y") },
		{ "/workspace-evil/x", NULL },
		{ "/workspaceX", NULL },
		{ "/a", host("a") },
		{ "/a/x", host("a/x") },
		{ "/a/b", host("skills") },
		{ "/a/b/c", host("skills/c") },
		{ "/a/bc", host("a/bc") },
		{ "/a/b/../x", host("a/x") },
		{ "//user/./x//", host("user/x") },
		{ "/usr2/x", host("user/x") },
		{ "/f", host("file") },
		{ "/", NULL },
		{ "/..", NULL },
		{ "/tmp/x", NULL },
		{ "workspace", NULL },
		{ "", NULL },
	};
	g_autoptr(ViewPlan) plan = lookup_plan(VIEW_FOR_SANDBOX);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *found = view_plan_to_host_path(plan, cases[i].view);

		if (g_strcmp0(found, cases[i].host) != 0)
			fail_msg("%s: %s", cases[i].view, found);
	}
}

static void a_host_path_leads_to_where_it_shows(void **state)
{
	g_autofree char *evil = g_strdup_printf("%s-evil", host("ws"));
	const struct {
		const char *host, *view;
	} cases[] = {
		{ host("ws"), "/workspace" },
		{ host("ws/x"), "/workspace/x" },
		{ evil, NULL },
		{ host("a/x"), "/a/x" },
		{ host("a/b"), NULL }, /* hidden by the mount at /a/b */
		{ host("a/b/x"), NULL },
		{ host("a/bc"), "/a/bc" },
		{ host("skills/x"), "/a/b/x" },
		{ host("user/x"), "/user/x" }, /* as short as /usr2, and first in byte order */
		{ host("home"), NULL },
		{ "/", NULL },
		{ "ws", NULL },
	};
	g_autoptr(ViewPlan) plan = lookup_plan(VIEW_FOR_SANDBOX);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *found = view_plan_to_view_path(plan, cases[i].host);

		if (g_strcmp0(found, cases[i].view) != 0)
			fail_msg("%s: %s", cases[i].host, found);
	}
	assert_string_equal(view_plan_find_by_host_path(plan, host("a/b/x"))->view_path, "/a");
	assert_string_equal(view_plan_find_by_host_path(plan, host("user"))->view_path, "/user");
	assert_null(view_plan_find_by_host_path(plan, host("home")));
}

static void a_callers_path_is_located(void **state)
{
	const struct {
		const char *path, *view;
	} cases[] = {
		{ "x", "/workspace/x" },
		{ "", "/workspace" },
		{ "../a/b/x", "/a/b/x" },
		{ "../../..", "/" },
		{ "/workspace/x", "/workspace/x" },
		{ host("ws/x"), "/workspace/x" },
		{ host("user"), "/user" },
		{ "/usr2/x", "/usr2/x" },
		{ "/", "/" },
		{ "/tmp/x", "/tmp/x" },
		{ "/var", "/var" },
		{ "/var/x", NULL },
		{ "/proc/1", "/proc/1" },
		{ "/home", NULL },
		{ "/workspace-evil", NULL },
		{ host("home"), NULL },
	};
	g_autoptr(ViewPlan) plan = lookup_plan(VIEW_FOR_SANDBOX);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *found = view_plan_locate(plan, cases[i].path);
		const char *expected = cases[i].view;

		/* The host side lies below the host's /tmp: as a view path it is in the sandbox's. */
		if (!expected && path_is_below(cases[i].path, "/tmp"))
			expected = cases[i].path;
		if (g_strcmp0(found, expected) != 0)
			fail_msg("%s: %s", cases[i].path, found);
	}
}

static void what_the_view_names_is_known(void **state)
{
	static const struct {
		const char *path;
		bool named;
	} cases[] = {
		{ "/", true },
		{ "/workspace", true },
		{ "/workspace/x/y", true },
		{ "/workspace-evil", false },
		{ "/a/b/c", true },
		{ "/f", true },
		{ "/tmp/x", true },
		{ "/run/x", true },
		{ "/proc/self", true },
		{ "/dev/null", true },
		{ "/srv", false },
		{ "/root/.ssh", false },
	};
	g_autoptr(ViewPlan) plan = lookup_plan(VIEW_FOR_SANDBOX);
	g_autoptr(ViewPlan) looked_into = lookup_plan(VIEW_FOR_HOST);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
		if (view_plan_names(plan, cases[i].path) != cases[i].named)
			fail_msg("%s", cases[i].path);
	/* only a sandbox has these */
	assert_false(view_plan_names(looked_into, "/tmp/x"));
	assert_false(view_plan_names(looked_into, "/proc/self"));
}

static void a_mount_at_its_own_host_path_means_itself(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL;
	g_autofree char *located = NULL;

	(void)state;
	policy_add_mount(policy, host("ws"), "/workspace", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("ws"), host("ws"), STELLA_MOUNT_READ_WRITE);
	policy_set_path(&policy->working_dir, host("ws"));
	plan = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_string_equal(plan->working_dir, host("ws"));
	assert_string_equal(plan->home, "/workspace");
	located = view_plan_locate(plan, host("ws/x"));
	assert_string_equal(located, host("ws/x"));
}

static void what_is_writable_is_listed_workspace_first(void **state)
{
	g_autoptr(ViewPlan) sandbox = lookup_plan(VIEW_FOR_SANDBOX);
	g_autoptr(ViewPlan) looking = lookup_plan(VIEW_FOR_HOST);
	g_auto(GStrv) first = view_plan_writable(sandbox);
	g_auto(GStrv) second = view_plan_writable(looking);
	g_autofree char *one = g_strjoinv(" ", first);
	g_autofree char *two = g_strjoinv(" ", second);

	(void)state;
	assert_string_equal(one, "/workspace /a/b /f /user /usr2 /tmp");
	assert_string_equal(two, "/workspace /a/b /f /user /usr2");
}

/* Only one that is a session's own: a declared one is as good as any other place. */
static void what_is_untold_is_writable_and_not_listed(void **state)
{
	(void)state;
	for (int untold = 0; untold < 2; untold++) {
		g_autoptr(StellaPolicy) policy = new_policy();
		g_autoptr(ViewPlan) plan = NULL;
		g_auto(GStrv) paths = NULL;
		g_autofree char *list = NULL;

		policy_add_mount(policy, host("a"), "/var/tmp", STELLA_MOUNT_READ_WRITE)->untold =
			untold;
		policy_add_mount(policy, host("user"), "/tmp", STELLA_MOUNT_READ_WRITE);
		plan = plan_or_fail(policy, VIEW_FOR_HOST);
		paths = view_plan_writable(plan);
		list = g_strjoinv(" ", paths);
		assert_string_equal(list, untold ? "/workspace /tmp" : "/workspace /var/tmp /tmp");
		assert_true(
			view_entry_is_writable(view_plan_find_by_view_path(plan, "/var/tmp/x")));
	}
}

static void the_table_is_aligned_and_escaped(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL;
	g_autofree char *table = NULL;
	g_autofree char *expected = NULL;

	(void)state;
	assert_int_equal(g_mkdir(host("e\x1b[31m"), 0700), 0);
	policy_add_mount(policy, host("e\x1b[31m"), "/\xc3\xa9", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("absent"), "/z", STELLA_MOUNT_READ_ONLY)->optional = true;
	plan = plan_or_fail(policy, VIEW_FOR_HOST);
	table = view_plan_format(plan);
	expected = g_strdup_printf("VIEW PATH   ACCESS  %-*s  NOTE\n"
				   "/workspace  rw      %-*s  implied\n"
				   "/\xc3\xa9          ro      %s/e\\x1b[31m\n"
				   "/z          -       %-*s  optional, absent: dropped\n",
				   (int)strlen(root) + 10, "HOST PATH", (int)strlen(root) + 10,
				   host("ws"), root, (int)strlen(root) + 10, host("absent"));
	assert_string_equal(table, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROOTED(a_view_path_leads_to_the_deepest_mount),
		ROOTED(a_host_path_leads_to_where_it_shows),
		ROOTED(a_callers_path_is_located),
		ROOTED(what_the_view_names_is_known),
		ROOTED(a_mount_at_its_own_host_path_means_itself),
		ROOTED(what_is_writable_is_listed_workspace_first),
		ROOTED(what_is_untold_is_writable_and_not_listed),
		ROOTED(the_table_is_aligned_and_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
