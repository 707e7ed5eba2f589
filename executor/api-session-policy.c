/* The policy of a session for who looks into its view from the host's side; see api-session-policy.h. It is the effective
 * one (session-policy.h), with what of the view is no mount of the policy's. */
#include "executor/api-session-policy.h"

#include "common/path-util.h"
#include "executor/sandbox-plan.h"
#include "executor/session-policy.h"

/* What a sandbox mounts on a place of its own, the gateway serves to nobody; a mount of the same directory shows it. */
static void add_private(StellaPolicy *policy, const ExrSession *session)
{
	const ViewPlan *plan = exr_session_plan(session);

	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];
		const char *name = exr_sandbox_private_name(entry->view_path);
		g_autofree char *path = NULL;

		if (entry->kind != VIEW_ENTRY_POINT || entry->host_path || !name)
			continue;
		path = exr_state_dir_join(exr_session_state_dir(session), name);
		policy_add_mount(policy, path, entry->view_path, STELLA_MOUNT_READ_WRITE)->untold =
			exr_session_leaves_untold(entry->view_path);
	}
}

ViewPresentation api_session_resolver_presentation(const ExrSession *session)
{
	return exr_session_plan(session)->presentation == VIEW_AS_HOST ? VIEW_AS_HOST
								       : VIEW_FOR_HOST;
}

StellaPolicy *api_session_resolver_policy_new(const ExrSession *session)
{
	const ExrStateDir *state = exr_session_state_dir(session);
	const ViewPlan *plan = exr_session_plan(session);
	StellaPolicy *policy = plan->presentation == VIEW_AS_HOST
				       ? policy_copy(exr_session_policy(session))
				       : exr_session_effective_policy_new(session);

	policy->runtime = plan->runtime;
	if (!state)
		return policy;
	add_private(policy, session);
	for (guint i = 0; i < policy->mounts->len; i++) {
		PolicyMount *mount = policy->mounts->pdata[i];

		/* They go with the session, and what is left of the view is of use without them. */
		mount->optional |= path_is_below(mount->host_path, exr_state_dir_path(state));
	}
	return policy;
}
