/* Prints the table of system calls for attack-calls, which is linked with nothing: `NUMBER ANSWER NAME`. */
#include "executor/seccomp-table.h"

#include <stdio.h>

int main(void)
{
	static const char *const answers[] = { "allowed", "EPERM", "ENOSYS" };

	for (int kind = 0; kind < EXR_SECCOMP_N_CLASSES; kind++)
		for (const char *const *name = exr_seccomp_names[kind]; *name; name++)
			if (exr_seccomp_number(*name) >= 0)
				printf("%d %s %s\n", exr_seccomp_number(*name), answers[kind],
				       *name);
	return 0;
}
