/* A strict JSON text as a tree; see json-strict.h.
 *
 * The text has passed json_strict_check(): it keeps to the grammar and is not nested too deep, so that what is
 * made here has nothing to refuse but a member that is given twice. The text need not end in a NUL, but a
 * value in it always has something behind it: the brace of the outermost object at the latest. */
#include "common/json-strict.h"

#include "common/quote.h"

#include <errno.h>
#include <string.h>

/* Of what arrives over sockets. */
#define MAX_DEPTH 64

typedef struct {
	const char *at;
	GString *place; /* key path of the value that is read: "filesystem.mounts[2]" */
	char **reterr_message;
} Builder;

static void skip_space(Builder *builder)
{
	while (strchr(" \t\n\r", *builder->at))
		builder->at++;
}

static gunichar take_hex4(Builder *builder)
{
	gunichar unit = 0;

	for (int i = 0; i < 4; i++)
		unit = unit * 16 + (gunichar)g_ascii_xdigit_value(*builder->at++);
	return unit;
}

/* Behind \u. */
static gunichar take_character(Builder *builder)
{
	gunichar high = take_hex4(builder);

	if (high < 0xd800 || high > 0xdbff)
		return high;
	builder->at += 2;
	return 0x10000 + ((high - 0xd800) << 10) + (take_hex4(builder) - 0xdc00);
}

static char *take_string(Builder *builder)
{
	static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *from = ++builder->at;
	GString *text = g_string_new(NULL);

	while (*builder->at != '"') {
		if (*builder->at != '\\') {
			builder->at++;
			continue;
		}
		g_string_append_len(text, from, builder->at - from);
		builder->at += 2;
		if (builder->at[-1] == 'u')
			g_string_append_unichar(text, take_character(builder));
		else
			g_string_append_c(text, meant[strchr(escapes, builder->at[-1]) - escapes]);
		from = builder->at;
	}
	g_string_append_len(text, from, builder->at++ - from);
	return g_string_free(text, FALSE);
}

static JsonNode *take_number(Builder *builder)
{
	const char *from = builder->at;
	g_autofree char *token = NULL;

	while (strchr("+-.0123456789Ee", *builder->at))
		builder->at++;
	token = g_strndup(from, (gsize)(builder->at - from));
	if (strpbrk(token, ".eE"))
		return json_node_new_text(JSON_NODE_NUMBER, g_steal_pointer(&token));
	return json_node_new_int(g_ascii_strtoll(token, NULL, 10));
}

static JsonNode *take_word(Builder *builder)
{
	char first = *builder->at;

	while (g_ascii_isalpha(*builder->at))
		builder->at++;
	return first == 'n' ? json_node_new(JSON_NODE_NULL) : json_node_new_boolean(first == 't');
}

static JsonNode *take_value(Builder *builder);

/* Behind the brace or the comma. false: given twice. */
static bool take_member(Builder *builder, JsonObject *object)
{
	g_autofree char *name = take_string(builder);
	g_autofree char *key = quote_key(name);
	gsize length = builder->place->len;
	JsonNode *node;

	g_string_append_printf(builder->place, "%s%s", length > 0 ? "." : "", key);
	if (json_object_has_member(object, name)) {
		*builder->reterr_message = g_strdup_printf("%s: given twice", builder->place->str);
		return false;
	}
	skip_space(builder);
	builder->at++; /* the colon */
	node = take_value(builder);
	if (!node)
		return false;
	json_object_set_member(object, name, node);
	g_string_truncate(builder->place, length);
	return true;
}

static bool take_element(Builder *builder, JsonArray *array)
{
	gsize length = builder->place->len;
	JsonNode *node;

	g_string_append_printf(builder->place, "[%u]", json_array_get_length(array));
	node = take_value(builder);
	if (!node)
		return false;
	json_array_add_element(array, node);
	g_string_truncate(builder->place, length);
	return true;
}

static JsonNode *take_container(Builder *builder)
{
	bool is_object = *builder->at == '{', fine = true;
	g_autoptr(JsonNode) node = json_node_new(is_object ? JSON_NODE_OBJECT : JSON_NODE_ARRAY);

	builder->at++;
	skip_space(builder);
	while (*builder->at != (is_object ? '}' : ']')) {
		fine = is_object ? take_member(builder, json_node_get_object(node))
				 : take_element(builder, json_node_get_array(node));
		if (!fine)
			return NULL;
		skip_space(builder);
		builder->at += *builder->at == ',';
		skip_space(builder);
	}
	builder->at++;
	return g_steal_pointer(&node);
}

/* NULL: something in it is given twice. */
static JsonNode *take_value(Builder *builder)
{
	skip_space(builder);
	if (*builder->at == '{' || *builder->at == '[')
		return take_container(builder);
	if (*builder->at == '"')
		return json_node_new_text(JSON_NODE_STRING, take_string(builder));
	if (*builder->at == '-' || g_ascii_isdigit(*builder->at))
		return take_number(builder);
	return take_word(builder);
}

int json_strict_parse(const char *text, size_t size, int max_depth, JsonNode **ret_root,
		      char **reterr_message)
{
	g_autoptr(GString) place = NULL;
	Builder builder = { .at = text, .reterr_message = reterr_message };
	JsonNode *root;
	int r = json_strict_check(text, size, max_depth, reterr_message);

	if (r < 0)
		return r;
	place = g_string_new(NULL);
	builder.place = place;
	root = take_value(&builder);
	if (!root)
		return -EINVAL;
	*ret_root = root;
	return 0;
}

JsonNode *json_from_string(const char *text, gssize size)
{
	g_autofree char *message = NULL;
	JsonNode *root = NULL;

	(void)json_strict_parse(text, size < 0 ? strlen(text) : (size_t)size, MAX_DEPTH, &root,
				&message);
	return root;
}
