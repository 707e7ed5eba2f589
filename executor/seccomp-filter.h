/* The seccomp filter of every command: one table, compiled when we are built, installed last.
 *
 * Calls of the table's allow part work; the refused part gives EPERM; everything else, calls that are
 * newer than the table included, gives ENOSYS; a foreign ABI (i386, x32) kills the process. */
#pragma once

#include <stddef.h>

typedef struct {
	void *code;  /* struct sock_filter[] */
	size_t size; /* bytes */
} ExrSeccomp;

/* The program that this build carries; where it could not run its own compiler (a cross build), compiled now.
 * 0 or -errno. exr_seccomp_clear() frees. */
int exr_seccomp_build(ExrSeccomp *ret_seccomp);
/* Compiled now, for the architecture that we are built for. The same; -ERANGE, -E2BIG: the table has outgrown it. */
int exr_seccomp_compile(ExrSeccomp *ret_seccomp);
void exr_seccomp_clear(ExrSeccomp *seccomp);

/* Installs the program for the calling thread, which must have no_new_privs set. Uses only raw system
 * calls: may be called after fork. 0 or -errno. */
int exr_seccomp_load(const void *code, size_t size);
