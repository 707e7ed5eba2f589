/* stella-fsgate check: validates a policy and prints what its view would hold. */
#include "fsgate/cli.h"

#include "common/policy-options.h"

#include <stdio.h>

int fsg_cmd_check(int argc, char **argv)
{
	g_autoptr(PolicyOptions) options = policy_options_new(POLICY_FOR_LOOKING);
	g_autoptr(StellaPolicy) policy = NULL;
	g_autoptr(ViewPlan) plan = NULL;
	g_autofree char *message = NULL;
	g_autofree char *table = NULL;
	int r;

	for (int i = 1; i < argc; i++) {
		r = policy_options_take(options, argc, argv, &i, &message);
		if (r == 0)
			message = g_strdup_printf(argv[i][0] == '-'
							  ? "check: unknown option '%s'"
							  : "check: unexpected argument '%s'",
						  argv[i]);
		if (r <= 0) {
			fsg_cli_complain("%s", message);
			return FSG_EXIT_USAGE;
		}
	}
	if (policy_options_finish(options, &policy, &message) < 0) {
		fsg_cli_complain("%s", message);
		return FSG_EXIT_USAGE;
	}
	if ((r = fsg_cli_check_supported(policy)) != 0)
		return r;
	if (view_plan_new(policy, VIEW_FOR_HOST, &plan, &message) < 0) {
		g_autofree char *explained = policy_options_explain(options, message);

		fsg_cli_complain("%s", explained);
		return FSG_EXIT_USAGE;
	}
	table = view_plan_format(plan);
	printf("%s", table);
	return fflush(stdout) == 0 ? 0 : FSG_EXIT_FAILED;
}
