/* One run of a command, from its arguments to its exit status: what its steps share.
 *
 *   exr_run_prepare()   everything that can be judged without making anything
 *   exr_run_execute()   the session, the command, and what became of it
 *   exr_run_report()    ends everything, then tells
 *
 * Each of the first two either succeeds or leaves the one error of the run. */
#pragma once

#include "common/output-buffer.h"
#include "executor/relay.h"
#include "executor/result-file.h"
#include "executor/result.h"
#include "executor/run-options.h"
#include "executor/signals.h"

typedef struct {
	char **host_env; /* the caller's environment; borrowed */
	bool is_sh;
	ExrRunOptions options;
	StellaPolicy *policy;
	char **argv;  /* of the command */
	int stdin_fd; /* -1: no input; owned unless it is ours */
	ExrResultFile *result_file;
	bool has_signals;
	ExrSignals signals;
	ExrSession *session;
	OutputBuffer *out, *err; /* what is captured, or NULL */
	ExrRelayEnd relay_end;
	ExrEnd end;
	char **writable;
	char *session_id;
	ExrError error;
	ExrResult result;
} ExrRun;

/* 0, or -errno with run->error. After success options.wants_help may say that nothing is to be run. */
int exr_run_prepare(ExrRun *run, int argc, char **argv);
/* The error of the run or its result say how it went. */
void exr_run_execute(ExrRun *run);
/* The exit status. */
int exr_run_report(ExrRun *run);
void exr_run_clear(ExrRun *run);

/* Opens the file of --result, once. 0, or -errno with *reterr_message. */
int exr_run_open_result_file(ExrRun *run, char **reterr_message);
