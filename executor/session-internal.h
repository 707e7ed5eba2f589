/* What session.c and exec.c share: for them only. */
#pragma once

#include "common/view-plan.h"
#include "executor/gateway.h"
#include "executor/identity.h"
#include "executor/seccomp-filter.h"
#include "executor/session.h"
#include "executor/spawn.h"
#include "executor/state-dir.h"
#include "executor/wire.h"

/* Owns all of it. */
struct ExrSession {
	StellaPolicy *policy; /* effective: with the session's own mounts */
	ViewPlan *plan;
	ExrStateDir *state;
	ExrIdentity identity;
	ExrSeccomp seccomp;
	ExrGateway *gateway;
	ExrProcess init;
	int init_socket; /* its end of file tells init to die */
	bool dead;	 /* something of it could not be made to die */
};

/* Fills an error from a WIRE_FAILED; subject (may be NULL) is what the step was about. -errno. */
int exr_session_told(const WireMessage *failed, const char *subject, ExrError *error);
