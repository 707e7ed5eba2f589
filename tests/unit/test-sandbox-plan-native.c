/* sandbox-plan-native: which mounts stand in for a gateway, and what they cannot stand in for. */
#include "executor/sandbox-plan-native.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "executor/backend.h"
#include "executor/wire.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
	char *top, *ws;
	ExrIdentity identity;
	ExrStateDir *state;
	StellaPolicy *policy;
	GArray *sources;
} Setup;

static const char *below(const Setup *setup, const char *name)
{
	g_autofree char *path = g_build_filename(setup->top, name, NULL);

	return g_intern_string(path);
}

static int make(void **state)
{
	static const char *const directories[] = { "ws/way/ro/deep", "ws/place", "ws/other",
						   "ext" };
	Setup *setup = g_new0(Setup, 1);
	ExrError error = { 0 };

	setup->top = g_dir_make_tmp("stella-native-XXXXXX", NULL);
	assert_non_null(setup->top);
	for (size_t i = 0; i < G_N_ELEMENTS(directories); i++)
		assert_int_equal(g_mkdir_with_parents(below(setup, directories[i]), 0755), 0);
	assert_int_equal(symlink("ws", below(setup, "link")), 0);
	g_setenv("STELLA_STATE_DIR", below(setup, "ws/state"), TRUE);
	setup->identity.inside = 1000;
	assert_int_equal(exr_state_dir_new(&setup->identity, false, &setup->state, &error), 0);
	setup->policy = policy_new_defaults();
	policy_set_path(&setup->policy->working_dir, "/workspace");
	policy_set_path(&setup->policy->workspace_root, below(setup, "ws"));
	setup->sources = exr_sources_new();
	*state = setup;
	return 0;
}

static int clear(void **state)
{
	Setup *setup = *state;

	exr_state_dir_free(setup->state);
	assert_int_equal(io_remove_tree(AT_FDCWD, setup->top), 0);
	stella_policy_unref(setup->policy);
	g_array_unref(setup->sources);
	g_free(setup->top);
	g_free(setup);
	return 0;
}

static int plan(Setup *setup, WirePlan **ret_plan, ExrError *error)
{
	static const ExrSeccomp no_filter;
	g_autoptr(ViewPlan) view = NULL;
	g_autofree char *message = NULL;
	FD_AUTO fd = -1;
	char *data;
	size_t size;

	if (view_plan_new(setup->policy, VIEW_FOR_SANDBOX, &view, &message) < 0)
		fail_msg("%s", message);
	fd = exr_native_plan_new(view, &setup->identity, setup->state, &no_filter, setup->sources,
				 error);
	if (fd < 0)
		return fd;
	assert_int_equal(io_read_to_end(fd, 1 << 24, &data, &size), 0);
	*ret_plan = (WirePlan *)(void *)data;
	assert_int_equal((*ret_plan)->size, size);
	assert_true((*ret_plan)->flags & WIRE_PLAN_NATIVE);
	return 0;
}

/* The rows at and below a path, in their order. */
static char *rows_of(const WirePlan *plan, const char *path)
{
	static const char *const kinds[] = { "?",   "host", "private", "view", "link", "proc",
					     "dev", "run",  "source",  "pin",  "mask", "file" };
	const WireRow *rows = (const WireRow *)(const void *)((const char *)plan + plan->rows);
	GString *text = g_string_new(NULL);

	for (uint32_t i = 0; i < plan->row_count; i++) {
		const char *target = (const char *)plan + rows[i].target;

		if (g_str_has_prefix(target, path))
			g_string_append_printf(text, "%s %s%s%s\n", kinds[rows[i].kind], target,
					       rows[i].flags & WIRE_ROW_READ_ONLY ? " ro" : "",
					       rows[i].flags & WIRE_ROW_MAKE ? " make" : "");
	}
	return g_string_free(text, FALSE);
}

static void check_rows(Setup *setup, const char *path, const char *expected)
{
	g_autofree WirePlan *made = NULL;
	g_autofree char *text = NULL;
	ExrError error = { 0 };

	if (plan(setup, &made, &error) < 0)
		fail_msg("%s", error.message);
	text = rows_of(made, path);
	assert_string_equal(text, expected);
}

static void a_workspace_is_bound_without_the_state_directory(void **state)
{
	check_rows(*state, "workspace", "source workspace make\nmask workspace/state\n");
}

static void a_directory_of_another_mount_and_the_way_to_it_are_pinned(void **state)
{
	Setup *setup = *state;

	policy_add_mount(setup->policy, below(setup, "ws/way/ro"), "/opt/ro",
			 STELLA_MOUNT_READ_ONLY);
	policy_add_mount(setup->policy, below(setup, "ws/way/ro/deep"), "/opt/rw",
			 STELLA_MOUNT_READ_WRITE);
	check_rows(setup, "workspace",
		   "source workspace make\npin workspace/way\npin workspace/way/ro ro\n"
		   "pin workspace/way/ro/deep\nmask workspace/state\n");
}

static void nothing_is_pinned_where_nothing_can_be_renamed(void **state)
{
	Setup *setup = *state;

	policy_add_mount(setup->policy, below(setup, "ws"), "/workspace", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(setup->policy, below(setup, "ws/way/ro"), "/opt/rw",
			 STELLA_MOUNT_READ_WRITE);
	check_rows(setup, "workspace", "source workspace ro make\nmask workspace/state\n");
}

static void a_host_path_through_a_link_is_the_same_directory(void **state)
{
	Setup *setup = *state;

	policy_add_mount(setup->policy, below(setup, "link/way"), "/opt/ro",
			 STELLA_MOUNT_READ_ONLY);
	check_rows(setup, "workspace",
		   "source workspace make\npin workspace/way ro\nmask workspace/state\n");
}

static void a_place_in_another_mount_has_to_be_there(void **state)
{
	Setup *setup = *state;
	g_autofree WirePlan *made = NULL;
	ExrError error = { 0 };

	policy_add_mount(setup->policy, below(setup, "ext"), "/workspace/place",
			 STELLA_MOUNT_READ_ONLY);
	check_rows(setup, "workspace",
		   "source workspace make\nmask workspace/state\nsource workspace/place ro\n");
	policy_add_mount(setup->policy, below(setup, "ext"), "/workspace/missing/place",
			 STELLA_MOUNT_READ_ONLY);
	assert_true(plan(setup, &made, &error) < 0);
	assert_string_equal(error.code, "policy-incompatible");
	assert_string_equal(error.key, "filesystem.mounts[1].view_path");
	exr_error_clear(&error);
	assert_false(g_file_test(below(setup, "ws/missing"), G_FILE_TEST_EXISTS));
}

static void the_views_own_files_lie_in_etc(void **state)
{
	Setup *setup = *state;
	g_autofree WirePlan *made = NULL;
	g_autofree char *text = NULL;
	ExrError error = { 0 };

	if (plan(setup, &made, &error) < 0)
		fail_msg("%s", error.message);
	text = rows_of(made, "etc");
	assert_true(g_str_has_prefix(text, "source etc ro make\n"));
	assert_non_null(strstr(text, "file etc/passwd\n"));
	assert_non_null(strstr(text, "file etc/group\n"));
	if (g_file_test("/etc/shadow", G_FILE_TEST_EXISTS))
		assert_non_null(strstr(text, "mask etc/shadow\n"));
}

static void backends_are_found_by_name(void **state)
{
	(void)state;
	for (const ExrBackend *const *backend = exr_backends; *backend; backend++)
		assert_ptr_equal(exr_backend_find((*backend)->name), *backend);
	assert_null(exr_backend_find("other"));
	assert_null(exr_backend_find(""));
	assert_true(exr_backend_find("fsgate")->isolates);
	assert_true(exr_backend_find("bwrap")->isolates);
	assert_false(exr_backend_find("none")->isolates);
	assert_false(exr_backend_find("nop")->isolates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_workspace_is_bound_without_the_state_directory,
						make, clear),
		cmocka_unit_test_setup_teardown(
			a_directory_of_another_mount_and_the_way_to_it_are_pinned, make, clear),
		cmocka_unit_test_setup_teardown(nothing_is_pinned_where_nothing_can_be_renamed,
						make, clear),
		cmocka_unit_test_setup_teardown(a_host_path_through_a_link_is_the_same_directory,
						make, clear),
		cmocka_unit_test_setup_teardown(a_place_in_another_mount_has_to_be_there, make,
						clear),
		cmocka_unit_test_setup_teardown(the_views_own_files_lie_in_etc, make, clear),
		cmocka_unit_test(backends_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
