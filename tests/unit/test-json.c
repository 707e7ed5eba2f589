/* json: values made by hand and from text, and back. What is refused is for test-json-strict.c. */
#include "common/json.h"

#include "common/json-strict.h"

#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char *text_of(JsonObject *take_object)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

	json_node_take_object(node, take_object);
	return json_to_string(node, false);
}

static void a_text_comes_back_as_it_was(void **state)
{
	static const struct {
		const char *text, *written; /* NULL: the same */
	} cases[] = {
		{ "{}", NULL },
		{ "{\"a\":[],\"b\":{}}", NULL },
		{ "{\"a\":[1,-2,[null,true,false],\"x\"],\"b\":{\"c\":{\"d\":0}}}", NULL },
		{ " {\t\"a\" : [ 1 , 2 ] ,\r\n\"b\" : null } ", "{\"a\":[1,2],\"b\":null}" },
		{ "{\"a\":9223372036854775807,\"b\":-9223372036854775808}", NULL },
		{ "{\"a\":1.50,\"b\":-0.0e+7,\"c\":1E3}", NULL },
		{ "{\"a\":-0}", "{\"a\":0}" },
		{ "{\"\":\"\"}", NULL },
		{ "{\"z\":1,\"a\":2,\"m\":3}", NULL },
		{ "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}",
		  "{\"a\":\"\\\"\\\\/\\u0008\\u000c\\n\\r\\t\"}" },
		{ "{\"a\":\"\\u0001\\u001f\\u007f\"}", NULL },
		{ "{\"a\":\"\\u00e9\\u20ac\\ud83d\\ude00\\ufffd\"}",
		  "{\"a\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd\"}" },
		{ "{\"\\u0041\\\"\":\"b\\\\u0041\"}", "{\"A\\\"\":\"b\\\\u0041\"}" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(JsonNode) node = json_from_string(cases[i].text, -1);
		g_autofree char *written = NULL;
		g_autofree char *pretty = NULL;
		g_autofree char *again = NULL;
		g_autoptr(JsonNode) from_pretty = NULL;

		assert_non_null(node);
		written = json_to_string(node, false);
		assert_string_equal(written, cases[i].written ? cases[i].written : cases[i].text);
		pretty = json_to_string(node, true);
		from_pretty = json_from_string(pretty, -1);
		assert_non_null(from_pretty);
		again = json_to_string(from_pretty, false);
		assert_string_equal(again, written);
	}
}

static void pretty_is_two_blanks_a_level(void **state)
{
	g_autoptr(JsonNode) node = json_from_string("{\"a\":[1,{}],\"b\":{\"c\":[]}}", -1);
	g_autofree char *pretty = json_to_string(node, true);

	(void)state;
	assert_string_equal(pretty, "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n"
				    "    \"c\": []\n  }\n}");
}

/* An object becomes an index when it grows: at every size it answers the same. */
static void members_are_found_and_keep_their_order(void **state)
{
	g_autoptr(JsonObject) object = json_object_new();

	(void)state;
	for (int size = 0; size < 40; size++) {
		char name[16];
		JsonObjectIter iter;
		const char *got;
		JsonNode *node;
		int n = 0;

		g_snprintf(name, sizeof name, "m%d", size);
		assert_false(json_object_has_member(object, name));
		assert_null(json_object_get_member(object, name));
		json_object_set_string_member(object, name, "soon another");
		json_object_set_int_member(object, name, size);
		json_object_iter_init_ordered(&iter, object);
		while (json_object_iter_next_ordered(&iter, &got, &node)) {
			g_snprintf(name, sizeof name, "m%d", n);
			assert_string_equal(got, name);
			assert_int_equal(json_node_get_int(node), n);
			assert_int_equal(json_object_get_int_member(object, name), n);
			n++;
		}
		assert_int_equal(n, size + 1);
	}
}

static void what_is_something_else_or_absent_is_nothing(void **state)
{
	static const char text[] = "{\"o\":{},\"a\":[],\"s\":\"5\",\"i\":5,\"n\":5.0,\"b\":true,"
				   "\"0\":null}";
	static const JsonNodeType types[] = { JSON_NODE_OBJECT, JSON_NODE_ARRAY,  JSON_NODE_STRING,
					      JSON_NODE_INT,	JSON_NODE_NUMBER, JSON_NODE_BOOLEAN,
					      JSON_NODE_NULL };
	static const char *const names[] = { "o", "a", "s", "i", "n", "b", "0", "none" };
	g_autoptr(JsonNode) root = json_from_string(text, -1);
	JsonObject *object = json_node_get_object(root);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		const char *name = names[i];
		JsonNode *node = json_object_get_member(object, name);

		for (size_t j = 0; j < G_N_ELEMENTS(types); j++)
			assert_int_equal(json_node_holds(node, types[j]), i == j);
		assert_int_equal(json_object_get_object_member(object, name) != NULL, i == 0);
		assert_int_equal(json_object_get_array_member(object, name) != NULL, i == 1);
		assert_int_equal(json_object_get_string_member(object, name) != NULL, i == 2);
		assert_int_equal(json_object_get_int_member(object, name), i == 3 ? 5 : 0);
		assert_int_equal(json_node_get_number(node) != NULL, i == 4);
		assert_int_equal(json_node_get_boolean(node), i == 5);
		assert_int_equal(json_object_get_null_member(object, name), i == 6);
	}
}

static void what_is_shared_lives_as_long_as_its_last_owner(void **state)
{
	JsonNode *root = json_from_string("{\"a\":{\"b\":[{\"c\":1}]}}", -1);
	g_autoptr(JsonObject) inner =
		json_node_dup_object(json_object_get_member(json_node_get_object(root), "a"));
	g_autoptr(JsonNode) list = json_object_dup_member(inner, "b");
	JsonObject *outer = json_object_new();
	g_autofree char *text = NULL;

	(void)state;
	json_node_unref(root);
	json_object_set_object_member(outer, "x", json_object_ref(inner));
	json_object_set_member(outer, "y", json_node_ref(list));
	json_object_set_string_member(outer, "z", NULL);
	json_object_set_null_member(outer, "x2");
	json_object_set_boolean_member(outer, "x", true);
	text = text_of(outer);
	assert_string_equal(text, "{\"x\":true,\"y\":[{\"c\":1}],\"z\":null,\"x2\":null}");
	assert_int_equal(json_array_get_length(json_node_get_array(list)), 1);
}

/* Behind the text there is something else: not even a NUL. */
static void a_text_is_read_to_its_end_only(void **state)
{
	static const char text[] = "{\"a\":12}345";
	char *exact = g_memdup2(text, 8);
	JsonNode *node = json_from_string(exact, 8);

	(void)state;
	assert_non_null(node);
	assert_int_equal(json_object_get_int_member(json_node_get_object(node), "a"), 12);
	json_node_unref(node);
	g_free(exact);
	assert_null(json_from_string(text, -1));
	assert_null(json_from_string("[]", -1));
	assert_null(json_from_string("{\"a\":\"\xff\"}", -1));
}

static void nesting_has_a_bound(void **state)
{
	(void)state;
	for (int depth = 60; depth < 70; depth++) {
		g_autoptr(GString) text = g_string_new("{\"a\":");
		g_autoptr(JsonNode) node = NULL;

		for (int i = 1; i < depth; i++)
			g_string_append_c(text, '[');
		for (int i = 1; i < depth; i++)
			g_string_append_c(text, ']');
		g_string_append_c(text, '}');
		node = json_from_string(text->str, -1);
		assert_int_equal(node != NULL, depth <= 64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_comes_back_as_it_was),
		cmocka_unit_test(pretty_is_two_blanks_a_level),
		cmocka_unit_test(members_are_found_and_keep_their_order),
		cmocka_unit_test(what_is_something_else_or_absent_is_nothing),
		cmocka_unit_test(what_is_shared_lives_as_long_as_its_last_owner),
		cmocka_unit_test(a_text_is_read_to_its_end_only),
		cmocka_unit_test(nesting_has_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
