/* Who the sandbox's user is on the host.
 *
 * Inside, it is the number that the policy names. Outside, it is the supervisor's own user; or, when
 * the supervisor is root, an id that owns nothing: root that runs a command does not lend its identity. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

typedef struct {
	uid_t inside; /* uid and gid, in the sandbox */
	uid_t outside_uid;
	gid_t outside_gid;
	bool lent; /* outside is not the supervisor's own: maps need its privileges, groups are cleared */
} ExrIdentity;

/* Chooses; never fails: without the privileges, or where the id is not available (a supervisor in a user
 * namespace that maps little), it is the supervisor's own user. */
ExrIdentity exr_identity_choose(uid_t inside);

/* The supervisor itself, where nobody is lent anything. */
ExrIdentity exr_identity_own(void);

/* Whether the outside user is this session's alone, but for a chance of one in 65,536. */
bool exr_identity_is_own(const ExrIdentity *identity);

/* Whether an id map (the text of /proc/PID/uid_map) covers id on its inner side. */
bool exr_identity_map_covers(const char *map, unsigned int id);
