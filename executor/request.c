/* A command, decided; see request.h. */
#include "executor/request.h"

#include "common/environment.h"
#include "common/path-util.h"

#include <errno.h>

static int locate_cwd(const ExrRequestSource *source, char **ret_cwd, ExrError *reterr_error)
{
	g_autofree char *shown = NULL;
	int r;

	if (!source->cwd) {
		*ret_cwd = g_strdup(source->plan->working_dir);
		return 0;
	}
	*ret_cwd = view_plan_locate(source->plan, source->cwd);
	if (*ret_cwd)
		return 0;
	shown = path_escape(source->cwd);
	r = exr_error_set(reterr_error, "cwd-invalid", "cwd", ENOENT,
			  "--cwd \"%s\": outside every mount of the view", shown);
	exr_error_set_hint(reterr_error,
			   "a path of the view, a host path inside a mount, or relative to %s",
			   source->plan->working_dir);
	return r;
}

/* The list with the NULL at its end that callers of lists expect; borrows the strings. */
static const char *const *terminated(const GPtrArray *array, const char **ret_list)
{
	for (guint i = 0; i < array->len; i++)
		ret_list[i] = array->pdata[i];
	ret_list[array->len] = NULL;
	return ret_list;
}

static int make_env(const ExrRequestSource *source, const char *cwd, char ***ret_env,
		    ExrError *reterr_error)
{
	g_autofree const char **set = g_new(const char *, source->env->set->len + 1);
	g_autofree const char **unset = g_new(const char *, source->env->unset->len + 1);
	g_autofree char *message = NULL;
	EnvironmentOptions options = {
		.plan = source->plan,
		.host = (const char *const *)source->host_env,
		.request_set = terminated(source->env->set, set),
		.request_unset = terminated(source->env->unset, unset),
		.cwd = cwd,
		.home = source->home,
	};
	int r = environment_new(&options, ret_env, &message);

	if (r < 0)
		return exr_error_set(reterr_error, "request-invalid", "environment", -r,
				     "environment: %s", message);
	return 0;
}

int exr_request_freeze(const ExrRequestSource *source, ExrFrozenRequest **ret_request,
		       ExrError *reterr_error)
{
	g_autoptr(ExrFrozenRequest) request = g_new0(ExrFrozenRequest, 1);
	int r = locate_cwd(source, &request->cwd, reterr_error);

	if (r < 0)
		return r;
	r = make_env(source, request->cwd, &request->env, reterr_error);
	if (r < 0)
		return r;
	request->argv = g_strdupv(source->argv);
	request->request = (ExrRequest){
		.argv = (const char *const *)request->argv,
		.env = (const char *const *)request->env,
		.cwd = request->cwd,
		.stdin_null = source->stdin_null,
	};
	*ret_request = g_steal_pointer(&request);
	return 0;
}

void exr_request_free(ExrFrozenRequest *request)
{
	if (!request)
		return;
	g_strfreev(request->argv);
	g_strfreev(request->env);
	g_free(request->cwd);
	g_free(request);
}
