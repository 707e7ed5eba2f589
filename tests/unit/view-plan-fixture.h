/* What the tests of the view plan share: a host side of their own, and policies and plans over it.
 *
 * Every test has a directory, `root`, with the host side in it:
 *   ws/ user/ skills/ a/b/ file  fifo  link -> ws
 *   home/bin/ home/.mise-tools/ home/users/u1/.mise-tools/ */
#pragma once

#include "common/limits.h"
#include "common/path-util.h"
#include "common/view-plan.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *root; /* of the running test */

/* A path in the host side; leaks nothing, for GLib keeps it once. */
static inline const char *host(const char *name)
{
	g_autofree char *path = path_join(root, name);

	return g_intern_string(path);
}

static inline int make_root(void **state)
{
	static const char *const directories[] = { "ws",
						   "user",
						   "skills",
						   "a/b",
						   "home/bin",
						   "home/.mise-tools",
						   "home/users/u1/.mise-tools" };

	(void)state;
	root = g_dir_make_tmp("test-view-plan-XXXXXX", NULL);
	for (size_t i = 0; i < G_N_ELEMENTS(directories); i++) {
		if (g_mkdir_with_parents(host(directories[i]), 0755) != 0)
			return -1;
	}
	return g_file_set_contents(host("file"), "x", 1, NULL) && mkfifo(host("fifo"), 0600) == 0 &&
			       symlink("ws", host("link")) == 0
		       ? 0
		       : -1;
}

static inline void remove_all(const char *path)
{
	GDir *dir = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *child = path_join(path, name);

		remove_all(child);
	}
	if (dir)
		g_dir_close(dir);
	remove(path);
}

static inline int remove_root(void **state)
{
	(void)state;
	remove_all(root);
	g_clear_pointer(&root, g_free);
	return 0;
}

/* A policy with the workspace at /workspace and no runtime directories. */
static inline StellaPolicy *new_policy(void)
{
	StellaPolicy *policy = policy_new_defaults();

	policy_set_path(&policy->working_dir, "/workspace");
	policy_set_path(&policy->workspace_root, host("ws"));
	policy->runtime = POLICY_RUNTIME_NONE;
	return policy;
}

static inline ViewPlan *plan_or_fail(const StellaPolicy *policy, ViewPresentation presentation)
{
	g_autofree char *message = NULL;
	ViewPlan *plan = NULL;

	if (policy_validate(policy, &message) != 0 ||
	    view_plan_new(policy, presentation, &plan, &message) != 0)
		fail_msg("%s", message);
	assert_null(message);
	return plan;
}

static inline void assert_no_plan(const StellaPolicy *policy, ViewPresentation presentation, int r,
				  const char *expected)
{
	g_autofree char *message = NULL;
	ViewPlan *plan = NULL;

	if (policy_validate(policy, &message) != 0)
		fail_msg("not valid: %s", message);
	assert_int_equal(view_plan_new(policy, presentation, &plan, &message), r);
	assert_null(plan);
	assert_string_equal(message, expected);
}

static inline const ViewEntry *entry_at(const ViewPlan *plan, const char *view_path)
{
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (strcmp(entry->view_path, view_path) == 0)
			return entry;
	}
	return NULL;
}

/* The entry that has to be there. */
static inline const ViewEntry *assert_entry(const ViewPlan *plan, const char *view_path)
{
	const ViewEntry *entry = entry_at(plan, view_path);

	if (!entry) {
		fail_msg("nothing at %s", view_path);
		abort(); /* for compilers that do not know that fail_msg() ends the test */
	}
	return entry;
}

static inline const ViewEntry *assert_mount(const ViewPlan *plan, const char *view_path,
					    const char *host_path, StellaMountAccess access,
					    ViewOrigin origin)
{
	const ViewEntry *entry = assert_entry(plan, view_path);
	struct stat st;

	assert_int_equal(entry->kind, VIEW_ENTRY_MOUNT);
	assert_string_equal(entry->host_path, host_path);
	assert_int_equal(entry->access, access);
	assert_int_equal(entry->origin, origin);
	assert_int_equal(view_entry_is_writable(entry), access == STELLA_MOUNT_READ_WRITE);
	assert_int_equal(stat(host_path, &st), 0);
	assert_true(entry->dev == st.st_dev && entry->ino == st.st_ino);
	assert_int_equal(entry->owner_uid, st.st_uid);
	assert_int_equal(entry->owner_gid, st.st_gid);
	assert_int_equal(entry->is_dir, S_ISDIR(st.st_mode));
	return entry;
}

static inline void assert_sorted_and_unique(const ViewPlan *plan)
{
	for (unsigned int i = 1; i < plan->entries->len; i++) {
		const ViewEntry *one = plan->entries->pdata[i - 1], *two = plan->entries->pdata[i];

		assert_true(strcmp(one->view_path, two->view_path) < 0);
	}
}

#define ROOTED(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
