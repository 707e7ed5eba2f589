/* The gateway's door: a thread of its own that answers questions about the view, one JSON object a line each
 * way (common/control.h), so that no request of the kernel's ever waits for whoever asks, nor the other way
 * round.
 *
 * Two kinds of askers. Of a session, the executor, on the socket that it gave. Of a mounted view, any program of
 * the same user or of root, on a socket in a directory that only that user can enter; who it is, is asked of the
 * kernel. Those are not trusted to behave: their number, the size of what they send and the time that they may
 * take are bounded, and one that does not read its answer only blocks itself. */
#pragma once

#include "common/json.h"

#include <stdbool.h>

typedef struct FsgDoor FsgDoor;

/* Answers one object. NULL: there is no answer yet, and the request is put again whenever wake_fd was readable. Called in the
 * door's thread. The caller owns what is given. */
typedef JsonObject *(*FsgAnswer)(void *data, JsonObject *request);

/* wake_fd is a non-blocking eventfd (borrowed, -1: every request is answered at once). listen_fd (taken, -1: none) is a listening socket, peer_fd (borrowed until the door is closed, -1: none) a connected
 * one that is trusted. Starts the thread. 0 or -errno. */
int fsg_door_open(int take_listen_fd, int peer_fd, int wake_fd, FsgAnswer answer, void *data,
		  FsgDoor **ret_door);

/* Ends the thread, waiting at most timeout_ms for an answer that is being made, and frees. false: it has not ended,
 * nothing was freed, and only the end of the process is left. NULL is allowed. */
bool fsg_door_close(FsgDoor *door, int timeout_ms);
