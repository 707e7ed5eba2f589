/* What the tests of the path resolver share: a host side, and a resolver over it.
 *
 *   root/ws            /workspace        rw
 *   root/ws/inner      /inner            ro    so that it is met inside the writable one too
 *   root/user          /user             rw
 *   root/ro            /opt/stella       ro
 *   root/ro/rw         /opt/stella/rw    rw
 *   root/note          /note             ro    a single file
 *   root/secret                                outside, as root/ws-evil is */
#pragma once

#include "common/path-resolver.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

static char *root; /* of the running test */
static PathResolver *resolver;

/* A path in the host side; GLib keeps it. */
static inline const char *host(const char *name)
{
	g_autofree char *path = path_join(root, name);

	return g_intern_string(path);
}

static inline void put_file(const char *name, const char *text)
{
	assert_true(g_file_set_contents(host(name), text, -1, NULL));
}

static inline char *text_of(const char *name)
{
	char *text = NULL;

	assert_true(g_file_get_contents(host(name), &text, NULL, NULL));
	return text;
}

static inline void put_link(const char *text, const char *name)
{
	assert_int_equal(symlink(text, host(name)), 0);
}

static inline bool exists(const char *name)
{
	struct stat st;

	return lstat(host(name), &st) == 0;
}

static inline void make_host_side(void)
{
	static const char *const directories[] = {
		"ws/dir/sub", "ws/inner/deep", "user", "ro/sub", "ro/rw", "secret/sub", "ws-evil",
	};

	root = g_dir_make_tmp("test-path-resolver-XXXXXX", NULL);
	assert_non_null(root);
	for (size_t i = 0; i < G_N_ELEMENTS(directories); i++)
		assert_int_equal(g_mkdir_with_parents(host(directories[i]), 0755), 0);
	put_file("ws/file", "file");
	put_file("ws/dir/f", "f");
	put_file("ws/inner/f", "inner");
	put_file("user/notes", "notes");
	put_file("ro/x", "x");
	put_file("ro/rw/w", "w");
	put_file("note", "note");
	put_file("secret/f", "secret");
}

static inline StellaPolicy *policy_of_root(void)
{
	StellaPolicy *policy = policy_new_defaults();

	policy_set_path(&policy->workspace_root, host("ws"));
	policy_set_path(&policy->working_dir, "/workspace");
	policy_add_mount(policy, host("ws"), "/workspace", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("ws/inner"), "/inner", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("user"), "/user", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("ro"), "/opt/stella", STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("ro/rw"), "/opt/stella/rw", STELLA_MOUNT_READ_WRITE);
	policy_add_mount(policy, host("note"), "/note", STELLA_MOUNT_READ_ONLY);
	return policy;
}

/* Takes the policy. */
static inline PathResolver *resolver_of(StellaPolicy *take_policy, ViewPresentation presentation,
					const char *private_dir)
{
	g_autofree char *message = NULL;
	PathResolver *made = NULL;
	ViewPlan *plan = NULL;

	if (view_plan_new(take_policy, presentation, &plan, &message) < 0)
		fail_msg("%s", message);
	stella_policy_unref(take_policy);
	if (path_resolver_new(plan, private_dir, NULL, &made, &message) < 0)
		fail_msg("%s", message);
	return made;
}

static inline int set_up(void **state)
{
	(void)state;
	make_host_side();
	resolver = resolver_of(policy_of_root(), VIEW_FOR_HOST, NULL);
	return 0;
}

static inline int tear_down(void **state)
{
	int r;

	(void)state;
	g_clear_pointer(&resolver, path_resolver_unref);
	r = io_remove_tree(AT_FDCWD, root);
	g_clear_pointer(&root, g_free);
	return r;
}

static inline int count_fds(void)
{
	GDir *dir = g_dir_open("/proc/self/fd", 0, NULL);
	int count = 0;

	while (g_dir_read_name(dir))
		count++;
	g_dir_close(dir);
	return count;
}
