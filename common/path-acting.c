/* Whom the calling thread acts as; see path-resolver.h.
 *
 * A host agent that is root must not lend that to what its tools do for an agent: as in the gateway, the owner of the
 * mounted directory acts, with none of root's groups, and without the capabilities that pass over permissions, so that the
 * host's own checks decide. All of it is the kernel's state of this one thread (raw system calls: glibc would change every
 * thread), and all of it is put back. A change of the file system uid away from 0 takes these capabilities out of effect by
 * itself, unless the process has told the kernel not to; where the owner is root nothing does. So it is always done, and
 * read back.
 *
 * Two things the kernel does with every such change, and they are not put back: the process is not dumpable any more (of a
 * process that is root, that keeps from others what they could not look at anyway), and a signal that the thread asked for
 * at its parent's death does not come. */
#include "common/path-resolver-internal.h"

#include "common/syscall-wrap.h"

#include <errno.h>
#include <linux/capability.h>
#include <unistd.h>

#define BIT(capability) (1ull << (capability))
#define CAPS_LOWERED                                                                               \
	(BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) |     \
	 BIT(CAP_FSETID) | BIT(CAP_MKNOD) | BIT(CAP_LINUX_IMMUTABLE))

static int save(PathActing *ret_saved)
{
	uint64_t permitted, inheritable;
	int count = getgroups(0, NULL), r;

	*ret_saved = (PathActing){ .switched = true };
	if (count < 0)
		return -errno;
	r = sys_capget(&ret_saved->capabilities, &permitted, &inheritable);
	if (r < 0)
		return r;
	ret_saved->groups = g_new(gid_t, count + 1);
	ret_saved->n_groups = getgroups(count, ret_saved->groups);
	if (ret_saved->n_groups < 0)
		return -errno;
	/* An id that is none changes nothing, and gives the present one. */
	ret_saved->uid = (uid_t)sys_setfsuid((uid_t)-1);
	ret_saved->gid = (gid_t)sys_setfsgid((gid_t)-1);
	return 0;
}

static int set_effective(uint64_t keep, uint64_t raise)
{
	uint64_t effective, permitted, inheritable;
	int r = sys_capget(&effective, &permitted, &inheritable);

	if (r < 0)
		return r;
	return sys_capset(((effective & keep) | raise) & permitted, permitted, inheritable);
}

static int become(uid_t uid, gid_t gid)
{
	uint64_t effective, permitted, inheritable;
	int r = sys_setgroups(0, NULL);

	/* A user namespace may forbid it, and then the groups are those that it began with. */
	if (r < 0 && r != -EPERM)
		return r;
	(void)sys_setfsgid(gid);
	(void)sys_setfsuid(uid);
	if ((gid_t)sys_setfsgid((gid_t)-1) != gid || (uid_t)sys_setfsuid((uid_t)-1) != uid)
		return -EPERM;
	if ((r = set_effective(~CAPS_LOWERED, 0)) < 0 ||
	    (r = sys_capget(&effective, &permitted, &inheritable)) < 0)
		return r;
	return effective & CAPS_LOWERED ? -EPERM : 0;
}

static int act_begin(const ViewAnchor *anchor, PathActing *ret_saved)
{
	int r;

	*ret_saved = (PathActing){ .switched = false };
	/* Of ownership "host" it is who asks who acts, and that is this process. */
	if (!anchor || anchor->as_caller || anchor->act_uid == (uid_t)-1)
		return 0;
	if ((r = save(ret_saved)) < 0) {
		g_free(ret_saved->groups);
		*ret_saved = (PathActing){ .switched = false };
		return r;
	}
	if ((r = become(anchor->act_uid, anchor->act_gid)) < 0)
		path_resolver_act_end(ret_saved);
	return r;
}

int path_resolver_act_begin(const PathPlace *place, PathActing *ret_saved)
{
	return act_begin(place->anchor, ret_saved);
}

/* What was so a moment ago can be so again: nothing to fail, and nothing to be done if it did. */
void path_resolver_act_end(PathActing *saved)
{
	if (!saved->switched)
		return;
	(void)sys_setfsuid(saved->uid);
	(void)sys_setfsgid(saved->gid);
	(void)sys_setgroups((size_t)saved->n_groups, saved->groups);
	(void)set_effective(0, saved->capabilities);
	g_free(saved->groups);
	*saved = (PathActing){ .switched = false };
}

int path_actor_turn(PathActor *actor, const ViewAnchor *anchor)
{
	int r;

	if (actor->saved.switched && !anchor->as_caller && actor->uid == anchor->act_uid &&
	    actor->gid == anchor->act_gid)
		return 0;
	path_actor_end(actor);
	if ((r = act_begin(anchor, &actor->saved)) < 0)
		return r;
	actor->uid = anchor->act_uid;
	actor->gid = anchor->act_gid;
	return 0;
}

void path_actor_end(PathActor *actor)
{
	path_resolver_act_end(&actor->saved);
}
