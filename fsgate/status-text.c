/* See status-text.h. Everything is read leniently: the gateway may be of another version than this program. */
#include "fsgate/status-text.h"

#include "fsgate/answer-text.h"

#include <string.h>

/* Rows of denials that are shown; all of them are in the JSON. */
#define DENIALS_SHOWN 10

static bool get_flag(JsonObject *object, const char *name)
{
	JsonNode *node = object ? json_object_get_member(object, name) : NULL;

	return json_node_holds(node, JSON_NODE_BOOLEAN) && json_node_get_boolean(node);
}

/* Names of an agent's may be long: in the middle of a list only both ends of one are shown. */
#define SHOWN_BYTES 200

static char *get_short(JsonObject *object, const char *name)
{
	char *text = fsg_json_dup_text(object, name);
	size_t length = text ? strlen(text) : 0;
	char *cut;

	if (length <= SHOWN_BYTES)
		return text;
	/* path_escape leaves UTF-8 as it is: what is cut through is made whole again */
	cut = g_strdup_printf("%.*s...%s", SHOWN_BYTES / 2, text, text + length - SHOWN_BYTES / 2);
	g_free(text);
	text = g_utf8_make_valid(cut, -1);
	g_free(cut);
	return text;
}

static void add_duration(GString *text, gint64 ms)
{
	gint64 s = ms / 1000;

	if (s >= 86400)
		g_string_append_printf(text, "%dd%dh", (int)(s / 86400), (int)(s / 3600 % 24));
	else if (s >= 3600)
		g_string_append_printf(text, "%dh%dm", (int)(s / 3600), (int)(s / 60 % 60));
	else
		g_string_append_printf(text, "%dm%ds", (int)(s / 60), (int)(s % 60));
}

static void add_mounts(GString *text, JsonArray *mounts)
{
	for (guint i = 0; mounts && i < json_array_get_length(mounts); i++) {
		JsonNode *node = json_array_get_element(mounts, i);
		JsonObject *mount =
			JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
		g_autofree char *view_path = fsg_json_dup_text(mount, "view_path");
		g_autofree char *host_path = fsg_json_dup_text(mount, "host_path");
		g_autofree char *access = fsg_json_dup_text(mount, "access");

		g_string_append_printf(text, "  %-12s %s  %s  %s\n", i == 0 ? "mounts" : "",
				       view_path ? view_path : "?", access ? access : "?",
				       host_path ? host_path : "?");
	}
}

static void add_writable(GString *text, JsonArray *writable)
{
	g_string_append(text, "  writable    ");
	for (guint i = 0; writable && i < json_array_get_length(writable); i++) {
		g_autofree char *path = fsg_json_dup_text_of(json_array_get_element(writable, i));

		g_string_append_printf(text, " %s", path ? path : "?");
	}
	if (!writable || json_array_get_length(writable) == 0)
		g_string_append(text, " nothing");
	g_string_append_c(text, '\n');
}

/* The numbers of an object that are not 0: ", name N" each, after a total. */
static void add_counts(GString *text, JsonObject *counts)
{
	g_autoptr(GList) names = counts ? json_object_get_members(counts) : NULL;
	bool first = true;

	for (GList *at = names; at; at = at->next) {
		gint64 count = fsg_json_get_number(counts, at->data);

		if (count == 0)
			continue;
		g_string_append_printf(text, "%s%s %" G_GINT64_FORMAT, first ? ": " : ", ",
				       (const char *)at->data, count);
		first = false;
	}
	g_string_append_c(text, '\n');
}

static gint64 sum(JsonObject *counts)
{
	g_autoptr(GList) names = counts ? json_object_get_members(counts) : NULL;
	gint64 total = 0;

	for (GList *at = names; at; at = at->next)
		total += fsg_json_get_number(counts, at->data);
	return total;
}

static void add_denial(GString *text, JsonObject *row)
{
	g_autofree char *op = fsg_json_dup_text(row, "op");
	g_autofree char *path = get_short(row, "path");
	g_autofree char *mount = fsg_json_dup_text(row, "mount");
	g_autofree char *reason = fsg_json_dup_text(row, "reason");
	g_autofree char *error = fsg_json_dup_text(row, "errno");
	g_autofree char *target = get_short(row, "target");

	g_string_append_printf(text, "    %s %s", op ? op : "?", path ? path : "?");
	if (target)
		g_string_append_printf(text, " -> %s", target);
	g_string_append_printf(text, ": %s", reason ? reason : "?");
	if (mount)
		g_string_append_printf(text, " (%s)", mount);
	if (error)
		g_string_append_printf(text, " %s", error);
	g_string_append_printf(text, ", %" G_GINT64_FORMAT "x", fsg_json_get_number(row, "count"));
	if (fsg_json_get_number(row, "pid"))
		g_string_append_printf(text, ", last by pid %" G_GINT64_FORMAT,
				       fsg_json_get_number(row, "pid"));
	g_string_append_c(text, '\n');
}

static void add_denials(GString *text, JsonObject *denials)
{
	JsonArray *rows = fsg_json_get_array(denials, "rows");
	guint count = rows ? json_array_get_length(rows) : 0;
	guint first = count > DENIALS_SHOWN ? count - DENIALS_SHOWN : 0;

	g_string_append_printf(text, "  denials      %" G_GINT64_FORMAT,
			       fsg_json_get_number(denials, "total"));
	add_counts(text, fsg_json_get_object(denials, "by_reason"));
	if (first > 0)
		g_string_append_printf(text, "    (the last %d; --json has more)\n", DENIALS_SHOWN);
	for (guint i = first; i < count; i++) {
		JsonNode *node = json_array_get_element(rows, i);

		if (JSON_NODE_HOLDS_OBJECT(node))
			add_denial(text, json_node_get_object(node));
	}
}

static void add_serving(GString *text, JsonObject *view)
{
	JsonObject *cache = fsg_json_get_object(view, "cache"),
		   *fds = fsg_json_get_object(view, "fds");
	JsonObject *passthrough = fsg_json_get_object(view, "passthrough");
	JsonObject *requests = fsg_json_get_object(view, "requests");
	g_autofree char *version = fsg_json_dup_text(view, "version");
	g_autofree char *links = fsg_json_dup_text(view, "links");
	g_autofree char *mode = fsg_json_dup_text(cache, "mode");
	g_autofree char *reason = fsg_json_dup_text(passthrough, "reason");
	bool is_on = get_flag(passthrough, "on");

	g_string_append_printf(text, "  gateway      pid %d, version %s, up ",
			       (int)fsg_json_get_number(view, "pid"), version ? version : "?");
	add_duration(text, fsg_json_get_number(view, "up_ms"));
	g_string_append_printf(text, ", %d threads\n", (int)fsg_json_get_number(view, "threads"));
	add_mounts(text, fsg_json_get_array(view, "mounts"));
	add_writable(text, fsg_json_get_array(view, "writable"));
	g_string_append_printf(text, "  links        %s\n", links ? links : "?");
	g_string_append_printf(text, "  cache        %s, %d ms\n", mode ? mode : "?",
			       (int)fsg_json_get_number(cache, "timeout_ms"));
	g_string_append_printf(text, "  passthrough  %s%s%s\n", is_on ? "on" : "off",
			       !reason ? ""
			       : is_on ? ", "
				       : ": ",
			       reason ? reason : "");
	g_string_append_printf(
		text,
		"  inodes       %" G_GINT64_FORMAT ", of which %d open; %d of %d files open\n",
		fsg_json_get_number(view, "inodes"), (int)fsg_json_get_number(fds, "cached"),
		(int)fsg_json_get_number(fds, "files"),
		(int)fsg_json_get_number(fds, "files_most"));
	g_string_append_printf(text, "  requests     %" G_GINT64_FORMAT, sum(requests));
	add_counts(text, requests);
	add_denials(text, fsg_json_get_object(view, "denials"));
}

char *fsg_status_text(JsonObject *view)
{
	GString *text = g_string_new(NULL);
	g_autofree char *mountpoint = fsg_json_dup_text(view, "mountpoint");
	g_autofree char *state = fsg_json_dup_text(view, "state");
	g_autofree char *reason = fsg_json_dup_text(view, "reason");

	g_string_append_printf(text, "%s: %s%s%s\n", mountpoint ? mountpoint : "?",
			       state ? state : "?", reason ? ": " : "", reason ? reason : "");
	if (g_strcmp0(state, "serving") == 0)
		add_serving(text, view);
	return g_string_free(text, FALSE);
}
