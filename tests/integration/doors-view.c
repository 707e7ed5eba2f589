/* The second door: a mounted view that a host process looks into. Its paths begin below the mountpoint, and links
 * lead where their rewritten texts say. */
#include "integration/doors.h"

#include "common/policy-json.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct ViewDoor {
	ViewFixture *view; /* borrowed */
	int root, working_dir;
};

ViewDoor *view_door_new(const Ground *ground)
{
	ViewDoor *door = g_new0(ViewDoor, 1);
	g_autoptr(StellaPolicy) policy = ground_policy(ground, POLICY_RUNTIME_NONE);
	g_autofree char *text = policy_json_write(policy, true);
	g_autofree char *file = view_fixture_path(ground->view, "policy.json");

	door->view = ground->view;
	view_fixture_write(ground->view, "policy.json", text);
	view_fixture_mount(ground->view, (const char *const[]){ "--policy", file, NULL });
	door->root = open(ground->view->mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(door->root >= 0);
	door->working_dir =
		openat(door->root, policy->working_dir + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(door->working_dir >= 0);
	return door;
}

void view_door_free(ViewDoor *door)
{
	close(door->working_dir);
	close(door->root);
	view_fixture_unmount(door->view);
	g_free(door);
}

void view_door_try(void *door, const Vector *vector, DoorAnswer *ret_answer)
{
	const ViewDoor *own = door;
	const char *path = vector->path;
	bool absolute = path[0] == '/';

	/* As short as it was: what is said about lengths holds here too. */
	while (*path == '/')
		path++;
	if (absolute && *path == '\0')
		path = ".";
	door_try(absolute ? own->root : own->working_dir, path, vector->flags, ret_answer);
}
