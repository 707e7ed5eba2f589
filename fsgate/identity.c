/* Whom a thread acts as; see identity.h. */
#include "fsgate/identity.h"

#include "common/syscall-wrap.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <unistd.h>

int fsg_identity_start_serving(void)
{
	/* SYS_ADMIN is passthrough's. It passes over no permission of a file; raising it for each call and lowering it
	 * again costs as much as the rest of opening a file. */
	const uint64_t kept = 1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_SYS_ADMIN;
	uint64_t effective, permitted, inheritable;
	int r = sys_capget(&effective, &permitted, &inheritable);

	if (r < 0)
		return r;
	/* Without this bit a change of the file system uid from or to 0 moves capabilities by itself. */
	if (geteuid() == 0 && !(prctl(PR_GET_SECUREBITS) & SECBIT_NO_SETUID_FIXUP) &&
	    prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0)
		return -errno;
	return sys_capset(permitted & kept, permitted & kept, 0);
}

/* What the kernel thinks of this thread, so that it is told only of changes. -1: nothing said yet. */
static __thread uid_t acting_uid = (uid_t)-1;
static __thread gid_t acting_gid = (gid_t)-1;

int fsg_view_act_as(const FsgAnchor *anchor)
{
	if (anchor->act_uid == (uid_t)-1)
		return 0;
	if (acting_gid != anchor->act_gid) {
		(void)sys_setfsgid(anchor->act_gid);
		if ((gid_t)sys_setfsgid((gid_t)-1) != anchor->act_gid)
			return -EPERM;
		acting_gid = anchor->act_gid;
	}
	if (acting_uid != anchor->act_uid) {
		(void)sys_setfsuid(anchor->act_uid);
		if ((uid_t)sys_setfsuid((uid_t)-1) != anchor->act_uid)
			return -EPERM;
		acting_uid = anchor->act_uid;
	}
	return 0;
}
