/* The backend with a gateway: all of the policy. How its sessions start is in session-start.c; see backend.h. */
#include "executor/backend.h"

#include "executor/session-internal.h"

#include <errno.h>

/* Only trying tells, and trying costs as much as starting: it is done by starting. */
static bool available(char **ret_reason)
{
	(void)ret_reason;
	return true;
}

static int supported(const StellaPolicy *policy, ExrError *reterr_error)
{
	g_autofree char *missing = policy_find_unimplemented(policy);
	int r;

	if (policy->network_timeout_ms != 0)
		return exr_backend_refuse(&exr_backend_fsgate, "network.timeout_ms",
					  "end connections", reterr_error);
	if (!missing)
		return 0;
	r = exr_error_set(reterr_error, "policy-unsupported", "policy", ENOTSUP,
			  "%s: not implemented yet", missing);
	if (!reterr_error->key)
		reterr_error->key = g_steal_pointer(&missing);
	return r;
}

const ExrBackend exr_backend_fsgate = {
	.name = "fsgate",
	.isolates = true,
	.own_processes = 1, /* init */
	.available = available,
	.supported = supported,
	.start = exr_session_start,
};
