/* Names of error numbers ("EROFS"), for results and messages that programs read. */
#pragma once

/* The symbolic name of errnum (positive), or "E<number>" in a static string table's absence:
 * "EUNKNOWN". Never NULL; static storage. */
const char *errno_name(int errnum);

/* strerror that is thread-safe: static storage, in English whatever the locale. */
const char *errno_text(int errnum);
