/* A strict JSON text as a tree; see json-strict.h.
 *
 * json-glib replaces a member that is given twice in silence, so each member is noted as it comes, and
 * the place of one that came twice is then looked for in the finished tree. */
#include "common/json-strict.h"

#include "common/quote.h"

#include <errno.h>

/* The objects are held while the text is read, or the address of one that was replaced could come
 * again. */
typedef struct {
	GHashTable *seen;  /* char *, by object and name */
	GHashTable *twice; /* the same */
	GPtrArray *held;   /* JsonObject */
} Members;

static char *member_id(JsonObject *object, const char *name)
{
	return g_strdup_printf("%p %s", (void *)object, name);
}

static void note_member(JsonParser *parser, JsonObject *object, const char *name, gpointer data)
{
	Members *members = data;

	(void)parser;
	g_ptr_array_add(members->held, json_object_ref(object));
	if (!g_hash_table_add(members->seen, member_id(object, name)))
		g_hash_table_add(members->twice, member_id(object, name));
}

static bool find_twice(JsonNode *node, GHashTable *twice, GString *place);

/* place becomes the key path of the first member of the tree that was given twice. Recursion is bounded
 * by the depth that the check allowed. */
static bool find_twice_in_object(JsonObject *object, GHashTable *twice, GString *place)
{
	gsize length = place->len;
	JsonObjectIter iter;
	const char *name;
	JsonNode *node;

	json_object_iter_init_ordered(&iter, object);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		g_autofree char *id = member_id(object, name);
		g_autofree char *key = quote_key(name);

		g_string_append_printf(place, "%s%s", length > 0 ? "." : "", key);
		if (g_hash_table_contains(twice, id) || find_twice(node, twice, place))
			return true;
		g_string_truncate(place, length);
	}
	return false;
}

static bool find_twice(JsonNode *node, GHashTable *twice, GString *place)
{
	gsize length = place->len;
	JsonArray *array;

	if (JSON_NODE_HOLDS_OBJECT(node))
		return find_twice_in_object(json_node_get_object(node), twice, place);
	if (!JSON_NODE_HOLDS_ARRAY(node))
		return false;
	array = json_node_get_array(node);
	for (unsigned int i = 0; i < json_array_get_length(array); i++) {
		g_string_append_printf(place, "[%u]", i);
		if (find_twice(json_array_get_element(array, i), twice, place))
			return true;
		g_string_truncate(place, length);
	}
	return false;
}

int json_strict_parse(const char *text, size_t size, int max_depth, JsonNode **ret_root,
		      char **reterr_message)
{
	g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_autoptr(GHashTable) twice = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_autoptr(GPtrArray) held =
		g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
	Members members = { .seen = seen, .twice = twice, .held = held };
	g_autoptr(JsonParser) parser = NULL;
	g_autoptr(JsonNode) root = NULL;
	g_autoptr(GError) error = NULL;
	int r = json_strict_check(text, size, max_depth, reterr_message);

	if (r < 0)
		return r;
	parser = json_parser_new();
	g_signal_connect(parser, "object-member", G_CALLBACK(note_member), &members);
	/* After the check a failure here would be a disagreement on the grammar: refused as well. */
	if (!json_parser_load_from_data(parser, text, (gssize)size, &error)) {
		*reterr_message = g_strdup_printf("not readable as JSON: %s", error->message);
		return -EINVAL;
	}
	root = json_parser_steal_root(parser);
	if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
		*reterr_message = g_strdup("not readable as JSON: no object");
		return -EINVAL;
	}
	if (g_hash_table_size(twice) > 0) {
		g_autoptr(GString) place = g_string_new(NULL);

		(void)find_twice(root, twice, place); /* the outermost is always in the tree */
		*reterr_message = g_strdup_printf("%s: given twice", place->str);
		return -EINVAL;
	}
	*ret_root = g_steal_pointer(&root);
	return 0;
}
