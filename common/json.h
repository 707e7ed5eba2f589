/* JSON values: trees of nodes, made by json_from_string() (strict: common/json-strict.h) or by hand, and written
 * as text.
 *
 * What is here has the names and the meaning that it has in json-glib, less its object system: with that
 * library a program loads GObject, GIO and eight libraries more, which was a third of the time that a gateway
 * needed to start.
 *
 * References are counted. A tree is used by one thread at a time. Strings are UTF-8; to set NULL as a string sets
 * null. To ask a node for what it does not hold gives NULL, 0 or false, and so does a member that is absent. */
#pragma once

#include "common/json-names.h"

#include <glib.h>
#include <stdbool.h>

typedef enum {
	JSON_NODE_OBJECT,
	JSON_NODE_ARRAY,
	JSON_NODE_NULL,
	JSON_NODE_STRING,
	JSON_NODE_INT,	  /* 64 bits */
	JSON_NODE_NUMBER, /* any other, as it is written */
	JSON_NODE_BOOLEAN,
} JsonNodeType;

typedef struct JsonNode JsonNode;
typedef struct JsonObject JsonObject;
typedef struct JsonArray JsonArray;

/* An empty object or array, or null, 0 or false. */
JsonNode *json_node_new(JsonNodeType type);
/* JSON_NODE_STRING or JSON_NODE_NUMBER. */
JsonNode *json_node_new_text(JsonNodeType type, char *take_text);
JsonNode *json_node_new_int(gint64 value);
JsonNode *json_node_new_boolean(bool value);
JsonNode *json_node_ref(JsonNode *node);
void json_node_unref(JsonNode *node); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JsonNode, json_node_unref)

JsonNodeType json_node_get_type(const JsonNode *node);
bool json_node_holds(const JsonNode *node, JsonNodeType type); /* NULL holds nothing */
#define JSON_NODE_HOLDS_OBJECT(node) json_node_holds(node, JSON_NODE_OBJECT)
#define JSON_NODE_HOLDS_ARRAY(node)  json_node_holds(node, JSON_NODE_ARRAY)

/* Borrowed from the node. */
JsonObject *json_node_get_object(const JsonNode *node);
JsonArray *json_node_get_array(const JsonNode *node);
const char *json_node_get_string(const JsonNode *node);
const char *json_node_get_number(const JsonNode *node); /* JSON_NODE_NUMBER's text */
gint64 json_node_get_int(const JsonNode *node);
bool json_node_get_boolean(const JsonNode *node);
char *json_node_dup_string(const JsonNode *node);
JsonObject *json_node_dup_object(const JsonNode *node); /* a reference */
/* The node holds the object from now on, whatever it held. */
void json_node_take_object(JsonNode *node, JsonObject *take_object);

JsonObject *json_object_new(void);
JsonObject *json_object_ref(JsonObject *object);
void json_object_unref(JsonObject *object); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JsonObject, json_object_unref)

bool json_object_has_member(const JsonObject *object, const char *name);
JsonNode *json_object_get_member(const JsonObject *object,
				 const char *name); /* borrowed, or NULL */
JsonNode *json_object_dup_member(const JsonObject *object, const char *name); /* a reference */
GList *
json_object_get_members(const JsonObject *object); /* names, borrowed; the list is the caller's */
const char *json_object_get_string_member(const JsonObject *object, const char *name);
gint64 json_object_get_int_member(const JsonObject *object, const char *name);
bool json_object_get_null_member(const JsonObject *object, const char *name);
JsonObject *json_object_get_object_member(const JsonObject *object, const char *name);
JsonArray *json_object_get_array_member(const JsonObject *object, const char *name);

/* One that is there already is replaced. What is a pointer and no string is taken. */
void json_object_set_member(JsonObject *object, const char *name, JsonNode *take_node);
void json_object_set_string_member(JsonObject *object, const char *name, const char *value);
void json_object_set_int_member(JsonObject *object, const char *name, gint64 value);
void json_object_set_boolean_member(JsonObject *object, const char *name, bool value);
void json_object_set_null_member(JsonObject *object, const char *name);
void json_object_set_object_member(JsonObject *object, const char *name, JsonObject *take_value);
void json_object_set_array_member(JsonObject *object, const char *name, JsonArray *take_value);

/* In the order in which they were first set. The object may not be changed meanwhile. */
typedef struct {
	const JsonObject *object;
	guint next;
} JsonObjectIter;

void json_object_iter_init_ordered(JsonObjectIter *iter, const JsonObject *object);
/* Either result may be NULL. false: there are no more. */
bool json_object_iter_next_ordered(JsonObjectIter *iter, const char **ret_name,
				   JsonNode **ret_node);

JsonArray *json_array_new(void);
JsonArray *json_array_ref(JsonArray *array);
void json_array_unref(JsonArray *array); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JsonArray, json_array_unref)

guint json_array_get_length(const JsonArray *array);
JsonNode *json_array_get_element(const JsonArray *array, guint i); /* borrowed; i is in range */
JsonObject *json_array_get_object_element(const JsonArray *array, guint i);
const char *json_array_get_string_element(const JsonArray *array, guint i);
void json_array_add_element(JsonArray *array, JsonNode *take_node);
void json_array_add_string_element(JsonArray *array, const char *value);
void json_array_add_object_element(JsonArray *array, JsonObject *take_value);

/* One object, as json_strict_parse() takes it, 64 levels at the most. NULL: it is none. */
JsonNode *json_from_string(const char *text, gssize size);
/* Pretty: with line ends, two blanks a level. The caller frees. */
char *json_to_string(const JsonNode *node, bool pretty);
