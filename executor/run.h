/* One run of a command, from its arguments to its exit status: what its steps share.
 *
 *   exr_run_prepare()   everything that can be judged without making anything
 *   exr_run_execute()   the session, the command, and what became of it
 *   exr_run_report()    ends everything, then tells
 *
 * Each of the first two either succeeds or leaves the one error of the run. */
#pragma once

#include "executor/backend.h"
#include "executor/caller-terminal.h"
#include "executor/result-file.h"
#include "executor/run-options.h"
#include "executor/session-exec.h"
#include "executor/signals.h"

typedef struct {
	char **host_env; /* the caller's environment; borrowed */
	bool is_sh, is_shell;
	ExrRunOptions options;
	StellaPolicy *policy;
	const ExrBackend *backend;  /* that was asked for; NULL: the first that there is */
	char **argv;		    /* of the command */
	bool tty;		    /* the command has a terminal of its own */
	ExrCallerTerminal terminal; /* ours, then */
	int stdin_fd;		    /* -1: no input; owned unless it is ours */
	ExrResultFile *result_file;
	bool has_signals;
	ExrSignals signals;
	ExrSession *session;
	ExrOutcome *outcome; /* once there is a session */
	ExrError error;	     /* why there is none, or why nothing was run in it */
} ExrRun;

/* 0, or -errno with run->error. After success options.wants_help may say that nothing is to be run. */
int exr_run_prepare(ExrRun *run, int argc, char **argv);
/* run->outcome or run->error say how it went. */
void exr_run_execute(ExrRun *run);
/* The exit status. */
int exr_run_report(ExrRun *run);
void exr_run_clear(ExrRun *run);

/* Opens the file of --result, once. 0, or -errno with *reterr_message. */
int exr_run_open_result_file(ExrRun *run, char **reterr_message);
