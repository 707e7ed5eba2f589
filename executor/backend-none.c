/* The backend without a sandbox, for tests and for commands that are trusted: they run on the host, as the caller's user,
 * with the environment that any command gets, in its terms: every path is the host's. Outputs, timeouts, rlimits, and that
 * nothing of a command outlives it, are as everywhere; memory and processes are limited where a cgroup can be made. Of the
 * rest of the policy nothing is enforced, and what is more than a description of the host is refused. See backend.h. */
#include "executor/backend.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/program-path.h"
#include "executor/launcher.h"
#include "executor/packet.h"
#include "executor/sandbox-plan-internal.h"
#include "executor/session-internal.h"

#include <sys/socket.h>
#include <unistd.h>

/* process.user "agent", the default: whoever is there. */
#define AGENT_ID 1000

static bool available(char **ret_reason)
{
	(void)ret_reason;
	return true;
}

static int supported(const StellaPolicy *policy, ExrError *reterr_error)
{
	int r = exr_backend_refuse_gateway_keys(&exr_backend_none, policy, reterr_error);

	if (r < 0)
		return r;
	if (policy->network_mode == STELLA_NETWORK_DISABLED)
		return exr_backend_refuse(&exr_backend_none, "network.mode",
					  "keep commands from the network", reterr_error);
	if (policy->runtime == POLICY_RUNTIME_NONE)
		return exr_backend_refuse(&exr_backend_none, "filesystem.runtime",
					  "keep commands from the host's programs", reterr_error);
	if (policy->process_uid != AGENT_ID && policy->process_uid != geteuid())
		return exr_backend_refuse(&exr_backend_none, "process.user",
					  "run commands as another user", reterr_error);
	return 0;
}

/* A plan without rows, for there is nothing to be made. */
static int make_plan(const ExrSession *session, ExrError *error)
{
	const ExrPlanFrame frame = {
		.flags = WIRE_PLAN_PLAIN,
		.without = WIRE_PLAN_CLEAR_GROUPS | WIRE_PLAN_LOOPBACK | WIRE_PLAN_SCOPE,
		.session_dir = exr_state_dir_path(session->state),
	};
	ExrPlanBuilder builder;
	int r;

	exr_plan_begin(&builder, session->state, 0);
	r = exr_plan_finish(&builder, session->plan, &session->identity, &frame, error);
	exr_plan_clear(&builder);
	return r;
}

static int cannot_start(int r, ExrError *error)
{
	(void)exr_error_set(error, "internal", "start-init", -r,
			    "cannot start stella-sandbox-init: %s", errno_text(-r));
	exr_error_set_known_hint(error);
	return r;
}

static int spawn_init(ExrSession *session, ExrError *error)
{
	g_autofree char *path = program_path("stella-sandbox-init");
	const char *const argv[] = { "stella-sandbox-init", NULL };
	g_auto(GStrv) env = exr_spawn_env();
	FD_AUTO theirs = -1;
	int pair[2], r;

	if ((r = exr_socketpair(SOCK_SEQPACKET, pair)) < 0)
		return cannot_start(r, error);
	session->init_socket = pair[0];
	theirs = pair[1];
	if ((r = exr_spawn(path, argv, (const char *const *)env, theirs, -1, &session->init)) < 0)
		return cannot_start(r, error);
	/* It waits for its plan, and has not made anything yet. */
	if ((r = exr_session_limits_move(session->limits, session->init.pid)) < 0)
		return exr_launch_cannot_limit(r, error);
	return 0;
}

static int start(ExrSession *session, ExrError *error)
{
	WireMessage plan = { .type = WIRE_PLAN };
	FD_AUTO plan_fd = make_plan(session, error);
	int r;

	if (plan_fd < 0)
		return plan_fd;
	if ((r = spawn_init(session, error)) < 0)
		return r;
	if ((r = packet_send(session->init_socket, &plan, &plan_fd, 1)) < 0 && r != -EPIPE)
		return cannot_start(r, error);
	return exr_session_await_init(session, WIRE_READY, plan_fd, NULL, 0, NULL, error);
}

const ExrBackend exr_backend_none = {
	.name = "none",
	.is_plain = true,
	.own_processes = 1, /* init */
	.available = available,
	.supported = supported,
	.start = start,
};
