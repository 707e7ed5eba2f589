/* A request as one memfd that exec init reads: arguments, environment, directory, limits. */
#pragma once

#include "common/policy.h"
#include "executor/session.h"

/* A sealed memfd (executor/wire.h); nproc is the RLIMIT_NPROC, 0 for none. Or -errno: -EINVAL for a request without arguments or with a damaged
 * environment, -E2BIG over LIMIT_EXEC_PAYLOAD_BYTES. */
int exr_exec_payload_new(const ExrRequest *request, const PolicyLimits *limits, uint64_t nproc);
