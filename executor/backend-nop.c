/* The backend that runs nothing: each command exits with 0 and has no output, and none can be talked to. A session of
 * it has its policy, its id and its end like any other, but no process; so tests of what uses sessions need no
 * privileges. See backend.h. */
#include "executor/backend.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "executor/packet.h"

#include <sys/eventfd.h>

static bool available(char **ret_reason)
{
	(void)ret_reason;
	return true;
}

/* What runs nothing breaks no rule; but a session says by its policy that nothing is kept from the network. */
static int supported(const StellaPolicy *policy, ExrError *reterr_error)
{
	(void)policy;
	(void)reterr_error;
	return 0;
}

static int start(ExrSession *session, ExrError *error)
{
	(void)session;
	(void)error;
	return 0;
}

static int answer(int control)
{
	const WireMessage started = { .type = WIRE_STARTED };
	const WireMessage prepared = { .type = WIRE_PREPARED };
	const WireMessage ended = { .type = WIRE_ENDED, .value = 0 };
	FD_AUTO ended_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	int r;

	if (ended_fd < 0)
		return -errno;
	if ((r = packet_send(control, &started, &ended_fd, 1)) < 0 ||
	    (r = packet_send(control, &prepared, NULL, 0)) < 0)
		return r;
	return packet_send(control, &ended, NULL, 0);
}

const ExrBackend exr_backend_nop = {
	.name = "nop",
	.is_pretense = true,
	.available = available,
	.supported = supported,
	.start = start,
	.answer = answer,
};
