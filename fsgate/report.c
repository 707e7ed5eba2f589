/* See report.h. Made in the door's thread. */
#include "fsgate/report.h"

#include "common/errno-util.h"
#include "common/limits.h"
#include "fsgate/change.h"
#include "fsgate/client.h"
#include "fsgate/status-json.h"

#include <string.h>

/* Of a row beside its texts. */
#define ROW_BYTES 256

/* What a path takes as JSON, at the most: control characters take six bytes, what is not UTF-8 is in base64. */
static size_t path_bytes(const char *path)
{
	size_t bytes = 16;

	for (; path && *path; path++)
		bytes += (unsigned char)*path < 0x20 || *path == 0x7f ? 6 : 2;
	return bytes;
}

static void set_number(JsonObject *object, const char *name, uint64_t number)
{
	json_object_set_int_member(object, name, (gint64)number);
}

/* --- denials --- */

static void set_denial(JsonObject *row, const FsgDenial *denial)
{
	json_object_set_string_member(row, "op", denial->op);
	fsg_json_set_path(row, "path", denial->path);
	fsg_json_set_path(row, "mount", denial->mount);
	json_object_set_string_member(row, "reason", denial_reason_name(denial->reason));
	if (denial->errnum)
		json_object_set_string_member(row, "errno", errno_name(denial->errnum));
	else
		json_object_set_null_member(row, "errno");
}

static JsonObject *denial_json(const FsgDenial *denial)
{
	JsonObject *row = json_object_new();

	set_denial(row, denial);
	if (denial->target)
		fsg_json_set_path(row, "target", denial->target);
	set_number(row, "count", denial->count);
	return row;
}

static void add_denials(JsonObject *answer, FsgView *view, uint64_t pid_namespace, uint64_t exec)
{
	JsonArray *rows = json_array_new();
	FsgDenialList list;
	uint64_t dropped;
	size_t bytes = 0;

	fsg_denials_take(view->denials, pid_namespace, exec, &list);
	dropped = list.dropped;
	for (guint i = 0; i < list.rows->len; i++) {
		const FsgDenial *denial = g_ptr_array_index(list.rows, i);

		bytes += path_bytes(denial->path) + path_bytes(denial->mount) +
			 path_bytes(denial->target) + ROW_BYTES;
		if (bytes > LIMIT_REPORT_BYTES)
			dropped += denial->count;
		else
			json_array_add_object_element(rows, denial_json(denial));
	}
	json_object_set_array_member(answer, "denials", rows);
	set_number(answer, "denials_dropped", dropped);
	fsg_denial_list_clear(&list);
}

/* --- changes --- */

static JsonObject *change_json(const FsgChange *change)
{
	JsonObject *row = json_object_new();

	fsg_json_set_path(row, "path", change->path);
	json_object_set_string_member(row, "change", fsg_change_name(change->kind));
	if (change->from)
		fsg_json_set_path(row, "from", change->from);
	return row;
}

static void add_changes(JsonObject *answer, FsgView *view, uint64_t pid_namespace, uint64_t exec,
			gint64 until_us)
{
	JsonArray *rows = json_array_new();
	FsgChangeList list;
	uint64_t dropped;
	size_t bytes = 0;

	fsg_changes_take(view, pid_namespace, exec, until_us, &list);
	dropped = list.dropped;
	for (guint i = 0; i < list.rows->len; i++) {
		const FsgChange *change = g_ptr_array_index(list.rows, i);

		bytes += path_bytes(change->path) + path_bytes(change->from) + ROW_BYTES;
		if (bytes > LIMIT_REPORT_BYTES)
			dropped++;
		else
			json_array_add_object_element(rows, change_json(change));
	}
	json_object_set_array_member(answer, "changes", rows);
	set_number(answer, "changes_dropped", dropped);
	json_object_set_boolean_member(answer, "changes_incomplete", list.incomplete);
	fsg_change_list_clear(&list);
}

void fsg_report_exec(FsgView *view, JsonObject *answer, uint64_t pid_namespace, uint64_t exec,
		     gint64 until_us)
{
	if (pid_namespace == 0 || !fsg_clients_are_known(view->clients))
		return;
	add_changes(answer, view, pid_namespace, exec, until_us);
	add_denials(answer, view, pid_namespace, exec);
}

/* --- events --- */

static void set_number_or_null(JsonObject *object, const char *name, uint64_t number)
{
	if (number != 0)
		set_number(object, name, number);
	else
		json_object_set_null_member(object, name);
}

static JsonObject *event_json(const FsgEvent *event)
{
	const FsgDenial *denial = &event->denial;
	JsonObject *row = json_object_new();

	json_object_set_string_member(row, "event", event->is_denial ? "denial" : "change");
	if (event->is_denial) {
		set_denial(row, denial);
		fsg_json_set_path(row, "target", denial->target);
	} else {
		json_object_set_string_member(row, "change", fsg_change_name(event->change));
		fsg_json_set_path(row, "path", denial->path);
		fsg_json_set_path(row, "from", event->from);
	}
	set_number_or_null(row, "pid", (uint64_t)denial->pid);
	set_number_or_null(row, "pidns", denial->pid_namespace);
	set_number(row, "time_ms", (uint64_t)denial->time_us / 1000);
	set_number(row, "seq", denial->seq);
	json_object_set_boolean_member(row, "cut", denial->cut);
	return row;
}

/* Of their text, which may become six times as much. */
#define EVENTS_TEXT_BYTES (LIMIT_CONTROL_LINE_BYTES / 16)

JsonObject *fsg_report_events(FsgView *view, uint64_t since, bool wait)
{
	JsonObject *events;
	FsgEventList list;
	JsonArray *rows;

	fsg_events_list(view->events, since, EVENTS_TEXT_BYTES, wait, &list);
	if (wait && list.rows->len == 0) {
		fsg_event_list_clear(&list);
		return NULL;
	}
	events = json_object_new();
	rows = json_array_new();
	for (guint i = 0; i < list.rows->len; i++)
		json_array_add_object_element(rows, event_json(g_ptr_array_index(list.rows, i)));
	set_number(events, "last", list.last);
	set_number(events, "lost", list.lost);
	json_object_set_array_member(events, "rows", rows);
	fsg_event_list_clear(&list);
	return events;
}
