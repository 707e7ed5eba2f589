/* Asking init for inits of execs; see prepared.h. */
#include "executor/prepared.h"

#include "common/fd-util.h"
#include "executor/packet.h"

#include <sys/socket.h>

/* A session that is made for one command has no use for a spare. */
#define FIRST_WITH_SPARE 2

int exr_prepared_ask(ExrSession *session, int flags, int *ret_control_fd)
{
	WireMessage message = { .type = WIRE_PREPARE, .value = flags };
	FD_AUTO ours = -1;
	FD_AUTO theirs = -1;
	int pair[2];
	int r = exr_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	if ((r = packet_send(session->init_socket, &message, &theirs, 1)) < 0)
		return r;
	*ret_control_fd = fd_steal(&ours);
	return 0;
}

int exr_prepared_take_spare(ExrSession *session)
{
	int spare;

	pthread_mutex_lock(&session->lock);
	spare = fd_steal(&session->spare);
	pthread_mutex_unlock(&session->lock);
	return spare;
}

void exr_prepared_end_spare(ExrSession *session)
{
	if (session->spare < 0)
		return;
	fd_close(&session->spare);
	exr_session_limits_release(session->limits);
}

/* What counts all processes of the user at a command's start would count one too few of ours. */
static bool wants_spare(const ExrSession *session)
{
	return session->backend->isolates && !session->ended && !atomic_load(&session->dead) &&
	       session->spare < 0 && atomic_load(&session->last_exec) >= FIRST_WITH_SPARE &&
	       !exr_session_limits_by_rlimit(session->limits);
}

void exr_prepared_keep_spare(ExrSession *session)
{
	pthread_mutex_lock(&session->lock);
	if (wants_spare(session)) {
		exr_session_limits_hold(session->limits);
		if (exr_prepared_ask(session, atomic_load(&session->stays) ? WIRE_PREPARE_STAY : 0,
				     &session->spare) < 0)
			exr_session_limits_release(session->limits);
	}
	pthread_mutex_unlock(&session->lock);
}
