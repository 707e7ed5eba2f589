/* A command, decided; see request.h. */
#include "executor/request.h"

#include "common/environment.h"
#include "common/path-util.h"
#include "executor/session-internal.h"

#include <errno.h>

static int locate_cwd(const ExrSession *session, const char *cwd, char **ret_cwd,
		      ExrError *reterr_error)
{
	const ViewPlan *plan = session->plan;
	g_autofree char *shown = NULL;
	int r;

	if (!cwd) {
		*ret_cwd = g_strdup(plan->working_dir);
		return 0;
	}
	/* Where nothing runs, any place is as good. */
	*ret_cwd = session->backend->is_pretense ? g_strdup(cwd) : view_plan_locate(plan, cwd);
	if (*ret_cwd)
		return 0;
	shown = path_escape(cwd);
	r = exr_error_set(reterr_error, "cwd-invalid", "cwd", ENOENT,
			  "working directory \"%s\": outside every mount of the view", shown);
	exr_error_set_hint(reterr_error,
			   "a path of the view, a host path inside a mount, or relative to %s",
			   plan->working_dir);
	return r;
}

/* The list with the NULL at its end that callers of lists expect; borrows the strings. The caller frees it. */
static const char **terminated(const GPtrArray *array)
{
	const char **list = g_new0(const char *, array ? array->len + 1 : 1);

	for (guint i = 0; array && i < array->len; i++)
		list[i] = array->pdata[i];
	return list;
}

static int make_env(ExrSession *session, const ExrExecOptions *options, const char *cwd,
		    char ***ret_env, ExrError *reterr_error)
{
	g_auto(GStrv) refresh = exr_session_refreshed(session);
	g_autofree const char **set = terminated(options->env ? options->env->set : NULL);
	g_autofree const char **unset = terminated(options->env ? options->env->unset : NULL);
	g_autofree char *message = NULL;
	EnvironmentOptions environment = {
		.plan = session->plan,
		.host = (const char *const *)session->host_env,
		.refresh = (const char *const *)refresh,
		.request_set = set,
		.request_unset = unset,
		.cwd = cwd,
		.home = session->home,
	};
	int r = environment_new(&environment, ret_env, &message);

	if (r < 0)
		return exr_error_set(reterr_error, "request-invalid", "environment", -r,
				     "environment: %s", message);
	return 0;
}

int exr_request_freeze(ExrSession *session, const ExrExecOptions *options,
		       ExrFrozenRequest **ret_request, ExrError *reterr_error)
{
	g_autoptr(ExrFrozenRequest) request = g_new0(ExrFrozenRequest, 1);
	int r = locate_cwd(session, options->cwd, &request->cwd, reterr_error);

	if (r < 0)
		return r;
	r = make_env(session, options, request->cwd, &request->env, reterr_error);
	if (r < 0)
		return r;
	request->argv = g_strdupv((char **)(uintptr_t)options->argv);
	request->request = (ExrRequest){
		.argv = (const char *const *)request->argv,
		.env = (const char *const *)request->env,
		.cwd = request->cwd,
		.stdin_null = options->input_fd < 0 && options->input_size == 0,
		.merge_stderr = options->merge_stderr,
		.wait_left_over = options->wait_left_over,
		.tty = options->tty,
		.rows = options->rows,
		.columns = options->columns,
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
