/* Two processes and a file that both lock: in the view or beside it, as a test wants each of them. */
#pragma once

#include "lib/lock-peer.h"
#include "lib/view-fixture.h"

#include <stdbool.h>

/* The view of all tests of a program, and its workspace: beside the view, in it. */
extern ViewFixture *lock_view;
extern char *lock_dirs[2];
int lock_pair_set_up(void **state);
int lock_pair_tear_down(void **state);

/* A file of its own, by both paths. */
typedef struct {
	char *path[2];
} LockFile;

LockFile lock_file_new(void);
void lock_file_free(LockFile *file);

/* Two processes, each with the file open by a path of its side. */
typedef struct {
	LockFile file;
	const char *path[2];
	LockPeer peer[2];
	int fd[2];
	bool in_view[2];
} LockPair;

/* Bit i of sides: whether process i is in the view. */
LockPair lock_pair_new(int sides, int flags);
void lock_pair_free(LockPair *pair);
int lock_pair_try(LockPair *pair, int who, LockPeerKind kind, short type, off_t start,
		  off_t length);
/* What ends with a RELEASE is free beside the view a moment after the close. */
int lock_pair_try_soon(LockPair *pair, int who, LockPeerKind kind, short type);

#define FOR_SIDES(sides) for (int sides = 0; sides < 4; sides++)
#define FOR_KINDS(kind)	 for (LockPeerKind kind = 0; kind < _LOCK_PEER_N_KINDS; kind++)
