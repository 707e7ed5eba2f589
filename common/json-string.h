/* JSON strings, for values (json-write.c) and for output that programs and terminals read.
 *
 * Large output is written by these and not as a value: what a command printed may hold NUL bytes, which
 * a value's C string cannot carry, and may be many megabytes, which would be copied once more. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Appends size bytes of valid UTF-8, NULs included, as a quoted JSON string. Control characters, those
 * of the C1 range included, are escaped: the result can be shown on a terminal as it is. */
void json_string_add_text(GString *json, const char *text, gsize size);

/* Whether size bytes are UTF-8. A NUL is a character like any other, which GLib's own check denies. */
bool json_string_is_text(const char *text, gsize size);

/* As json_string_add_text(), with U+FFFD in the place of each byte that is part of no character. */
void json_string_add_lossy(GString *json, const char *text, gsize size);

/* Appends a string, or null for NULL. Bytes that are not UTF-8 become U+FFFD: for our own words and
 * messages, which are text; not for paths and output. */
void json_string_add(GString *json, const char *text);

/* Appends the bytes in base64, quoted. */
void json_string_add_base64(GString *json, const void *data, gsize size);

/* Appends a path: a string, or {"b64": "..."} when it is not valid UTF-8. */
void json_string_add_path(GString *json, const char *path);
