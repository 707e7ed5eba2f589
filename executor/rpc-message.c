/* Lines of JSON-RPC; see rpc.h. */
#include "executor/rpc.h"

#include "common/errno-util.h"
#include "common/json-string.h"
#include "executor/result.h"

char *rpc_id_text(const JsonNode *node)
{
	if (!json_node_holds(node, JSON_NODE_STRING) && !json_node_holds(node, JSON_NODE_INT) &&
	    !json_node_holds(node, JSON_NODE_NUMBER))
		return NULL;
	return json_to_string(node, false);
}

int rpc_call_parse(RpcCall *call, const char *line, size_t size, char **ret_message)
{
	JsonObject *root;
	JsonNode *params;

	call->root = json_from_string(line, (gssize)size);
	if (!call->root) {
		*ret_message = g_strdup("the line is not one JSON object");
		return RPC_PARSE_ERROR;
	}
	root = json_node_get_object(call->root);
	call->id = rpc_id_text(json_object_get_member(root, "id"));
	if (!call->id && json_object_has_member(root, "id")) {
		*ret_message = g_strdup("id: expected a string or a number");
		return RPC_INVALID_REQUEST;
	}
	if (g_strcmp0(json_object_get_string_member(root, "jsonrpc"), "2.0") != 0) {
		*ret_message = g_strdup("jsonrpc: expected \"2.0\"");
		return RPC_INVALID_REQUEST;
	}
	call->method = g_strdup(json_object_get_string_member(root, "method"));
	if (!call->method) {
		*ret_message = g_strdup("method: expected a string");
		return RPC_INVALID_REQUEST;
	}
	params = json_object_get_member(root, "params");
	if (params && !JSON_NODE_HOLDS_OBJECT(params)) {
		*ret_message = g_strdup("params: expected an object");
		return RPC_INVALID_PARAMS;
	}
	call->params = params ? json_node_get_object(params) : NULL;
	return 0;
}

void rpc_call_clear(RpcCall *call)
{
	g_free(call->id);
	g_free(call->method);
	g_free(call->problem);
	json_node_unref(call->root);
	rpc_process_unref(call->process);
}

static GString *open_line(const char *id)
{
	GString *line = g_string_new("{\"jsonrpc\": \"2.0\", \"id\": ");

	return g_string_append(line, id ? id : "null");
}

static GString *close_line(GString *line)
{
	return g_string_append(line, "}\n");
}

GString *rpc_line_result(const char *id, const GString *result)
{
	GString *line = open_line(id);

	g_string_append(line, ", \"result\": ");
	g_string_append_len(line, result->str, (gssize)result->len);
	return close_line(line);
}

GString *rpc_line_error(const char *id, int code, const char *message, const ExrError *error)
{
	GString *line = open_line(id);

	g_string_append_printf(line, ", \"error\": {\"code\": %d, \"message\": ", code);
	json_string_add(line, message);
	if (error) {
		g_string_append(line, ", \"data\": ");
		rpc_add_error(line, error);
	}
	g_string_append_c(line, '}');
	return close_line(line);
}

GString *rpc_line_notification(const char *method, const GString *params)
{
	GString *line = g_string_new("{\"jsonrpc\": \"2.0\", \"method\": ");

	json_string_add(line, method);
	g_string_append(line, ", \"params\": ");
	g_string_append_len(line, params->str, (gssize)params->len);
	return close_line(line);
}

void rpc_add_data(GString *object, const char *name, const char *data, size_t size)
{
	bool text = g_utf8_validate_len(data, size, NULL);

	g_string_append_printf(object, "\"%s\": ", name);
	if (text)
		json_string_add_text(object, data, size);
	else
		json_string_add_base64(object, data, size);
	g_string_append_printf(object, ", \"encoding\": \"%s\"", text ? "utf-8" : "base64");
}

void rpc_add_error(GString *object, const ExrError *error)
{
	const struct {
		const char *name, *value;
	} members[] = {
		{ "code", error->code },
		{ "stage", error->stage },
		{ "errno", error->errnum ? errno_name(error->errnum) : NULL },
		{ "key", error->key },
		{ "hint", error->hint },
		{ "message", error->message },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
		g_string_append_printf(object, "%s\"%s\": ", i > 0 ? ", " : "{", members[i].name);
		json_string_add(object, members[i].value);
	}
	g_string_append_c(object, '}');
}
