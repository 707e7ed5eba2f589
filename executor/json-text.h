/* JSON strings for output that programs and terminals read.
 *
 * Written here and not by the JSON library because what a command printed may hold NUL bytes, which
 * its C strings cannot carry, and may be many megabytes, which it would copy several times. */
#pragma once

#include <glib.h>

/* Appends size bytes of valid UTF-8, NULs included, as a quoted JSON string. Control characters, those
 * of the C1 range included, are escaped: the result can be shown on a terminal as it is. */
void exr_json_add_text(GString *json, const char *text, gsize size);

/* Appends a string, or null for NULL. Bytes that are not UTF-8 become U+FFFD: for our own words and
 * messages, which are text; not for paths and output. */
void exr_json_add_string(GString *json, const char *text);

/* Appends the bytes in base64, quoted. */
void exr_json_add_base64(GString *json, const void *data, gsize size);

/* Appends a path: a string, or {"b64": "..."} when it is not valid UTF-8. */
void exr_json_add_path(GString *json, const char *path);
