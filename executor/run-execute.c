/* The session, the command in it, and what became of it; see run.h. From here on something could be
 * left behind, so signals are events and end nothing half way. */
#include "executor/run.h"

#include "common/errno-util.h"
#include "executor/program-hint.h"
#include "executor/request.h"

#include <errno.h>
#include <unistd.h>

static void capture(const void *data, size_t size, void *buffer)
{
	output_buffer_write(buffer, data, size);
}

static void make_buffers(ExrRun *run, ExrRelayConfig *config)
{
	if (!run->options.json && !run->result_file)
		return;
	run->out = output_buffer_new(run->policy->limits.output_bytes);
	run->err = output_buffer_new(run->policy->limits.output_bytes);
	config->out.capture = config->err.capture = capture;
	config->out.capture_data = run->out;
	config->err.capture_data = run->err;
}

static int start_session(ExrRun *run)
{
	ExrSessionConfig config = {
		.policy = run->policy,
		.temporary_user = policy_options_user_is_temporary(run->options.policy),
	};
	int r = exr_signals_init(&run->signals);

	if (r < 0)
		return exr_error_set(&run->error, "internal", "signals", -r,
				     "signals cannot be set up: %s", errno_text(-r));
	run->has_signals = true;
	r = exr_session_new(&config, &run->session, &run->error);
	if (r < 0) {
		char *message = policy_options_explain(run->options.policy, run->error.message);

		g_free(run->error.message);
		run->error.message = message;
		return r;
	}
	run->session_id = g_strdup(exr_session_id(run->session));
	run->writable = view_plan_writable(exr_session_plan(run->session));
	return 0;
}

/* What became of the command, once it has ended. */
static void take_end(ExrRun *run, int finish_result)
{
	ExrResult *result = &run->result;

	result->exec_id = 1;
	result->cpu_ms = run->end.cpu_ms;
	result->max_rss_bytes = run->end.max_rss_bytes;
	result->left_over_killed = run->end.left_over_killed;
	if (run->relay_end.timed_out) {
		result->ended = EXR_ENDED_TIMED_OUT;
	} else if (run->relay_end.canceled_by) {
		result->ended = EXR_ENDED_CANCELED;
		result->signal = run->relay_end.canceled_by;
	} else if (finish_result < 0) {
		(void)exr_error_set(&run->error, "internal", "finish", -finish_result,
				    "the command has ended, but not all of its processes: %s",
				    errno_text(-finish_result));
	} else if (run->end.start_failed) {
		run->error = run->end.error;
		run->end.error = (ExrError){ 0 };
	} else if (run->end.signal) {
		result->ended = EXR_ENDED_SIGNALED;
		result->signal = run->end.signal;
	} else {
		result->ended = EXR_ENDED_EXITED;
		result->exit_code = run->end.exit_code;
	}
}

static void add_hint(ExrRun *run)
{
	g_autofree char *hint = NULL;

	if (g_strcmp0(run->error.code, "program-not-found") == 0 &&
	    g_strcmp0(run->error.stage, "exec") == 0 && !run->error.hint)
		hint = exr_program_hint(exr_session_plan(run->session), run->argv[0],
					run->host_env);
	if (hint)
		exr_error_set_hint(&run->error, "%s", hint);
	if (run->error.errnum == E2BIG && run->is_sh)
		exr_error_set_hint(&run->error,
				   "put the command into a file of the workspace and run that");
}

static int run_command(ExrRun *run)
{
	bool json = run->options.json;
	ExrRelayConfig relay = {
		.stdin_fd = run->stdin_fd,
		.out.fd = json ? -1 : STDOUT_FILENO,
		.err.fd = json ? -1 : STDERR_FILENO,
		.signal_fd = run->signals.fd,
		.timeout_ms = run->options.timeout_ms,
		.kill_after_ms = run->options.kill_after_ms,
	};
	ExrRequestSource source = {
		.plan = exr_session_plan(run->session),
		.argv = run->argv,
		.host_env = run->host_env,
		.env = run->options.env,
		.cwd = run->options.cwd,
		/* Without a policy tools' caches and settings belong to the user, not the project. */
		.home = run->options.has_policy_file ? NULL : STELLA_MOUNT_USER_DATA,
		.stdin_null = run->stdin_fd < 0,
	};
	g_autoptr(ExrFrozenRequest) request = NULL;
	ExrExec *exec = NULL;
	int64_t started;
	int sig, r = exr_request_freeze(&source, &request, &run->error);

	if (r < 0)
		return r;
	if (relay.timeout_ms == 0)
		relay.timeout_ms = run->policy->timeout_ms;
	make_buffers(run, &relay);
	sig = exr_signals_take(&run->signals);
	if (sig != 0) {
		run->result.ended = EXR_ENDED_CANCELED;
		run->result.signal = sig;
		return 0;
	}
	started = g_get_monotonic_time();
	r = exr_exec_start(run->session, &request->request, &exec, &run->error);
	if (r < 0)
		return r;
	exr_relay_run(exec, &relay, &run->relay_end);
	r = exr_exec_finish(exec, &run->end);
	run->result.duration_ms = (g_get_monotonic_time() - started) / 1000;
	take_end(run, r);
	return 0;
}

void exr_run_execute(ExrRun *run)
{
	if (start_session(run) < 0)
		return;
	(void)run_command(run); /* what failed is in the run */
	if (run->error.code)
		add_hint(run);
}
