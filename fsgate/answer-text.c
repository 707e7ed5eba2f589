/* See answer-text.h. */
#include "fsgate/answer-text.h"

#include "common/path-util.h"

#include <stdio.h>
#include <string.h>

JsonObject *fsg_json_get_object(JsonObject *object, const char *name)
{
	JsonNode *node = object ? json_object_get_member(object, name) : NULL;

	return JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

JsonArray *fsg_json_get_array(JsonObject *object, const char *name)
{
	JsonNode *node = object ? json_object_get_member(object, name) : NULL;

	return JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

gint64 fsg_json_get_number(JsonObject *object, const char *name)
{
	JsonNode *node = object ? json_object_get_member(object, name) : NULL;

	return json_node_holds(node, JSON_NODE_INT) ? json_node_get_int(node) : 0;
}

char *fsg_json_dup_text_of(JsonNode *node)
{
	JsonObject *object = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;

	if (object) {
		JsonNode *coded = json_object_get_member(object, "b64");
		g_autofree guchar *bytes = NULL;
		g_autofree char *text = NULL;
		gsize size;

		if (!json_node_holds(coded, JSON_NODE_STRING))
			return g_strdup("?");
		bytes = g_base64_decode(json_node_get_string(coded), &size);
		text = g_strndup((const char *)bytes, size);
		return path_escape(text);
	}
	if (json_node_holds(node, JSON_NODE_STRING))
		return path_escape(json_node_get_string(node));
	return NULL;
}

char *fsg_json_dup_text(JsonObject *object, const char *name)
{
	return object ? fsg_json_dup_text_of(json_object_get_member(object, name)) : NULL;
}

/* The C1 controls, which a terminal obeys too, the library leaves as they are: C2 80 to C2 9F, and in strings only. */
static void print_escaped(const char *text)
{
	for (; *text; text++) {
		if (text[0] == '\xc2' && (unsigned char)text[1] < 0xa0) {
			printf("\\u%04x", (unsigned char)text[1]);
			text++;
		} else {
			(void)putchar(*text);
		}
	}
	(void)putchar('\n');
}

void fsg_json_print(JsonNode *node)
{
	g_autofree char *text = json_to_string(node, false);

	print_escaped(text);
}
