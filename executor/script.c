/* Long shell commands; see script.h. */
#include "executor/script.h"

#include <glib.h>
#include <string.h>

/* Joins its parameters and evaluates the text. The quotes keep every byte as it is; the assignment is
 * undone by the text that is evaluated, on the text's own first line so that the shell's line numbers
 * stay right. */
#define JOIN_AND_RUN                                                                               \
	"stella_script=; "                                                                         \
	"for stella_part do stella_script=\"$stella_script$stella_part\"; done; "                  \
	"set --; eval \"unset stella_script stella_part; $stella_script\""

/* Where to cut: not inside a UTF-8 character, which a shell may look at when it joins. */
static size_t part_length(const char *text)
{
	size_t length = strnlen(text, EXR_SCRIPT_PART_BYTES), whole = length;

	if (length < EXR_SCRIPT_PART_BYTES)
		return length;
	for (int back = 0; back < 3 && ((unsigned char)text[whole] & 0xc0) == 0x80; back++)
		whole--;
	/* Still inside after three steps: it is no UTF-8, and any place is as good. */
	return ((unsigned char)text[whole] & 0xc0) == 0x80 ? length : whole;
}

char **exr_script_argv(const char *text)
{
	g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);

	g_ptr_array_add(argv, g_strdup("sh"));
	g_ptr_array_add(argv, g_strdup("-c"));
	if (strnlen(text, EXR_SCRIPT_PART_BYTES + 1) <= EXR_SCRIPT_PART_BYTES) {
		if (*text == '-' || *text == '+') /* a command that looks like an option */
			g_ptr_array_add(argv, g_strdup("--"));
		g_ptr_array_add(argv, g_strdup(text));
	} else {
		g_ptr_array_add(argv, g_strdup(JOIN_AND_RUN));
		g_ptr_array_add(argv, g_strdup("sh"));
		while (*text) {
			size_t length = part_length(text);

			g_ptr_array_add(argv, g_strndup(text, length));
			text += length;
		}
	}
	g_ptr_array_add(argv, NULL);
	return (char **)g_ptr_array_free(g_steal_pointer(&argv), FALSE);
}
