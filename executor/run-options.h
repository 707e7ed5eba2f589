/* The arguments of `stella-exec run`, `sh` and `shell`, read and checked; nothing is opened yet. */
#pragma once

#include "common/log.h"
#include "common/policy-options.h"
#include "executor/env-list.h"

#include <stdbool.h>
#include <stdint.h>

#define EXR_KILL_AFTER_DEFAULT_MS (10 * 1000)

typedef struct {
	PolicyOptions *policy;
	bool has_policy_file; /* --policy was given */
	bool wants_help;      /* then nothing else counts */
	bool json;	      /* one object on stdout instead of live output */
	bool lossy_text;      /* output that is not UTF-8: text with U+FFFD, not base64 */
	bool tty;	      /* a terminal of its own for the command */
	LogFormat log_format;
	bool quiet;		 /* nothing on stderr about denials */
	const char *result_path; /* borrowed from argv, as are the others; NULL: not given */
	const char *stdin_path;	 /* "-": the caller's own */
	const char *cwd;
	int64_t timeout_ms; /* 0: the policy's */
	int64_t kill_after_ms;
	ExrEnvList *env;
	char **rest; /* the arguments behind the options; NULL-terminated, part of argv */
} ExrRunOptions;

/* Reads argv[1] and on, up to "--" or the first argument that is no option. host_env is the caller's
 * environment. -EINVAL with *reterr_message, one line; *ret_options is filled in any case as far as
 * it was understood, json even if it comes behind the mistake: an error has to be told in the way
 * that was asked for. Clear it with exr_run_options_clear(). */
int exr_run_options_parse(int argc, char **argv, char **host_env, ExrRunOptions *ret_options,
			  char **reterr_message);

void exr_run_options_clear(ExrRunOptions *options);
