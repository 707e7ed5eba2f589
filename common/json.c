/* JSON values; see json.h. An object is an array of members in their order, with an index beside it once it is
 * large, since who sends a text chooses how many there are. */
#include "common/json.h"

#include <string.h>

/* Members up to which they are looked through. */
#define FEW 8

typedef struct {
	char *name;
	JsonNode *node;
} Member;

struct JsonObject {
	guint refs;
	GArray *members;   /* Member */
	GHashTable *index; /* name, borrowed from its member: position + 1; NULL for few */
};

struct JsonArray {
	guint refs;
	GPtrArray *nodes;
};

struct JsonNode {
	guint refs;
	JsonNodeType type;
	union {
		JsonObject *object;
		JsonArray *array;
		char *text;
		gint64 integer;
		bool boolean;
	};
};

static JsonNode *node_new(JsonNodeType type)
{
	JsonNode *node = g_new0(JsonNode, 1);

	node->refs = 1;
	node->type = type;
	return node;
}

JsonNode *json_node_new(JsonNodeType type)
{
	JsonNode *node = node_new(type);

	if (type == JSON_NODE_OBJECT)
		node->object = json_object_new();
	else if (type == JSON_NODE_ARRAY)
		node->array = json_array_new();
	else if (type == JSON_NODE_STRING)
		node->text = g_strdup("");
	else if (type == JSON_NODE_NUMBER)
		node->text = g_strdup("0.0");
	return node;
}

JsonNode *json_node_new_text(JsonNodeType type, char *take_text)
{
	JsonNode *node = node_new(type);

	node->text = take_text;
	return node;
}

JsonNode *json_node_new_int(gint64 value)
{
	JsonNode *node = node_new(JSON_NODE_INT);

	node->integer = value;
	return node;
}

JsonNode *json_node_new_boolean(bool value)
{
	JsonNode *node = node_new(JSON_NODE_BOOLEAN);

	node->boolean = value;
	return node;
}

static JsonNode *node_new_string(const char *value)
{
	return value ? json_node_new_text(JSON_NODE_STRING, g_strdup(value))
		     : node_new(JSON_NODE_NULL);
}

static JsonNode *node_new_object(JsonObject *take_object)
{
	JsonNode *node = node_new(JSON_NODE_OBJECT);

	node->object = take_object;
	return node;
}

JsonNode *json_node_ref(JsonNode *node)
{
	node->refs++;
	return node;
}

static void clear(JsonNode *node)
{
	if (node->type == JSON_NODE_OBJECT)
		json_object_unref(node->object);
	else if (node->type == JSON_NODE_ARRAY)
		json_array_unref(node->array);
	else if (node->type == JSON_NODE_STRING || node->type == JSON_NODE_NUMBER)
		g_free(node->text);
}

void json_node_unref(JsonNode *node)
{
	if (!node || --node->refs > 0)
		return;
	clear(node);
	g_free(node);
}

JsonNodeType json_node_get_type(const JsonNode *node)
{
	return node->type;
}

bool json_node_holds(const JsonNode *node, JsonNodeType type)
{
	return node && node->type == type;
}

JsonObject *json_node_get_object(const JsonNode *node)
{
	return json_node_holds(node, JSON_NODE_OBJECT) ? node->object : NULL;
}

JsonArray *json_node_get_array(const JsonNode *node)
{
	return json_node_holds(node, JSON_NODE_ARRAY) ? node->array : NULL;
}

const char *json_node_get_string(const JsonNode *node)
{
	return json_node_holds(node, JSON_NODE_STRING) ? node->text : NULL;
}

const char *json_node_get_number(const JsonNode *node)
{
	return json_node_holds(node, JSON_NODE_NUMBER) ? node->text : NULL;
}

gint64 json_node_get_int(const JsonNode *node)
{
	return json_node_holds(node, JSON_NODE_INT) ? node->integer : 0;
}

bool json_node_get_boolean(const JsonNode *node)
{
	return json_node_holds(node, JSON_NODE_BOOLEAN) && node->boolean;
}

char *json_node_dup_string(const JsonNode *node)
{
	return g_strdup(json_node_get_string(node));
}

JsonObject *json_node_dup_object(const JsonNode *node)
{
	JsonObject *object = json_node_get_object(node);

	return object ? json_object_ref(object) : NULL;
}

void json_node_take_object(JsonNode *node, JsonObject *take_object)
{
	clear(node);
	node->type = JSON_NODE_OBJECT;
	node->object = take_object;
}

/* --- objects --- */

static void member_clear(gpointer data)
{
	Member *member = data;

	g_free(member->name);
	json_node_unref(member->node);
}

JsonObject *json_object_new(void)
{
	JsonObject *object = g_new0(JsonObject, 1);

	object->refs = 1;
	object->members = g_array_new(FALSE, FALSE, sizeof(Member));
	g_array_set_clear_func(object->members, member_clear);
	return object;
}

JsonObject *json_object_ref(JsonObject *object)
{
	object->refs++;
	return object;
}

void json_object_unref(JsonObject *object)
{
	if (!object || --object->refs > 0)
		return;
	g_clear_pointer(&object->index, g_hash_table_unref);
	g_array_unref(object->members);
	g_free(object);
}

static Member *member_at(const JsonObject *object, guint i)
{
	return &g_array_index(object->members, Member, i);
}

static Member *find(const JsonObject *object, const char *name)
{
	guint position;

	if (object->index) {
		position = GPOINTER_TO_UINT(g_hash_table_lookup(object->index, name));
		return position > 0 ? member_at(object, position - 1) : NULL;
	}
	for (guint i = 0; i < object->members->len; i++)
		if (strcmp(member_at(object, i)->name, name) == 0)
			return member_at(object, i);
	return NULL;
}

static void add_to_index(JsonObject *object, guint i)
{
	g_hash_table_insert(object->index, member_at(object, i)->name, GUINT_TO_POINTER(i + 1));
}

void json_object_set_member(JsonObject *object, const char *name, JsonNode *take_node)
{
	Member *there = find(object, name);
	Member member = { .name = g_strdup(name), .node = take_node };

	if (there) {
		g_free(member.name);
		json_node_unref(there->node);
		there->node = take_node;
		return;
	}
	g_array_append_val(object->members, member);
	if (object->index) {
		add_to_index(object, object->members->len - 1);
	} else if (object->members->len > FEW) {
		object->index = g_hash_table_new(g_str_hash, g_str_equal);
		for (guint i = 0; i < object->members->len; i++)
			add_to_index(object, i);
	}
}

void json_object_set_string_member(JsonObject *object, const char *name, const char *value)
{
	json_object_set_member(object, name, node_new_string(value));
}

void json_object_set_int_member(JsonObject *object, const char *name, gint64 value)
{
	json_object_set_member(object, name, json_node_new_int(value));
}

void json_object_set_boolean_member(JsonObject *object, const char *name, bool value)
{
	json_object_set_member(object, name, json_node_new_boolean(value));
}

void json_object_set_null_member(JsonObject *object, const char *name)
{
	json_object_set_member(object, name, node_new(JSON_NODE_NULL));
}

void json_object_set_object_member(JsonObject *object, const char *name, JsonObject *take_value)
{
	json_object_set_member(object, name, node_new_object(take_value));
}

void json_object_set_array_member(JsonObject *object, const char *name, JsonArray *take_value)
{
	JsonNode *node = node_new(JSON_NODE_ARRAY);

	node->array = take_value;
	json_object_set_member(object, name, node);
}

bool json_object_has_member(const JsonObject *object, const char *name)
{
	return find(object, name) != NULL;
}

JsonNode *json_object_get_member(const JsonObject *object, const char *name)
{
	Member *member = find(object, name);

	return member ? member->node : NULL;
}

JsonNode *json_object_dup_member(const JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return node ? json_node_ref(node) : NULL;
}

GList *json_object_get_members(const JsonObject *object)
{
	GList *names = NULL;

	for (guint i = object->members->len; i > 0; i--)
		names = g_list_prepend(names, member_at(object, i - 1)->name);
	return names;
}

const char *json_object_get_string_member(const JsonObject *object, const char *name)
{
	return json_node_get_string(json_object_get_member(object, name));
}

gint64 json_object_get_int_member(const JsonObject *object, const char *name)
{
	return json_node_get_int(json_object_get_member(object, name));
}

bool json_object_get_null_member(const JsonObject *object, const char *name)
{
	return json_node_holds(json_object_get_member(object, name), JSON_NODE_NULL);
}

JsonObject *json_object_get_object_member(const JsonObject *object, const char *name)
{
	return json_node_get_object(json_object_get_member(object, name));
}

JsonArray *json_object_get_array_member(const JsonObject *object, const char *name)
{
	return json_node_get_array(json_object_get_member(object, name));
}

void json_object_iter_init_ordered(JsonObjectIter *iter, const JsonObject *object)
{
	*iter = (JsonObjectIter){ .object = object };
}

bool json_object_iter_next_ordered(JsonObjectIter *iter, const char **ret_name, JsonNode **ret_node)
{
	const Member *member;

	if (iter->next >= iter->object->members->len)
		return false;
	member = member_at(iter->object, iter->next++);
	if (ret_name)
		*ret_name = member->name;
	if (ret_node)
		*ret_node = member->node;
	return true;
}

/* --- arrays --- */

JsonArray *json_array_new(void)
{
	JsonArray *array = g_new0(JsonArray, 1);

	array->refs = 1;
	array->nodes = g_ptr_array_new_with_free_func((GDestroyNotify)json_node_unref);
	return array;
}

JsonArray *json_array_ref(JsonArray *array)
{
	array->refs++;
	return array;
}

void json_array_unref(JsonArray *array)
{
	if (!array || --array->refs > 0)
		return;
	g_ptr_array_unref(array->nodes);
	g_free(array);
}

guint json_array_get_length(const JsonArray *array)
{
	return array->nodes->len;
}

JsonNode *json_array_get_element(const JsonArray *array, guint i)
{
	return g_ptr_array_index(array->nodes, i);
}

JsonObject *json_array_get_object_element(const JsonArray *array, guint i)
{
	return json_node_get_object(json_array_get_element(array, i));
}

const char *json_array_get_string_element(const JsonArray *array, guint i)
{
	return json_node_get_string(json_array_get_element(array, i));
}

void json_array_add_element(JsonArray *array, JsonNode *take_node)
{
	g_ptr_array_add(array->nodes, take_node);
}

void json_array_add_string_element(JsonArray *array, const char *value)
{
	json_array_add_element(array, node_new_string(value));
}

void json_array_add_object_element(JsonArray *array, JsonObject *take_value)
{
	json_array_add_element(array, node_new_object(take_value));
}
