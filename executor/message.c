/* Error lines; see message.h. */
#include "executor/message.h"

#include "common/io-util.h"

#include <stdarg.h>
#include <unistd.h>

static void print_line(const char *message, const char *hint)
{
	g_autofree char *line = hint ? g_strdup_printf("stella-exec: %s (%s)", message, hint)
				     : g_strdup_printf("stella-exec: %s", message);
	g_autoptr(GString) text = g_string_new(NULL);

	for (const char *c = line; *c; c++)
		g_string_append_c(text, (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c);
	g_string_append_c(text, '\n');
	/* Where the line cannot be written nobody can be told that either. */
	(void)io_write_all(STDERR_FILENO, text->str, text->len);
}

void exr_message_print(const char *hint, const char *format, ...)
{
	g_autofree char *message = NULL;
	va_list args;

	va_start(args, format);
	message = g_strdup_vprintf(format, args);
	va_end(args);
	print_line(message, hint);
}

void exr_message_print_error(const ExrError *error)
{
	print_line(error->message, error->hint);
}
