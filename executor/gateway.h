/* The session's gateway as the supervisor sees it: a process and its control socket. */
#pragma once

#include "common/json.h"
#include "common/policy.h"
#include "executor/error.h"
#include "executor/spawn.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ExrGateway ExrGateway;

/* Starts stella-fsgate, which gets itself ready until it is told what to serve. -errno with *reterr_error. */
int exr_gateway_new(ExrGateway **ret_gateway, ExrError *reterr_error);

/* Gives it the policy, the ids that its view shows, the state directory, which no view enters though a mount may
 * contain it, and whether there will be no second exec; returns without waiting for its answer, so that the sandbox can be made meanwhile. Once. -errno with
 * *reterr_error. */
int exr_gateway_configure(ExrGateway *gateway, const StellaPolicy *policy, uid_t uid, gid_t gid,
			  const char *state_dir, bool one_exec, ExrError *reterr_error);

/* Waits until it is ready, attaches the view, and waits until it serves: by device_fd (borrowed), or,
 * when that is -1, with fusermount3 at path. tasks_fd (borrowed) is the procfs of the session's pids, with a
 * device. -errno with *reterr_error. */
int exr_gateway_attach(ExrGateway *gateway, int device_fd, int tasks_fd, const char *path,
		       ExrError *reterr_error);

/* The process, for poll: readable once it has ended. Valid until exr_gateway_end(). */
int exr_gateway_pidfd(const ExrGateway *gateway);
bool exr_gateway_alive(const ExrGateway *gateway);
/* At once: the kernel aborts the view's connection, and whoever waits in it gets an error. Any thread. */
void exr_gateway_kill(ExrGateway *gateway);
/* Lets it end by itself, at most 2 s, and reaps it. Questions fail from now on. By one thread, once. */
void exr_gateway_end(ExrGateway *gateway);

/* From here on: any thread at once, from the moment that the gateway serves. */

typedef struct ExrQuestion ExrQuestion;

/* An exec as the gateway knows it. */
typedef struct {
	uint64_t number;	/* from 1 */
	uint64_t happened;	/* of everybody, before it */
	uint64_t pid_namespace; /* its inode number, 0 when it is not known; the caller's to set */
	bool is_over;		/* that it has ended was said */
	bool is_quiet;		/* and nothing has happened, so that the gateway is not asked */
	ExrQuestion *question;	/* what the gateway was asked at its end, or NULL */
} ExrGatewayExec;

/* An exec is about to start: asks the gateway to make visible what the host has changed, which it does while the
 * caller goes on. NULL: there is nothing to wait for, or it cannot be asked. */
ExrQuestion *exr_gateway_exec_starts(ExrGateway *gateway, ExrGatewayExec *ret_exec);
/* Waits until that is so, bounded (2 s). false: not within its time; names may be as they were up to a second ago. */
bool exr_gateway_await_start(ExrGateway *gateway, ExrQuestion *take_question);
/* No process of the exec runs any more (is_gone), or nobody wants to know of it: asks the gateway to close what it had
 * open, and what it knows of it. Once; a second call does nothing. */
void exr_gateway_exec_ends(ExrGateway *gateway, ExrGatewayExec *exec, bool is_gone);
/* After that; waits for that, for the answer, bounded (0.3 s), and gives what the gateway knows (common/control.h, {"boundary": "end"}), which the
 * caller owns; NULL: no answer in time, or it could not be asked. Once. */
JsonObject *exr_gateway_await_end(ExrGateway *gateway, ExrGatewayExec *exec);
/* For an exec that is finished after its session has ended: what it asks then fails. */
ExrGateway *exr_gateway_ref(ExrGateway *gateway);
void exr_gateway_unref(ExrGateway *gateway); /* NULL is allowed */

/* Ends it and drops the reference that exr_gateway_new() gave. NULL is allowed. */
void exr_gateway_free(ExrGateway *gateway);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrGateway, exr_gateway_free)
