/* The session's gateway as the supervisor sees it: a process and its control socket. */
#pragma once

#include "common/policy.h"
#include "executor/error.h"
#include "executor/spawn.h"

#include <stdbool.h>

typedef struct ExrGateway ExrGateway;

/* Starts stella-fsgate and gives it the policy, the ids that its view shows, and the state directory, which
 * no view enters though a mount may contain it; returns without waiting
 * for its answer, so that the sandbox can be made meanwhile. -errno with *reterr_error. */
int exr_gateway_new(const StellaPolicy *policy, uid_t uid, gid_t gid, const char *state_dir,
		    ExrGateway **ret_gateway, ExrError *reterr_error);

/* Waits until it is ready, attaches the view, and waits until it serves: by device_fd (borrowed), or,
 * when that is -1, with fusermount3 at path. tasks_fd (borrowed) is the procfs of the session's pids, with a
 * device. -errno with *reterr_error. */
int exr_gateway_attach(ExrGateway *gateway, int device_fd, int tasks_fd, const char *path,
		       ExrError *reterr_error);

bool exr_gateway_alive(const ExrGateway *gateway);
/* At once: the kernel aborts the view's connection, and whoever waits in it gets an error. */
void exr_gateway_kill(ExrGateway *gateway);
/* Lets it end by itself, at most 2 s, and frees. NULL is allowed. */
void exr_gateway_free(ExrGateway *gateway);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrGateway, exr_gateway_free)
