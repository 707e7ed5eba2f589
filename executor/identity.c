/* The sandbox's user on the host; see identity.h.
 *
 * The ids that root lends are far above those that distributions, container runtimes (up to 2^30) and
 * systemd (up to about 1.88e9) hand out, and differ from session to session, so that sessions which
 * run at the same time are strangers to each other. */
#include "executor/identity.h"

#include "common/syscall-wrap.h"

#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#define LENT_FIRST 1900000000u
#define LENT_MASK  0xffffu
#define NOBODY	   65534u

bool exr_identity_map_covers(const char *map, unsigned int id)
{
	unsigned int first, outer, count;
	int length;

	while (sscanf(map, " %u %u %u%n", &first, &outer, &count, &length) == 3) {
		if (id >= first && id - first < count)
			return true;
		map += length;
	}
	return false;
}

static bool may_lend(void)
{
	const uint64_t needed =
		UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETGID | UINT64_C(1) << CAP_CHOWN;
	uint64_t effective, permitted, inheritable;

	return geteuid() == 0 && sys_capget(&effective, &permitted, &inheritable) == 0 &&
	       (effective & needed) == needed;
}

static bool is_mapped(unsigned int id)
{
	g_autofree char *uids = NULL;
	g_autofree char *gids = NULL;

	return g_file_get_contents("/proc/self/uid_map", &uids, NULL, NULL) &&
	       g_file_get_contents("/proc/self/gid_map", &gids, NULL, NULL) &&
	       exr_identity_map_covers(uids, id) && exr_identity_map_covers(gids, id);
}

ExrIdentity exr_identity_choose(uid_t inside)
{
	ExrIdentity identity = {
		.inside = inside,
		.outside_uid = geteuid(),
		.outside_gid = getegid(),
	};
	unsigned int random = 0, id;

	if (!may_lend())
		return identity;
	/* Without random numbers all sessions share one id: they are still apart by namespaces. */
	(void)!getrandom(&random, sizeof random, 0);
	id = LENT_FIRST + (random & LENT_MASK);
	if (!is_mapped(id))
		id = NOBODY;
	if (!is_mapped(id))
		return identity;
	identity.outside_uid = id;
	identity.outside_gid = id;
	identity.lent = true;
	return identity;
}

ExrIdentity exr_identity_own(void)
{
	return (ExrIdentity){ .inside = geteuid(),
			      .outside_uid = geteuid(),
			      .outside_gid = getegid() };
}

bool exr_identity_is_own(const ExrIdentity *identity)
{
	return identity->lent && identity->outside_uid != NOBODY;
}
