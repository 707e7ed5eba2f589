/* The published schemas of policy and result, compared with the code whose lists they repeat. That documents
 * fit them is tested by check-schema.py. */
#include "common/denial-reason.h"
#include "common/json.h"
#include "common/policy-json.h"
#include "executor/result.h"
#include "executor/stage.h"

#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
	JsonNode *policy, *result;
} Schemas;

static JsonNode *load(const char *variable)
{
	const char *path = g_getenv(variable);
	g_autofree char *text = NULL;
	JsonNode *node = NULL;

	if (path && g_file_get_contents(path, &text, NULL, NULL))
		node = json_from_string(text, -1);
	if (!node)
		fail_msg("%s: cannot be read", variable);
	return node;
}

static int set_up(void **state)
{
	Schemas *schemas = g_new0(Schemas, 1);

	schemas->policy = load("STELLA_POLICY_SCHEMA");
	schemas->result = load("STELLA_RESULT_SCHEMA");
	*state = schemas;
	return 0;
}

static int tear_down(void **state)
{
	Schemas *schemas = *state;

	if (!schemas)
		return 0; /* the set-up has failed */
	json_node_unref(schemas->policy);
	json_node_unref(schemas->result);
	g_free(schemas);
	return 0;
}

/* What a path of names leads to: "properties.network.properties.mode". */
static JsonNode *find(JsonNode *schema, const char *path)
{
	g_auto(GStrv) names = g_strsplit(path, ".", -1);
	JsonNode *node = schema;

	for (char **name = names; *name; name++) {
		node = JSON_NODE_HOLDS_OBJECT(node)
			       ? json_object_get_member(json_node_get_object(node), *name)
			       : NULL;
		if (!node)
			fail_msg("the schema has no %s", path);
	}
	return node;
}

/* The array at path has exactly the words, NULLs among them being none, in their order. */
static void assert_words(JsonNode *schema, const char *path, const char *const *words, size_t count)
{
	JsonArray *array = json_node_get_array(find(schema, path));
	guint n = 0;

	for (size_t i = 0; i < count; i++) {
		if (!words[i])
			continue;
		if (n >= json_array_get_length(array))
			fail_msg("%s lacks \"%s\"", path, words[i]);
		assert_string_equal(json_array_get_string_element(array, n), words[i]);
		n++;
	}
	if (n != json_array_get_length(array))
		fail_msg("%s has \"%s\", which the code has not", path,
			 json_array_get_string_element(array, n));
}

static size_t strv_size(const char *const *strv)
{
	size_t size = 0;

	while (strv[size])
		size++;
	return size;
}

static void codes_and_reasons_are_those_of_the_code(void **state)
{
	const Schemas *schemas = *state;
	const char *reasons[_DENIAL_N];

	for (int i = 0; i < _DENIAL_N; i++)
		reasons[i] = denial_reason_name((DenialReason)i);
	assert_words(schemas->result, "definitions.denial.properties.reason.enum", reasons,
		     _DENIAL_N);
	assert_words(schemas->result, "definitions.error.properties.code.enum", exr_error_codes,
		     strv_size(exr_error_codes));
}

static void every_stage_has_a_code_of_the_list(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < _EXR_STAGE_N; i++) {
		const ExrStageInfo *info = exr_stage_info(i);

		if (!g_strv_contains(exr_error_codes, info->code))
			fail_msg("stage %s: %s is no code", info->name, info->code);
	}
}

static void the_words_of_a_policy_are_those_of_the_code(void **state)
{
	static const struct {
		const char *path;
		const PolicyWords *words;
	} rows[] = {
		{ "definitions.mount.properties.access.enum", &policy_access_words },
		{ "properties.network.properties.mode.enum", &policy_network_words },
		{ "properties.filesystem.properties.runtime.enum", &policy_runtime_words },
		{ "properties.filesystem.properties.symlinks.enum", &policy_symlinks_words },
		{ "properties.filesystem.properties.cache.enum", &policy_cache_words },
		{ "properties.filesystem.properties.ownership.enum", &policy_ownership_words },
	};
	const Schemas *schemas = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		assert_words(schemas->policy, rows[i].path, rows[i].words->words,
			     (size_t)rows[i].words->count);
}

static void limits_have_their_ranges_and_defaults(void **state)
{
	const Schemas *schemas = *state;
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	PolicyLimits limits = policy->limits;

	for (const PolicyLimit *row = policy_limits; row->name; row++) {
		g_autofree char *path =
			g_strconcat("properties.limits.properties.", row->name, NULL);
		JsonObject *limit = json_node_get_object(find(schemas->policy, path));

		assert_int_equal(json_object_get_int_member(limit, "minimum"), row->min);
		assert_int_equal(json_object_get_int_member(limit, "maximum"), row->max);
		assert_int_equal(json_object_get_int_member(limit, "default"),
				 *policy_limit_field(&limits, row));
	}
}

static void assert_same_keys(JsonNode *schema, const char *path, JsonObject *document)
{
	JsonObject *known = json_node_get_object(find(schema, path));
	g_autoptr(GList) members = json_object_get_members(document);
	g_autoptr(GList) names = json_object_get_members(known);

	for (GList *member = members; member; member = member->next)
		if (!json_object_has_member(known, member->data))
			fail_msg("%s lacks %s", path, (char *)member->data);
	for (GList *name = names; name; name = name->next)
		if (!json_object_has_member(document, name->data))
			fail_msg("%s has %s, which the code does not write", path,
				 (char *)name->data);
}

/* What is written has every key that is read. */
static void a_policy_has_the_keys_of_the_schema(void **state)
{
	static const char *const objects[] = { "filesystem", "network", "process", "limits" };
	const Schemas *schemas = *state;
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	g_autoptr(JsonNode) node = NULL;
	g_autofree char *text = NULL;
	JsonObject *root;

	policy->runtime = POLICY_RUNTIME_HOST;
	policy_add_mount(policy, "/a", "/b", STELLA_MOUNT_READ_ONLY);
	text = policy_json_write(policy, false);
	node = json_from_string(text, -1);
	root = json_node_get_object(node);
	assert_same_keys(schemas->policy, "properties", root);
	for (size_t i = 0; i < G_N_ELEMENTS(objects); i++) {
		g_autofree char *path = g_strdup_printf("properties.%s.properties", objects[i]);

		assert_same_keys(schemas->policy, path,
				 json_object_get_object_member(root, objects[i]));
	}
	root = json_object_get_object_member(root, "filesystem");
	assert_same_keys(
		schemas->policy, "definitions.mount.properties",
		json_array_get_object_element(json_object_get_array_member(root, "mounts"), 0));
}

static void a_result_has_the_keys_and_ends_of_the_schema(void **state)
{
	const Schemas *schemas = *state;
	ExrError error = { .code = "internal", .stage = "init", .message = NULL };
	const char *ends[_N_EXR_ENDED];

	for (int i = 0; i < _N_EXR_ENDED; i++) {
		ExrResult result = { .ended = (ExrEnded)i, .signal = 9, .error = &error };
		g_autoptr(GString) json = exr_result_to_json(&result);
		g_autoptr(JsonNode) node = json_from_string(json->str, -1);
		JsonObject *root = json_node_get_object(node);

		assert_same_keys(schemas->result, "properties", root);
		ends[i] = g_intern_string(json_object_get_string_member(root, "ended"));
		if (i == EXR_ENDED_START_FAILED)
			assert_same_keys(schemas->result, "definitions.error.properties",
					 json_object_get_object_member(root, "error"));
	}
	assert_words(schemas->result, "properties.ended.enum", ends, _N_EXR_ENDED);
}

/* Every object says which keys it has; those of a result require all of theirs. */
static void assert_closed(JsonNode *node, const char *place, bool requires_all)
{
	JsonObjectIter iter;
	JsonObject *object;
	JsonNode *child;
	const char *name;

	if (JSON_NODE_HOLDS_ARRAY(node)) {
		JsonArray *array = json_node_get_array(node);

		for (guint i = 0; i < json_array_get_length(array); i++)
			assert_closed(json_array_get_element(array, i), place, requires_all);
	}
	if (!JSON_NODE_HOLDS_OBJECT(node))
		return;
	object = json_node_get_object(node);
	if (json_object_has_member(object, "type") &&
	    json_object_has_member(object, "properties")) {
		guint optional = strcmp(place, "change") == 0 ? 1 : 0; /* "from" */

		if (!json_object_has_member(object, "additionalProperties") ||
		    json_node_get_boolean(json_object_get_member(object, "additionalProperties")))
			fail_msg("%s takes any key", place);
		if (requires_all) {
			g_autoptr(GList) names = json_object_get_members(
				json_object_get_object_member(object, "properties"));

			assert_int_equal(json_array_get_length(
						 json_object_get_array_member(object, "required")) +
						 optional,
					 g_list_length(names));
		}
	}
	json_object_iter_init_ordered(&iter, object);
	while (json_object_iter_next_ordered(&iter, &name, &child))
		assert_closed(child, name, requires_all);
}

static void nothing_is_left_open(void **state)
{
	const Schemas *schemas = *state;

	assert_closed(schemas->policy, "policy", false);
	assert_closed(schemas->result, "result", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_and_reasons_are_those_of_the_code),
		cmocka_unit_test(every_stage_has_a_code_of_the_list),
		cmocka_unit_test(the_words_of_a_policy_are_those_of_the_code),
		cmocka_unit_test(limits_have_their_ranges_and_defaults),
		cmocka_unit_test(a_policy_has_the_keys_of_the_schema),
		cmocka_unit_test(a_result_has_the_keys_and_ends_of_the_schema),
		cmocka_unit_test(nothing_is_left_open),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
