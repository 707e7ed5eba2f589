/* sandbox-plan: which mounts the sandbox makes on a view, in which order, and what it leaves to the gateway. */
#include "executor/sandbox-plan.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "executor/wire.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
	char *dir;
	ExrIdentity identity;
	ExrStateDir *state;
	ViewPlan view;
	StellaPolicy policy;
	ExrSeccomp seccomp;
} Setup;

static void entry_free(gpointer data)
{
	ViewEntry *entry = data;

	g_free(entry->view_path);
	g_free(entry);
}

static int make(void **state)
{
	static guint64 code[] = { 1, 2 };
	Setup *setup = g_new0(Setup, 1);
	ExrError error = { 0 };

	setup->dir = g_dir_make_tmp("stella-plan-XXXXXX", NULL);
	assert_non_null(setup->dir);
	g_setenv("STELLA_STATE_DIR", setup->dir, TRUE);
	setup->identity.inside = 1000;
	assert_int_equal(exr_state_dir_new(&setup->identity, false, &setup->state, &error), 0);
	setup->view.policy = &setup->policy;
	setup->view.entries = g_ptr_array_new_with_free_func(entry_free);
	setup->seccomp = (ExrSeccomp){ .code = code, .size = sizeof code };
	*state = setup;
	return 0;
}

static int clear(void **state)
{
	Setup *setup = *state;

	exr_state_dir_free(setup->state);
	assert_int_equal(io_remove_tree(AT_FDCWD, setup->dir), 0);
	g_ptr_array_unref(setup->view.entries);
	g_free(setup->dir);
	g_free(setup);
	return 0;
}

static char host_usr[] = "/usr", link_target[] = "/opt/x";

static void add(Setup *setup, ViewEntryKind kind, const char *view_path, char *host_path)
{
	ViewEntry *entry = g_new0(ViewEntry, 1);

	entry->kind = kind;
	entry->view_path = g_strdup(view_path);
	entry->host_path = host_path;
	entry->is_dir = kind != VIEW_ENTRY_GENERATED;
	entry->target = kind == VIEW_ENTRY_LINK ? link_target : NULL;
	g_ptr_array_add(setup->view.entries, entry);
}

static WirePlan *plan_of(Setup *setup)
{
	ExrError error = { 0 };
	FD_AUTO fd = exr_sandbox_plan_new(&setup->view, &setup->identity, setup->state, NULL,
					  &setup->seccomp, &error);
	char *data;
	size_t size;

	if (fd < 0)
		fail_msg("%s", error.message);
	assert_int_equal(io_read_to_end(fd, 1 << 20, &data, &size), 0);
	assert_int_equal(((WirePlan *)(void *)data)->magic, WIRE_MAGIC);
	assert_int_equal(((WirePlan *)(void *)data)->size, size);
	return (WirePlan *)(void *)data;
}

static char *text_of(const WirePlan *plan)
{
	static const char *const kinds[] = { "?",    "host", "private", "view",
					     "link", "proc", "dev",	"run" };
	const WireRow *rows = (const WireRow *)(const void *)((const char *)plan + plan->rows);
	GString *text = g_string_new(NULL);

	for (uint32_t i = 0; i < plan->row_count; i++)
		g_string_append_printf(text, "%s %s%s\n", kinds[rows[i].kind],
				       (const char *)plan + rows[i].target,
				       rows[i].flags & WIRE_ROW_MAKE ? " make" : "");
	return g_string_free(text, FALSE);
}

static void only_what_the_gateway_cannot_serve_is_mounted(void **state)
{
	Setup *setup = *state;
	g_autofree WirePlan *plan = NULL;
	g_autofree char *text = NULL;

	add(setup, VIEW_ENTRY_LINK, "/bin", NULL);
	add(setup, VIEW_ENTRY_POINT, "/dev", NULL);
	add(setup, VIEW_ENTRY_MOUNT, "/etc", NULL);
	add(setup, VIEW_ENTRY_GENERATED, "/etc/passwd", NULL);
	add(setup, VIEW_ENTRY_POINT, "/proc", NULL);
	add(setup, VIEW_ENTRY_POINT, "/run", NULL);
	add(setup, VIEW_ENTRY_POINT, "/tmp", NULL);
	add(setup, VIEW_ENTRY_POINT, "/usr", host_usr);
	add(setup, VIEW_ENTRY_POINT, "/var/tmp", NULL);
	add(setup, VIEW_ENTRY_MOUNT, "/workspace", NULL);
	plan = plan_of(setup);
	text = text_of(plan);
	assert_string_equal(text, "dev dev\nproc proc\nrun run\nprivate tmp\nhost usr\n"
				  "private var/tmp\n");
}

static void what_a_mount_would_cover_is_put_on_top(void **state)
{
	Setup *setup = *state;
	g_autofree WirePlan *plan = NULL;
	g_autofree char *text = NULL;

	add(setup, VIEW_ENTRY_POINT, "/proc", NULL);
	add(setup, VIEW_ENTRY_POINT, "/run", NULL);
	add(setup, VIEW_ENTRY_POINT, "/run/current-system/sw", host_usr);
	add(setup, VIEW_ENTRY_GENERATED, "/run/systemd/resolve/stub-resolv.conf", NULL);
	add(setup, VIEW_ENTRY_POINT, "/tmp", NULL);
	add(setup, VIEW_ENTRY_MOUNT, "/tmp/cache", NULL);
	add(setup, VIEW_ENTRY_MOUNT, "/tmp/cache/deeper", NULL);
	add(setup, VIEW_ENTRY_LINK, "/tmp/link", NULL);
	add(setup, VIEW_ENTRY_MOUNT, "/tmp-other", NULL);
	add(setup, VIEW_ENTRY_POINT, "/usr", host_usr);
	add(setup, VIEW_ENTRY_MOUNT, "/usr/local", NULL);
	plan = plan_of(setup);
	text = text_of(plan);
	assert_string_equal(text, "proc proc\nrun run\nhost run/current-system/sw make\n"
				  "view run/systemd/resolve/stub-resolv.conf make\nprivate tmp\n"
				  "view tmp/cache make\nlink tmp/link make\nhost usr\n"
				  "view usr/local\n");
}

static void the_filter_is_aligned_and_whole(void **state)
{
	Setup *setup = *state;
	g_autofree WirePlan *plan = NULL;

	add(setup, VIEW_ENTRY_POINT, "/proc", NULL);
	plan = plan_of(setup);
	assert_int_equal(plan->seccomp_code % 8, 0);
	assert_int_equal(plan->seccomp_size, setup->seccomp.size);
	assert_memory_equal((char *)plan + plan->seccomp_code, setup->seccomp.code,
			    setup->seccomp.size);
}

/* What commands leave in them stays, and must not be all that the session may have. */
static void files_in_memory_are_a_part_of_the_limit_of_memory(void **state)
{
	static const struct {
		uint64_t limit, part;
	} cases[] = { { 0, 0 },
		      { 1, 65536 },
		      { 1 << 20, 1 << 18 },
		      { UINT64_C(1) << 40, UINT64_C(1) << 38 } };
	Setup *setup = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree WirePlan *plan = NULL;

		setup->policy.limits.memory_bytes = cases[i].limit;
		plan = plan_of(setup);
		assert_true(plan->tmpfs_bytes == cases[i].part);
	}
	setup->policy.limits.memory_bytes = 0;
}

static void a_point_that_nobody_knows_is_an_error(void **state)
{
	Setup *setup = *state;
	ExrError error = { 0 };

	add(setup, VIEW_ENTRY_POINT, "/boot", NULL);
	assert_int_equal(exr_sandbox_plan_new(&setup->view, &setup->identity, setup->state, NULL,
					      &setup->seccomp, &error),
			 -EINVAL);
	assert_string_equal(error.code, "rootfs-failed");
	exr_error_clear(&error);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(only_what_the_gateway_cannot_serve_is_mounted),
		TEST(what_a_mount_would_cover_is_put_on_top),
		TEST(the_filter_is_aligned_and_whole),
		TEST(files_in_memory_are_a_part_of_the_limit_of_memory),
		TEST(a_point_that_nobody_knows_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
