/* Installing the compiled filter; see seccomp-filter.h. Apart from the compiler (seccomp-filter.c),
 * because the sandbox's init, which loads it, links no library. */
#include "executor/seccomp-filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>

int exr_seccomp_load(const void *const code[EXR_SECCOMP_PROGRAMS],
		     const size_t size[EXR_SECCOMP_PROGRAMS])
{
	/* The table, which is the first, goes last: what it says about the call that loads programs is
	 * then of no concern here. */
	for (size_t i = EXR_SECCOMP_PROGRAMS; i-- > 0;) {
		struct sock_fprog program = {
			.len = (unsigned short)(size[i] / sizeof(struct sock_filter)),
			/* the kernel only reads it, but the struct is older than const */
			.filter = (struct sock_filter *)(uintptr_t)code[i],
		};

		if (!code[i] || size[i] == 0 || size[i] / sizeof(struct sock_filter) > BPF_MAXINSNS)
			return -EINVAL;
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
			return -errno;
	}
	return 0;
}
