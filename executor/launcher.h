/* Making the namespaces of a session and starting init in them. */
#pragma once

#include "executor/error.h"
#include "executor/identity.h"
#include "executor/spawn.h"

#include <stdbool.h>

typedef struct {
	const ExrIdentity *identity;
	bool own_network;
	int plan_fd; /* sent to init as its first message; borrowed */
} ExrLaunch;

/* Clones, writes the id maps, and lets init go. *ret_socket is our end of init's socket (packet.h),
 * *ret_init the process. -errno with *reterr_error, and nothing left. What init itself makes of its
 * plan comes over the socket. */
int exr_launch_init(const ExrLaunch *launch, int *ret_socket, ExrProcess *ret_init,
		    ExrError *reterr_error);
