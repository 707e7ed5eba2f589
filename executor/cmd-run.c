/* `stella-exec run` and `stella-exec sh`: the same run, but for how the command is given; see run.h. */
#include "executor/cmd-run.h"

#include "common/errno-util.h"
#include "executor/help.h"
#include "executor/message.h"
#include "executor/run.h"

static int print_help(bool is_sh)
{
	int r = is_sh ? exr_help_print_sh() : exr_help_print_run();

	if (r == 0)
		return 0;
	exr_message_print(NULL, "standard output: %s", errno_text(-r));
	return EXR_EXIT_FAILED;
}

static int run_main(int argc, char **argv, char **host_env, bool is_sh)
{
	ExrRun run = {
		.host_env = host_env,
		.is_sh = is_sh,
		.stdin_fd = -1,
		.end = { .cpu_ms = -1, .max_rss_bytes = -1 },
		.result = { .cpu_ms = -1, .max_rss_bytes = -1 },
	};
	int status, r = exr_run_prepare(&run, argc, argv);

	if (r == 0 && run.options.wants_help) {
		status = print_help(is_sh);
	} else {
		if (r == 0)
			exr_run_execute(&run);
		status = exr_run_report(&run);
	}
	exr_run_clear(&run);
	return status;
}

int exr_cmd_run(int argc, char **argv, char **host_env)
{
	return run_main(argc, argv, host_env, false);
}

int exr_cmd_sh(int argc, char **argv, char **host_env)
{
	return run_main(argc, argv, host_env, true);
}
