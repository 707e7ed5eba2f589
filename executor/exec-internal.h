/* What exec.c and exec-start.c share: for them only. */
#pragma once

#include "executor/session-internal.h"

/* For what init or exec init says at once, unless the machine is in trouble. */
#define ANSWER_MS 10000

struct ExrExec {
	ExrSession *session; /* a reference, and so is the gateway */
	ExrGateway *gateway;
	int stdin_fd;
	int stdout_fd;
	int stderr_fd;
	int control_fd;
	int pidfd;
	int command_pidfd;
	bool signaled; /* its init was told of a signal, which it may not have read */
	bool killed;
	bool is_gone; /* none of its processes is left; its init may be, for a moment */
	gint64 kill_time_us;
	bool limits_told; /* that it has a process of ours, and not yet that it has ended */
	ExrLimitCounts limits_before;
	uint64_t nproc;
	bool told_gateway; /* that it starts; its end is not taken note of yet */
	ExrGatewayExec in_gateway;
	int id;
	bool is_prepared;  /* its init has said so */
	bool has_terminal; /* stdin_fd and stdout_fd are its master */
	bool has_first;	   /* what exec init has said first is the end */
	WireMessage first;
	char *program; /* for messages */
	char *cwd;
};

void exr_exec_free(ExrExec *exec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrExec, exr_exec_free)

/* The sandbox has no room for a process of ours when its limits are reached. */
void exr_exec_hint_at_limits(const ExrSession *session, const WireMessage *failed, ExrError *error);
