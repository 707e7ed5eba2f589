/* Parameters of a call; see rpc.h. The first that is wrong is what the client is told of. */
#include "executor/rpc.h"

#include <string.h>

void rpc_problem(RpcCall *call, const char *name, const char *expected)
{
	if (!call->problem)
		call->problem = g_strdup_printf("params.%s: %s", name, expected);
}

/* The parameter, or NULL when it is absent or null. */
static JsonNode *find(RpcCall *call, const char *name)
{
	JsonNode *node = call->params ? json_object_get_member(call->params, name) : NULL;

	return node && json_node_holds(node, JSON_NODE_NULL) ? NULL : node;
}

const char *rpc_string(RpcCall *call, const char *name)
{
	JsonNode *node = find(call, name);

	if (node && !json_node_holds(node, JSON_NODE_STRING))
		rpc_problem(call, name, "expected a string");
	return json_node_holds(node, JSON_NODE_STRING) ? json_node_get_string(node) : NULL;
}

int64_t rpc_int(RpcCall *call, const char *name, int64_t least, int64_t otherwise)
{
	JsonNode *node = find(call, name);

	if (!node)
		return otherwise;
	if (!json_node_holds(node, JSON_NODE_INT) || json_node_get_int(node) < least) {
		g_autofree char *expected =
			g_strdup_printf("expected an integer of at least %" G_GINT64_FORMAT, least);

		rpc_problem(call, name, expected);
		return otherwise;
	}
	return json_node_get_int(node);
}

bool rpc_bool(RpcCall *call, const char *name)
{
	JsonNode *node = find(call, name);

	if (node && !json_node_holds(node, JSON_NODE_BOOLEAN))
		rpc_problem(call, name, "expected true or false");
	return json_node_holds(node, JSON_NODE_BOOLEAN) && json_node_get_boolean(node);
}

JsonObject *rpc_object(RpcCall *call, const char *name)
{
	JsonNode *node = find(call, name);

	if (node && !JSON_NODE_HOLDS_OBJECT(node))
		rpc_problem(call, name, "expected an object");
	return JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

char **rpc_strings(RpcCall *call, const char *name)
{
	JsonNode *node = find(call, name);
	g_autoptr(GPtrArray) list = NULL;
	JsonArray *array;

	if (!node)
		return NULL;
	list = g_ptr_array_new_with_free_func(g_free);
	array = JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
	for (guint i = 0; array && i < json_array_get_length(array); i++) {
		JsonNode *element = json_array_get_element(array, i);

		if (!json_node_holds(element, JSON_NODE_STRING))
			array = NULL;
		else
			g_ptr_array_add(list, g_strdup(json_node_get_string(element)));
	}
	if (!array) {
		rpc_problem(call, name, "expected an array of strings");
		return NULL;
	}
	g_ptr_array_add(list, NULL);
	return (char **)g_ptr_array_steal(list, NULL);
}

char *rpc_bytes(RpcCall *call, const char *name, size_t *ret_size)
{
	JsonNode *node = find(call, name);
	const char *text =
		json_node_holds(node, JSON_NODE_STRING) ? json_node_get_string(node) : NULL;
	JsonObject *object = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
	const char *coded = object ? json_object_get_string_member(object, "b64") : NULL;

	*ret_size = 0;
	if (!node)
		return NULL;
	if (text) {
		*ret_size = strlen(text);
		return g_strdup(text);
	}
	if (coded)
		return (char *)g_base64_decode(coded, ret_size);
	rpc_problem(call, name, "expected a string or {\"b64\": \"...\"}");
	return NULL;
}

ExrEnvList *rpc_env(RpcCall *call, const char *name)
{
	JsonObject *object = rpc_object(call, name);
	g_autoptr(ExrEnvList) list = NULL;
	JsonObjectIter iter;
	const char *variable;
	JsonNode *value;

	if (!object)
		return NULL;
	list = exr_env_list_new();
	json_object_iter_init_ordered(&iter, object);
	while (json_object_iter_next_ordered(&iter, &variable, &value)) {
		g_autofree char *message = NULL;
		g_autofree char *text = NULL;
		int r;

		if (strchr(variable, '=')) {
			rpc_problem(call, name, "a name holds \"=\"");
			return NULL;
		}
		if (json_node_holds(value, JSON_NODE_NULL)) {
			r = exr_env_list_unset(list, variable, &message);
		} else if (json_node_holds(value, JSON_NODE_STRING)) {
			text = g_strconcat(variable, "=", json_node_get_string(value), NULL);
			r = exr_env_list_set(list, text, NULL, &message);
		} else {
			r = -1;
			message = g_strdup("expected strings and nulls as values");
		}
		if (r < 0) {
			rpc_problem(call, name, message);
			return NULL;
		}
	}
	return g_steal_pointer(&list);
}

bool rpc_params_ok(RpcCall *call, const char *const *names)
{
	JsonObjectIter iter;
	const char *name;

	if (call->params && !call->problem) {
		json_object_iter_init_ordered(&iter, call->params);
		while (json_object_iter_next_ordered(&iter, &name, NULL))
			if (!g_strv_contains(names, name))
				rpc_problem(call, name, "unknown parameter");
	}
	return !call->problem;
}

RpcSession *rpc_session_of(RpcCall *call)
{
	const char *id = rpc_string(call, "session_id");
	RpcSession *session = id ? rpc_peer_find_session(call->peer, id) : NULL;

	if (!session)
		rpc_problem(call, "session_id", "no session of that name");
	return session;
}

RpcProcess *rpc_process_of(RpcCall *call)
{
	const char *id = rpc_string(call, "process_id");
	RpcProcess *process = id ? rpc_peer_find_process(call->peer, id) : NULL;

	if (!process)
		rpc_problem(call, "process_id", "no process of that name");
	return process;
}

static void read_leftover(RpcCall *call, ExrExecOptions *options)
{
	const char *word = rpc_string(call, "leftover");

	options->wait_left_over = g_strcmp0(word, "wait") == 0;
	if (word && !options->wait_left_over && strcmp(word, "kill") != 0)
		rpc_problem(call, "leftover", "expected \"kill\" or \"wait\"");
}

bool rpc_command_read(RpcCall *call, RpcCommand *ret_command)
{
	const char *command = rpc_string(call, "command");
	ExrExecOptions *options = &ret_command->options;

	*ret_command = (RpcCommand){ .argv = rpc_strings(call, "argv") };
	if (command && !ret_command->argv)
		ret_command->argv = g_strdupv((char *[]){ (char[]){ "sh" }, (char[]){ "-c" },
							  (char *)(uintptr_t)command, NULL });
	else if (command || !ret_command->argv || !ret_command->argv[0])
		rpc_problem(call, "argv", "expected either this, not empty, or command");
	exr_exec_options_init(options);
	ret_command->env = rpc_env(call, "env");
	options->argv = (const char *const *)ret_command->argv;
	options->env = ret_command->env;
	options->cwd = rpc_string(call, "cwd");
	options->timeout_ms = rpc_int(call, "timeout_ms", EXR_NO_TIMEOUT, 0);
	options->kill_grace_ms = rpc_int(call, "kill_grace_ms", 0, 0);
	options->merge_stderr = rpc_bool(call, "merge_stderr");
	read_leftover(call, options);
	return !call->problem;
}

void rpc_command_clear(RpcCommand *command)
{
	g_strfreev(command->argv);
	exr_env_list_free(command->env);
}
