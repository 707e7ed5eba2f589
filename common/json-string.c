/* JSON strings; see json-string.h. */
#include "common/json-string.h"

#include <string.h>

/* The length of the run at text that needs no escape. The C1 controls U+0080 to U+009F are C2 80 to
 * C2 9F in UTF-8. */
static gsize plain_run(const char *text, gsize size)
{
	gsize i = 0;

	for (; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
			break;
		if (c == 0xc2 && i + 1 < size && (unsigned char)text[i + 1] < 0xa0)
			break;
	}
	return i;
}

/* Not by printf: a binary stream may have ten million of them. */
static void add_escape(GString *json, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	const char escape[] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

	g_string_append_len(json, escape, sizeof(escape));
}

/* Without the quotes. */
static void add_escaped(GString *json, const char *text, gsize size)
{
	while (size > 0) {
		gsize run = plain_run(text, size), used = 1;

		g_string_append_len(json, text, (gssize)run);
		text += run;
		size -= run;
		if (size == 0)
			break;
		switch (*text) {
		case '"':
			g_string_append(json, "\\\"");
			break;
		case '\\':
			g_string_append(json, "\\\\");
			break;
		case '\n':
			g_string_append(json, "\\n");
			break;
		case '\t':
			g_string_append(json, "\\t");
			break;
		case '\r':
			g_string_append(json, "\\r");
			break;
		case '\xc2':
			add_escape(json, (unsigned char)text[1]);
			used = 2;
			break;
		default:
			add_escape(json, (unsigned char)*text);
		}
		text += used;
		size -= used;
	}
}

/* The length of the longest beginning that is UTF-8. */
static gsize valid_run(const char *text, gsize size)
{
	gsize length = 0;

	for (;;) {
		const char *end;

		(void)g_utf8_validate_len(text + length, size - length, &end);
		length = (gsize)(end - text);
		if (length == size || *end != '\0')
			return length;
		length++;
	}
}

bool json_string_is_text(const char *text, gsize size)
{
	return valid_run(text, size) == size;
}

void json_string_add_text(GString *json, const char *text, gsize size)
{
	g_string_append_c(json, '"');
	add_escaped(json, text, size);
	g_string_append_c(json, '"');
}

void json_string_add_lossy(GString *json, const char *text, gsize size)
{
	static const char replacement[] = "\xef\xbf\xbd";

	g_string_append_c(json, '"');
	for (;;) {
		gsize length = valid_run(text, size);

		add_escaped(json, text, length);
		if (length == size)
			break;
		g_string_append_len(json, replacement, sizeof(replacement) - 1);
		text += length + 1;
		size -= length + 1;
	}
	g_string_append_c(json, '"');
}

void json_string_add(GString *json, const char *text)
{
	g_autofree char *valid = NULL;

	if (!text) {
		g_string_append(json, "null");
		return;
	}
	valid = g_utf8_make_valid(text, -1);
	json_string_add_text(json, valid, strlen(valid));
}

void json_string_add_base64(GString *json, const void *data, gsize size)
{
	gsize old = json->len, written;
	int state = 0, save = 0;

	/* Four for each three, and what closes the last group. */
	g_string_set_size(json, old + 1 + (size / 3 + 1) * 4 + 4);
	json->str[old] = '"';
	written = g_base64_encode_step(data, size, FALSE, json->str + old + 1, &state, &save);
	written += g_base64_encode_close(FALSE, json->str + old + 1 + written, &state, &save);
	g_string_truncate(json, old + 1 + written);
	g_string_append_c(json, '"');
}

void json_string_add_path(GString *json, const char *path)
{
	if (g_utf8_validate(path, -1, NULL)) {
		json_string_add_text(json, path, strlen(path));
		return;
	}
	g_string_append(json, "{\"b64\": ");
	json_string_add_base64(json, path, strlen(path));
	g_string_append_c(json, '}');
}
