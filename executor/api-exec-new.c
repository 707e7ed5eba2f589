/* What goes into a command's result and options by a host's own hand: the init functions, and results of sessions that it
 * implements itself, which are outcomes of no session; see stella/exec.h. */
#include "executor/api-exec.h"

#include "common/api-error.h"
#include "executor/api-exr-error.h"
#include "executor/api-options.h"
#include "executor/outcome-internal.h"

#include <string.h>

void stella_exec_options_init(StellaExecOptions *options)
{
	*options = (StellaExecOptions){ .size = sizeof *options };
}

void stella_process_request_init(StellaProcessRequest *request)
{
	*request = (StellaProcessRequest){ .size = sizeof *request };
}

void stella_exec_result_fields_init(StellaExecResultFields *fields)
{
	*fields = (StellaExecResultFields){ .size = sizeof *fields };
}

/* All of it, whatever a cap would be: the host has it in memory already. */
static OutputBuffer *take_output(const void *data, gsize size)
{
	OutputBuffer *buffer = output_buffer_new(MAX(size, 1));

	if (data && size > 0)
		output_buffer_write(buffer, data, size);
	return buffer;
}

static void fail(ExrOutcome *outcome, const GError *error)
{
	ExrError inner = { 0 };

	if (error)
		api_exr_error_from(error, &inner);
	else
		(void)exr_error_set(&inner, "setup-failed", "request", 0,
				    "the command could not be started");
	exr_outcome_fail(outcome, &inner);
}

StellaExecResult *stella_exec_result_new(const StellaExecResultFields *fields)
{
	StellaExecResultFields given;
	ExrOutcome *outcome;
	ExrOwnedOutcome *owned;
	ExrResult *result;

	g_return_val_if_fail(fields != NULL, NULL);
	g_return_val_if_fail(api_exec_fields_read(fields, &given), NULL);
	g_return_val_if_fail((unsigned int)given.ended < _N_EXR_ENDED, NULL);
	outcome = exr_outcome_new(NULL);
	owned = (ExrOwnedOutcome *)outcome;
	result = &outcome->result;
	result->ended = (ExrEnded)given.ended;
	if (given.ended == STELLA_ENDED_EXITED)
		result->exit_code = given.exit_code;
	else if (given.ended == STELLA_ENDED_SIGNALED)
		result->signal = given.signal;
	result->duration_ms = given.duration_ms;
	result->out = owned->out = take_output(given.stdout_data, given.stdout_size);
	result->err = owned->err = take_output(given.stderr_data, given.stderr_size);
	if (given.ended != STELLA_ENDED_START_FAILED)
		return api_exec_result_new(outcome);
	fail(outcome, given.error);
	return api_exec_result_new_with_error(outcome, given.error);
}
