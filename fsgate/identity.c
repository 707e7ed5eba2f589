/* Whom a thread acts as; see identity.h.
 *
 * All of it is the kernel's state of one thread: ids, capabilities, and, since the thread has a file system
 * context of its own, the umask. What is known of it is kept here, so that the kernel is told only of changes. A new
 * thread inherits the state of the one that made it, whatever that was doing, but nothing of what is known:
 * it starts by saying all of it anew. */
#include "fsgate/identity.h"

#include "common/syscall-wrap.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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

static __thread struct fuse_ctx noted;

void fsg_identity_note(const struct fuse_ctx *caller)
{
	noted = *caller;
}

/* This thread's file system context: shared with others, which must not see a umask of ours, until it is
 * unshared. A filter may refuse that. */
static __thread enum { CONTEXT_SHARED, CONTEXT_OWN, CONTEXT_REFUSED } context;
static __thread mode_t acting_umask;

mode_t fsg_identity_new_mode(mode_t mode)
{
	if (context == CONTEXT_SHARED) {
		context = unshare(CLONE_FS) == 0 ? CONTEXT_OWN : CONTEXT_REFUSED;
		if (context == CONTEXT_OWN)
			(void)umask(acting_umask);
	}
	if (context == CONTEXT_REFUSED) /* stricter where there is a default ACL */
		return mode & ~(mode_t)(noted.umask & 0777);
	if (acting_umask != (noted.umask & 0777)) {
		acting_umask = noted.umask & 0777;
		(void)umask(acting_umask);
	}
	return mode;
}
