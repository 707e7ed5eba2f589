/* JSON-RPC 2.0 for host agents: `stella-exec serve`. For the rpc-files only.
 *
 *   rpc-peer.c      one client: reads its lines, sends what is queued, ends what it has started
 *   rpc-call.c      a request from its line to its answer: the methods, and a thread for each call
 *   rpc-register.c  its sessions and processes, by name
 *   rpc-message.c   one line to a request, and the lines that are sent
 *   rpc-params.c    the parameters of a request, each checked
 *   rpc-session.c   sessions of a client; they end with it
 *   rpc-exec.c      commands run to their result
 *   rpc-process.c   processes that are talked to
 *
 * A line is one message, either way. Each call runs in a thread of its own, so that a command that runs for days holds up
 * nobody; how many there may be at a time is bounded, and so is what is queued for a client that does not read. */
#pragma once

#include "common/json.h"
#include "executor/live-process.h"
#include "executor/session-exec.h"

#include <pthread.h>

/* JSON-RPC's own codes, and ours: with the error object of a result as data. */
#define RPC_PARSE_ERROR	     (-32700)
#define RPC_INVALID_REQUEST  (-32600)
#define RPC_METHOD_NOT_FOUND (-32601)
#define RPC_INVALID_PARAMS   (-32602)
#define RPC_FAILED	     (-32000)

typedef struct RpcPeer RpcPeer;

/* A session of one client. */
typedef struct {
	int refs; /* atomic */
	ExrSession *session;
	bool told; /* that it has ended; under the peer's lock */
} RpcSession;

/* A process of one client. What is written to it keeps the order of the requests: each takes a number when it is read. */
typedef struct {
	int refs; /* atomic */
	char *id;
	RpcSession *owner;
	ExrLive *live;
	GThread *threads[3]; /* two pumps and the one that tells the end */
	pthread_mutex_t lock;
	pthread_cond_t turn;
	uint64_t next, now; /* to be given out; whose turn it is */
} RpcProcess;

/* One request while it is worked on. */
typedef struct {
	RpcPeer *peer;
	char *id; /* as JSON text; NULL: a notification, which is not answered */
	char *method;
	JsonNode *root;	     /* keeps params */
	JsonObject *params;  /* borrowed; NULL: none */
	int cancel_fd;	     /* an eventfd; -1: cannot be cancelled */
	RpcProcess *process; /* whose input it is about; a reference, or NULL */
	uint64_t turn;
	char *problem; /* the first parameter that is wrong: what it says */
} RpcCall;

/* A method: its result as JSON text, or NULL with *error (a failure of ours) or call->problem set. */
typedef GString *(*RpcMethod)(RpcCall *call, ExrError *error);

GString *rpc_session_create(RpcCall *call, ExrError *error);
GString *rpc_session_get(RpcCall *call, ExrError *error);
GString *rpc_session_list(RpcCall *call, ExrError *error);
GString *rpc_session_refresh_env(RpcCall *call, ExrError *error);
GString *rpc_session_close(RpcCall *call, ExrError *error);
GString *rpc_exec(RpcCall *call, ExrError *error);
GString *rpc_exec_cancel(RpcCall *call, ExrError *error);
GString *rpc_process_start(RpcCall *call, ExrError *error);
GString *rpc_process_write(RpcCall *call, ExrError *error);
GString *rpc_process_close_stdin(RpcCall *call, ExrError *error);
GString *rpc_process_signal(RpcCall *call, ExrError *error);
GString *rpc_process_wait(RpcCall *call, ExrError *error);
GString *rpc_process_close(RpcCall *call, ExrError *error);

/* rpc-message.c */

/* Reads one line into call. 0, or an RPC error code with *ret_message; call->id is set as far as it was understood. */
int rpc_call_parse(RpcCall *call, const char *line, size_t size, char **ret_message);
void rpc_call_clear(RpcCall *call);
/* The id of a call as JSON text, from the string or the number that stands for it; NULL: it is neither. The caller frees. */
char *rpc_id_text(const JsonNode *node);
/* Lines, with their end. id NULL: null. */
GString *rpc_line_result(const char *id, const GString *result);
GString *rpc_line_error(const char *id, int code, const char *message, const ExrError *error);
GString *rpc_line_notification(const char *method, const GString *params);
/* Adds "name": data as text, or in base64, with "encoding" beside it. */
void rpc_add_data(GString *object, const char *name, const char *data, size_t size);
/* An error as a result has it. */
void rpc_add_error(GString *object, const ExrError *error);

/* rpc-params.c. A parameter that is absent gives what is said for it; one that is wrong, that and call->problem. */

const char *rpc_string(RpcCall *call, const char *name); /* NULL */
int64_t rpc_int(RpcCall *call, const char *name, int64_t least, int64_t otherwise);
bool rpc_bool(RpcCall *call, const char *name);		 /* false */
JsonObject *rpc_object(RpcCall *call, const char *name); /* NULL */
char **rpc_strings(RpcCall *call, const char *name);	 /* NULL; the caller frees */
/* Text, or {"b64": "..."}; the caller frees. NULL with *ret_size 0. */
char *rpc_bytes(RpcCall *call, const char *name, size_t *ret_size);
/* {"NAME": "value" or null}: to be set or taken away. NULL: none; the caller frees. */
ExrEnvList *rpc_env(RpcCall *call, const char *name);
void rpc_problem(RpcCall *call, const char *name, const char *expected);
/* Whether all went well and nothing is there but these names (NULL-terminated). */
bool rpc_params_ok(RpcCall *call, const char *const *names);
/* The session that "session_id" names, or NULL with the problem said. A reference. */
RpcSession *rpc_session_of(RpcCall *call);
RpcProcess *rpc_process_of(RpcCall *call);

/* The options of a command as exec and process.start take them. What they point to is in the rest. */
typedef struct {
	ExrExecOptions options;
	char **argv;
	ExrEnvList *env;
} RpcCommand;
bool rpc_command_read(RpcCall *call, RpcCommand *ret_command);
void rpc_command_clear(RpcCommand *command);

/* rpc-peer.c */

/* Serves one client until its input ends, stop_fd is readable or it sends what is too long; then ends all that it has
 * started. 0, or -errno when it could not be served. Descriptors are borrowed. */
int rpc_peer_serve(int in_fd, int out_fd, int stop_fd, char **host_env);

const char *const *rpc_peer_host_env(const RpcPeer *peer);
/* Queues a line. Takes it. A reply is always queued. */
void rpc_peer_send(RpcPeer *peer, GString *take_line);
/* Queues a line when there is room, and waits for room (wait) or not. false: thrown away, or the client has gone. */
bool rpc_peer_tell(RpcPeer *peer, GString *take_line, bool wait);

/* Until there is room for what may be large, or the client goes. How large an answer is a command decides: a client that
 * does not read has no more than one of each call that it was allowed. */
void rpc_peer_await_room(RpcPeer *peer);

/* The registers of a client; every find gives a reference. false: the client is going. */
bool rpc_peer_add_session(RpcPeer *peer, RpcSession *session);
RpcSession *rpc_peer_find_session(RpcPeer *peer, const char *id);
RpcSession *rpc_peer_take_session(RpcPeer *peer, const char *id); /* and forgets it */
GPtrArray *rpc_peer_sessions(RpcPeer *peer);			  /* ids */
bool rpc_peer_add_process(RpcPeer *peer, RpcProcess *process);	  /* gives it its id */
RpcProcess *rpc_peer_find_process(RpcPeer *peer, const char *id);
RpcProcess *rpc_peer_take_process(RpcPeer *peer, const char *id);
/* Whether a call of that id (JSON text) was running, which is cancelled now. */
bool rpc_peer_cancel(RpcPeer *peer, const char *id);

void rpc_session_unref(RpcSession *session); /* NULL is allowed; the last one closes */
RpcProcess *rpc_process_ref(RpcProcess *process);
void rpc_process_unref(RpcProcess *process); /* NULL is allowed; the last one kills */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RpcSession, rpc_session_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RpcProcess, rpc_process_unref)
