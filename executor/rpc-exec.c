/* exec and exec.cancel; see rpc.h. */
#include "executor/rpc.h"

#include "common/json-string.h"
#include "executor/result.h"

/* One stream of a command that is told while it runs. */
typedef struct {
	RpcCall *call;
	const char *name;
	uint64_t lost; /* bytes for which the client had no room */
} Stream;

/* In the command's own thread, which must not wait for a client that does not read: what it has no room for is counted. */
static void tell_output(const void *data, size_t size, void *user_data)
{
	Stream *stream = user_data;
	GString *params = g_string_new("{\"id\": ");

	g_string_append(params, stream->call->id);
	g_string_append_printf(params,
			       ", \"stream\": \"%s\", \"lost_bytes\": %" G_GUINT64_FORMAT ", ",
			       stream->name, stream->lost);
	rpc_add_data(params, "data", data, size);
	g_string_append_c(params, '}');
	if (rpc_peer_tell(stream->call->peer, rpc_line_notification("exec.output", params), false))
		stream->lost = 0;
	else
		stream->lost += size;
	g_string_free(params, TRUE);
}

GString *rpc_exec(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "session_id",    "command",  "argv",
					     "cwd",	      "env",	  "timeout_ms",
					     "kill_grace_ms", "leftover", "merge_stderr",
					     "stdin",	      "stream",	  NULL };
	g_autoptr(RpcSession) session = rpc_session_of(call);
	size_t input_size;
	g_autofree char *input = rpc_bytes(call, "stdin", &input_size);
	bool streams = rpc_bool(call, "stream");
	Stream out = { call, "stdout", 0 }, err = { call, "stderr", 0 };
	g_autoptr(ExrOutcome) outcome = NULL;
	RpcCommand command;
	GString *result = NULL;

	(void)error;
	if (rpc_command_read(call, &command) && rpc_params_ok(call, names)) {
		command.options.input = input;
		command.options.input_size = input_size;
		if (streams && call->id) {
			command.options.out.sink = command.options.err.sink = tell_output;
			command.options.out.sink_data = &out;
			command.options.err.sink_data = &err;
		}
		outcome =
			exr_session_exec_until(session->session, &command.options, call->cancel_fd);
		rpc_peer_await_room(call->peer);
		result = exr_result_to_json(&outcome->result);
	}
	rpc_command_clear(&command);
	return result;
}

/* The id of the call as it was given: a string or a number. */
GString *rpc_exec_cancel(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "id", NULL };
	JsonNode *node = call->params ? json_object_get_member(call->params, "id") : NULL;
	g_autofree char *id = rpc_id_text(node);
	bool canceled;

	(void)error;
	if (!id)
		rpc_problem(call, "id", "expected the id of a call");
	if (!rpc_params_ok(call, names))
		return NULL;
	canceled = rpc_peer_cancel(call->peer, id);
	return g_string_new(canceled ? "{\"canceled\": true}" : "{\"canceled\": false}");
}
