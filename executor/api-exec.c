/* Results at the edge; see stella/exec.h. A result is one outcome (session-exec.h) that nobody else writes to any more, and
 * what is made of it: the error at once, the texts when they are first asked for, for they may be large. */
#include "executor/api-exec.h"

#include "common/api-error.h"
#include "executor/api-exr-error.h"
#include "executor/spill.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

_Static_assert((int)STELLA_ENDED_EXITED == (int)EXR_ENDED_EXITED &&
		       (int)STELLA_ENDED_SIGNALED == (int)EXR_ENDED_SIGNALED &&
		       (int)STELLA_ENDED_TIMED_OUT == (int)EXR_ENDED_TIMED_OUT &&
		       (int)STELLA_ENDED_CANCELED == (int)EXR_ENDED_CANCELED &&
		       (int)STELLA_ENDED_START_FAILED == (int)EXR_ENDED_START_FAILED,
	       "one numbering");

typedef struct {
	const char *data; /* NULL: not asked for yet */
	gsize size;
	char *made; /* what data is, when it is not the buffer's own */
} Text;

struct StellaExecResult {
	int refs; /* atomic */
	ExrOutcome *outcome;
	GError *error;		 /* START_FAILED, else NULL */
	const char **limits_hit; /* the list is owned */
	pthread_mutex_t
		lock; /* of the texts, and of the outcome's buffers, whose order reading changes */
	Text out, err;
};

G_DEFINE_BOXED_TYPE(StellaExecResult, stella_exec_result, stella_exec_result_ref,
		    stella_exec_result_unref)

StellaExecResult *api_exec_result_new_with_error(ExrOutcome *take_outcome, const GError *error)
{
	StellaExecResult *result = g_new0(StellaExecResult, 1);
	const ExrError *inner = exr_outcome_error(take_outcome);

	result->refs = 1;
	result->outcome = take_outcome;
	if (error)
		result->error = g_error_copy(error);
	else if (inner)
		result->error = api_exr_error_new(inner);
	result->limits_hit = exr_result_limits_hit(&take_outcome->result);
	pthread_mutex_init(&result->lock, NULL);
	return result;
}

StellaExecResult *api_exec_result_new(ExrOutcome *take_outcome)
{
	return api_exec_result_new_with_error(take_outcome, NULL);
}

StellaExecResult *stella_exec_result_ref(StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, NULL);
	g_atomic_int_inc(&result->refs);
	return result;
}

void stella_exec_result_unref(StellaExecResult *result)
{
	if (!result || !g_atomic_int_dec_and_test(&result->refs))
		return;
	exr_outcome_free(result->outcome);
	g_clear_error(&result->error);
	g_free(result->limits_hit);
	g_free(result->out.made);
	g_free(result->err.made);
	pthread_mutex_destroy(&result->lock);
	g_free(result);
}

StellaEnded stella_exec_result_get_ended(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, STELLA_ENDED_START_FAILED);
	return (StellaEnded)result->outcome->result.ended;
}

int stella_exec_result_get_signal(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, 0);
	return result->outcome->result.ended == EXR_ENDED_SIGNALED ? result->outcome->result.signal
								   : 0;
}

int stella_exec_result_get_exit_code(const StellaExecResult *result)
{
	const ExrResult *inner;

	g_return_val_if_fail(result != NULL, -1);
	inner = &result->outcome->result;
	if (inner->ended == EXR_ENDED_SIGNALED)
		return 128 + inner->signal;
	return inner->ended == EXR_ENDED_EXITED ? inner->exit_code : -1;
}

const GError *stella_exec_result_get_error(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, NULL);
	return result->error;
}

static void set_signaled(int sig, GError **error)
{
	const char *name = sigabbrev_np(sig);

	if (name)
		api_error_set(error, STELLA_ERROR_FAILED, "the command was killed by SIG%s", name);
	else
		api_error_set(error, STELLA_ERROR_FAILED, "the command was killed by signal %d",
			      sig);
}

gboolean stella_exec_result_check(const StellaExecResult *result, GError **error)
{
	const ExrResult *inner;

	g_return_val_if_fail(result != NULL, FALSE);
	inner = &result->outcome->result;
	switch (inner->ended) {
	case EXR_ENDED_EXITED:
		if (inner->exit_code == 0)
			return TRUE;
		api_error_set(error, STELLA_ERROR_FAILED, "the command exited with status %d",
			      inner->exit_code);
		break;
	case EXR_ENDED_SIGNALED:
		set_signaled(inner->signal, error);
		break;
	case EXR_ENDED_TIMED_OUT:
		api_error_set(error, STELLA_ERROR_TIMED_OUT,
			      "the command was killed: its time was over");
		break;
	case EXR_ENDED_CANCELED:
		api_error_set(error, STELLA_ERROR_CANCELED, "the command was canceled");
		break;
	case EXR_ENDED_START_FAILED:
	case _N_EXR_ENDED:
		if (error)
			g_propagate_error(error, g_error_copy(result->error));
		break;
	}
	return FALSE;
}

static const char *get_text(const StellaExecResult *constant, bool is_err, gsize *ret_size)
{
	/* What the lock guards is no part of the value. */
	StellaExecResult *result = (StellaExecResult *)(uintptr_t)constant;
	const ExrResult *inner = &result->outcome->result;
	OutputBuffer *buffer = is_err ? inner->err : inner->out;
	Text *text = is_err ? &result->err : &result->out;

	pthread_mutex_lock(&result->lock);
	if (!text->data && !buffer) {
		text->data = "";
	} else if (!text->data && !output_buffer_truncated(buffer)) {
		text->data = output_buffer_data(buffer, &text->size);
	} else if (!text->data) {
		g_autofree char *remark = exr_spill_remark(
			is_err ? inner->err_spill : inner->out_spill, output_buffer_total(buffer));

		text->data = text->made = output_buffer_text(buffer, remark, &text->size);
	}
	pthread_mutex_unlock(&result->lock);
	if (ret_size)
		*ret_size = text->size;
	return text->data;
}

const char *stella_exec_result_get_stdout(const StellaExecResult *result, gsize *ret_size)
{
	g_return_val_if_fail(result != NULL, NULL);
	return get_text(result, false, ret_size);
}

const char *stella_exec_result_get_stderr(const StellaExecResult *result, gsize *ret_size)
{
	g_return_val_if_fail(result != NULL, NULL);
	return get_text(result, true, ret_size);
}

#define STREAM_GETTERS(name, out)                                                                  \
	guint64 stella_exec_result_get_##name##_bytes(const StellaExecResult *result)              \
	{                                                                                          \
		g_return_val_if_fail(result != NULL, 0);                                           \
		return result->outcome->result.out                                                 \
			       ? output_buffer_total(result->outcome->result.out)                  \
			       : 0;                                                                \
	}                                                                                          \
	gboolean stella_exec_result_get_##name##_truncated(const StellaExecResult *result)         \
	{                                                                                          \
		g_return_val_if_fail(result != NULL, FALSE);                                       \
		return result->outcome->result.out &&                                              \
		       output_buffer_truncated(result->outcome->result.out);                       \
	}                                                                                          \
	const char *stella_exec_result_get_##name##_spill(const StellaExecResult *result)          \
	{                                                                                          \
		g_return_val_if_fail(result != NULL, NULL);                                        \
		return result->outcome->result.out##_spill;                                        \
	}

STREAM_GETTERS(stdout, out)
STREAM_GETTERS(stderr, err)

#define NUMBER_GETTER(type, name)                                                                  \
	type stella_exec_result_get_##name(const StellaExecResult *result)                         \
	{                                                                                          \
		g_return_val_if_fail(result != NULL, -1);                                          \
		return result->outcome->result.name;                                               \
	}

NUMBER_GETTER(gint64, duration_ms)
NUMBER_GETTER(gint64, cpu_ms)
NUMBER_GETTER(gint64, max_rss_bytes)
NUMBER_GETTER(int, left_over_killed)

/* A list that is not known is an empty one: whoever goes through it need not ask. */
static const char *const *known_list(const char *const *list)
{
	static const char *const nothing[] = { NULL };

	return list ? list : nothing;
}

const char *const *stella_exec_result_get_limits_hit(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, NULL);
	return result->limits_hit;
}

const char *const *stella_exec_result_get_limits_unenforced(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, NULL);
	return known_list(result->outcome->result.limits_unenforced);
}

const char *const *stella_exec_result_get_writable(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, NULL);
	return known_list(result->outcome->result.writable);
}

char *stella_exec_result_to_json(const StellaExecResult *constant)
{
	StellaExecResult *result = (StellaExecResult *)(uintptr_t)constant;
	GString *json;

	g_return_val_if_fail(result != NULL, NULL);
	pthread_mutex_lock(&result->lock);
	json = exr_result_to_json(&result->outcome->result);
	pthread_mutex_unlock(&result->lock);
	return g_string_free(json, FALSE);
}

static const ExrObserved *observed(const StellaExecResult *result)
{
	static const ExrObserved nothing_known;

	return result->outcome->result.observed ? result->outcome->result.observed : &nothing_known;
}

gssize stella_exec_result_get_n_denials(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, -1);
	return observed(result)->denials ? (gssize)observed(result)->denials->len : -1;
}

gboolean stella_exec_result_get_denial(const StellaExecResult *result, gsize i,
				       StellaDenial *ret_denial)
{
	const GPtrArray *rows;
	const ExrDenial *row;

	g_return_val_if_fail(result != NULL && ret_denial != NULL, FALSE);
	rows = observed(result)->denials;
	if (!rows || i >= rows->len)
		return FALSE;
	row = rows->pdata[i];
	*ret_denial = (StellaDenial){
		.op = row->op,
		.path = row->path,
		.mount = row->mount,
		.reason = row->reason,
		.errno_name = row->errnum_name,
		.count = row->count,
	};
	return TRUE;
}

guint64 stella_exec_result_get_denials_dropped(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, 0);
	return observed(result)->denials_dropped;
}

gssize stella_exec_result_get_n_changes(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, -1);
	return observed(result)->changes ? (gssize)observed(result)->changes->len : -1;
}

gboolean stella_exec_result_get_change(const StellaExecResult *result, gsize i,
				       StellaChange *ret_change)
{
	const GPtrArray *rows;
	const ExrChange *row;

	g_return_val_if_fail(result != NULL && ret_change != NULL, FALSE);
	rows = observed(result)->changes;
	if (!rows || i >= rows->len)
		return FALSE;
	row = rows->pdata[i];
	*ret_change = (StellaChange){
		.path = row->path,
		.from = row->from,
		.change = row->change,
	};
	return TRUE;
}

guint64 stella_exec_result_get_changes_dropped(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, 0);
	return observed(result)->changes_dropped;
}

gboolean stella_exec_result_get_changes_incomplete(const StellaExecResult *result)
{
	g_return_val_if_fail(result != NULL, FALSE);
	return observed(result)->changes_incomplete;
}
