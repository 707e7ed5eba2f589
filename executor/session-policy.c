/* The effective policy of a session, made of its policy and of the plan that this came to; see session-policy.h. The
 * rows that a plan adds are not added again where they are declared, so a plan of this policy is the same one. */
#include "executor/session-policy.h"

#include <string.h>

static bool is_declared(const StellaPolicy *policy, const char *view_path)
{
	for (guint i = 0; i < policy->mounts->len; i++) {
		const PolicyMount *mount = policy->mounts->pdata[i];

		if (strcmp(mount->view_path, view_path) == 0)
			return true;
	}
	return false;
}

static bool is_implied(const ViewEntry *entry)
{
	return entry->kind == VIEW_ENTRY_MOUNT && entry->origin != VIEW_ORIGIN_DECLARED &&
	       entry->origin != VIEW_ORIGIN_RUNTIME;
}

StellaPolicy *exr_session_effective_policy_new(const ExrSession *session)
{
	const ViewPlan *plan = exr_session_plan(session);
	StellaPolicy *policy = policy_copy(exr_session_policy(session));

	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (is_implied(entry) && !is_declared(policy, entry->view_path))
			policy_add_mount(policy, entry->host_path, entry->view_path, entry->access);
	}
	policy_set_path(&policy->working_dir, plan->working_dir);
	return policy;
}
