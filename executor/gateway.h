/* The session's gateway as the supervisor sees it: a process and its control socket. */
#pragma once

#include "common/policy.h"
#include "executor/error.h"
#include "executor/spawn.h"

#include "common/json.h"
#include <stdbool.h>
#include <stdint.h>

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

/* What the gateway says of an exec's start. */
typedef struct {
	int64_t exec;	 /* its number there */
	int64_t denials; /* denials with a higher number are not from before it; -1: not known */
} ExrBoundary;

/* An exec is about to start: asks the gateway to make visible what the host has changed, which it does while the
 * caller goes on. false: it cannot be asked any more, and the next is not to be called. */
bool exr_gateway_exec_starts(ExrGateway *gateway);
/* Waits until that is so, bounded. false: not within its time; names may be as they were up to a second ago. */
bool exr_gateway_await_start(ExrGateway *gateway, ExrBoundary *ret_boundary);
/* The exec has ended: waits until the gateway has closed what it had open, bounded (0.3 s). false: not yet. */
bool exr_gateway_exec_ended(ExrGateway *gateway, const ExrBoundary *boundary);

bool exr_gateway_alive(const ExrGateway *gateway);
/* At once: the kernel aborts the view's connection, and whoever waits in it gets an error. */
void exr_gateway_kill(ExrGateway *gateway);
/* The denials with a higher number (common/control.h, {"denials"}), or NULL when the gateway did not tell in time.
 * The caller owns it. */
JsonObject *exr_gateway_denials(ExrGateway *gateway, int64_t since);

/* Lets it end by itself, at most 2 s, and frees it unless there are other references. NULL is allowed. */
void exr_gateway_free(ExrGateway *gateway);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrGateway, exr_gateway_free)

/* For an exec that is finished after its session has ended: what it asks then fails. Of the session's thread. */
ExrGateway *exr_gateway_ref(ExrGateway *gateway);
void exr_gateway_unref(ExrGateway *gateway); /* NULL is allowed */
