/* Whom a thread acts as; see identity.h.
 *
 * All of it is the kernel's state of one thread: ids, capabilities, and, since the thread has a file system
 * context of its own, the umask. What is known of it is kept here, so that the kernel is told only of changes. A new
 * thread inherits the state of the one that made it, whatever that was doing, but nothing of what is known:
 * it starts by saying all of it anew. */
#include "fsgate/identity.h"

#include "common/syscall-wrap.h"
#include "fsgate/caller-groups.h"

#include <errno.h>
#include <glib.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIT(capability) (1ull << (capability))

/* SYS_ADMIN is passthrough's. It passes over no permission of a file; raising it for each call and lowering it
 * again costs as much as the rest of opening a file. */
#define CAPS_BASE    (BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SYS_ADMIN))
#define CAPS_CALLER  (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH))
#define CAPS_ROOT    (CAPS_CALLER | BIT(CAP_FOWNER) | BIT(CAP_CHOWN) | BIT(CAP_FSETID))
#define CAPS_UNKNOWN UINT64_MAX

const char *fsg_identity_missing_capability(void)
{
	static const struct {
		int capability;
		const char *name;
	} needed[] = {
		{ CAP_SETUID, "CAP_SETUID" },
		{ CAP_SETGID, "CAP_SETGID" },
		{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE" },
		{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" },
		{ CAP_FOWNER, "CAP_FOWNER" },
		{ CAP_CHOWN, "CAP_CHOWN" },
		{ CAP_FSETID, "CAP_FSETID" },
	};
	uint64_t effective = 0, permitted = 0, inheritable = 0;

	(void)sys_capget(&effective, &permitted, &inheritable); /* then none is there */
	for (size_t i = 0; i < G_N_ELEMENTS(needed); i++)
		if (!(permitted & BIT(needed[i].capability)))
			return needed[i].name;
	return NULL;
}

/* What the kernel has been told of this thread. */
static __thread struct {
	uid_t uid; /* -1: nothing yet */
	gid_t gid;
	uint64_t raised; /* in effect beside CAPS_BASE */
	bool no_groups;	 /* known to have none */
} acting = { .uid = (uid_t)-1, .gid = (gid_t)-1, .raised = CAPS_UNKNOWN };

static int start_serving(uint64_t kept)
{
	uint64_t effective, permitted, inheritable;
	int r = sys_capget(&effective, &permitted, &inheritable);

	if (r < 0)
		return r;
	/* Without this bit a change of the file system uid from or to 0 moves capabilities by itself. */
	if (geteuid() == 0 && !(prctl(PR_GET_SECUREBITS) & SECBIT_NO_SETUID_FIXUP) &&
	    prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0)
		return -errno;
	if ((r = sys_capset(permitted & CAPS_BASE, permitted & kept, 0)) == 0)
		acting.raised = 0;
	return r;
}

int fsg_identity_start_serving(void)
{
	return start_serving(CAPS_BASE);
}

int fsg_identity_start_serving_callers(void)
{
	return start_serving(CAPS_BASE | CAPS_ROOT);
}

static __thread struct fuse_ctx noted = { .uid = (uid_t)-1 };

void fsg_identity_note(const struct fuse_ctx *caller)
{
	noted = *caller;
}

struct fuse_ctx fsg_identity_noted(void)
{
	return noted;
}

uid_t fsg_identity_caller(void)
{
	return noted.uid;
}

static int raise_to(uint64_t capabilities)
{
	uint64_t effective, permitted, inheritable;
	int r;

	if (acting.raised == capabilities)
		return 0;
	acting.raised = CAPS_UNKNOWN;
	if ((r = sys_capget(&effective, &permitted, &inheritable)) < 0 ||
	    (r = sys_capset((permitted & CAPS_BASE) | capabilities, permitted, 0)) < 0)
		return r;
	acting.raised = capabilities;
	return 0;
}

int fsg_identity_lower(void)
{
	return raise_to(0);
}

static int drop_groups(void)
{
	int r;

	if (acting.no_groups)
		return 0;
	/* A user namespace may forbid it, and then the gateway has kept the groups that it started with. */
	if ((r = sys_setgroups(0, NULL)) < 0 && r != -EPERM)
		return r;
	acting.no_groups = true;
	return 0;
}

static int become(uid_t uid, gid_t gid, uint64_t capabilities)
{
	int r;

	if ((r = drop_groups()) < 0 || (r = raise_to(capabilities)) < 0)
		return r;
	if (acting.gid != gid) {
		acting.gid = (gid_t)-1;
		(void)sys_setfsgid(gid);
		if ((gid_t)sys_setfsgid((gid_t)-1) != gid)
			return -EPERM;
		acting.gid = gid;
	}
	if (acting.uid != uid) {
		acting.uid = (uid_t)-1;
		(void)sys_setfsuid(uid);
		if ((uid_t)sys_setfsuid((uid_t)-1) != uid)
			return -EPERM;
		acting.uid = uid;
	}
	return 0;
}

int fsg_view_act_as(const FsgAnchor *anchor)
{
	if (anchor->as_caller)
		/* No caller has been noted: -1 is nobody whom a thread can become. */
		return noted.uid == (uid_t)-1 || noted.gid == (gid_t)-1
			       ? -EPERM
			       : become(noted.uid, noted.gid,
					noted.uid == 0 ? CAPS_ROOT : CAPS_CALLER);
	return anchor->act_uid == (uid_t)-1 ? 0 : become(anchor->act_uid, anchor->act_gid, 0);
}

static int add_groups(int proc_fd)
{
	g_autofree gid_t *groups = NULL;
	size_t count;
	int r;

	if (fsg_caller_groups_read(proc_fd, noted.pid, &groups, &count) < 0)
		return 0;
	if ((r = sys_setgroups(count, groups)) < 0)
		return r;
	acting.no_groups = false;
	return 0;
}

int fsg_identity_add_groups(const FsgAnchor *anchor, int proc_fd)
{
	return anchor->as_caller && noted.uid != 0 ? add_groups(proc_fd) : 0;
}

int fsg_identity_search(const FsgAnchor *anchor, int proc_fd, uid_t shown_uid)
{
	int r;

	if (noted.uid == (uid_t)-1 || noted.uid == 0 || geteuid() != 0 ||
	    (!anchor->as_caller && noted.uid == shown_uid))
		return fsg_view_act_as(anchor);
	if ((r = become(noted.uid, noted.gid, 0)) < 0)
		return r;
	return add_groups(proc_fd);
}

/* This thread's file system context: shared with others, which must not see a umask of ours, until it is
 * unshared. A filter may refuse that. */
static __thread enum { CONTEXT_SHARED, CONTEXT_OWN, CONTEXT_REFUSED } context;
static __thread mode_t acting_umask;

mode_t fsg_identity_mode(const FsgAnchor *anchor, mode_t type, mode_t mode)
{
	if (anchor->as_caller)
		return mode & 07777;
	return type == S_IFDIR ? mode & (01777 | S_ISGID) : mode & 01777;
}

mode_t fsg_identity_new_mode(const FsgAnchor *anchor, int proc_fd, mode_t type, mode_t mode)
{
	mode = fsg_identity_mode(anchor, type, mode);
	if ((mode & S_ISGID) && fsg_identity_add_groups(anchor, proc_fd) < 0)
		mode &= ~(mode_t)S_ISGID;
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
