/* Installing the compiled filter; see seccomp-filter.h. Apart from the compiler (seccomp-filter.c),
 * because the sandbox's init, which loads it, links no library. */
#include "executor/seccomp-filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>

int exr_seccomp_load(const void *code, size_t size)
{
	struct sock_fprog program = {
		.len = (unsigned short)(size / sizeof(struct sock_filter)),
		/* the kernel only reads it, but the struct is older than const */
		.filter = (struct sock_filter *)(uintptr_t)code,
	};

	if (!code || size == 0 || size / sizeof(struct sock_filter) > BPF_MAXINSNS)
		return -EINVAL;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0 ? -errno : 0;
}
