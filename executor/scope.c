/* Landlock scoping; see scope.h. The ruleset handles neither files nor ports: the view and the network mode
 * decide about these. The header of Debian 12's kernel is older than the field, hence our own struct. */
#include "executor/scope.h"

#include "common/fd-util.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ABI_WITH_SCOPES	    6
#define CREATE_VERSION	    1u
#define SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0)

typedef struct {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
} Ruleset;

bool exr_scope_available(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION) >= ABI_WITH_SCOPES;
}

int exr_scope_enter(void)
{
	Ruleset rules = { .scoped = SCOPE_ABSTRACT_UNIX };
	FD_AUTO fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);

	if (fd < 0)
		return -errno;
	return syscall(SYS_landlock_restrict_self, fd, 0) != 0 ? -errno : 0;
}
