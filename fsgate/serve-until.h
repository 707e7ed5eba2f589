/* The main thread of a gateway: waits for what ends it. */
#pragma once

#include "fsgate/fuse-session.h"
#include "fsgate/view-door.h"

/* Blocks SIGINT, SIGTERM and SIGHUP for this thread and those it starts, and makes the fd that they are read
 * from. To be called before any thread is started. fd or -errno. */
int fsg_signals_open(void);

/* Waits until a signal comes, the view's threads end, or the other end of control_fd (-1: none) is closed. Where the view is
 * mounted for the host (mountpoint not NULL), also until nothing is mounted there any more: a clone of the
 * mount that somebody else holds, such as another view, keeps the connection alive beyond that. */
void fsg_serve_until_end(FsgSession *session, int signal_fd, int control_fd,
			 const char *mountpoint);

/* Ends session, door (NULL: none was opened) and view in order. When a request is stuck, the process ends here,
 * which aborts it. */
void fsg_serve_finish(FsgSession *session, FsgViewDoor *door, FsgView *view);
