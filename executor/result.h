/* What became of a command, as the JSON object that every door of the system gives: all keys, always;
 * null where something is not known, [] where it is known to be nothing. */
#pragma once

#include "common/output-buffer.h"
#include "common/policy.h"
#include "executor/error.h"
#include "executor/observed.h"

#include <stdbool.h>
#include <stdint.h>

#define EXR_RESULT_VERSION 1

typedef enum {
	EXR_ENDED_EXITED,
	EXR_ENDED_SIGNALED,
	EXR_ENDED_TIMED_OUT,
	EXR_ENDED_CANCELED,
	EXR_ENDED_START_FAILED,
	_N_EXR_ENDED,
} ExrEnded;

/* All pointers are borrowed. */
typedef struct {
	const char *session_id; /* NULL: there was no session */
	int exec_id;		/* 0: nothing was started */
	ExrEnded ended;
	int exit_code;	   /* EXITED */
	int signal;	   /* SIGNALED; for CANCELED the one that we were sent */
	OutputBuffer *out; /* NULL: nothing */
	OutputBuffer *err;
	const char *out_spill; /* a view path; NULL: none */
	const char *err_spill;
	bool lossy_text; /* what is not UTF-8 becomes text with U+FFFD, else base64 */
	int64_t duration_ms;
	int64_t cpu_ms;			      /* -1: not known */
	int64_t max_rss_bytes;		      /* -1: not known */
	const char *const *writable;	      /* view paths, NULL-terminated; NULL: not known */
	const char *const *limits_unenforced; /* names, NULL-terminated; NULL: not known */
	const ExrObserved *observed;	      /* NULL: not known */
	int left_over_killed;		      /* -1: not known */
	unsigned int limits_hit;	      /* EXR_LIMIT_*: of the session as a whole */
	const PolicyLimits *limits;	      /* NULL: no command ran under any */
	const ExrError *error;		      /* START_FAILED; else NULL */
} ExrResult;

/* The object on one line, without a newline. The caller frees. */
GString *exr_result_to_json(const ExrResult *result);

/* The limits that were hit, by the names that they have in a policy. Those that the command itself gets to see as an error, and
 * we do not, are not among them. NULL-terminated; the caller frees the list, the names are static. */
const char **exr_result_limits_hit(const ExrResult *result);

/* The exit status of the command line: the program's, 128 + n, 124 for a timeout, 127 and 126 for a
 * program that is not there or not executable, 125 for every other failure to start. */
int exr_result_exit_status(const ExrResult *result);
#define EXR_EXIT_TIMED_OUT	124
#define EXR_EXIT_FAILED		125
#define EXR_EXIT_NOT_EXECUTABLE 126
#define EXR_EXIT_NOT_FOUND	127
