/* Inits of execs before their commands are known: a new one, and one that a session keeps ahead, its spare.
 *
 * Namespaces, a /proc and the filter are most of what an exec costs, and the same for all of them. From its second
 * command on a session has one such init waiting, so that a command only has to be sent to it. What it is to the
 * supervisor is its exec's own socket: init answers there, and it ends when ours is closed. */
#pragma once

#include "executor/session-internal.h"

/* Under the session's lock: asks init for a new one (WIRE_PREPARE_* flags). *ret_control_fd is the exec's own socket: what is sent there
 * will be read, and WIRE_STARTED or WIRE_NOT_STARTED follows. 0 or -errno; -EPIPE: init is gone. */
int exr_prepared_ask(ExrSession *session, int flags, int *ret_control_fd);

/* The spare's socket, which the caller owns, or -1. It counts as an exec of the session's limits, and goes on to count as
 * the caller's. */
int exr_prepared_take_spare(ExrSession *session);
/* After a command, from the second on: asks for a spare if there is none, and does not wait for it. */
void exr_prepared_keep_spare(ExrSession *session);
/* Under the session's lock: ends it. */
void exr_prepared_end_spare(ExrSession *session);
