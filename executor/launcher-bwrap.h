/* Starting a session's init by bubblewrap: its namespaces, and a root that holds what the plan is made of and nothing
 * else (sandbox-plan-native.h). */
#pragma once

#include "executor/error.h"
#include "executor/identity.h"
#include "executor/session-limits.h"
#include "executor/spawn.h"

#include <glib.h>
#include <stdbool.h>

typedef struct {
	const ExrIdentity *identity;
	const ExrSessionLimits *limits; /* may be NULL */
	bool own_network;
	const GArray *sources; /* native-source.h */
	int plan_fd;	       /* sent to init as its first message; borrowed */
} ExrBwrapLaunch;

/* bwrap, which is looked for in fixed places only; NULL when there is none. Static storage. */
const char *exr_find_bwrap(void);

/* *ret_socket is our end of init's socket, *ret_monitor bwrap's own process, *ret_messages a file with what bwrap prints.
 * -errno with *reterr_error, and nothing left. What becomes of it comes over the socket, or is its end. */
int exr_bwrap_launch(const ExrBwrapLaunch *launch, int *ret_socket, ExrProcess *ret_monitor,
		     int *ret_messages, ExrError *reterr_error);
