/* The options of a command as a caller gives them, made safe to work with: for the api-*.c files only. */
#pragma once

#include "executor/session-exec.h"
#include "stella/exec.h"
#include "stella/process.h"

/* Reads what a caller gave (NULL: the defaults) into a whole struct of ours, and judges it. The pointers stay the
 * caller's. FALSE with STELLA_ERROR_INVALID_ARGUMENT. */
gboolean api_exec_options_read(const StellaExecOptions *options, StellaExecOptions *ret_options,
			       GError **error);
gboolean api_process_request_read(const StellaProcessRequest *request,
				  StellaProcessRequest *ret_request, GError **error);
/* Likewise what a host says of a result of its own: FALSE where its size is none. */
gboolean api_exec_fields_read(const StellaExecResultFields *fields,
			      StellaExecResultFields *ret_fields);

/* Whether every entry is NAME=value. updates may be NULL. */
gboolean api_env_check(const char *const *updates, GError **error);

/* Copies with all that they point to but user data, for asynchronous calls. Of structs that were read. */
StellaExecOptions *api_exec_options_copy(const StellaExecOptions *options);
void api_exec_options_free(StellaExecOptions *copy); /* NULL is allowed */
StellaProcessRequest *api_process_request_copy(const StellaProcessRequest *request);
void api_process_request_free(StellaProcessRequest *copy); /* NULL is allowed */

/* The request's variables as commands take them, of lists that were judged. The caller frees. */
ExrEnvList *api_env_list_new(const char *const *env, const char *const *unset_env);
