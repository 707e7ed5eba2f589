/* Processes that take locks when they are told to, for tests of who excludes whom. A peer does one command at a
 * time; one that blocks is sent, and its answer is asked for later. Ends the test when something does not work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct {
	pid_t pid;
	int pidfd;
	int socket;
} LockPeer;

/* How a lock is taken: each is another kind of owner. */
typedef enum {
	LOCK_PEER_POSIX, /* of the process */
	LOCK_PEER_OFD,	 /* of the open file description */
	LOCK_PEER_FLOCK, /* of that too; the whole file, whatever range is given */
	_LOCK_PEER_N_KINDS,
} LockPeerKind;

typedef struct {
	short type; /* F_RDLCK... */
	off_t start, length;
	pid_t pid;
} LockPeerFound;

LockPeer lock_peer_new(void);
/* A child of this peer, with what it has open. */
LockPeer lock_peer_fork(LockPeer *peer);
/* Makes it exit, or kills it; both wait until it is gone. */
void lock_peer_end(LockPeer *peer);
void lock_peer_kill(LockPeer *peer);

/* The peer's fd, or -errno. */
int lock_peer_open(LockPeer *peer, const char *path, int flags);
int lock_peer_dup(LockPeer *peer, int fd);
int lock_peer_close(LockPeer *peer, int fd);
/* Without waiting. type: F_RDLCK, F_WRLCK, F_UNLCK. 0 or -errno. */
int lock_peer_try(LockPeer *peer, LockPeerKind kind, int fd, short type, off_t start, off_t length);
/* F_GETLK or F_OFD_GETLK. */
int lock_peer_get(LockPeer *peer, LockPeerKind kind, int fd, short type, off_t start, off_t length,
		  LockPeerFound *ret_found);

/* With waiting: sent now. */
void lock_peer_send(LockPeer *peer, LockPeerKind kind, int fd, short type, off_t start,
		    off_t length);
/* Whether the answer is there within this time. */
bool lock_peer_answered(const LockPeer *peer, int timeout_ms);
/* The answer; the test fails when it is not there within some seconds. */
int lock_peer_receive(LockPeer *peer);
/* Interrupts it, if it waits, without restarting. */
void lock_peer_interrupt(const LockPeer *peer);
