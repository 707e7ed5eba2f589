/* Reading the table of vectors; see doors-table.h. */
#include "integration/doors-table.h"

#include "common/errno-util.h"
#include "common/json.h"
#include "common/path-resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

const char *const door_names[DOOR_N] = { "resolver", "view", "sandbox" };

static const struct {
	const char *word;
	int flag;
} flag_words[] = {
	{ "r", O_RDONLY },	    { "w", O_WRONLY },
	{ "rw", O_RDWR },	    { "creat", O_CREAT },
	{ "excl", O_EXCL },	    { "trunc", O_TRUNC },
	{ "append", O_APPEND },	    { "directory", O_DIRECTORY },
	{ "nofollow", O_NOFOLLOW }, { "nonblock", O_NONBLOCK },
	{ "path", O_PATH },	    { "sync", O_SYNC },
};

static const struct {
	const char *word;
	PathProblemKind kind;
} problem_words[] = {
	{ "invalid", PATH_PROBLEM_INVALID },	 { "outside", PATH_PROBLEM_OUTSIDE_MOUNTS },
	{ "read-only", PATH_PROBLEM_READ_ONLY }, { "link", PATH_PROBLEM_SYMLINK },
	{ "refused", PATH_PROBLEM_REFUSED },	 { "io", PATH_PROBLEM_IO },
};

/* Where the reader is, for what it says. */
static const char *at;

/* "{host}", and "{255*x}" for as many times x. */
static void expand_one(GString *out, const char *inner, const char *host_dir)
{
	char *rest;
	guint64 times = g_ascii_strtoull(inner, &rest, 10);

	if (strcmp(inner, "host") == 0)
		g_string_append(out, host_dir);
	else if (rest != inner && *rest == '*' && times <= 100000)
		for (guint64 i = 0; i < times; i++)
			g_string_append(out, rest + 1);
	else
		fail_msg("%s: {%s}", at, inner);
}

static char *expand(const char *text, const char *host_dir)
{
	g_autoptr(GString) out = g_string_new(NULL);

	while (*text) {
		const char *end = text[0] == '{' ? strchr(text, '}') : NULL;

		if (end) {
			g_autofree char *inner = g_strndup(text + 1, (gsize)(end - text) - 1);

			expand_one(out, inner, host_dir);
			text = end + 1;
		} else {
			g_string_append_c(out, *text++);
		}
	}
	return g_strdup(out->str);
}

/* A string, or bytes that are none: {"b64": "..."}. NULL for none. */
static char *text_of(JsonNode *node, const char *host_dir)
{
	if (!node)
		return NULL;
	if (JSON_NODE_HOLDS_OBJECT(node)) {
		const char *code = json_object_get_string_member(json_node_get_object(node), "b64");
		gsize size;

		if (!code) {
			fail_msg("%s: no b64", at);
			return NULL;
		}
		g_autofree guchar *bytes = g_base64_decode(code, &size);
		return g_strndup((const char *)bytes, size);
	}
	if (!json_node_get_string(node))
		fail_msg("%s: a text is expected", at);
	return expand(json_node_get_string(node), host_dir);
}

static char **texts_of(const JsonArray *array, const char *host_dir)
{
	g_autoptr(GStrvBuilder) texts = g_strv_builder_new();

	for (guint i = 0; array && i < json_array_get_length(array); i++) {
		g_autofree char *text = text_of(json_array_get_element(array, i), host_dir);

		g_strv_builder_add(texts, text);
	}
	return g_strv_builder_end(texts);
}

static int flags_of(const char *text)
{
	g_auto(GStrv) words = g_strsplit(text, " ", -1);
	int flags = 0;

	for (char **word = words; *word; word++) {
		size_t i = 0;

		while (i < G_N_ELEMENTS(flag_words) && strcmp(flag_words[i].word, *word) != 0)
			i++;
		if (i == G_N_ELEMENTS(flag_words))
			fail_msg("%s: open: %s", at, *word);
		else
			flags |= flag_words[i].flag;
	}
	return flags;
}

/* 0 for what is no name of one. */
static int errno_of(const char *text)
{
	for (int errnum = 1; errnum < 200; errnum++)
		if (strcmp(errno_name(errnum), text) == 0)
			return errnum;
	return 0;
}

static Want want_of(JsonNode *node, const char *host_dir)
{
	g_autofree char *text = text_of(node, host_dir);

	if (!text)
		fail_msg("%s: no verdict", at);
	else if (errno_of(text))
		return (Want){ WANT_ERROR, errno_of(text), NULL };
	else if (strcmp(text, "own") == 0)
		return (Want){ WANT_OWN, 0, NULL };
	else if (strcmp(text, "skip") == 0)
		return (Want){ WANT_SKIP, 0, NULL };
	else if (g_str_has_prefix(text, "new "))
		return (Want){ WANT_NEW, 0, g_strdup(text + 4) };
	return (Want){ WANT_OBJECT, 0, g_steal_pointer(&text) };
}

/* Where a door differs, a reason has to be there, and nowhere else. */
static void read_wants(Vector *vector, JsonObject *object, const char *host_dir)
{
	bool differs = false;

	for (int i = 0; i < DOOR_N; i++) {
		JsonNode *node = json_object_get_member(object, door_names[i]);

		differs |= node != NULL;
		vector->want[i] =
			want_of(node ? node : json_object_get_member(object, "want"), host_dir);
	}
	if (differs != (json_object_get_string_member(object, "why") != NULL))
		fail_msg("%s: \"why\" goes with a verdict of one door", at);
}

/* "/view/path", or "KIND" or "KIND ERRNO". */
static void read_strict(Vector *vector, JsonObject *object, const char *host_dir)
{
	g_autofree char *text = text_of(json_object_get_member(object, "strict"), host_dir);
	g_auto(GStrv) words = g_strsplit(text ? text : "", " ", 2);

	if (text && text[0] == '/') {
		vector->strict_path = g_steal_pointer(&text);
		return;
	}
	for (size_t i = 0; words[0] && i < G_N_ELEMENTS(problem_words); i++)
		if (strcmp(words[0], problem_words[i].word) == 0)
			vector->strict_kind = (int)problem_words[i].kind;
	vector->strict_errnum = words[0] && words[1] ? errno_of(words[1]) : 0;
	if (!vector->strict_kind || (words[1] && !vector->strict_errnum))
		fail_msg("%s: strict", at);
}

static void check_keys(JsonObject *object, const char *const *known)
{
	JsonObjectIter iter;
	const char *key;

	json_object_iter_init_ordered(&iter, object);
	while (json_object_iter_next_ordered(&iter, &key, NULL))
		if (!g_strv_contains(known, key))
			fail_msg("%s: %s: no such key", at, key);
}

static Vector *vector_of(JsonObject *object, const char *group, const char *host_dir)
{
	static const char *const keys[] = { "name", "path",    "open",	 "want", "resolver",
					    "view", "sandbox", "strict", "why",	 NULL };
	Vector *vector = g_new0(Vector, 1);
	const char *flags = json_object_get_string_member(object, "open");

	at = json_object_get_string_member(object, "name");
	if (!at)
		fail_msg("%s: a vector without a name", group);
	check_keys(object, keys);
	vector->group = group;
	vector->name = g_strdup(at);
	vector->path = text_of(json_object_get_member(object, "path"), host_dir);
	if (!vector->path)
		fail_msg("%s: no path", at);
	vector->flags = flags_of(flags ? flags : "r");
	read_wants(vector, object, host_dir);
	read_strict(vector, object, host_dir);
	return vector;
}

static void vector_free(gpointer data)
{
	Vector *vector = data;

	for (int i = 0; i < DOOR_N; i++)
		g_free(vector->want[i].path);
	g_free(vector->name);
	g_free(vector->path);
	g_free(vector->strict_path);
	g_free(vector);
}

static void read_groups(World *world, const JsonArray *groups, const char *host_dir)
{
	for (guint i = 0; groups && i < json_array_get_length(groups); i++) {
		JsonObject *group = json_array_get_object_element(groups, i);
		char *about = g_strdup(json_object_get_string_member(group, "about"));
		const JsonArray *vectors = json_object_get_array_member(group, "vectors");

		g_ptr_array_add(world->groups, about);
		for (guint k = 0; k < json_array_get_length(vectors); k++) {
			JsonObject *object = json_array_get_object_element(vectors, k);

			g_ptr_array_add(world->vectors, vector_of(object, about, host_dir));
		}
	}
}

static bool flag_member(const JsonObject *object, const char *name)
{
	return json_object_has_member(object, name) &&
	       json_node_get_boolean(json_object_get_member(object, name));
}

static World *world_of(JsonObject *object, const char *host_dir)
{
	static const char *const keys[] = { "name",   "root", "deny",	"odd_inodes", "working_dir",
					    "mounts", "tree", "groups", NULL };
	World *world = g_new0(World, 1);

	check_keys(object, keys);
	world->name = g_strdup(json_object_get_string_member(object, "name"));
	world->needs_root = flag_member(object, "root");
	world->denies_links = flag_member(object, "deny");
	world->odd_inodes = flag_member(object, "odd_inodes");
	world->working_dir = g_strdup(json_object_get_string_member(object, "working_dir"));
	world->tree = texts_of(json_object_get_array_member(object, "tree"), host_dir);
	world->mounts = texts_of(json_object_get_array_member(object, "mounts"), host_dir);
	world->groups = g_ptr_array_new_with_free_func(g_free);
	world->vectors = g_ptr_array_new_with_free_func(vector_free);
	read_groups(world, json_object_get_array_member(object, "groups"), host_dir);
	return world;
}

void world_free(World *world)
{
	g_free(world->name);
	g_free(world->working_dir);
	g_strfreev(world->tree);
	g_strfreev(world->mounts);
	g_ptr_array_unref(world->groups);
	g_ptr_array_unref(world->vectors);
	g_free(world);
}

static JsonNode *parse_file(const char *file)
{
	g_autofree char *text = NULL;
	JsonNode *node;
	gsize size;

	if (!g_file_get_contents(file, &text, &size, NULL))
		fail_msg("%s cannot be read", file);
	node = json_from_string(text, (gssize)size);
	if (!node)
		fail_msg("%s is no JSON object", file);
	return node;
}

char **doors_table_worlds(const char *file)
{
	g_autoptr(JsonNode) node = parse_file(file);
	g_autoptr(GStrvBuilder) names = g_strv_builder_new();
	const JsonArray *worlds =
		json_object_get_array_member(json_node_get_object(node), "worlds");

	for (guint i = 0; i < json_array_get_length(worlds); i++)
		g_strv_builder_add(names,
				   json_object_get_string_member(
					   json_array_get_object_element(worlds, i), "name"));
	return g_strv_builder_end(names);
}

World *doors_table_read(const char *file, const char *name, const char *host_dir)
{
	g_autoptr(JsonNode) node = parse_file(file);
	const JsonArray *worlds =
		json_object_get_array_member(json_node_get_object(node), "worlds");

	at = name;
	for (guint i = 0; i < json_array_get_length(worlds); i++) {
		JsonObject *object = json_array_get_object_element(worlds, i);

		if (strcmp(json_object_get_string_member(object, "name"), name) == 0)
			return world_of(object, host_dir);
	}
	fail_msg("no world %s", name);
	return NULL;
}

bool vector_changes(const Vector *vector)
{
	return (vector->flags & O_ACCMODE) != O_RDONLY || (vector->flags & (O_TRUNC | O_CREAT));
}
