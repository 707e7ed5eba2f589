/* JSON values as text; see json.h. */
#include "common/json.h"

#include "common/json-string.h"

static void write_node(GString *text, const JsonNode *node, bool pretty, int level);

static void new_line(GString *text, bool pretty, int level)
{
	if (pretty)
		g_string_append_printf(text, "\n%*s", 2 * level, "");
}

static void write_object(GString *text, const JsonObject *object, bool pretty, int level)
{
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;
	bool any = false;

	g_string_append_c(text, '{');
	json_object_iter_init_ordered(&iter, object);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		if (any)
			g_string_append_c(text, ',');
		any = true;
		new_line(text, pretty, level + 1);
		json_string_add(text, name);
		g_string_append(text, pretty ? ": " : ":");
		write_node(text, node, pretty, level + 1);
	}
	if (any)
		new_line(text, pretty, level);
	g_string_append_c(text, '}');
}

static void write_array(GString *text, const JsonArray *array, bool pretty, int level)
{
	guint length = json_array_get_length(array);

	g_string_append_c(text, '[');
	for (guint i = 0; i < length; i++) {
		if (i > 0)
			g_string_append_c(text, ',');
		new_line(text, pretty, level + 1);
		write_node(text, json_array_get_element(array, i), pretty, level + 1);
	}
	if (length > 0)
		new_line(text, pretty, level);
	g_string_append_c(text, ']');
}

static void write_node(GString *text, const JsonNode *node, bool pretty, int level)
{
	switch (json_node_get_type(node)) {
	case JSON_NODE_OBJECT:
		write_object(text, json_node_get_object(node), pretty, level);
		break;
	case JSON_NODE_ARRAY:
		write_array(text, json_node_get_array(node), pretty, level);
		break;
	case JSON_NODE_NULL:
		g_string_append(text, "null");
		break;
	case JSON_NODE_STRING:
		json_string_add(text, json_node_get_string(node));
		break;
	case JSON_NODE_INT:
		g_string_append_printf(text, "%" G_GINT64_FORMAT, json_node_get_int(node));
		break;
	case JSON_NODE_NUMBER:
		g_string_append(text, json_node_get_number(node));
		break;
	case JSON_NODE_BOOLEAN:
		g_string_append(text, json_node_get_boolean(node) ? "true" : "false");
		break;
	}
}

char *json_to_string(const JsonNode *node, bool pretty)
{
	GString *text = g_string_new(NULL);

	write_node(text, node, pretty, 0);
	return g_string_free(text, FALSE);
}
