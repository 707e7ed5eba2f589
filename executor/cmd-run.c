/* `stella-exec run`, `sh` and `shell`: the same run, but for how the command is given; see run.h. */
#include "executor/cmd-run.h"

#include "common/errno-util.h"
#include "common/log.h"
#include "executor/help.h"
#include "executor/message.h"
#include "executor/run.h"
#include "executor/session-log.h"

static int print_help(int (*print)(void))
{
	int r = print();

	if (r == 0)
		return 0;
	exr_message_print(NULL, "standard output: %s", errno_text(-r));
	return EXR_EXIT_FAILED;
}

static int run_main(ExrRun *run, int argc, char **argv, int (*help)(void))
{
	int status, r;

	run->stdin_fd = -1;
	run->terminal = EXR_CALLER_TERMINAL_NONE;
	r = exr_run_prepare(run, argc, argv);
	log_setup(run->options.log_format);
	if (r == 0 && run->options.wants_help) {
		status = print_help(help);
	} else {
		if (r == 0)
			exr_run_execute(run);
		else if (run->policy)
			exr_log_unsupported(
				run->policy,
				(run->backend ? run->backend : &exr_backend_fsgate)->name,
				&run->error);
		status = exr_run_report(run);
	}
	exr_run_clear(run);
	return status;
}

int exr_cmd_run(int argc, char **argv, char **host_env)
{
	ExrRun run = { .host_env = host_env };

	return run_main(&run, argc, argv, exr_help_print_run);
}

int exr_cmd_sh(int argc, char **argv, char **host_env)
{
	ExrRun run = { .host_env = host_env, .is_sh = true };

	return run_main(&run, argc, argv, exr_help_print_sh);
}

int exr_cmd_shell(int argc, char **argv, char **host_env)
{
	ExrRun run = { .host_env = host_env, .is_shell = true };

	return run_main(&run, argc, argv, exr_help_print_shell);
}
