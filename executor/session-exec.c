/* A command of a session to its end; see session-exec.h. */
#include "executor/session-exec.h"

#include "executor/outcome-internal.h"
#include "executor/request.h"

#include <signal.h>

/* Where the bytes of one stream go. */
typedef struct {
	OutputBuffer *kept; /* or NULL */
	ExrSpill *spill;    /* or NULL */
	ExrSink sink;	    /* or NULL */
	void *sink_data;
} Stream;

void exr_exec_options_init(ExrExecOptions *options)
{
	*options = (ExrExecOptions){
		.input_fd = -1,
		.capture = true,
		.out.fd = -1,
		.err.fd = -1,
		.signal_fd = -1,
		.event_fd = -1,
	};
}

static void take_bytes(const void *data, size_t size, void *user_data)
{
	const Stream *stream = user_data;

	if (stream->kept)
		exr_spill_capture(stream->spill, stream->kept, data, size);
	if (stream->sink)
		stream->sink(data, size, stream->sink_data);
}

/* What the relay does with a stream; a live one that nobody here looks at passes by our memory. */
static ExrRelayOutput relay_output(const ExrOutputOptions *options, OutputBuffer *kept,
				   ExrSpill *spill, Stream *stream)
{
	*stream = (Stream){ kept, spill, options->sink, options->sink_data };
	return (ExrRelayOutput){
		.fd = options->fd,
		.capture = kept || options->sink ? take_bytes : NULL,
		.capture_data = stream,
	};
}

int64_t exr_exec_timeout(const ExrSession *session, const ExrExecOptions *options)
{
	if (options->timeout_ms == 0)
		return exr_session_policy(session)->timeout_ms;
	return MAX(options->timeout_ms, 0);
}

static void relay(ExrSession *session, const ExrExecOptions *options, ExrExec *exec, int cancel_fd,
		  ExrOwnedOutcome *owned)
{
	Stream out, err;
	ExrRelayConfig config = {
		.stdin_fd = options->input_fd,
		.input = options->input,
		.input_size = options->input_size,
		.out = relay_output(&options->out, owned->out, owned->out_spill, &out),
		.err = relay_output(&options->err, owned->err, owned->err_spill, &err),
		.signal_fd = options->signal_fd,
		.cancel_fd = cancel_fd,
		.kill_fd = -1,
		.ended_fd = exr_session_done_fd(session),
		.timeout_ms = exr_exec_timeout(session, options),
		.kill_grace_ms = options->kill_grace_ms,
		.kill_after_ms = options->kill_after_ms,
		.on_event = options->on_event,
		.event_data = options->event_data,
		.event_fd = options->event_fd,
	};
	ExrRelayEnd relay_end;
	ExrEnd end;
	int r;

	exr_relay_run(exec, &config, &relay_end);
	r = exr_exec_finish(exec, &end);
	exr_outcome_take_end(&owned->outcome, session, &relay_end, r, &end);
}

static void start_capture(const ExrSession *session, const ExrExecOptions *options,
			  ExrOwnedOutcome *owned)
{
	const PolicyLimits *limits = &exr_session_policy(session)->limits;
	const ExrSpillDir *dir = exr_session_spill_dir(session);
	ExrResult *result = &owned->outcome.result;

	result->out = owned->out =
		output_buffer_new_with_tail(limits->output_bytes, limits->tail_bytes);
	result->err = owned->err =
		output_buffer_new_with_tail(limits->output_bytes, limits->tail_bytes);
	if (!dir || (options->spill_lasts && dir->of_session))
		return;
	owned->out_spill = exr_spill_new(dir, "/tmp", "stdout");
	owned->err_spill = exr_spill_new(dir, "/tmp", "stderr");
}

static void end_capture(ExrOwnedOutcome *owned)
{
	ExrResult *result = &owned->outcome.result;

	if (owned->out_spill)
		result->out_spill = exr_spill_finish(owned->out_spill);
	if (owned->err_spill)
		result->err_spill = exr_spill_finish(owned->err_spill);
}

static void run(ExrSession *session, const ExrExecOptions *options, int cancel_fd,
		ExrOwnedOutcome *owned)
{
	g_autoptr(ExrFrozenRequest) request = NULL;
	ExrError error = { 0 };
	ExrExec *exec = NULL;
	int64_t started;

	if (exr_request_freeze(session, options, &request, &error) < 0) {
		exr_outcome_fail(&owned->outcome, &error);
		return;
	}
	started = g_get_monotonic_time();
	if (exr_exec_start(session, &request->request, &exec, &error) < 0) {
		exr_outcome_fail(&owned->outcome, &error);
		return;
	}
	if (options->capture)
		start_capture(session, options, owned);
	relay(session, options, exec, cancel_fd, owned);
	end_capture(owned);
	owned->outcome.result.duration_ms = (g_get_monotonic_time() - started) / 1000;
}

ExrOutcome *exr_session_exec_until(ExrSession *session, const ExrExecOptions *options,
				   int cancel_fd)
{
	ExrOutcome *outcome = exr_outcome_new(session);

	run(session, options, cancel_fd, (ExrOwnedOutcome *)outcome);
	return outcome;
}
