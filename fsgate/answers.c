/* See answers.h. */
#include "fsgate/answers.h"

#include "fsgate/status-json.h"

static JsonObject *wrap(const char *name, JsonObject *take_inner)
{
	JsonObject *outer = json_object_new();

	json_object_set_object_member(outer, name, take_inner);
	return outer;
}

static JsonObject *complaint(const char *text)
{
	JsonObject *inner = json_object_new();

	json_object_set_string_member(inner, "message", text);
	return wrap("error", inner);
}

/* {"denials": {"since": N}}; 0 when nothing or nonsense is said: all of them. */
static uint64_t since_of(JsonObject *request)
{
	JsonNode *node = json_object_get_member(request, "denials");
	JsonObject *object = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
	JsonNode *since = object ? json_object_get_member(object, "since") : NULL;

	if (!since || json_node_get_value_type(since) != G_TYPE_INT64)
		return 0;
	return (uint64_t)MAX(json_node_get_int(since), 0);
}

JsonObject *fsg_answer(void *data, JsonObject *request)
{
	const FsgAnswers *answers = data;

	if (json_object_has_member(request, "status"))
		return wrap("status", fsg_status_json(answers->view));
	if (json_object_has_member(request, "denials"))
		return wrap("denials", fsg_denials_json(answers->view, since_of(request)));
	return complaint("unknown request");
}
