/* What a test needs of the machine, found out by trying it: no version is compared, nothing
 * assumed.
 *
 * root      effective user id 0 fuse      /dev/fuse opens and a file system can be mounted with it
 * (in a namespace of its own) userns    a user namespace can be made, mapped, and has power over
 * its mounts seccomp   a filter can be loaded and decides openat2   the call exists and keeps to
 * its directory
 *
 * What is missing means that the test is skipped, with the reason: exit status 77. With
 * STELLA_TESTS_MUST_RUN=1 in the environment, as CI has it, it is a failure: exit status 1. */
#pragma once

#include <stdbool.h>

/* Tries one need. 0; -errno with *reterr_what set to the step that failed (static storage); -EINVAL
 * for a name that is none of the above. Forks; to be called before threads are made. */
int preflight_try(const char *need, const char **reterr_what);

/* Tries all needs, a list that NULL ends. 0 when everything is there; else says what is missing on
 * stderr and returns the status to exit with. For the first lines of main(). */
int preflight_require(const char *const *needs);

/* Whether what is missing is a failure here. */
bool preflight_must_run(void);

/* For one test of a cmocka program, in place of skip(): what it needs of the machine is not there. */
#define PREFLIGHT_SKIP(what)                                                                       \
	do {                                                                                       \
		if (preflight_must_run())                                                          \
			fail_msg("missing here: %s", what);                                        \
		print_message("skipped, missing here: %s\n", what);                                \
		skip();                                                                            \
	} while (0)
