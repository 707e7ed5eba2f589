/* A request from its line to its answer; see rpc.h. It runs in a thread of its own, and the loop, which starts it, never
 * waits for it: what cannot have a thread is refused. */
#include "executor/rpc-peer-internal.h"

#include "common/fd-util.h"
#include "common/json-string.h"
#include "common/limits.h"
#include "config.h"

#include <string.h>
#include <sys/eventfd.h>

static const struct {
	const char *name;
	RpcMethod run;
	bool is_input; /* of a process: takes a turn when it is read */
} methods[] = {
	{ "session.create", rpc_session_create, false },
	{ "session.get", rpc_session_get, false },
	{ "session.list", rpc_session_list, false },
	{ "session.refresh_env", rpc_session_refresh_env, false },
	{ "session.close", rpc_session_close, false },
	{ "exec", rpc_exec, false },
	{ "exec.cancel", rpc_exec_cancel, false },
	{ "process.start", rpc_process_start, false },
	{ "process.write", rpc_process_write, true },
	{ "process.close_stdin", rpc_process_close_stdin, true },
	{ "process.signal", rpc_process_signal, false },
	{ "process.wait", rpc_process_wait, false },
	{ "process.close", rpc_process_close, false },
};

void rpc_call_cancel(const RpcCall *call)
{
	if (call->cancel_fd >= 0)
		(void)eventfd_write(call->cancel_fd, 1);
}

bool rpc_peer_cancel(RpcPeer *peer, const char *id)
{
	RpcCall *call;

	pthread_mutex_lock(&peer->lock);
	call = g_hash_table_lookup(peer->calls, id);
	if (call && strcmp(call->method, "exec") != 0)
		call = NULL; /* it would not hear of it */
	if (call)
		rpc_call_cancel(call);
	pthread_mutex_unlock(&peer->lock);
	return call != NULL;
}

/* Under the lock: off the register, and not counted any more among those that may run. */
static void leave_locked(RpcPeer *peer, RpcCall *call)
{
	if (call->id)
		g_hash_table_remove(peer->calls, call->id);
	peer->counted--;
}

static void leave(RpcPeer *peer, RpcCall *call)
{
	pthread_mutex_lock(&peer->lock);
	leave_locked(peer, call);
	peer->running--;
	pthread_mutex_unlock(&peer->lock);
}

static GString *answer(RpcCall *call, RpcMethod run)
{
	ExrError error = { 0 };
	GString *result = run(call, &error), *line = NULL;

	if (result)
		line = rpc_line_result(call->id, result);
	else if (call->problem)
		line = rpc_line_error(call->id, RPC_INVALID_PARAMS, call->problem, NULL);
	else
		line = rpc_line_error(call->id, RPC_FAILED, error.message, &error);
	if (result)
		g_string_free(result, TRUE);
	exr_error_clear(&error);
	return line;
}

/* Whoever has the answer may use the id again, and make one more call. */
static void end_call(RpcCall *take_call, GString *take_line)
{
	RpcPeer *peer = take_call->peer;

	pthread_mutex_lock(&peer->lock);
	leave_locked(peer, take_call);
	if (take_call->id)
		rpc_peer_queue(peer, g_steal_pointer(&take_line));
	pthread_mutex_unlock(&peer->lock);
	if (take_line)
		g_string_free(take_line, TRUE);
	fd_close(&take_call->cancel_fd);
	rpc_call_clear(take_call);
	g_free(take_call);
	/* The last that is done with the peer. */
	pthread_mutex_lock(&peer->lock);
	peer->running--;
	pthread_cond_broadcast(&peer->changed);
	rpc_peer_wake(peer);
	pthread_mutex_unlock(&peer->lock);
}

static void *run_call(void *data)
{
	RpcCall *call = data;
	GString *line = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
		if (strcmp(methods[i].name, call->method) == 0)
			line = answer(call, methods[i].run);
	rpc_peer_await_room(call->peer);
	end_call(call, line);
	return NULL;
}

static GString *initialize(void)
{
	GString *result = g_string_new("{\"name\": \"stella-exec\", \"version\": ");

	json_string_add(result, STELLA_VERSION);
	g_string_append(result, ", \"protocol\": 1, \"methods\": [");
	for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
		g_string_append(result, i > 0 ? ", " : "");
		json_string_add(result, methods[i].name);
	}
	return g_string_append(result, "]}");
}

static void refuse(RpcPeer *peer, const char *id, int code, const char *message)
{
	rpc_peer_send(peer, rpc_line_error(id, code, message, NULL));
}

/* Enters the call into the register; NULL or why it cannot be. */
static const char *enter(RpcPeer *peer, RpcCall *call)
{
	const char *why = NULL;

	pthread_mutex_lock(&peer->lock);
	if (peer->counted >= LIMIT_RPC_CALLS)
		why = "as many calls as there may be are running";
	else if (call->id && g_hash_table_contains(peer->calls, call->id))
		why = "a call of that id is running";
	else {
		peer->running++;
		peer->counted++;
		if (call->id)
			g_hash_table_insert(peer->calls, call->id, call);
	}
	pthread_mutex_unlock(&peer->lock);
	return why;
}

static void take_input_turn(RpcPeer *peer, RpcCall *call)
{
	const char *id =
		call->params ? json_object_get_string_member(call->params, "process_id") : NULL;

	call->process = id ? rpc_peer_find_process(peer, id) : NULL;
	if (call->process)
		call->turn = call->process->next; /* the loop alone gives them out */
}

/* Takes the call. */
static void start_call(RpcPeer *peer, RpcCall *call)
{
	const char *why = "no such method";
	int code = RPC_METHOD_NOT_FOUND;
	RpcProcess *process;
	GThread *thread;

	for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
		if (strcmp(methods[i].name, call->method) != 0)
			continue;
		code = RPC_FAILED;
		if ((why = enter(peer, call)))
			break;
		call->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (methods[i].is_input)
			take_input_turn(peer, call);
		/* The call may be over before we look at it again. */
		process = call->process ? rpc_process_ref(call->process) : NULL;
		thread = g_thread_try_new("stella-call", run_call, call, NULL);
		if (thread) {
			if (process)
				process->next++;
			rpc_process_unref(process);
			g_thread_unref(thread);
			return;
		}
		/* Not here: the loop waits for nobody. */
		rpc_process_unref(process);
		leave(peer, call);
		why = "no thread for one more call";
		break;
	}
	if (call->id)
		refuse(peer, call->id, code, why);
	fd_close(&call->cancel_fd);
	rpc_call_clear(call);
	g_free(call);
}

void rpc_call_take_line(RpcPeer *peer, const char *line, size_t size)
{
	RpcCall *call = g_new0(RpcCall, 1);
	g_autofree char *message = NULL;
	int code;

	call->peer = peer;
	call->cancel_fd = -1;
	code = rpc_call_parse(call, line, size, &message);
	if (code == 0 && strcmp(call->method, "initialize") != 0) {
		start_call(peer, call);
		return;
	}
	if (code != 0) {
		refuse(peer, call->id, code, message);
	} else if (call->id) {
		GString *result = initialize();

		rpc_peer_send(peer, rpc_line_result(call->id, result));
		g_string_free(result, TRUE);
	}
	rpc_call_clear(call);
	g_free(call);
}
