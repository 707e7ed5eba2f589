/* From a start's error inside to a GError of the library, and back: for the api-*.c files only. */
#pragma once

#include "executor/error.h"
#include "stella/error.h"

/* What a published code is for a caller; STELLA_ERROR_FAILED for a word that is none. */
StellaError api_exr_error_code(const char *word);
/* The published code that says most nearly the same, for results that a host makes itself. Static storage. */
const char *api_exr_error_word(StellaError code);

/* A GError of it, with stage, errno, key and hint. The caller owns it. */
GError *api_exr_error_new(const ExrError *error);
/* Sets *error (may be NULL); the inner one is emptied. */
void api_exr_error_take(GError **error, ExrError *take_inner);
/* The other way round: fills an empty ret_inner, whose strings the caller clears. Errors of other domains too. */
void api_exr_error_from(const GError *error, ExrError *ret_inner);
