/* The door of a gateway while it serves: of a mounted view on its socket, of a session on the executor's. */
#pragma once

#include "fsgate/fuse-session.h"

typedef struct FsgViewDoor FsgViewDoor;

/* For a view that is mounted at an absolute path; dirfd (taken) is that of fsg_door_dir_open(). */
int fsg_view_door_open(FsgView *view, FsgSession *session, int take_dirfd, const char *path,
		       FsgViewDoor **ret_door);

/* For a session; control_fd (borrowed until the door is closed) is the executor's socket. */
int fsg_view_door_serve(FsgView *view, FsgSession *session, int control_fd, FsgViewDoor **ret_door);

/* As fsg_door_close(), and removes the socket in any case. */
bool fsg_view_door_close(FsgViewDoor *door, int timeout_ms);
