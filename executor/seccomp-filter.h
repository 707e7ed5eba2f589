/* The seccomp filter of every command: one table, compiled once in the supervisor, installed last.
 *
 * Calls of the table's allow part work; the refused part gives EPERM; everything else, calls that are
 * newer than the table included, gives ENOSYS; a foreign ABI (i386, x32) kills the process. */
#pragma once

#include <stddef.h>

/* The compiled programs, to be loaded one after the other (the kernel takes the strictest answer):
 * the table, and the rules that look at arguments. */
#define EXR_SECCOMP_PROGRAMS 2

typedef struct {
	void *code[EXR_SECCOMP_PROGRAMS];  /* struct sock_filter[] */
	size_t size[EXR_SECCOMP_PROGRAMS]; /* bytes */
} ExrSeccomp;

/* Compiles for the native architecture. 0 or -errno. exr_seccomp_clear() frees. */
int exr_seccomp_build(ExrSeccomp *ret_seccomp);
void exr_seccomp_clear(ExrSeccomp *seccomp);

/* Installs the programs for the calling thread, which must have no_new_privs set. Uses only raw system
 * calls: may be called after fork. 0 or -errno. */
int exr_seccomp_load(const void *const code[EXR_SECCOMP_PROGRAMS],
		     const size_t size[EXR_SECCOMP_PROGRAMS]);
