/* The backend for hosts without FUSE: bubblewrap makes the namespaces, and mounts of the kernel stand in for the
 * gateway. From then on a session is as any other: the same init makes the root from its plan, takes the requests and
 * enforces the rest. See backend.h; sandbox-plan-native.h and launcher-bwrap.h say how.
 *
 * Every cache mode is satisfied: there is no cache but the host's own. Nothing is known of denials and changes. */
#include "executor/backend.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "executor/launcher-bwrap.h"
#include "executor/native-source.h"
#include "executor/sandbox-plan-native.h"
#include "executor/session-internal.h"

#include <string.h>

/* What bwrap prints of one failure is a line. */
#define MESSAGE_MAX 1024

static bool available(char **ret_reason)
{
	if (exr_find_bwrap())
		return true;
	*ret_reason = g_strdup("bwrap is not installed");
	return false;
}

static int supported(const StellaPolicy *policy, ExrError *reterr_error)
{
	return exr_backend_refuse_gateway_keys(&exr_backend_bwrap, policy, reterr_error);
}

/* Its first line, without its name. The caller frees; NULL: nothing was printed. */
static char *read_message(int fd)
{
	char text[MESSAGE_MAX];
	ssize_t size = pread(fd, text, sizeof text - 1, 0);
	const char *start;

	if (size <= 0)
		return NULL;
	text[size] = '\0';
	start = g_str_has_prefix(text, "bwrap: ") ? text + strlen("bwrap: ") : text;
	return g_strndup(start, strcspn(start, "\n"));
}

/* An init that never came says nothing: bwrap does. */
static int await_ready(ExrSession *session, int plan_fd, int messages, ExrError *error)
{
	ExrError unknown = { 0 };
	int r = exr_session_await_init(session, WIRE_READY, plan_fd, &session->init.pidfd, 1, NULL,
				       &unknown);
	g_autofree char *message = r < 0 ? read_message(messages) : NULL;

	if (r == 0)
		return 0;
	if (!message) {
		*error = unknown;
		return r;
	}
	exr_error_clear(&unknown);
	r = exr_error_set(error, "host-unsupported", "bwrap", 0, "bwrap: %s", message);
	exr_error_set_known_hint(error);
	return r;
}

static int start(ExrSession *session, ExrError *error)
{
	ExrBwrapLaunch launch = {
		.identity = &session->identity,
		.limits = session->limits,
		.own_network = session->policy->network_mode == STELLA_NETWORK_DISABLED,
	};
	g_autoptr(GArray) sources = exr_sources_new();
	FD_AUTO plan_fd = -1;
	FD_AUTO messages = -1;
	int r = exr_session_build_seccomp(session, error);

	if (r < 0)
		return r;
	plan_fd = exr_native_plan_new(session->plan, &session->identity, session->state,
				      &session->seccomp, sources, error);
	if (plan_fd < 0)
		return plan_fd;
	launch.sources = sources;
	launch.plan_fd = plan_fd;
	if ((r = exr_bwrap_launch(&launch, &session->init_socket, &session->monitor, &messages,
				  error)) < 0)
		return r;
	return await_ready(session, plan_fd, messages, error);
}

const ExrBackend exr_backend_bwrap = {
	.name = "bwrap",
	.isolates = true,
	.own_processes = 2, /* init, and bwrap's own */
	.available = available,
	.supported = supported,
	.start = start,
};
