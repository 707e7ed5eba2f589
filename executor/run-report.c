/* Ends everything, then says what became of it: one error line at the most for each thing that went
 * wrong, one result, one exit status; see run.h. */
#include "executor/run.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "executor/message.h"

#include <unistd.h>

/* Lines about what a failed command was refused. */
#define DENIALS_TOLD 5

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

/* What the command was refused, for one who wonders why it failed. */
static void print_denials(const ExrRun *run)
{
	const ExrResult *result = &run->outcome->result;
	const GPtrArray *denials = result->observed ? result->observed->denials : NULL;
	g_autofree char *writable =
		result->writable ? g_strjoinv(" ", (char **)(uintptr_t)result->writable) : NULL;
	bool failed = result->ended == EXR_ENDED_SIGNALED ||
		      (result->ended == EXR_ENDED_EXITED && result->exit_code != 0);

	if (!denials || !failed || run->options.quiet || run->options.json)
		return;
	for (guint i = 0; i < MIN(denials->len, DENIALS_TOLD); i++) {
		g_autofree char *text = exr_denial_describe(denials->pdata[i]);

		exr_message_print(NULL, "denied: %s; writable: %s", text,
				  writable && *writable ? writable : "nothing");
	}
}

int exr_run_report(ExrRun *run)
{
	g_autoptr(GString) json = NULL;
	g_autofree char *message = NULL;
	const ExrError *error;
	int status, failed;

	if (!run->outcome)
		run->outcome = exr_outcome_new(NULL);
	if (run->error.code)
		exr_outcome_fail(run->outcome, &run->error);
	error = run->outcome->result.error;
	if (run->policy)
		run->outcome->result.limits = &run->policy->limits;
	run->outcome->result.lossy_text = run->options.lossy_text;
	status = exr_result_exit_status(&run->outcome->result);

	/* Before anybody is told: what is said then is true, and a signal that comes now may have its
	 * ordinary effect. */
	g_clear_pointer(&run->session, exr_session_free);
	if (run->has_signals)
		exr_signals_clear(&run->signals);
	run->has_signals = false;

	if (error)
		exr_message_print_error(error);
	failed = lost_output("standard output", run->outcome->out_errno);
	failed |= lost_output("standard error", run->outcome->err_errno);
	print_denials(run);
	/* Not opened yet, if the arguments were wrong. */
	if (exr_run_open_result_file(run, &message) < 0)
		exr_message_print(NULL, "--result %s", message);
	json = exr_result_to_json(&run->outcome->result);
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
	exr_caller_terminal_clear(&run->terminal);
	exr_outcome_free(run->outcome);
	exr_error_clear(&run->error);
}
