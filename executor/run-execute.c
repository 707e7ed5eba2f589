/* The session, the command in it, and what became of it; see run.h. From here on something could be
 * left behind, so signals are events and end nothing half way. */
#include "executor/run.h"

#include "common/errno-util.h"
#include "executor/message.h"
#include "executor/program-hint.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Who asked for one of these and reads no result must not believe that it holds. */
static void warn_of_limits(const ExrRun *run)
{
	const char *const *unenforced = exr_session_unenforced(run->session);

	for (; *unenforced; unenforced++)
		if (strcmp(*unenforced, "memory_bytes") == 0 ||
		    strcmp(*unenforced, "processes") == 0)
			exr_message_print("limits.required makes that an error, which says why",
					  "limits.%s cannot be enforced here", *unenforced);
}

/* Who asked for none is told which one it is when it is not the one that does everything. */
static int start_by_default(ExrRun *run, const ExrSessionConfig *config)
{
	g_autofree char *skipped = NULL;
	int r = exr_session_new_by_default(config, &run->session, &skipped, &run->error);

	if (r == 0 && skipped && !run->options.quiet)
		exr_message_print(skipped, "backend %s is used: denials and changes are not known",
				  exr_session_backend(run->session)->name);
	return r;
}

static int start_session(ExrRun *run)
{
	ExrSessionConfig config = {
		.policy = run->policy,
		.backend = run->backend,
		.temporary_user = policy_options_user_is_temporary(run->options.policy),
		.one_exec = true,
		.host_env = (const char *const *)run->host_env,
		/* Without a policy tools' caches and settings belong to the user, not the project. */
		.home = run->options.has_policy_file ? NULL : STELLA_MOUNT_USER_DATA,
	};
	int r = exr_signals_init(&run->signals);

	if (r < 0)
		return exr_error_set(&run->error, "internal", "signals", -r,
				     "signals cannot be set up: %s", errno_text(-r));
	run->has_signals = true;
	r = run->backend ? exr_session_new(&config, &run->session, &run->error)
			 : start_by_default(run, &config);
	if (r == 0 && !run->options.json)
		warn_of_limits(run);
	if (r < 0) {
		char *message = policy_options_explain(run->options.policy, run->error.message);

		g_free(run->error.message);
		run->error.message = message;
	}
	return r;
}

/* The outcome's own error, with what may help. */
static void add_hint(ExrRun *run)
{
	ExrError *error = exr_outcome_error(run->outcome);
	g_autofree char *hint = NULL;

	if (!error)
		return;
	if (g_strcmp0(error->code, "program-not-found") == 0 &&
	    g_strcmp0(error->stage, "exec") == 0 && !error->hint &&
	    exr_session_backend(run->session)->isolates)
		hint = exr_program_hint(exr_session_plan(run->session), run->argv[0],
					run->host_env);
	if (hint)
		exr_error_set_hint(error, "%s", hint);
	if (error->errnum == E2BIG && run->is_sh)
		exr_error_set_hint(error,
				   "put the command into a file of the workspace and run that");
}

/* When nobody looks at the output as it comes, everybody gets the same size. */
static int find_terminal(ExrRun *run, ExrExecOptions *options)
{
	int r = 0;

	if (!run->options.json)
		r = exr_caller_terminal_init(&run->terminal,
					     run->stdin_fd == STDIN_FILENO ? STDIN_FILENO : -1);
	if (r < 0)
		return exr_error_set(&run->error, "internal", "signals", -r,
				     "signals cannot be set up: %s", errno_text(-r));
	options->tty = true;
	exr_caller_terminal_size(&run->terminal, &options->rows, &options->columns);
	options->on_event = exr_caller_terminal_on_event;
	options->event_data = &run->terminal;
	options->event_fd = run->terminal.event_fd;
	return 0;
}

static void run_command(ExrRun *run)
{
	ExrExecOptions options;
	int sig;

	exr_exec_options_init(&options);
	options.argv = (const char *const *)run->argv;
	options.cwd = run->options.cwd;
	options.env = run->options.env;
	options.timeout_ms = run->options.timeout_ms;
	options.input_fd = run->stdin_fd;
	options.capture = run->options.json || run->result_file;
	options.spill_lasts = true; /* nobody else could read it: this is all that runs */
	if (!run->options.json) {
		options.out.fd = STDOUT_FILENO;
		options.err.fd = STDERR_FILENO;
	}
	options.signal_fd = run->signals.fd;
	options.kill_after_ms = run->options.kill_after_ms;
	if (run->tty && find_terminal(run, &options) < 0)
		return;
	sig = exr_signals_take(&run->signals);
	if (sig != 0) {
		run->outcome = exr_outcome_new(run->session);
		run->outcome->result.ended = EXR_ENDED_CANCELED;
		run->outcome->result.signal = sig;
		return;
	}
	run->outcome = exr_session_exec_until(run->session, &options, -1);
	exr_caller_terminal_clear(&run->terminal);
	add_hint(run);
}

void exr_run_execute(ExrRun *run)
{
	if (start_session(run) == 0)
		run_command(run);
}
