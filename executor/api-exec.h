/* Results at the edge: for the api-*.c files only. */
#pragma once

#include "executor/session-exec.h"
#include "stella/exec.h"

/* A result of a complete outcome, whose reference it takes. */
StellaExecResult *api_exec_result_new(ExrOutcome *take_outcome);

/* The same with the error that a host gave (copied), in the place of one that is made of the outcome's. */
StellaExecResult *api_exec_result_new_with_error(ExrOutcome *take_outcome, const GError *error);
