/* The control socket between the executor and the gateway of one session: JSON objects, one a line,
 * on a stream socket; a line may carry one fd.
 *
 *   executor -> gateway  {"start": {"version": V, "policy": {...}, "uid": N, "gid": N,
 *                                  "state_dir": P, "one_exec": B}} [+ fd]
 *                        the view for VIEW_FOR_SANDBOX; uid and gid are the ids it shows; what is at P
 *                        on the host is not entered; the fd is the executor's board (common/exec-board.h)
 *   gateway -> executor  {"ready": true}             anchors are open, the device fd may come
 *   executor -> gateway  {"attach": "tasks"} + fd    the procfs of the pids in the view's requests; before
 *                                                   the device, or not at all
 *   executor -> gateway  {"attach": "device"} + fd   an open /dev/fuse, mounted by the executor
 *                  or    {"attach": "fusermount", "path": P}   the gateway mounts it itself, at P
 *   gateway -> executor  {"serving": true} [+ fd]
 *                        the fd, for poll, is the queue of what the host changes; without, there is none
 *   gateway -> executor  {"error": {"message": M}}   instead of either answer; then it ends
 *
 * From then on the executor asks what its board does not tell, and the gateway answers, one at a time; and whoever may enter the directory of a
 * mounted view's socket (fsgate/door-socket.h) may ask the same:
 *
 *   -> {"status": true}             <- {"status": {...}}      stella-fsgate(1), "status --json", has the keys
 *   -> {"denials": {"since": N}}    <- {"denials": {...}}     rows whose seq is above N; "last" is the next N
 *   -> {"events": {"since": N, "wait": B}}
 *                                   <- {"events": {...}}      denials and changes above N as they happened, stella-fsgate(1) has
 *                                   the keys; with "wait", and not on a session's socket, when there is one
 *   -> {"boundary": "start", "id": I, "exec": E}
 *                                   <- {"boundary": "start", "id": I, "exec": E, "caught_up": B}
 *   -> {"boundary": "end", "id": I, "exec": E, "pidns": P}
 *                                   <- {"boundary": "end", "id": I, "caught_up": B, "denials": [...], ...}
 *                                   of a session: an exec begins or has ended (fsgate/boundary.h); "caught_up": what
 *                                   the host changed is visible in the view, or the files that the exec had open are
 *                                   closed, and not only the time for it over; E is the exec's number on the board, given by
 *                                   the gateway when the executor has none
 *                                   P is the inode number of the exec's pid namespace (/proc/PID/ns/pid). With it, and where a
 *                                   procfs was attached, the answer also says what that exec did; without, these keys
 *                                   are not there (not known):
 *                                     "denials": [{"op", "path", "mount", "reason", "errno", "count"}], equal ones counted
 *                                     together, in the order of the last of each; "target" too where a link's text is
 *                                     what was refused; errno null: recorded, not refused
 *                                     "denials_dropped": how many there were that are in no row
 *                                     "changes": [{"path", "change": "created" | "modified" | "deleted"} or
 *                                     {"path", "change": "renamed", "from"}], what the exec's steps come to
 *                                     (fsgate/fold.h), by path
 *                                     "changes_dropped": paths that changed and are not in the list
 *                                     "changes_incomplete": files were still open after 200 ms, or of some change it is not
 *                                     known whose it was
 *                                   a path that is not UTF-8 is {"b64": "..."}. To be asked when no process of the exec is left
 *   anything else                   <- {"error": {"message": M}}
 *
 * The executor's end of file means: end, now. No answer is ever waited for without a deadline. */
#pragma once

#include "common/json.h"

#include <stdbool.h>

typedef struct ControlSocket ControlSocket;

/* Takes fd, also on failure. */
ControlSocket *control_socket_new(int take_fd);
void control_socket_free(ControlSocket *socket); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ControlSocket, control_socket_free)

/* Borrowed, for poll. */
int control_socket_fd(const ControlSocket *socket);

/* Sends one object (consumed, also on failure), with an fd when it is >= 0 (borrowed). 0 or -errno. */
int control_socket_send(ControlSocket *socket, JsonObject *take_object, int fd);

/* Waits for the next object. *ret_fd is the fd that came with it or -1; a caller that expects none
 * passes NULL, and an fd that comes is closed. timeout_ms < 0 waits for ever. -ETIMEDOUT, -EMFILE for an fd that
 * this process has no room for (its line is lost too), -EPIPE at
 * the end of file, -EBADMSG for what is no object, -EMSGSIZE for a line over the cap. */
int control_socket_receive(ControlSocket *socket, int timeout_ms, JsonObject **ret_object,
			   int *ret_fd);
