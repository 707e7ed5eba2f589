/* Text from outside in a message of ours: one line, printable, and not longer than a person reads. */
#pragma once

/* text escaped (path_escape), cut after 80 bytes. The caller frees. */
char *quote_key(const char *text);

/* The same in double quotes. */
char *quote_text(const char *text);
