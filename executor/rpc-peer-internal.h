/* What rpc-peer.c, rpc-call.c and rpc-register.c share: for them only. */
#pragma once

#include "executor/caller-fd.h"
#include "executor/rpc.h"

struct RpcPeer {
	ExrCallerFd in, out;
	char **host_env; /* borrowed */
	GString *line;	 /* of the loop alone: what has come of the next one */
	size_t scanned;	 /* bytes of it without an end */
	bool no_input;	 /* of the loop: it has ended */
	bool gone;	 /* of the loop: nobody reads */
	int wake_fd;	 /* an eventfd: the loop has to look again */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* there is room, a call has ended, or we are going */
	GQueue lines;		/* GString, to be written */
	size_t queued;		/* bytes of them */
	size_t written;		/* bytes of the first that are written */
	GHashTable *sessions;	/* id to RpcSession */
	GHashTable *processes;	/* id to RpcProcess */
	GHashTable *calls;	/* id as JSON text to RpcCall, borrowed */
	unsigned int running;	/* calls with a thread */
	unsigned int counted;	/* of them, those that are not answered yet */
	unsigned int last_process;
	bool going; /* nothing is registered or told any more */
};

/* Under the lock: a line for the client, which the loop is woken for. */
void rpc_peer_queue(RpcPeer *peer, GString *take_line);
/* The loop looks again. */
void rpc_peer_wake(RpcPeer *peer);

/* One line of the client's: starts the call that it asks for, or answers at once. Of the loop alone. */
void rpc_call_take_line(RpcPeer *peer, const char *line, size_t size);
/* Under the lock: tells it that it is not wanted any more, if it can hear. */
void rpc_call_cancel(const RpcCall *call);
