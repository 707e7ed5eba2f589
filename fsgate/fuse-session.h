/* Serving a view: the FUSE mount, the threads that answer requests, and their end. */
#pragma once

#include "fsgate/view.h"

#include <stdbool.h>

typedef struct FsgSession FsgSession;

/* Mounts the view at its mountpoint (view->mountpoint, opened as mountpoint_fd): as root itself, else through
 * fusermount3. With allow_other every user of the host may enter, judged by the modes and ACLs
 * that the view shows. The session owns the mount. On failure -errno with *reterr_message one line that says what to do. */
int fsg_session_mount(FsgView *view, int mountpoint_fd, bool allow_other, FsgSession **ret_session,
		      char **reterr_message);

/* Serves a /dev/fuse (taken, also on failure) that somebody else has mounted. */
int fsg_session_adopt(FsgView *view, int take_device_fd, FsgSession **ret_session,
		      char **reterr_message);

/* Starts the threads. They act with no capability that overrides permissions: only those that switch
 * between the owners of mounts, and what passthrough needs. take_tasks_fd: the procfs in which the kernel's pids are found (task.h), or -1;
 * taken, also on failure. 0 or -errno. Once. */
int fsg_session_start(FsgSession *session, int take_tasks_fd);

/* Readable when the threads have ended: the view was unmounted or its connection aborted. Borrowed. */
int fsg_session_end_fd(const FsgSession *session);

/* Whether what fsg_session_mount() made is on top at its mountpoint. */
bool fsg_session_is_mounted(const FsgSession *session);

/* Unmounts it, if so: lazily if it is in use. */
void fsg_session_unmount(FsgSession *session);

/* Waits at most timeout_ms for the threads' end, then frees the session. false: they have not ended (a request
 * is stuck in a hung source), the connection was cut, nothing was freed, and only the end of the process is left. NULL is allowed. */
bool fsg_session_free(FsgSession *session, int timeout_ms);
