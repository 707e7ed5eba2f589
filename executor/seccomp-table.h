/* The table of system calls behind the seccomp filter: every call that the kernel has, by name,
 * with what a command gets when it makes it. Data only; seccomp-filter.c makes the programs from
 * it. */
#pragma once

#include <stddef.h>

typedef enum {
	EXR_SECCOMP_ALLOW = 0,	/* the kernel decides */
	EXR_SECCOMP_REFUSE = 1, /* EPERM: known, and not for commands */
	EXR_SECCOMP_ABSENT =
		2, /* ENOSYS, as for any call without a row: libc and programs fall back */
	EXR_SECCOMP_N_CLASSES,
} ExrSeccompClass;

/* The names of each class, each list ended by NULL. */
extern const char *const *const exr_seccomp_names[EXR_SECCOMP_N_CLASSES];

/* The number of the call of that name on the architecture that we are built for: -1 when it has no
 * such call. Asks libseccomp, and knows the calls that are newer than libseccomp 2.5. */
int exr_seccomp_number(const char *name);
