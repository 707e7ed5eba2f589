/* Options structs at the edge; see api-options.h. */
#include "executor/api-options.h"

#include "common/api-error.h"
#include "common/api-struct.h"
#include "common/path-util.h"

#include <string.h>

static gboolean refuse_variable(const char *text, const char *expected, GError **error)
{
	/* Not the value: it may be a secret. */
	g_autofree char *name = g_strndup(text, strcspn(text, "="));
	g_autofree char *shown = path_escape(name);

	api_error_set(error, STELLA_ERROR_INVALID_ARGUMENT, "environment: \"%s\": expected %s",
		      shown, expected);
	return FALSE;
}

gboolean api_env_check(const char *const *updates, GError **error)
{
	for (; updates && *updates; updates++)
		if (**updates == '=' || !strchr(*updates, '='))
			return refuse_variable(*updates, "NAME=value", error);
	return TRUE;
}

static gboolean check_common(const char *const *env, const char *const *unset_env,
			     gint64 timeout_ms, gint64 kill_grace_ms, GError **error)
{
	if (timeout_ms < STELLA_NO_TIMEOUT) {
		api_error_set(error, STELLA_ERROR_INVALID_ARGUMENT,
			      "timeout_ms: %" G_GINT64_FORMAT
			      ": expected at least 0, or STELLA_NO_TIMEOUT",
			      timeout_ms);
		return FALSE;
	}
	if (kill_grace_ms < 0) {
		api_error_set(error, STELLA_ERROR_INVALID_ARGUMENT,
			      "kill_grace_ms: %" G_GINT64_FORMAT ": expected at least 0",
			      kill_grace_ms);
		return FALSE;
	}
	for (; unset_env && *unset_env; unset_env++)
		if (!**unset_env || strchr(*unset_env, '='))
			return refuse_variable(*unset_env, "a variable's name", error);
	return api_env_check(env, error);
}

gboolean api_exec_options_read(const StellaExecOptions *options, StellaExecOptions *ret_options,
			       GError **error)
{
	stella_exec_options_init(ret_options);
	if (!options)
		return TRUE;
	if (!api_struct_read(options, options->size, ret_options, sizeof *ret_options,
			     sizeof(gsize)))
		return api_struct_refuse(options->size, "StellaExecOptions", error);
	if (ret_options->input_size > 0 && !ret_options->input) {
		api_error_set(error, STELLA_ERROR_INVALID_ARGUMENT,
			      "input_size: %" G_GSIZE_FORMAT ", and there is no input",
			      ret_options->input_size);
		return FALSE;
	}
	return check_common(ret_options->env, ret_options->unset_env, ret_options->timeout_ms,
			    ret_options->kill_grace_ms, error);
}

gboolean api_process_request_read(const StellaProcessRequest *request,
				  StellaProcessRequest *ret_request, GError **error)
{
	stella_process_request_init(ret_request);
	if (!api_struct_read(request, request->size, ret_request, sizeof *ret_request,
			     sizeof(gsize)))
		return api_struct_refuse(request->size, "StellaProcessRequest", error);
	if (!ret_request->path || !*ret_request->path) {
		api_error_set(error, STELLA_ERROR_INVALID_ARGUMENT, "path: there is no program");
		return FALSE;
	}
	return check_common(ret_request->env, ret_request->unset_env, ret_request->timeout_ms,
			    ret_request->kill_grace_ms, error);
}

gboolean api_exec_fields_read(const StellaExecResultFields *fields,
			      StellaExecResultFields *ret_fields)
{
	stella_exec_result_fields_init(ret_fields);
	return api_struct_read(fields, fields->size, ret_fields, sizeof *ret_fields, sizeof(gsize));
}

static const char *const *copy_list(const char *const *list)
{
	return (const char *const *)g_strdupv((char **)(uintptr_t)list);
}

static void free_list(const char *const *list)
{
	g_strfreev((char **)(uintptr_t)list);
}

static void free_const(const void *data)
{
	g_free((void *)(uintptr_t)data);
}

StellaExecOptions *api_exec_options_copy(const StellaExecOptions *options)
{
	StellaExecOptions *copy = g_memdup2(options, sizeof *options);

	copy->cwd = g_strdup(options->cwd);
	copy->env = copy_list(options->env);
	copy->unset_env = copy_list(options->unset_env);
	copy->input = g_memdup2(options->input, options->input_size);
	return copy;
}

void api_exec_options_free(StellaExecOptions *copy)
{
	if (!copy)
		return;
	free_const(copy->cwd);
	free_list(copy->env);
	free_list(copy->unset_env);
	free_const(copy->input);
	g_free(copy);
}

StellaProcessRequest *api_process_request_copy(const StellaProcessRequest *request)
{
	StellaProcessRequest *copy = g_memdup2(request, sizeof *request);

	copy->path = g_strdup(request->path);
	copy->args = copy_list(request->args);
	copy->cwd = g_strdup(request->cwd);
	copy->env = copy_list(request->env);
	copy->unset_env = copy_list(request->unset_env);
	return copy;
}

void api_process_request_free(StellaProcessRequest *copy)
{
	if (!copy)
		return;
	free_const(copy->path);
	free_list(copy->args);
	free_const(copy->cwd);
	free_list(copy->env);
	free_list(copy->unset_env);
	g_free(copy);
}

ExrEnvList *api_env_list_new(const char *const *env, const char *const *unset_env)
{
	ExrEnvList *list = exr_env_list_new();
	char *message = NULL;

	for (; unset_env && *unset_env; unset_env++)
		if (exr_env_list_unset(list, *unset_env, &message) < 0)
			g_clear_pointer(&message, g_free);
	for (; env && *env; env++)
		if (exr_env_list_set(list, *env, NULL, &message) < 0)
			g_clear_pointer(&message, g_free);
	return list;
}
