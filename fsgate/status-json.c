/* See status-json.h. Made in the door's thread; looks at tables and counters, never at a file of the view. */
#include "fsgate/status-json.h"
#include "fsgate/invalidate.h"

#include "common/errno-util.h"
#include "common/limits.h"
#include "config.h"
#include "fsgate/passthrough.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void fsg_json_set_path(JsonObject *object, const char *name, const char *path)
{
	g_autofree char *text = NULL;
	JsonObject *inner;

	if (!path) {
		json_object_set_null_member(object, name);
	} else if (g_utf8_validate(path, -1, NULL)) {
		json_object_set_string_member(object, name, path);
	} else {
		text = g_base64_encode((const guchar *)path, strlen(path));
		inner = json_object_new();
		json_object_set_string_member(inner, "b64", text);
		json_object_set_object_member(object, name, inner);
	}
}

static void set_string(JsonObject *object, const char *name, const char *text)
{
	if (text)
		json_object_set_string_member(object, name, text);
	else
		json_object_set_null_member(object, name);
}

static void set_number(JsonObject *object, const char *name, uint64_t number)
{
	json_object_set_int_member(object, name, (gint64)number);
}

static JsonArray *mounts_json(const FsgView *view)
{
	JsonArray *mounts = json_array_new();

	for (guint i = 0; i < view->plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(view->plan->entries, i);
		JsonObject *mount;

		if (entry->kind != VIEW_ENTRY_MOUNT)
			continue;
		mount = json_object_new();
		fsg_json_set_path(mount, "view_path", entry->view_path);
		fsg_json_set_path(mount, "host_path", entry->host_path);
		json_object_set_string_member(mount, "access", policy_access_name(entry->access));
		json_array_add_object_element(mounts, mount);
	}
	return mounts;
}

static JsonArray *writable_json(const FsgView *view)
{
	g_auto(GStrv) paths = view_plan_writable(view->plan);
	JsonArray *writable = json_array_new();

	for (char **path = paths; *path; path++) {
		JsonObject *holder = json_object_new();

		fsg_json_set_path(holder, "p", *path);
		json_array_add_element(writable, json_object_dup_member(holder, "p"));
		json_object_unref(holder);
	}
	return writable;
}

static JsonObject *requests_json(const FsgView *view)
{
	JsonObject *requests = json_object_new();

	for (int op = 0; op < _FSG_OP_N; op++)
		set_number(requests, fsg_op_name((FsgOp)op),
			   fsg_stats_requests(&view->stats, (FsgOp)op));
	return requests;
}

static JsonObject *row_json(const FsgDenial *denial)
{
	JsonObject *row = json_object_new();

	json_object_set_string_member(row, "op", denial->op);
	fsg_json_set_path(row, "path", denial->path);
	fsg_json_set_path(row, "mount", denial->mount);
	json_object_set_string_member(row, "reason", denial_reason_name(denial->reason));
	set_string(row, "errno", denial->errnum ? errno_name(denial->errnum) : NULL);
	fsg_json_set_path(row, "target", denial->target);
	set_number(row, "count", denial->count);
	if (denial->pid)
		set_number(row, "pid", (uint64_t)denial->pid);
	else
		json_object_set_null_member(row, "pid");
	set_number(row, "time_ms", (uint64_t)denial->time_us / 1000);
	set_number(row, "seq", denial->seq);
	json_object_set_boolean_member(row, "cut", denial->cut);
	return row;
}

/* What the row may take as text: a control character is six bytes there. */
static size_t row_size(const FsgDenial *denial)
{
	size_t size = strlen(denial->path);

	size += denial->mount ? strlen(denial->mount) : 0;
	size += denial->target ? strlen(denial->target) : 0;
	return 6 * size + 512;
}

JsonObject *fsg_denials_json(FsgView *view, uint64_t since)
{
	JsonObject *denials = json_object_new(), *by_reason = json_object_new();
	JsonArray *rows = json_array_new();
	FsgDenialList list;
	size_t size = 0;
	guint first;

	fsg_denials_list(view->denials, since, &list);
	for (first = list.rows->len; first > 0; first--) {
		size += row_size(g_ptr_array_index(list.rows, first - 1));
		if (size > LIMIT_DENIALS_JSON_BYTES)
			break;
	}
	for (guint i = first; i < list.rows->len; i++)
		json_array_add_object_element(rows, row_json(g_ptr_array_index(list.rows, i)));
	for (int i = 0; i < _DENIAL_N; i++)
		if (list.by_reason[i] > 0)
			set_number(by_reason, denial_reason_name((DenialReason)i),
				   list.by_reason[i]);
	set_number(denials, "total", list.total);
	set_number(denials, "dropped", list.dropped);
	set_number(denials, "last", list.last);
	json_object_set_object_member(denials, "by_reason", by_reason);
	set_number(denials, "rows_left_out", first);
	json_object_set_array_member(denials, "rows", rows);
	fsg_denial_list_clear(&list);
	return denials;
}

static void set_threads(JsonObject *status)
{
	g_autofree char *text = NULL;
	const char *line;
	unsigned int threads;

	if (g_file_get_contents("/proc/self/status", &text, NULL, NULL) &&
	    (line = strstr(text, "\nThreads:")) && sscanf(line, "\nThreads: %u", &threads) == 1)
		set_number(status, "threads", threads);
	else
		json_object_set_null_member(status, "threads");
}

static JsonObject *cache_json(const FsgView *view)
{
	g_autoptr(JsonObject) watched = json_object_new();
	JsonObject *cache = json_object_new();
	FsgWatchStats watch;

	json_object_set_string_member(cache, "mode", policy_cache_name(view->plan->policy->cache));
	if (view->plan->policy->cache == POLICY_CACHE_EXCLUSIVE)
		json_object_set_null_member(cache, "timeout_ms");
	else
		set_number(cache, "timeout_ms",
			   view->plan->policy->cache == POLICY_CACHE_AUTO
				   ? (uint64_t)(FSG_BELIEF_SHORT_S * 1000)
				   : 0);
	if (!view->invalidate->watch) {
		json_object_set_null_member(cache, "watched");
		return cache;
	}
	fsg_watch_stats(view->invalidate->watch, &watch);
	set_number(watched, "directories", watch.dirs);
	set_number(watched, "events", watch.events);
	set_number(watched, "told", watch.notified);
	set_number(watched, "overflows", watch.overflows);
	json_object_set_object_member(cache, "watched", json_object_ref(watched));
	return cache;
}

/* Its state is "on", "on, " and but, or "off: " and why. */
static JsonObject *passthrough_json(FsgView *view)
{
	const char *state = view->passthrough ? fsg_passthrough_state(view->passthrough) : "off";
	const char *more = strchr(state, ' ');
	JsonObject *passthrough = json_object_new();

	json_object_set_boolean_member(passthrough, "on", g_str_has_prefix(state, "on"));
	set_string(passthrough, "reason", more ? more + 1 : NULL);
	return passthrough;
}

static JsonObject *fds_json(FsgView *view, size_t cached)
{
	JsonObject *fds = json_object_new();

	set_number(fds, "cached", cached);
	set_number(fds, "files", fsg_handle_budget_used(view->handles));
	set_number(fds, "files_most", fsg_handle_budget_most(view->handles));
	return fds;
}

JsonObject *fsg_status_json(FsgView *view)
{
	bool rewritten = view->plan->presentation == VIEW_FOR_HOST && !view->original_links;
	JsonObject *status = json_object_new();
	FsgInodeStats inodes;

	fsg_inode_table_stats(view->inodes, &inodes);
	json_object_set_string_member(status, "version", STELLA_VERSION);
	set_number(status, "pid", (uint64_t)getpid());
	set_number(status, "up_ms", (uint64_t)(g_get_real_time() - view->stats.start_us) / 1000);
	json_object_set_array_member(status, "mounts", mounts_json(view));
	json_object_set_array_member(status, "writable", writable_json(view));
	json_object_set_string_member(status, "links", rewritten ? "rewritten" : "original");
	json_object_set_object_member(status, "cache", cache_json(view));
	json_object_set_object_member(status, "passthrough", passthrough_json(view));
	set_number(status, "inodes", inodes.inodes);
	json_object_set_object_member(status, "fds", fds_json(view, inodes.fds));
	set_threads(status);
	json_object_set_object_member(status, "requests", requests_json(view));
	json_object_set_object_member(status, "denials", fsg_denials_json(view, 0));
	return status;
}
