/* RLIMIT_NPROC as a limit of a session's processes, where there is no cgroup for it.
 *
 * Since Linux 5.14 the kernel counts the processes of a user in each user namespace apart, and a session has one of its
 * own. Before, it counts those of a user of the host, so that sessions would take processes from each other, unless each
 * has a user of its own. For the host's user 0 it refuses nothing. */
#pragma once

#include "executor/identity.h"

/* Whether it holds for a session of that identity, and for nothing else. Tried, in namespaces that are thrown away, unless
 * the identity's user is the session's own. Some hundred microseconds. */
bool exr_nproc_works(const ExrIdentity *identity);
