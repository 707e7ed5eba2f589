/* Making the namespaces of a session and starting init in them. */
#pragma once

#include "executor/error.h"
#include "executor/identity.h"
#include "executor/session-limits.h"
#include "executor/spawn.h"

#include <sched.h>
#include <stdbool.h>

/* The namespaces that every session is cloned into; CLONE_NEWNET beside them when it has a network of its own. Its cgroup
 * namespace it makes itself, when it has been moved. */
#define EXR_LAUNCH_FLAGS (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

typedef struct {
	const ExrIdentity *identity;
	const ExrSessionLimits *limits; /* may be NULL */
	bool own_network;
	int plan_fd; /* sent to init as its first message; borrowed */
} ExrLaunch;

/* Clones, writes the id maps, puts init under the session's limits, and lets it go. *ret_socket is our end of init's socket (packet.h),
 * *ret_init the process. -errno with *reterr_error, and nothing left. What init itself makes of its
 * plan comes over the socket. */
int exr_launch_init(const ExrLaunch *launch, int *ret_socket, ExrProcess *ret_init,
		    ExrError *reterr_error);

/* In a child, before it executes what is the sandbox's: no better priority and no more protection from the OOM killer than
 * others. System calls only. 0 or -errno. */
int exr_launch_be_ordinary(void);

/* Whether a clone into the session's cgroup has failed because of the cgroup; and the error of a session that cannot be put
 * under its limits, which r is passed on through. */
bool exr_launch_is_refused_by_cgroup(const ExrSessionLimits *limits, int r);
int exr_launch_cannot_limit(int r, ExrError *error);

/* Writes the id maps of a process that was cloned with CLONE_NEWUSER and waits for them. 0, or -errno with
 * *reterr_error, without a hint. */
int exr_launch_write_maps(pid_t pid, const ExrIdentity *identity, ExrError *reterr_error);
