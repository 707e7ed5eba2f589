/* The view plan as the sandbox's init needs it: which mounts to make on the view, in which order. */
#pragma once

#include "common/view-plan.h"
#include "executor/error.h"
#include "executor/identity.h"
#include "executor/seccomp-filter.h"
#include "executor/state-dir.h"

/* A sealed memfd (executor/wire.h). view_path: where the view is mounted already, or NULL when init
 * mounts it. fd or -errno with *reterr_error. */
int exr_sandbox_plan_new(const ViewPlan *view, const ExrIdentity *identity,
			 const ExrStateDir *state, const char *view_path, const ExrSeccomp *seccomp,
			 ExrError *reterr_error);

/* The name that the sandbox's own directory at this view path has in the session's (state-dir.h); NULL: it has none. */
const char *exr_sandbox_private_name(const char *view_path);

/* The view path of a row of that plan, for a message; NULL when there is no such row. The caller frees. */
char *exr_sandbox_plan_row_path(int plan_fd, int row);
