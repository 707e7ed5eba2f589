/* See view-door.h. */
#include "fsgate/view-door.h"

#include "common/fd-util.h"
#include "fsgate/answers.h"
#include "fsgate/door-socket.h"
#include "fsgate/door.h"
#include "fsgate/events.h"

#include <errno.h>

struct FsgViewDoor {
	FsgDoor *door;
	FsgAnswers answers;
	int dirfd; /* -1: no socket of its own */
	FsgViewMount *mount;
	ino_t ino; /* of the socket */
};

static FsgViewDoor *door_new(FsgView *view, FsgSession *session)
{
	FsgViewDoor *door = g_new0(FsgViewDoor, 1);

	door->dirfd = -1;
	door->answers = (FsgAnswers){ .view = view, .session = session };
	return door;
}

static void door_free(FsgViewDoor *door)
{
	fsg_view_mount_free(door->mount);
	fd_close(&door->dirfd);
	g_free(door);
}

int fsg_view_door_open(FsgView *view, FsgSession *session, int take_dirfd, const char *path,
		       FsgViewDoor **ret_door)
{
	FsgViewDoor *door = door_new(view, session);
	int r;

	door->dirfd = take_dirfd;
	door->mount = fsg_view_mount_find(path);
	r = door->mount ? fsg_door_listen(door->dirfd, door->mount, &door->ino) : -ENOENT;
	if (r >= 0 && (r = fsg_door_open(r, -1, fsg_events_wake_fd(view->events), fsg_answer,
					 &door->answers, &door->door)) < 0)
		fsg_door_remove(door->dirfd, door->mount, door->ino);
	if (r < 0) {
		door_free(door);
		return r;
	}
	*ret_door = door;
	return 0;
}

int fsg_view_door_serve(FsgView *view, FsgSession *session, int control_fd, FsgViewDoor **ret_door)
{
	FsgViewDoor *door = door_new(view, session);
	int r = fsg_door_open(-1, control_fd, fsg_events_wake_fd(view->events), fsg_answer,
			      &door->answers, &door->door);

	if (r < 0) {
		door_free(door);
		return r;
	}
	*ret_door = door;
	return 0;
}

bool fsg_view_door_close(FsgViewDoor *door, int timeout_ms)
{
	if (!door)
		return true;
	if (door->mount)
		fsg_door_remove(door->dirfd, door->mount, door->ino);
	if (!fsg_door_close(door->door, timeout_ms))
		return false;
	door_free(door);
	return true;
}
