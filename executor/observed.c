/* Reading what the gateway tells; see observed.h. It has looked at names that an agent made, so every member is checked,
 * and what is shown to a person is made printable first. */
#include "executor/observed.h"

#include "common/denial-reason.h"
#include "common/path-util.h"

#include <string.h>

static void denial_free(void *data)
{
	ExrDenial *denial = data;

	g_free(denial->op);
	g_free(denial->path);
	g_free(denial->mount);
	g_free(denial->reason);
	g_free(denial->errnum_name);
	g_free(denial);
}

static void change_free(void *data)
{
	ExrChange *change = data;

	g_free(change->path);
	g_free(change->from);
	g_free(change->change);
	g_free(change);
}

static const char *get_text(JsonObject *object, const char *name)
{
	return json_object_get_string_member(object, name);
}

static char *dup_text(JsonObject *object, const char *name)
{
	return g_strdup(get_text(object, name));
}

/* A string, or {"b64": "..."}. NULL when it is neither. */
static char *dup_path(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);
	const char *coded;
	gsize size;
	guchar *bytes;
	char *path;

	if (!JSON_NODE_HOLDS_OBJECT(node))
		return dup_text(object, name);
	coded = get_text(json_node_get_object(node), "b64");
	if (!coded)
		return NULL;
	bytes = g_base64_decode(coded, &size);
	path = g_strndup((const char *)bytes, size);
	g_free(bytes);
	return path;
}

static uint64_t get_count(JsonObject *object, const char *name, uint64_t otherwise)
{
	JsonNode *node = json_object_get_member(object, name);

	if (!json_node_holds(node, JSON_NODE_INT) || json_node_get_int(node) < 0)
		return otherwise;
	return (uint64_t)json_node_get_int(node);
}

static void *read_denial(JsonObject *object)
{
	ExrDenial *denial = g_new0(ExrDenial, 1);

	denial->op = dup_text(object, "op");
	denial->path = dup_path(object, "path");
	denial->mount = dup_path(object, "mount");
	denial->reason = dup_text(object, "reason");
	denial->errnum_name = dup_text(object, "errno");
	denial->count = get_count(object, "count", 1);
	if (denial->op && denial->path && denial->reason)
		return denial;
	denial_free(denial);
	return NULL;
}

static void *read_change(JsonObject *object)
{
	ExrChange *change = g_new0(ExrChange, 1);

	change->path = dup_path(object, "path");
	change->from = dup_path(object, "from");
	change->change = dup_text(object, "change");
	if (change->path && change->change)
		return change;
	change_free(change);
	return NULL;
}

/* NULL: there is no such array, or something in it makes no sense. */
static GPtrArray *read_rows(JsonObject *answer, const char *name, void *(*read)(JsonObject *),
			    GDestroyNotify free_row)
{
	JsonNode *node = json_object_get_member(answer, name);
	g_autoptr(GPtrArray) rows = NULL;
	JsonArray *array;

	if (!node || !JSON_NODE_HOLDS_ARRAY(node))
		return NULL;
	array = json_node_get_array(node);
	rows = g_ptr_array_new_with_free_func(free_row);
	for (guint i = 0; i < json_array_get_length(array); i++) {
		JsonNode *row = json_array_get_element(array, i);
		void *data = JSON_NODE_HOLDS_OBJECT(row) ? read(json_node_get_object(row)) : NULL;

		if (!data)
			return NULL;
		g_ptr_array_add(rows, data);
	}
	return g_steal_pointer(&rows);
}

void exr_observed_read(JsonObject *answer, ExrObserved *ret_observed)
{
	JsonNode *node;

	*ret_observed = (ExrObserved){ 0 };
	if (!answer)
		return;
	ret_observed->denials = read_rows(answer, "denials", read_denial, denial_free);
	ret_observed->denials_dropped = get_count(answer, "denials_dropped", 0);
	ret_observed->changes = read_rows(answer, "changes", read_change, change_free);
	ret_observed->changes_dropped = get_count(answer, "changes_dropped", 0);
	node = json_object_get_member(answer, "changes_incomplete");
	ret_observed->changes_incomplete = json_node_get_boolean(node);
}

void exr_observed_clear(ExrObserved *observed)
{
	g_clear_pointer(&observed->denials, g_ptr_array_unref);
	g_clear_pointer(&observed->changes, g_ptr_array_unref);
}

char *exr_denial_describe(const ExrDenial *denial)
{
	g_autofree char *path = path_escape(denial->path);
	g_autofree char *op = path_escape(denial->op);
	g_autofree char *mount = denial->mount ? path_escape(denial->mount) : NULL;
	int reason = denial_reason_from_name(denial->reason);

	if (reason == DENIAL_READ_ONLY_MOUNT && mount)
		return g_strdup_printf("%s %s: read-only mount %s", op, path, mount);
	return g_strdup_printf("%s %s: %s", op, path,
			       reason >= 0 ? denial_reason_meaning((DenialReason)reason)
					   : "refused");
}
