/* preflight NEED...: exits with 0 when this machine has everything that is named, else with 77, or
 * with 1 when STELLA_TESTS_MUST_RUN=1. For shell tests: `preflight fuse userns || exit $?`. */
#include "lib/preflight.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: preflight root|fuse|userns|seccomp|openat2...\n");
		return 2;
	}
	return preflight_require((const char *const *)argv + 1);
}
