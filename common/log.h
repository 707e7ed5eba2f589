/* Records of what happened, for whoever runs us: GLib's structured log, in the domain "stella-sandbox".
 *
 * A record has an event ("sandbox.session_created") and fields; the events are listed in executor/README.md. As
 * fields of GLib's log they are STELLA_EVENT and STELLA_<NAME>; MESSAGE holds all of it in one line. A host that has a
 * writer of its own gets them there.
 *
 * What goes into a field is named by whoever emits the event: never a whole request, policy or environment, which
 * hold secrets. */
#pragma once

#include <glib.h>

#define LOG_DOMAIN "stella-sandbox"
/* Longer values are cut, so that one record is bounded. */
#define LOG_VALUE_BYTES 4096
/* Fields of one record. */
#define LOG_FIELDS_MAX 8

/* value is NULL: the field is left out. */
typedef struct {
	const char *name; /* "session_id" */
	const char *value;
} LogField;

/* How grave it is; never fatal, also where a host has made warnings so: an error of ours is reported to its caller. */
typedef enum {
	LOG_ERROR,
	LOG_INFO,
} LogSeverity;

/* Any thread at once. Bytes that are no UTF-8, and control characters, are escaped. */
void log_event(LogSeverity severity, const char *event, const LogField *fields, size_t count);

typedef enum {
	LOG_FORMAT_TEXT, /* what GLib prints, but our events only if G_MESSAGES_DEBUG has the domain or "all" */
	LOG_FORMAT_JSON, /* one JSON object a line, info and graver */
} LogFormat;

/* Sends this process's log to stderr in that form. For main(), once, before any other thread. */
void log_setup(LogFormat format);

/* "text" or "json", or -EINVAL. */
int log_format_find(const char *name);
