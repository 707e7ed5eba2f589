/* The result object; see result.h. */
#include "executor/result.h"

#include "common/errno-util.h"
#include "common/json-string.h"
#include "executor/session-limits.h"
#include "executor/spill.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

static const char *const ended_names[_N_EXR_ENDED] = {
	[EXR_ENDED_EXITED] = "exited",
	[EXR_ENDED_SIGNALED] = "signaled",
	[EXR_ENDED_TIMED_OUT] = "timed_out",
	[EXR_ENDED_CANCELED] = "canceled",
	[EXR_ENDED_START_FAILED] = "start_failed",
};

static void add_key(GString *json, const char *key)
{
	g_string_append_printf(json, "%s\"%s\": ", json->len > 1 ? ", " : "", key);
}

static void add_int(GString *json, const char *key, int64_t value)
{
	add_key(json, key);
	g_string_append_printf(json, "%" PRId64, value);
}

/* A number that is null when it is not known. */
static void add_known(GString *json, const char *key, bool known, int64_t value)
{
	add_key(json, key);
	if (known)
		g_string_append_printf(json, "%" PRId64, value);
	else
		g_string_append(json, "null");
}

static void add_string(GString *json, const char *key, const char *value)
{
	add_key(json, key);
	json_string_add(json, value);
}

static void add_literal(GString *json, const char *key, const char *literal)
{
	add_key(json, key);
	g_string_append(json, literal);
}

static void add_signal(GString *json, int sig)
{
	const char *name = sigabbrev_np(sig);
	g_autofree char *text = NULL;

	if (name)
		text = g_strdup_printf("SIG%s", name);
	else if (sig >= SIGRTMIN)
		text = g_strdup_printf("SIGRTMIN+%d", sig - SIGRTMIN);
	else
		text = g_strdup_printf("SIG%d", sig);
	add_string(json, "signal", text);
}

static void add_stream_key(GString *json, const char *stream, const char *key)
{
	g_autofree char *name = g_strconcat(stream, key, NULL);

	add_key(json, name);
}

static void add_stream(GString *json, const char *stream, OutputBuffer *buffer, const char *spill,
		       bool lossy)
{
	uint64_t total = buffer ? output_buffer_total(buffer) : 0;
	g_autofree char *remark = exr_spill_remark(spill, total);
	size_t size = 0;
	g_autofree char *text = buffer ? output_buffer_text(buffer, remark, &size) : g_strdup("");
	const char *encoding = "utf-8";

	add_stream_key(json, stream, "");
	if (json_string_is_text(text, size)) {
		json_string_add_text(json, text, size);
	} else if (lossy) {
		encoding = "utf-8-lossy";
		json_string_add_lossy(json, text, size);
	} else {
		const char *raw = output_buffer_data(buffer, &size);

		encoding = "base64";
		json_string_add_base64(json, raw, size);
	}
	add_stream_key(json, stream, "_encoding");
	json_string_add(json, encoding);
	add_stream_key(json, stream, "_bytes");
	g_string_append_printf(json, "%" PRIu64, total);
	add_stream_key(json, stream, "_truncated");
	g_string_append(json, buffer && output_buffer_truncated(buffer) ? "true" : "false");
	add_stream_key(json, stream, "_spill");
	if (spill)
		json_string_add_path(json, spill);
	else
		g_string_append(json, "null");
}

/* Names or paths; NULL is "not known". */
static void add_names(GString *json, const char *key, const char *const *paths)
{
	add_key(json, key);
	if (!paths) {
		g_string_append(json, "null");
		return;
	}
	g_string_append_c(json, '[');
	for (size_t i = 0; paths[i]; i++) {
		g_string_append(json, i > 0 ? ", " : "");
		json_string_add_path(json, paths[i]);
	}
	g_string_append_c(json, ']');
}

const char **exr_result_limits_hit(const ExrResult *result)
{
	int sig = result->ended == EXR_ENDED_SIGNALED ? result->signal : 0;
	const PolicyLimits *limits = result->limits;
	const struct {
		const char *name;
		bool hit;
	} rows[] = {
		{ "output_bytes", (result->out && output_buffer_truncated(result->out)) ||
					  (result->err && output_buffer_truncated(result->err)) },
		{ "file_size_bytes", limits && limits->file_size_bytes > 0 && sig == SIGXFSZ },
		{ "cpu_seconds", limits && limits->cpu_seconds > 0 && sig == SIGXCPU },
		{ "memory_bytes", result->limits_hit & EXR_LIMIT_MEMORY },
		{ "processes", result->limits_hit & EXR_LIMIT_PROCESSES },
	};
	const char **names = g_new0(const char *, G_N_ELEMENTS(rows) + 1);
	size_t count = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		if (rows[i].hit)
			names[count++] = rows[i].name;
	return names;
}

static void add_path(GString *json, const char *key, const char *path)
{
	add_key(json, key);
	if (path)
		json_string_add_path(json, path);
	else
		g_string_append(json, "null");
}

static GString *denial_to_json(const void *row)
{
	const ExrDenial *denial = row;
	GString *object = g_string_new("{");

	add_string(object, "op", denial->op);
	add_path(object, "path", denial->path);
	add_path(object, "mount", denial->mount);
	add_string(object, "reason", denial->reason);
	add_string(object, "errno", denial->errnum_name);
	add_int(object, "count", (int64_t)denial->count);
	return g_string_append_c(object, '}');
}

static GString *change_to_json(const void *row)
{
	const ExrChange *change = row;
	GString *object = g_string_new("{");

	add_path(object, "path", change->path);
	add_string(object, "change", change->change);
	if (change->from)
		add_path(object, "from", change->from);
	return g_string_append_c(object, '}');
}

/* An array; NULL is "not known". */
static void add_rows(GString *json, const char *key, const GPtrArray *rows,
		     GString *(*to_json)(const void *row))
{
	add_key(json, key);
	if (!rows) {
		g_string_append(json, "null");
		return;
	}
	g_string_append_c(json, '[');
	for (guint i = 0; i < rows->len; i++) {
		GString *object = to_json(rows->pdata[i]);

		g_string_append(json, i > 0 ? ", " : "");
		g_string_append_len(json, object->str, (gssize)object->len);
		g_string_free(object, TRUE);
	}
	g_string_append_c(json, ']');
}

static void add_error(GString *json, const ExrError *error)
{
	g_autoptr(GString) object = NULL;

	if (!error) {
		add_literal(json, "error", "null");
		return;
	}
	object = g_string_new("{");
	add_string(object, "code", error->code);
	add_string(object, "stage", error->stage);
	add_string(object, "errno", error->errnum ? errno_name(error->errnum) : NULL);
	add_string(object, "key", error->key);
	add_string(object, "hint", error->hint);
	add_string(object, "message", error->message);
	g_string_append_c(object, '}');
	add_literal(json, "error", object->str);
}

GString *exr_result_to_json(const ExrResult *result)
{
	bool exited = result->ended == EXR_ENDED_EXITED;
	bool signaled = result->ended == EXR_ENDED_SIGNALED;
	static const ExrObserved nothing_known;
	const ExrObserved *observed = result->observed ? result->observed : &nothing_known;
	g_autofree const char **limits_hit = exr_result_limits_hit(result);
	GString *json = g_string_new("{");

	add_int(json, "version", EXR_RESULT_VERSION);
	add_string(json, "session_id", result->session_id);
	add_known(json, "exec_id", result->exec_id > 0, result->exec_id);
	add_string(json, "ended", ended_names[result->ended]);
	add_known(json, "exit_code", exited || signaled, exr_result_exit_status(result));
	if (signaled)
		add_signal(json, result->signal);
	else
		add_literal(json, "signal", "null");
	add_stream(json, "stdout", result->out, result->out_spill, result->lossy_text);
	add_stream(json, "stderr", result->err, result->err_spill, result->lossy_text);
	add_int(json, "duration_ms", result->duration_ms);
	add_known(json, "cpu_ms", result->cpu_ms >= 0, result->cpu_ms);
	add_known(json, "max_rss_bytes", result->max_rss_bytes >= 0, result->max_rss_bytes);
	add_rows(json, "denials", observed->denials, denial_to_json);
	add_int(json, "denials_dropped", (int64_t)observed->denials_dropped);
	add_names(json, "writable", result->writable);
	add_rows(json, "changes", observed->changes, change_to_json);
	add_int(json, "changes_dropped", (int64_t)observed->changes_dropped);
	add_literal(json, "changes_incomplete", observed->changes_incomplete ? "true" : "false");
	add_known(json, "left_over_killed", result->left_over_killed >= 0,
		  result->left_over_killed);
	add_names(json, "limits_hit", limits_hit);
	add_names(json, "limits_unenforced", result->limits_unenforced);
	add_error(json, result->ended == EXR_ENDED_START_FAILED ? result->error : NULL);
	g_string_append_c(json, '}');
	return json;
}

int exr_result_exit_status(const ExrResult *result)
{
	switch (result->ended) {
	case EXR_ENDED_EXITED:
		return result->exit_code;
	case EXR_ENDED_SIGNALED:
	case EXR_ENDED_CANCELED:
		return 128 + result->signal;
	case EXR_ENDED_TIMED_OUT:
		return EXR_EXIT_TIMED_OUT;
	case EXR_ENDED_START_FAILED:
		if (g_strcmp0(result->error->code, "program-not-found") == 0)
			return EXR_EXIT_NOT_FOUND;
		if (g_strcmp0(result->error->code, "program-not-executable") == 0)
			return EXR_EXIT_NOT_EXECUTABLE;
		return EXR_EXIT_FAILED;
	case _N_EXR_ENDED:
		break;
	}
	g_assert_not_reached();
}
