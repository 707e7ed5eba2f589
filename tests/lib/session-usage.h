/* What the sessions of this process hold: itself, and the processes below it. */
#pragma once

#include <stdbool.h>

typedef struct {
	int processes; /* below this one, at any depth */
	int fds; /* open in all of them and here; -1: not to be known, as of another user's process */
	int mounts;	  /* in the mount namespaces of its children; -1 likewise */
	long own_kib;	  /* memory that is nobody else's: this process's */
	long session_kib; /* theirs; -1 likewise */
} SessionUsage;

/* Of idle sessions: what the last command has left is waited for, some seconds at the most, for its result does not
 * wait until the session's init has reaped it; and so is the init that each of `spares` sessions keeps ready, from its
 * second command on; -1: however many there are. */
void session_usage_read(int spares, SessionUsage *ret_usage);
