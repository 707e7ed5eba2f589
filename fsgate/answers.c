/* See answers.h. */
#include "fsgate/answers.h"

#include "fsgate/boundary.h"
#include "fsgate/client.h"
#include "fsgate/invalidate.h"
#include "fsgate/report.h"
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

/* How long the start of an exec waits for the kernel, and its end for files that are being closed. */
#define CATCH_UP_MS 1500
#define CLOSE_MS    200

static uint64_t number_of(JsonObject *request, const char *name)
{
	JsonNode *node = json_object_get_member(request, name);

	return json_node_holds(node, JSON_NODE_INT) ? (uint64_t)MAX(json_node_get_int(node), 0) : 0;
}

/* The answer carries the request's id: an executor that gave up waiting must not take it for another's. */
static JsonObject *answer_boundary(const FsgAnswers *answers, JsonObject *request)
{
	FsgView *view = answers->view;
	JsonNode *node = json_object_get_member(request, "boundary");
	const char *which =
		json_node_holds(node, JSON_NODE_STRING) ? json_node_get_string(node) : NULL;
	gint64 until_us = g_get_monotonic_time() + CLOSE_MS * G_TIME_SPAN_MILLISECOND;
	uint64_t exec = number_of(request, "exec");
	JsonObject *answer;
	bool done;

	if (!view->boundary)
		return complaint("the view belongs to no session");
	answer = json_object_new();
	if (g_strcmp0(which, "start") == 0) {
		/* With a board its number is known already. */
		if (exec == 0)
			exec = fsg_boundary_start(view->boundary);
		json_object_set_int_member(answer, "exec", (gint64)exec);
		done = fsg_invalidate_catch_up(view, CATCH_UP_MS) == 0;
	} else if (g_strcmp0(which, "end") == 0) {
		fsg_clients_forget(view->clients);
		done = fsg_boundary_end(view->boundary, exec, CLOSE_MS);
		fsg_report_exec(view, answer, number_of(request, "pidns"), exec, until_us);
	} else {
		json_object_unref(answer);
		return complaint("boundary: expected \"start\" or \"end\"");
	}
	json_object_set_string_member(answer, "boundary", which);
	json_object_set_int_member(answer, "id", (gint64)number_of(request, "id"));
	json_object_set_boolean_member(answer, "caught_up", done);
	return answer;
}

/* {"denials": {"since": N}}; 0 when nothing or nonsense is said: all of them. */
static uint64_t since_of(JsonObject *request)
{
	JsonNode *node = json_object_get_member(request, "denials");

	return JSON_NODE_HOLDS_OBJECT(node) ? number_of(json_node_get_object(node), "since") : 0;
}

/* {"events": {"since": N, "wait": B}} */
static JsonObject *answer_events(FsgView *view, JsonObject *request)
{
	JsonNode *node = json_object_get_member(request, "events");
	JsonObject *wanted = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
	JsonNode *wait = wanted ? json_object_get_member(wanted, "wait") : NULL;
	JsonObject *events;

	events = fsg_report_events(view, wanted ? number_of(wanted, "since") : 0,
				   json_node_holds(wait, JSON_NODE_BOOLEAN) &&
					   json_node_get_boolean(wait));
	return events ? wrap("events", events) : NULL;
}

JsonObject *fsg_answer(void *data, JsonObject *request)
{
	const FsgAnswers *answers = data;

	if (json_object_has_member(request, "status"))
		return wrap("status", fsg_status_json(answers->view));
	if (json_object_has_member(request, "denials"))
		return wrap("denials", fsg_denials_json(answers->view, since_of(request)));
	if (json_object_has_member(request, "events"))
		return answer_events(answers->view, request);
	if (json_object_has_member(request, "boundary"))
		return answer_boundary(answers, request);
	return complaint("unknown request");
}
