/* Policy text to policy; see policy-json.h.
 *
 * The text becomes a tree (json-strict.h) that is read key by key. Nothing is skipped: an object's keys
 * are compared with those known at its place before any is read, so that a misspelt protection is an
 * error and not a hole. */
#include "common/json-strict.h"
#include "common/limits.h"
#include "common/policy-json.h"
#include "common/quote.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

typedef struct {
	GString *place;	      /* key path of the object being read: "filesystem.mounts[2]" */
	StellaPolicy *policy; /* being filled in; borrowed */
	char **reterr_message;
} Reader;

typedef int (*ReadObject)(Reader *reader, JsonObject *object);

/* Makes the message about a key of the present object, or about that itself when name is NULL. */
static int refuse(const Reader *reader, const char *name, const char *format, ...)
	G_GNUC_PRINTF(3, 4);

static int refuse(const Reader *reader, const char *name, const char *format, ...)
{
	g_autofree char *key = name ? quote_key(name) : g_strdup("");
	g_autofree char *what = NULL;
	va_list args;

	va_start(args, format);
	what = g_strdup_vprintf(format, args);
	va_end(args);
	*reader->reterr_message =
		g_strdup_printf("%s%s%s: %s", reader->place->str,
				reader->place->len > 0 && name ? "." : "", key, what);
	return -EINVAL;
}

/* What was found instead. */
static char *describe(JsonNode *node)
{
	switch (json_node_get_type(node)) {
	case JSON_NODE_OBJECT:
		return g_strdup("an object");
	case JSON_NODE_ARRAY:
		return g_strdup("an array");
	case JSON_NODE_STRING:
		return quote_text(json_node_get_string(node));
	case JSON_NODE_NUMBER:
		return quote_key(json_node_get_number(node));
	case JSON_NODE_NULL:
	case JSON_NODE_INT:
	case JSON_NODE_BOOLEAN:
		break;
	}
	return json_to_string(node, false);
}

static int refuse_node(const Reader *reader, const char *name, const char *expected, JsonNode *node)
{
	g_autofree char *got = describe(node);

	return refuse(reader, name, "expected %s, got %s", expected, got);
}

static int check_keys(const Reader *reader, JsonObject *object, const char *const *known)
{
	JsonObjectIter iter;
	const char *name;

	json_object_iter_init_ordered(&iter, object);
	while (json_object_iter_next_ordered(&iter, &name, NULL)) {
		if (!g_strv_contains(known, name))
			return refuse(reader, name, "unknown key");
	}
	return 0;
}

/* The read_x() below leave *field alone when the key is absent. */

static int read_text(const Reader *reader, JsonObject *object, const char *name, char **field)
{
	JsonNode *node = json_object_get_member(object, name);

	if (!node)
		return 0;
	if (!json_node_holds(node, JSON_NODE_STRING))
		return refuse_node(reader, name, "a string", node);
	g_free(*field);
	*field = json_node_dup_string(node);
	return 0;
}

static int read_path(const Reader *reader, JsonObject *object, const char *name, char **field)
{
	g_autofree char *text = NULL;
	int r = read_text(reader, object, name, &text);

	if (r == 0 && text)
		policy_set_path(field, text);
	return r;
}

static int read_bool(const Reader *reader, JsonObject *object, const char *name, bool *field)
{
	JsonNode *node = json_object_get_member(object, name);

	if (!node)
		return 0;
	if (!json_node_holds(node, JSON_NODE_BOOLEAN))
		return refuse_node(reader, name, "true or false", node);
	*field = json_node_get_boolean(node);
	return 0;
}

static int read_integer(const Reader *reader, JsonObject *object, const char *name, uint64_t min,
			uint64_t max, uint64_t *field)
{
	JsonNode *node = json_object_get_member(object, name);
	int64_t value;

	if (!node)
		return 0;
	value = json_node_holds(node, JSON_NODE_INT) ? json_node_get_int(node) : -1;
	if (value < 0 || (uint64_t)value < min || (uint64_t)value > max) {
		g_autofree char *expected = g_strdup_printf(
			"an integer from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, min, max);

		return refuse_node(reader, name, expected, node);
	}
	*field = (uint64_t)value;
	return 0;
}

static int read_timeout(const Reader *reader, JsonObject *object, const char *name, int64_t *field)
{
	uint64_t value = (uint64_t)*field;
	int r = read_integer(reader, object, name, 0, (uint64_t)POLICY_TIMEOUT_MS_MAX, &value);

	if (r == 0)
		*field = (int64_t)value;
	return r;
}

static int read_word(const Reader *reader, JsonObject *object, const char *name,
		     const PolicyWords *words, int *field)
{
	JsonNode *node = json_object_get_member(object, name);
	int value;

	if (!node)
		return 0;
	value = json_node_holds(node, JSON_NODE_STRING)
			? policy_words_find(words, json_node_get_string(node))
			: -1;
	if (value < 0) {
		g_autofree char *expected = policy_words_expected(words, true);

		return refuse_node(reader, name, expected, node);
	}
	*field = value;
	return 0;
}

static int read_object_node(Reader *reader, JsonNode *node, ReadObject read)
{
	return JSON_NODE_HOLDS_OBJECT(node) ? read(reader, json_node_get_object(node))
					    : refuse_node(reader, NULL, "an object", node);
}

static int read_object(Reader *reader, JsonObject *object, const char *name, ReadObject read)
{
	JsonNode *node = json_object_get_member(object, name);
	gsize length = reader->place->len;
	int r = 0;

	if (node) {
		g_string_append_printf(reader->place, "%s%s", length > 0 ? "." : "", name);
		r = read_object_node(reader, node, read);
		g_string_truncate(reader->place, length);
	}
	return r;
}

/* The array of a key, or NULL in *ret_array when it is absent. */
static int find_array(const Reader *reader, JsonObject *object, const char *name,
		      JsonArray **ret_array)
{
	JsonNode *node = json_object_get_member(object, name);

	*ret_array = NULL;
	if (!node)
		return 0;
	if (!JSON_NODE_HOLDS_ARRAY(node))
		return refuse_node(reader, name, "an array", node);
	*ret_array = json_node_get_array(node);
	return 0;
}

static int read_mount(Reader *reader, JsonObject *object)
{
	static const char *const known[] = { "host_path",   "view_path",   "access", "optional",
					     "quota_bytes", "quota_files", NULL };
	static const char *const required[] = { "host_path", "view_path", "access" };
	PolicyMount *mount = policy_add_mount(reader->policy, "", "", STELLA_MOUNT_READ_ONLY);
	int access = STELLA_MOUNT_READ_ONLY;
	int r = check_keys(reader, object, known);

	for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(required); i++) {
		if (!json_object_has_member(object, required[i]))
			r = refuse(reader, required[i], "required");
	}
	if (r == 0)
		r = read_path(reader, object, "host_path", &mount->host_path);
	if (r == 0)
		r = read_path(reader, object, "view_path", &mount->view_path);
	if (r == 0)
		r = read_word(reader, object, "access", &policy_access_words, &access);
	if (r == 0)
		r = read_bool(reader, object, "optional", &mount->optional);
	if (r == 0)
		r = read_integer(reader, object, "quota_bytes", 0, INT64_MAX, &mount->quota_bytes);
	if (r == 0)
		r = read_integer(reader, object, "quota_files", 0, INT64_MAX, &mount->quota_files);
	mount->access = (StellaMountAccess)access;
	return r;
}

static int read_mounts(Reader *reader, JsonObject *object)
{
	gsize length = reader->place->len;
	JsonArray *array;
	int r = find_array(reader, object, "mounts", &array);

	if (array && json_array_get_length(array) > LIMIT_MOUNTS)
		return refuse(reader, "mounts", "has %u rows, at most %d work",
			      json_array_get_length(array), LIMIT_MOUNTS);
	for (unsigned int i = 0; r == 0 && array && i < json_array_get_length(array); i++) {
		g_string_append_printf(reader->place, ".mounts[%u]", i);
		r = read_object_node(reader, json_array_get_element(array, i), read_mount);
		g_string_truncate(reader->place, length);
	}
	return r;
}

static int read_globs(const Reader *reader, JsonObject *object, const char *name, GPtrArray *globs)
{
	JsonArray *array;
	int r = find_array(reader, object, name, &array);

	for (unsigned int i = 0; r == 0 && array && i < json_array_get_length(array); i++) {
		JsonNode *node = json_array_get_element(array, i);

		if (json_node_holds(node, JSON_NODE_STRING)) {
			g_ptr_array_add(globs, json_node_dup_string(node));
		} else {
			g_autofree char *row = g_strdup_printf("%s[%u]", name, i);

			r = refuse_node(reader, row, "a string", node);
		}
	}
	return r;
}

static int read_filesystem(Reader *reader, JsonObject *object)
{
	static const char *const known[] = {
		"workspace_root", "working_dir", "stella_home", "user_tools_dir", "mounts",
		"temp_dir_host",  "runtime",	 "symlinks",	"cache",	  "ownership",
		"hide",		  "protect",	 NULL,
	};
	StellaPolicy *policy = reader->policy;
	int runtime = (int)policy->runtime, symlinks = (int)policy->symlinks;
	int cache = (int)policy->cache, ownership = (int)policy->ownership;
	int r = check_keys(reader, object, known);

	if (r == 0)
		r = read_path(reader, object, "workspace_root", &policy->workspace_root);
	if (r == 0)
		r = read_path(reader, object, "working_dir", &policy->working_dir);
	if (r == 0)
		r = read_path(reader, object, "stella_home", &policy->stella_home);
	if (r == 0)
		r = read_path(reader, object, "user_tools_dir", &policy->user_tools_dir);
	if (r == 0)
		r = read_path(reader, object, "temp_dir_host", &policy->temp_dir_host);
	if (r == 0)
		r = read_mounts(reader, object);
	if (r == 0)
		r = read_word(reader, object, "runtime", &policy_runtime_words, &runtime);
	if (r == 0)
		r = read_word(reader, object, "symlinks", &policy_symlinks_words, &symlinks);
	if (r == 0)
		r = read_word(reader, object, "cache", &policy_cache_words, &cache);
	if (r == 0)
		r = read_word(reader, object, "ownership", &policy_ownership_words, &ownership);
	if (r == 0)
		r = read_globs(reader, object, "hide", policy->hide);
	if (r == 0)
		r = read_globs(reader, object, "protect", policy->protect);
	policy->runtime = (PolicyRuntime)runtime;
	policy->symlinks = (PolicySymlinks)symlinks;
	policy->cache = (PolicyCache)cache;
	policy->ownership = (PolicyOwnership)ownership;
	return r;
}

static int read_network(Reader *reader, JsonObject *object)
{
	static const char *const known[] = { "mode", "timeout_ms", NULL };
	StellaPolicy *policy = reader->policy;
	int mode = (int)policy->network_mode;
	int r = check_keys(reader, object, known);

	if (r == 0)
		r = read_word(reader, object, "mode", &policy_network_words, &mode);
	if (r == 0)
		r = read_timeout(reader, object, "timeout_ms", &policy->network_timeout_ms);
	policy->network_mode = (StellaNetworkMode)mode;
	return r;
}

static int read_env(Reader *reader, JsonObject *object)
{
	JsonObjectIter iter;
	JsonNode *node;
	const char *name;

	json_object_iter_init_ordered(&iter, object);
	while (json_object_iter_next_ordered(&iter, &name, &node)) {
		if (!json_node_holds(node, JSON_NODE_STRING))
			return refuse_node(reader, name, "a string", node);
		policy_add_env(reader->policy, name, json_node_get_string(node));
	}
	return 0;
}

/* (uid_t)-1 is no user: it stands for "unchanged" in system calls. */
static int read_process(Reader *reader, JsonObject *object)
{
	static const char *const known[] = { "user", NULL };
	JsonNode *node = json_object_get_member(object, "user");
	int r = check_keys(reader, object, known);
	uid_t named;

	if (r < 0 || !node)
		return r;
	if (json_node_holds(node, JSON_NODE_STRING) &&
	    policy_find_user(json_node_get_string(node), &named)) {
		reader->policy->process_uid = named;
		return 0;
	}
	if (json_node_holds(node, JSON_NODE_INT) && json_node_get_int(node) >= 0 &&
	    json_node_get_int(node) < UINT32_MAX) {
		reader->policy->process_uid = (uid_t)json_node_get_int(node);
		return 0;
	}
	return refuse_node(reader, "user", "\"agent\", \"root\" or an integer from 0 to 4294967294",
			   node);
}

static int read_limits(Reader *reader, JsonObject *object)
{
	PolicyLimits *limits = &reader->policy->limits;
	JsonObjectIter iter;
	const char *name;
	int r = 0;

	json_object_iter_init_ordered(&iter, object);
	while (r == 0 && json_object_iter_next_ordered(&iter, &name, NULL)) {
		const PolicyLimit *row = policy_limits;

		while (row->name && strcmp(row->name, name) != 0)
			row++;
		if (row->name)
			r = read_integer(reader, object, name, row->min, row->max,
					 policy_limit_field(limits, row));
		else if (strcmp(name, "spill") == 0)
			r = read_bool(reader, object, name, &limits->spill);
		else if (strcmp(name, "required") == 0)
			r = read_bool(reader, object, name, &limits->required);
		else
			r = refuse(reader, name, "unknown key");
	}
	return r;
}

/* First of all: a text of a newer format may hold anything else. */
static int check_version(const Reader *reader, JsonObject *object)
{
	JsonNode *node = json_object_get_member(object, "version");

	if (!node)
		return refuse(reader, "version", "required");
	if (!json_node_holds(node, JSON_NODE_INT) || json_node_get_int(node) < 1)
		return refuse_node(reader, "version", G_STRINGIFY(POLICY_VERSION), node);
	if (json_node_get_int(node) > POLICY_VERSION)
		return refuse(reader, "version",
			      "%" G_GINT64_FORMAT
			      " is newer than %d, the newest that this build reads",
			      json_node_get_int(node), POLICY_VERSION);
	return 0;
}

static int read_policy(Reader *reader, JsonObject *object)
{
	static const char *const known[] = { "version",	   "filesystem",  "network",
					     "env",	   "inherit_env", "env_override",
					     "timeout_ms", "process",	  "limits",
					     NULL };
	StellaPolicy *policy = reader->policy;
	int r = check_version(reader, object);

	if (r == 0)
		r = check_keys(reader, object, known);
	if (r == 0)
		r = read_object(reader, object, "filesystem", read_filesystem);
	if (r == 0)
		r = read_object(reader, object, "network", read_network);
	if (r == 0)
		r = read_object(reader, object, "env", read_env);
	if (r == 0)
		r = read_bool(reader, object, "inherit_env", &policy->inherit_env);
	if (r == 0)
		r = read_bool(reader, object, "env_override", &policy->env_override);
	if (r == 0)
		r = read_timeout(reader, object, "timeout_ms", &policy->timeout_ms);
	if (r == 0)
		r = read_object(reader, object, "process", read_process);
	if (r == 0)
		r = read_object(reader, object, "limits", read_limits);
	return r;
}

int policy_json_read(JsonNode *root, StellaPolicy **ret_policy, char **reterr_message)
{
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	g_autoptr(GString) place = g_string_new(NULL);
	Reader reader = { .place = place, .policy = policy, .reterr_message = reterr_message };
	int r;

	if (!JSON_NODE_HOLDS_OBJECT(root)) {
		*reterr_message = g_strdup("expected an object");
		return -EINVAL;
	}
	if ((r = read_policy(&reader, json_node_get_object(root))) < 0)
		return r;
	if (policy->workspace_root[0] == '\0')
		policy_set_path(&policy->workspace_root, policy->working_dir);
	if ((r = policy_validate(policy, reterr_message)) < 0)
		return r;
	*ret_policy = g_steal_pointer(&policy);
	return 0;
}

int policy_json_parse(const char *text, size_t size, StellaPolicy **ret_policy,
		      char **reterr_message)
{
	g_autoptr(JsonNode) root = NULL;
	int r;

	if (size > LIMIT_POLICY_BYTES) {
		*reterr_message = g_strdup_printf("is larger than %d bytes", LIMIT_POLICY_BYTES);
		return -E2BIG;
	}
	r = json_strict_parse(text, size, LIMIT_POLICY_DEPTH, &root, reterr_message);
	if (r < 0)
		return r;
	return policy_json_read(root, ret_policy, reterr_message);
}
