/* What an outcome owns: for outcome.c, session-exec.c, live-process.c and api-exec-new.c only. */
#pragma once

#include "executor/session-exec.h"
#include "executor/spill.h"

typedef struct {
	ExrOutcome outcome; /* first: what is given out is this */
	int refs;	    /* atomic */
	OutputBuffer *out, *err;
	ExrSpill *out_spill, *err_spill;
	char *session_id;
	char **writable;
	char **unenforced;
	ExrObserved observed;
	PolicyLimits limits;
	ExrError error;
} ExrOwnedOutcome;

/* What holds for a command: the request's, else the policy's; 0: none. */
int64_t exr_exec_timeout(const ExrSession *session, const ExrExecOptions *options);
