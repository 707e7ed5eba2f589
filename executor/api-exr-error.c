/* The one place where the published codes of a start's error (error.c) meet those of the library (stella/error.h).
 *
 * Several inner codes are one for a caller, who would do the same about them; which it was is told by the stage. So the
 * way back is not the whole one: of several words the last row that is published says what is meant. */
#include "executor/api-exr-error.h"

#include "common/api-error.h"

#include <stdbool.h>
#include <string.h>

static const struct {
	const char *word;
	StellaError meaning;
} rows[] = {
	{ "policy-invalid", STELLA_ERROR_POLICY_INVALID },
	{ "limit-unenforceable", STELLA_ERROR_POLICY_INCOMPATIBLE },
	{ "policy-unsupported", STELLA_ERROR_POLICY_INCOMPATIBLE },
	{ "policy-incompatible", STELLA_ERROR_POLICY_INCOMPATIBLE },
	{ "request-invalid", STELLA_ERROR_INVALID_ARGUMENT },
	{ "host-unsupported", STELLA_ERROR_HOST_UNSUPPORTED },
	{ "state-dir-failed", STELLA_ERROR_START_FAILED },
	{ "gateway-failed", STELLA_ERROR_START_FAILED },
	{ "namespace-failed", STELLA_ERROR_START_FAILED },
	{ "rootfs-failed", STELLA_ERROR_START_FAILED },
	{ "setup-failed", STELLA_ERROR_START_FAILED },
	{ "cwd-invalid", STELLA_ERROR_CWD_INVALID },
	{ "program-not-found", STELLA_ERROR_PROGRAM_NOT_FOUND },
	{ "program-not-executable", STELLA_ERROR_PROGRAM_NOT_EXECUTABLE },
	{ "session-closed", STELLA_ERROR_SESSION_CLOSED },
	{ "internal", STELLA_ERROR_FAILED },
};

StellaError api_exr_error_code(const char *word)
{
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		if (strcmp(rows[i].word, word) == 0)
			return rows[i].meaning;
	return STELLA_ERROR_FAILED;
}

const char *api_exr_error_word(StellaError code)
{
	const char *word = "internal";

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		if (rows[i].meaning == code && g_strv_contains(exr_error_codes, rows[i].word))
			word = rows[i].word;
	return word;
}

GError *api_exr_error_new(const ExrError *error)
{
	GError *made = NULL;
	ApiErrorDetails *details;

	api_error_set(&made, api_exr_error_code(error->code), "%s", error->message);
	details = api_error_details(made);
	details->errnum = error->errnum;
	details->stage = g_strdup(error->stage);
	details->key = g_strdup(error->key);
	details->hint = g_strdup(error->hint);
	return made;
}

void api_exr_error_take(GError **error, ExrError *take_inner)
{
	if (error)
		g_propagate_error(error, api_exr_error_new(take_inner));
	exr_error_clear(take_inner);
}

/* A stage goes into JSON, where its shape is fixed. */
static bool is_stage(const char *text)
{
	return text && *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

void api_exr_error_from(const GError *error, ExrError *ret_inner)
{
	const char *stage = stella_error_get_stage(error);

	ret_inner->code = error->domain == STELLA_ERROR
				  ? api_exr_error_word((StellaError)error->code)
				  : api_exr_error_word(STELLA_ERROR_START_FAILED);
	ret_inner->stage = is_stage(stage) ? g_intern_string(stage) : "request";
	ret_inner->errnum = stella_error_get_errno(error);
	ret_inner->key = g_strdup(stella_error_get_key(error));
	ret_inner->hint = g_strdup(stella_error_get_hint(error));
	ret_inner->message =
		g_strdup(error->message && *error->message ? error->message : "no reason given");
}
