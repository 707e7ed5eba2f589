/* seccomp-generate: writes seccomp-code.h, the compiled filter as an array, for seccomp-build.c. Runs when we are
 * built and is not installed.
 *
 * Where that fails the file has no array, and each session compiles its own: slower, and the same filter. */
#include "executor/seccomp-filter.h"

#include "common/errno-util.h"

#include <linux/filter.h>
#include <stdio.h>

int main(void)
{
	static ExrSeccomp seccomp;
	int r = exr_seccomp_compile(&seccomp);
	const struct sock_filter *code = seccomp.code;

	if (r < 0) {
		fprintf(stderr, "seccomp-generate: %s; each session will compile the filter anew\n",
			errno_text(-r));
		printf("/* not compiled */\n");
		return fflush(stdout) == 0 ? 0 : 1;
	}
	printf("#define EXR_SECCOMP_COMPILED 1\n");
	printf("static const struct sock_filter exr_seccomp_code[] = {\n");
	for (size_t at = 0; at < seccomp.size / sizeof *code; at++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", code[at].code, code[at].jt, code[at].jf,
		       code[at].k);
	printf("};\n");
	return fflush(stdout) == 0 ? 0 : 1;
}
