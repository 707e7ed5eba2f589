/* view-plan-runtime, view-plan-etc: the places that a sandbox makes, runtime directories, files made for the
 * view, and mounts that could not show beside them. */
#include "unit/view-plan-fixture.h"

static void a_sandbox_has_points_and_a_view_for_the_host_has_none(void **state)
{
	static const char *const own[] = { "/proc", "/dev", "/run", "/tmp", "/var/tmp" };
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) sandbox = NULL, looking = NULL;

	(void)state;
	policy->runtime = POLICY_RUNTIME_DEFAULT;
	sandbox = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	looking = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_int_equal(sandbox->runtime, POLICY_RUNTIME_HOST);
	assert_int_equal(looking->runtime, POLICY_RUNTIME_NONE);
	assert_int_equal(looking->entries->len, 1);
	for (size_t i = 0; i < G_N_ELEMENTS(own); i++) {
		const ViewEntry *entry = assert_entry(sandbox, own[i]);

		assert_int_equal(entry->kind, VIEW_ENTRY_POINT);
		assert_null(entry->host_path);
		assert_true(entry->is_dir);
		assert_false(view_entry_is_writable(entry));
	}
	assert_sorted_and_unique(sandbox);
}

static void runtime_directories_are_bound_in_a_sandbox_and_served_to_the_host(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) sandbox = NULL, looking = NULL;
	const ViewEntry *entry;
	char text[LIMIT_PATH_BYTES] = "";

	(void)state;
	policy->runtime = POLICY_RUNTIME_HOST;
	sandbox = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	looking = plan_or_fail(policy, VIEW_FOR_HOST);
	entry = assert_entry(sandbox, "/usr");
	assert_int_equal(entry->kind, VIEW_ENTRY_POINT);
	assert_string_equal(entry->host_path, "/usr");
	assert_int_equal(entry->access, STELLA_MOUNT_READ_ONLY);
	entry = assert_mount(looking, "/usr", "/usr", STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_RUNTIME);
	assert_true(entry->cross_submounts);
	if (readlink("/bin", text, sizeof text - 1) > 0 && text[0] != '/') {
		assert_int_equal(assert_entry(sandbox, "/bin")->kind, VIEW_ENTRY_LINK);
		assert_string_equal(assert_entry(sandbox, "/bin")->target, text);
		assert_string_equal(assert_entry(looking, "/bin")->target, text);
	} else {
		assert_string_equal(assert_entry(sandbox, "/bin")->host_path, "/bin");
	}
	if (!g_file_test("/nix/store", G_FILE_TEST_EXISTS))
		assert_null(entry_at(sandbox, "/nix/store"));
	assert_sorted_and_unique(looking);
}

static bool hides(const ViewEntry *entry, const char *glob)
{
	return entry->hide && g_strv_contains(entry->hide, glob);
}

static void etc_is_served_with_files_of_the_views_own(void **state)
{
	static const ViewPresentation both[] = { VIEW_FOR_HOST, VIEW_FOR_SANDBOX };
	g_autofree char *resolv = NULL;
	gsize resolv_size = 0;
	bool has_resolv = g_file_get_contents("/etc/resolv.conf", &resolv, &resolv_size, NULL);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(both); i++) {
		g_autoptr(StellaPolicy) policy = new_policy();
		g_autoptr(ViewPlan) plan = NULL;
		const ViewEntry *entry;

		policy->runtime = POLICY_RUNTIME_HOST;
		plan = plan_or_fail(policy, both[i]);
		entry = assert_mount(plan, "/etc", "/etc", STELLA_MOUNT_READ_ONLY,
				     VIEW_ORIGIN_RUNTIME);
		assert_true(hides(entry, "shadow") && hides(entry, "gshadow-"));
		assert_true(hides(entry, "sudoers*") && hides(entry, "ssh/*key"));
		assert_true(hides(entry, "ssl/private"));
		assert_false(hides(entry, "passwd"));
		entry = assert_entry(plan, "/etc/passwd");
		assert_int_equal(entry->kind, VIEW_ENTRY_GENERATED);
		assert_int_equal(entry->content_size, strlen(entry->content));
		assert_non_null(strstr(entry->content, "root:x:0:0:root:/root:/bin/"));
		assert_non_null(
			strstr(entry->content, "\nagent:x:1000:1000:agent:/workspace:/bin/"));
		assert_non_null(strstr(entry->content, "\nnobody:x:65534:65534:"));
		assert_string_equal(assert_entry(plan, "/etc/group")->content,
				    "root:x:0:\nagent:x:1000:\nnobody:x:65534:\n");
		entry = entry_at(plan, "/etc/resolv.conf");
		assert_int_equal(entry != NULL, has_resolv);
		if (has_resolv) {
			assert_int_equal(entry->content_size, resolv_size);
			assert_memory_equal(entry->content, resolv, resolv_size);
		}
	}
}

static void the_account_follows_the_policys_user(void **state)
{
	static const struct {
		uid_t uid;
		const char *passwd_start, *group;
	} cases[] = {
		{ 0, "root:x:0:0:root:/workspace:/bin/", "root:x:0:\nnobody:x:65534:\n" },
		{ 4321, "root:x:0:0:root:/root:/bin/",
		  "root:x:0:\nagent:x:4321:\nnobody:x:65534:\n" },
		{ 65534, "root:x:0:0:root:/root:/bin/", "root:x:0:\nagent:x:65534:\n" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(StellaPolicy) policy = new_policy();
		g_autoptr(ViewPlan) plan = NULL;

		policy->process_uid = cases[i].uid;
		policy->runtime = POLICY_RUNTIME_HOST;
		plan = plan_or_fail(policy, VIEW_FOR_SANDBOX);
		assert_true(g_str_has_prefix(assert_entry(plan, "/etc/passwd")->content,
					     cases[i].passwd_start));
		assert_string_equal(assert_entry(plan, "/etc/group")->content, cases[i].group);
	}
}

static void a_declared_mount_takes_the_place_of_a_runtime_row(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL;

	(void)state;
	policy->runtime = POLICY_RUNTIME_HOST;
	policy_add_mount(policy, host("a"), "/usr", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("user"), "/bin", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("file"), "/etc/passwd", STELLA_MOUNT_READ_ONLY);
	plan = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	assert_mount(plan, "/usr", host("a"), STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_DECLARED);
	assert_mount(plan, "/bin", host("user"), STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_DECLARED);
	assert_mount(plan, "/etc/passwd", host("file"), STELLA_MOUNT_READ_ONLY,
		     VIEW_ORIGIN_DECLARED);
	assert_non_null(entry_at(plan, "/etc/group"));
	assert_sorted_and_unique(plan);
	policy_add_mount(policy, host("skills"), "/etc", STELLA_MOUNT_READ_ONLY);
	view_plan_free(g_steal_pointer(&plan));
	plan = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	assert_mount(plan, "/etc", host("skills"), STELLA_MOUNT_READ_ONLY, VIEW_ORIGIN_DECLARED);
	assert_null(entry_at(plan, "/etc/group"));
}

/* What would be hidden by something else must not be lost in silence. */
static void a_mount_that_could_not_show_is_an_error(void **state)
{
	static const struct {
		const char *view_path, *why;
	} cases[] = {
		{ "/usr/local/x",
		  "lies below /usr, which a sandbox takes from the host as it is; choose "
		  "another place, or runtime none" },
		{ "/tmp/x",
		  "lies below /tmp, which is private to a sandbox; choose another place, or "
		  "set filesystem.temp_dir_host" },
		{ "/run/x",
		  "lies below /run, which is private to a sandbox; choose another place" },
		{ "/f/x", "lies below /f, which is a file" },
		{ "/etc/passwd/x", "lies below /etc/passwd, which is a file" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(StellaPolicy) policy = new_policy();
		g_autofree char *twin = g_strdup_printf("/twin%s", cases[i].view_path);
		g_autofree char *expected =
			g_strdup_printf("filesystem.mounts[1].view_path \"%s\": %s",
					cases[i].view_path, cases[i].why);

		policy->runtime = POLICY_RUNTIME_HOST;
		policy_add_mount(policy, host("file"), "/f", STELLA_MOUNT_READ_ONLY);
		policy_add_mount(policy, host("a"), cases[i].view_path, STELLA_MOUNT_READ_ONLY);
		assert_no_plan(policy, VIEW_FOR_SANDBOX, -EINVAL, expected);
		policy_set_path(&((PolicyMount *)policy->mounts->pdata[1])->view_path, twin);
		view_plan_free(plan_or_fail(policy, VIEW_FOR_SANDBOX));
	}
}

static void a_view_for_the_host_takes_mounts_below_runtime_directories(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	g_autoptr(ViewPlan) plan = NULL, with_temp = NULL;

	(void)state;
	policy->runtime = POLICY_RUNTIME_HOST;
	policy_add_mount(policy, host("a"), "/usr/local/x", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("a"), "/tmp/x", STELLA_MOUNT_READ_ONLY);
	plan = plan_or_fail(policy, VIEW_FOR_HOST);
	assert_non_null(entry_at(plan, "/usr/local/x"));
	assert_non_null(entry_at(plan, "/usr"));

	g_ptr_array_remove_index(policy->mounts, 0);
	policy_set_path(&policy->temp_dir_host, host("t"));
	with_temp = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	assert_non_null(entry_at(with_temp, "/tmp/x"));
}

static void links_of_the_frame_hold_no_mounts(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	char text[LIMIT_PATH_BYTES] = "";
	g_autofree char *expected = NULL;

	(void)state;
	if (readlink("/bin", text, sizeof text - 1) <= 0)
		skip();
	policy->runtime = POLICY_RUNTIME_HOST;
	policy_add_mount(policy, host("a"), "/bin/x", STELLA_MOUNT_READ_ONLY);
	expected = g_strdup_printf(
		"filesystem.mounts[0].view_path \"/bin/x\": lies below /bin, which is "
		"a link to %s",
		text);
	assert_no_plan(policy, VIEW_FOR_HOST, -EINVAL, expected);
	policy->runtime = POLICY_RUNTIME_NONE;
	view_plan_free(plan_or_fail(policy, VIEW_FOR_HOST));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROOTED(a_sandbox_has_points_and_a_view_for_the_host_has_none),
		ROOTED(runtime_directories_are_bound_in_a_sandbox_and_served_to_the_host),
		ROOTED(etc_is_served_with_files_of_the_views_own),
		ROOTED(the_account_follows_the_policys_user),
		ROOTED(a_declared_mount_takes_the_place_of_a_runtime_row),
		ROOTED(a_mount_that_could_not_show_is_an_error),
		ROOTED(a_view_for_the_host_takes_mounts_below_runtime_directories),
		ROOTED(links_of_the_frame_hold_no_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
