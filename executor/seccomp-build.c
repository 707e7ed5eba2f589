/* The filter as sessions get it; see seccomp-filter.h.
 *
 * Its outcome depends on nothing but the table and the architecture. So seccomp-generate.c compiles it when we are built;
 * that the outcome is the same is for test-seccomp-rules.c. */
#include "executor/seccomp-filter.h"

#include <glib.h>
#include <linux/filter.h>

/* made by seccomp-generate.c; empty where that could not be */
#include "executor/seccomp-code.h"

#ifdef EXR_SECCOMP_COMPILED
int exr_seccomp_build(ExrSeccomp *ret_seccomp)
{
	ret_seccomp->code = g_memdup2(exr_seccomp_code, sizeof exr_seccomp_code);
	ret_seccomp->size = sizeof exr_seccomp_code;
	return 0;
}
#else
int exr_seccomp_build(ExrSeccomp *ret_seccomp)
{
	return exr_seccomp_compile(ret_seccomp);
}
#endif

void exr_seccomp_clear(ExrSeccomp *seccomp)
{
	g_clear_pointer(&seccomp->code, g_free);
	seccomp->size = 0;
}
