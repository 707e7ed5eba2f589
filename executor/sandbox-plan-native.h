/* The view plan as mounts of the kernel, for a sandbox without a gateway. */
#pragma once

#include "executor/native-source.h"
#include "executor/sandbox-plan.h"

/* Where a session's parts are before its root stands, in a root that holds nothing else. */
#define EXR_NATIVE_SOURCES "/sources" /* with the sources by their number */
/* And beside them init, under the name that its processes show. */
#define EXR_NATIVE_INIT	 "stella-sandbox-init"
#define EXR_NATIVE_FILES "/files"
#define EXR_NATIVE_ROOT	 "/root"

/* Opens what the rows are made of, which is added to sources (native-source.h) in the order of their numbers, and makes
 * the plan: a sealed memfd (executor/wire.h). fd or -errno with *reterr_error; code policy-incompatible for a mount that
 * only a gateway can show. */
int exr_native_plan_new(const ViewPlan *view, const ExrIdentity *identity, const ExrStateDir *state,
			const ExrSeccomp *seccomp, GArray *sources, ExrError *reterr_error);
