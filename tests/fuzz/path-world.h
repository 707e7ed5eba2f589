/* The host side that the path targets work in, and what must hold for everything that is opened there. Made once, and
 * removed when the process ends in order.
 *
 *   root/workspace  /workspace  rw          root/user  /user  rw        top/secret  outside, where root is top/root
 *   root/workspace/inner  the same  ro      root/opt/stella  /opt/stella  ro
 *
 * Below root all has the name that it has in the view: what the kernel finds there, with root for its root directory, is
 * what a walk in the view has to find. */
#pragma once

#include "common/path-resolver.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/path-util.h"

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	char *top;  /* with its links resolved */
	char *root; /* top/root */
	PathResolver *resolver;
} PathWorld;

static PathWorld world;

static inline char *world_path(const char *name)
{
	return g_build_filename(world.root, name, NULL);
}

static inline void world_add_mount(StellaPolicy *policy, const char *view_path,
				   StellaMountAccess access)
{
	g_autofree char *path = world_path(view_path);

	g_assert_cmpint(g_mkdir_with_parents(path, 0755), ==, 0);
	policy_add_mount(policy, path, view_path, access);
}

static inline void world_write(const char *name, const char *text)
{
	g_autofree char *path = world_path(name);

	g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static inline void world_end(void)
{
	path_resolver_unref(world.resolver);
	(void)io_remove_tree(AT_FDCWD, world.top);
	g_free(world.root);
	g_free(world.top);
}

/* Once; what is to be in the mounts is made before by the caller's `fill`, which may be NULL. */
static inline void world_begin(void (*fill)(void))
{
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	g_autofree char *made = NULL;
	g_autofree char *secret = NULL;
	g_autofree char *workspace = NULL;
	g_autofree char *message = NULL;
	ViewPlan *plan = NULL;

	if (world.root)
		return;
	made = g_dir_make_tmp("fuzz-path-XXXXXX", NULL);
	g_assert_nonnull(made);
	world.top = realpath(made, NULL);
	g_assert_nonnull(world.top);
	world.root = g_build_filename(world.top, "root", NULL);
	world_add_mount(policy, "/workspace", STELLA_MOUNT_READ_WRITE);
	world_add_mount(policy, "/workspace/inner", STELLA_MOUNT_READ_ONLY);
	world_add_mount(policy, "/user", STELLA_MOUNT_READ_WRITE);
	world_add_mount(policy, "/opt/stella", STELLA_MOUNT_READ_ONLY);
	secret = world_path("../secret");
	g_assert_cmpint(g_mkdir(secret, 0755), ==, 0);
	world_write("../secret/f", "secret");
	world_write("workspace/inner/f", "inner");
	world_write("opt/stella/f", "ro");
	workspace = world_path("workspace");
	policy_set_path(&policy->workspace_root, workspace);
	policy_set_path(&policy->working_dir, "/workspace");
	if (fill)
		fill();
	if (view_plan_new(policy, VIEW_FOR_HOST, &plan, &message) < 0 ||
	    path_resolver_new(plan, NULL, NULL, &world.resolver, &message) < 0)
		g_error("%s", message);
	(void)atexit(world_end);
}

/* Where an fd's object is on the host. */
static inline char *world_place_of(int fd)
{
	char link[FD_PROC_PATH_SIZE];

	fd_proc_path(fd, link);
	return g_file_read_link(link, NULL);
}

/* The object is in a mount. */
static inline void world_check_inside(int fd)
{
	static const char *const mounts[] = { "workspace", "user", "opt/stella" };
	g_autofree char *place = world_place_of(fd);
	bool inside = false;

	g_assert_nonnull(place);
	for (size_t i = 0; i < G_N_ELEMENTS(mounts); i++) {
		g_autofree char *mount = world_path(mounts[i]);

		inside = inside || path_is_below(place, mount);
	}
	if (!inside)
		g_error("%s is outside", place);
}

/* A failure is told in one line of text, and is what is returned. */
static inline void world_check_problem(int r, PathProblem *problem)
{
	g_assert_cmpint(r, ==, -problem->errnum);
	g_assert_cmpint(problem->kind, !=, PATH_PROBLEM_NONE);
	g_assert_nonnull(problem->message);
	g_assert_true(g_utf8_validate(problem->message, -1, NULL));
	g_assert_null(strpbrk(problem->message, "\n\r"));
	path_problem_clear(problem);
}

static inline void world_check_text(const char *name, const char *expected)
{
	g_autofree char *path = world_path(name);
	g_autofree char *text = NULL;

	g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
	g_assert_cmpstr(text, ==, expected);
}
