/* Ends everything, then says what became of it: one error line at the most for each thing that went
 * wrong, one result, one exit status; see run.h. */
#include "executor/run.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "executor/message.h"

#include <unistd.h>

static int lost_output(const char *stream, int errnum)
{
	if (errnum == 0)
		return 0;
	exr_message_print(NULL, "%s: %s", stream, errno_text(errnum));
	return EXR_EXIT_FAILED;
}

/* Gives the object to whoever asked for it. A status when it could not be given. */
static int write_result(ExrRun *run, GString *json)
{
	g_string_append_c(json, '\n');
	if (run->options.json) {
		int r = io_write_all(STDOUT_FILENO, json->str, json->len);

		return lost_output("standard output", -r);
	}
	if (run->result_file) {
		int r = exr_result_file_write(run->result_file, json->str, json->len);

		return lost_output("--result", -r);
	}
	return 0;
}

int exr_run_report(ExrRun *run)
{
	ExrResult *result = &run->result;
	g_autoptr(GString) json = NULL;
	g_autofree char *message = NULL;
	int status, failed;

	if (run->error.code)
		result->ended = EXR_ENDED_START_FAILED;
	result->session_id = run->session_id;
	result->writable = (const char *const *)run->writable;
	if (run->session)
		result->limits_unenforced = exr_session_unenforced(run->session);
	result->out = run->out;
	result->err = run->err;
	result->limits = run->policy ? &run->policy->limits : NULL;
	result->error = run->error.code ? &run->error : NULL;
	status = exr_result_exit_status(result);

	/* Before anybody is told: what is said then is true, and a signal that comes now may have its
	 * ordinary effect. */
	g_clear_pointer(&run->session, exr_session_free);
	if (run->has_signals)
		exr_signals_clear(&run->signals);
	run->has_signals = false;

	if (run->error.code)
		exr_message_print_error(&run->error);
	failed = lost_output("standard output", run->relay_end.out_errno);
	failed |= lost_output("standard error", run->relay_end.err_errno);
	/* Not opened yet, if the arguments were wrong. */
	if (exr_run_open_result_file(run, &message) < 0)
		exr_message_print(NULL, "--result %s", message);
	json = exr_result_to_json(result);
	failed |= write_result(run, json);
	return failed ? failed : status;
}

void exr_run_clear(ExrRun *run)
{
	exr_run_options_clear(&run->options);
	stella_policy_unref(run->policy);
	g_strfreev(run->argv);
	if (run->stdin_fd > STDERR_FILENO)
		fd_close(&run->stdin_fd);
	exr_result_file_free(run->result_file);
	exr_session_free(run->session);
	if (run->has_signals)
		exr_signals_clear(&run->signals);
	output_buffer_free(run->out);
	output_buffer_free(run->err);
	exr_end_clear(&run->end);
	g_strfreev(run->writable);
	g_free(run->session_id);
	exr_error_clear(&run->error);
}
