/* The one line on stderr that says what went wrong. */
#pragma once

#include "executor/error.h"

#include <glib.h>

/* "stella-exec: MESSAGE (HINT)", always one line: control characters, which a file name can bring
 * along, are shown as "?". hint may be NULL. */
void exr_message_print(const char *hint, const char *format, ...) G_GNUC_PRINTF(2, 3);
void exr_message_print_error(const ExrError *error);
