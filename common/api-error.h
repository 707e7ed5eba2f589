/* From what the inside knows to a GError of the library: for the api-*.c files only. */
#pragma once

#include "common/path-resolver.h"
#include "stella/error.h"

/* What an error carries beyond its message; all owned by the error. */
typedef struct {
	int errnum;
	char *stage;
	char *hint;
	char *key;
	char *path;
	char *mount;
	char *reason;
	char *backend;
	StellaPolicy *policy;
} ApiErrorDetails;

/* The code for an errno: ENOENT, EEXIST, ... ; IO for what has none of its own. */
StellaError api_error_code_from_errno(int errnum);

/* Sets *error (may be NULL: nothing is done); format is the whole message. */
void api_error_set(GError **error, StellaError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* The same with ": " and the errno's text behind it, and the errno kept. code: what it is, or
 * API_ERROR_BY_ERRNO. errnum is positive or, as inner functions give it, negative. */
#define API_ERROR_BY_ERRNO (-1)
void api_error_set_errno(GError **error, int code, int errnum, const char *format, ...)
	G_GNUC_PRINTF(4, 5);

/* What a resolver said; the problem is emptied. */
void api_error_take_problem(GError **error, PathProblem *problem);

/* To add to an error of ours that was just set. */
ApiErrorDetails *api_error_details(GError *error);
