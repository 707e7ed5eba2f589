/* Why a program that the caller can run is not found by a command: it is on the host, but not in the
 * view. */
#pragma once

#include "common/view-plan.h"

/* Looks for program where the caller's shell would: by its path, or in the PATH of host_env (NAME=value,
 * NULL-terminated). Only looks. The hint, or NULL when the host has none either; the caller frees. */
char *exr_program_hint(const ViewPlan *plan, const char *program, char **host_env);
