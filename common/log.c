/* See log.h. Events are of the levels info and message at the most: GLib aborts at errors, and hosts that debug
 * themselves at warnings. PRIORITY says how grave one is. */
#include "common/log.h"

#include "common/io-util.h"
#include "common/json.h"
#include "common/path-util.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "STELLA_"
#define EVENT  "EVENT"

/* What GLib asks for in front, then the fields. */
#define OWN_FIELDS 4

static char *printable(const char *value)
{
	g_autofree char *cut = g_strndup(value, LOG_VALUE_BYTES);

	return path_escape(cut);
}

static char *key_of(const char *name)
{
	g_autofree char *upper = g_ascii_strup(name, -1);

	return g_strconcat(PREFIX, upper, NULL);
}

void log_event(LogSeverity severity, const char *event, const LogField *fields, size_t count)
{
	const bool error = severity == LOG_ERROR;
	char *keys[LOG_FIELDS_MAX], *values[LOG_FIELDS_MAX];
	GLogField all[OWN_FIELDS + LOG_FIELDS_MAX];
	g_autoptr(GString) message = g_string_new(event);
	gsize used = OWN_FIELDS;

	g_assert(count <= LOG_FIELDS_MAX);
	for (size_t i = 0; i < count; i++) {
		keys[i] = fields[i].value ? key_of(fields[i].name) : NULL;
		values[i] = fields[i].value ? printable(fields[i].value) : NULL;
		if (!values[i])
			continue;
		g_string_append_printf(message, " %s=%s", fields[i].name, values[i]);
		all[used++] = (GLogField){ keys[i], values[i], -1 };
	}
	all[0] = (GLogField){ "PRIORITY", error ? "3" : "6", -1 };
	all[1] = (GLogField){ "GLIB_DOMAIN", LOG_DOMAIN, -1 };
	all[2] = (GLogField){ "MESSAGE", message->str, -1 };
	all[3] = (GLogField){ PREFIX EVENT, event, -1 };
	g_log_structured_array(error ? G_LOG_LEVEL_MESSAGE : G_LOG_LEVEL_INFO, all, used);
	for (size_t i = 0; i < count; i++) {
		g_free(keys[i]);
		g_free(values[i]);
	}
}

static const char *find_field(const GLogField *fields, gsize count, const char *key)
{
	for (gsize i = 0; i < count; i++)
		if (strcmp(fields[i].key, key) == 0 && fields[i].length < 0)
			return fields[i].value;
	return NULL;
}

static bool debugs_domain(void)
{
	g_auto(GStrv) domains = g_strsplit(
		g_getenv("G_MESSAGES_DEBUG") ? g_getenv("G_MESSAGES_DEBUG") : "", " ", -1);

	return g_strv_contains((const char *const *)domains, "all") ||
	       g_strv_contains((const char *const *)domains, LOG_DOMAIN);
}

static GLogWriterOutput write_text(GLogLevelFlags level, const GLogField *fields, gsize count,
				   gpointer data)
{
	if (find_field(fields, count, PREFIX EVENT) && !debugs_domain())
		return G_LOG_WRITER_HANDLED;
	return g_log_writer_default(level, fields, count, data);
}

static const char *severity_of(const char *priority, GLogLevelFlags level)
{
	if (g_strcmp0(priority, "3") == 0)
		return "error";
	if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING))
		return "warning";
	return level & G_LOG_LEVEL_DEBUG ? "debug" : "info";
}

static void add_text(JsonObject *object, const char *name, const char *value)
{
	g_autofree char *valid = value ? g_utf8_make_valid(value, -1) : NULL;

	if (valid)
		json_object_set_string_member(object, name, valid);
}

static void add_fields(JsonObject *object, const GLogField *fields, gsize count)
{
	for (gsize i = 0; i < count; i++) {
		g_autofree char *name = NULL;

		if (!g_str_has_prefix(fields[i].key, PREFIX) || fields[i].length >= 0)
			continue;
		name = g_ascii_strdown(fields[i].key + strlen(PREFIX), -1);
		add_text(object, name, fields[i].value);
	}
}

static char *to_json(GLogLevelFlags level, const GLogField *fields, gsize count)
{
	g_autoptr(GDateTime) now = g_date_time_new_now_utc();
	g_autofree char *time = g_date_time_format_iso8601(now);
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	JsonObject *object = json_object_new();

	json_node_take_object(node, object);
	json_object_set_string_member(object, "time", time);
	json_object_set_string_member(object, "level",
				      severity_of(find_field(fields, count, "PRIORITY"), level));
	add_fields(object, fields, count);
	if (!find_field(fields, count, PREFIX EVENT)) {
		add_text(object, "domain", find_field(fields, count, "GLIB_DOMAIN"));
		add_text(object, "message", find_field(fields, count, "MESSAGE"));
	}
	return json_to_string(node, FALSE);
}

static GLogWriterOutput write_json(GLogLevelFlags level, const GLogField *fields, gsize count,
				   gpointer data)
{
	const char *domain = find_field(fields, count, "GLIB_DOMAIN");
	g_autofree char *text = NULL;
	g_autofree char *line = NULL;

	(void)data;
	if (!find_field(fields, count, PREFIX EVENT) &&
	    g_log_writer_default_would_drop(level, domain))
		return G_LOG_WRITER_HANDLED;
	text = to_json(level, fields, count);
	line = g_strconcat(text, "\n", NULL);
	/* One write, so that lines of several threads do not mix. Whom could a failure be told? */
	(void)io_write_all(STDERR_FILENO, line, strlen(line));
	return G_LOG_WRITER_HANDLED;
}

void log_setup(LogFormat format)
{
	/* GLib puts info and debug on stdout, which is the command's, or one JSON object. */
	g_log_writer_default_set_use_stderr(TRUE);
	g_log_set_writer_func(format == LOG_FORMAT_JSON ? write_json : write_text, NULL, NULL);
}

int log_format_find(const char *name)
{
	if (strcmp(name, "text") == 0)
		return LOG_FORMAT_TEXT;
	return strcmp(name, "json") == 0 ? LOG_FORMAT_JSON : -EINVAL;
}
