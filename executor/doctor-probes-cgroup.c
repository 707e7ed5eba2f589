/* Whether a session's limits can be enforced by a cgroup, controller by controller, and what takes the place of one;
 * see doctor.h. */
#include "executor/doctor.h"

#include "executor/cgroup.h"
#include "executor/identity.h"
#include "executor/nproc.h"

static void probe(const char *controller, ExrFinding *ret_finding)
{
	g_autofree char *reason = NULL;
	int r = exr_cgroup_check(controller, &reason);

	if (r < 0)
		exr_finding_set(ret_finding, EXR_DOCTOR_DEGRADED, -r,
				"run as root, or in a service with Delegate=yes "
				"(systemd-run --user -p Delegate=yes)",
				"%s", reason);
}

void exr_probe_memory_cgroup(ExrFinding *ret_finding)
{
	probe("memory", ret_finding);
}

void exr_probe_pids_cgroup(ExrFinding *ret_finding)
{
	ExrIdentity identity = exr_identity_choose(0);

	probe("pids", ret_finding);
	if (ret_finding->state == EXR_DOCTOR_DEGRADED && exr_nproc_works(&identity))
		ret_finding->cost = g_strdup(
			"a session's processes are limited by RLIMIT_NPROC instead, which "
			"limits_hit does not name (with --backend none they are not limited)");
}
