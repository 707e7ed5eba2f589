/* Why the gateway refused something: the published, closed list of reasons, with what each means. They
 * travel as their text (in `stella-fsgate status --json`, on the control socket, in an exec's result), so a
 * text is never changed; new ones may be added at the end. stella-fsgate(1) repeats the list. */
#pragma once

/* X(id, text, meaning) */
#define DENIAL_REASONS(X)                                                                          \
	X(READ_ONLY_MOUNT, "read-only-mount", "a change on a read-only mount")                     \
	X(VIEW_DIRECTORY, "view-directory",                                                        \
	  "a change in a directory that exists only to lead to a mount")                           \
	X(STAND_IN, "stand-in", "a change of what stands in for a host mount below a mount")       \
	X(PRIVATE_DIRECTORY, "private-directory", "a change in the state directory of stella")     \
	X(PINNED_DIRECTORY, "pinned-directory",                                                    \
	  "renaming or removing what is mounted, or a directory that leads to it")                 \
	X(CROSS_MOUNT, "cross-mount", "a rename or link between two mounts")                       \
	X(DEVICE_NODE, "device-node", "making a device node")                                      \
	X(CHOWN, "chown", "giving a file to another owner")                                        \
	X(XATTR_NAMESPACE, "xattr-namespace",                                                      \
	  "changing an attribute of a namespace that the view does not have")                      \
	X(HIDDEN, "hidden", "a name that the policy hides")                                        \
	X(SYMLINK_ESCAPE, "symlink-escape", "a link that leaves the view")                         \
	X(SYMLINK_LOOP, "symlink-loop", "more than 40 links on the way")                           \
	X(SYMLINK_DENIED, "symlink-denied", "any link, where the policy says symlinks: deny")      \
	X(MOVED_OUT, "moved-out", "a directory that the host has moved out of its mount")          \
	X(FD_BUDGET, "fd-budget", "more open files than the gateway may have")                     \
	X(HOST_LEASE, "host-lease",                                                                \
	  "a file that another process of the host holds a lease on, while others wait for such")  \
	X(HOST_READ_ONLY, "host-read-only",                                                        \
	  "a change on a file system that the host has read-only")                                 \
	X(HOST_PERMISSION, "host-permission", "the host's own permissions")

typedef enum {
#define DENIAL_REASON_ID(id, text, meaning) DENIAL_##id,
	DENIAL_REASONS(DENIAL_REASON_ID)
#undef DENIAL_REASON_ID
		_DENIAL_N
} DenialReason;

/* The reason's text ("read-only-mount"); "unknown" for what is none. Static storage. */
const char *denial_reason_name(DenialReason reason);

/* What it means, for a person ("a rename or link between two mounts"). Static storage. */
const char *denial_reason_meaning(DenialReason reason);

/* The reason with that text, or -EINVAL. */
int denial_reason_from_name(const char *name);
