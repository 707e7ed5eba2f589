/* A place where limits of memory and processes can be enforced, and one where they cannot, for tests by root. */
#pragma once

#include <stdbool.h>

/* Makes sure that cgroups of both controllers can be made below ours; with version 2 it moves this process to a cgroup
 * of its own first. 0, or the status to exit with after saying why not: 77, or 1 with STELLA_TESTS_MUST_RUN=1. */
int limits_require(void);
/* Back to where we were; a status to exit with is passed on. */
int limits_leave(int status);

/* Cgroups of sessions where those of this process are made. */
int count_session_cgroups(void);

/* Runs check() in a child in whose mount namespace no cgroup file system can be written to, or seen at all. The child's
 * status: 0 when check() returns true. */
typedef enum { CGROUPS_READ_ONLY, CGROUPS_HIDDEN } WithoutCgroups;
int run_without_cgroups(WithoutCgroups how, bool (*check)(void *data), void *data);
