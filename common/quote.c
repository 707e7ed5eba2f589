/* Text from outside in messages; see quote.h. */
#include "common/quote.h"

#include "common/path-util.h"

#include <glib.h>
#include <string.h>

enum { SHOWN_BYTES = 80 };

char *quote_key(const char *text)
{
	g_autofree char *escaped = path_escape(text);
	size_t length = SHOWN_BYTES;

	if (strlen(escaped) <= SHOWN_BYTES)
		return g_steal_pointer(&escaped);
	while ((escaped[length] & 0xc0) == 0x80) /* back to the start of a character */
		length--;
	return g_strdup_printf("%.*s...", (int)length, escaped);
}

char *quote_text(const char *text)
{
	g_autofree char *key = quote_key(text);

	return g_strdup_printf("\"%s\"", key);
}
