/* One WireMessage with its fds over a SOCK_SEQPACKET socket: whole or not at all.
 *
 * No allocation and no stdio: both functions may be called after fork. */
#pragma once

#include "executor/wire.h"

#include <stddef.h>

/* Sends; the fds are borrowed. Does not wait for room when that would block a supervisor: the socket's
 * buffer holds many messages. 0 or -errno (-EPIPE: the other end is gone). */
int packet_send(int fd, const WireMessage *message, const int *fds, size_t fd_count);

/* Waits at most timeout_ms (< 0: for ever) and receives. *ret_fd_count of ret_fds (WIRE_MAX_FDS) are
 * set, close-on-exec, the caller's. With ret_fds NULL fds that come are closed. 0, -EPIPE at the end,
 * -ECONNRESET at an end that had not read all that it was sent, -ETIMEDOUT, -EBADMSG for what is no message of ours; -EMFILE: one of ours has come, and is lost, for this process has no
 * room for its fds. */
int packet_receive(int fd, int timeout_ms, WireMessage *ret_message, int *ret_fds,
		   size_t *ret_fd_count);
