/* session.create, .get, .list, .refresh_env, .close; see rpc.h. */
#include "executor/rpc.h"

#include "common/json-string.h"
#include "common/policy-json.h"
#include "executor/backend.h"
#include "executor/session-policy.h"

static void add_names(GString *object, const char *key, const char *const *names)
{
	g_string_append_printf(object, ", \"%s\": [", key);
	for (size_t i = 0; names && names[i]; i++) {
		g_string_append(object, i > 0 ? ", " : "");
		json_string_add_path(object, names[i]);
	}
	g_string_append_c(object, ']');
}

static GString *describe(const ExrSession *session)
{
	const ViewPlan *plan = exr_session_plan(session);
	g_auto(GStrv) writable = view_plan_writable(plan);
	g_autoptr(StellaPolicy) effective = exr_session_effective_policy_new(session);
	g_autofree char *policy = policy_json_write(effective, false);
	GString *object = g_string_new("{\"session_id\": ");

	json_string_add(object, exr_session_id(session));
	g_string_append_printf(object, ", \"backend\": \"%s\"", exr_session_backend(session)->name);
	g_string_append_printf(object, ", \"alive\": %s",
			       exr_session_alive(session) ? "true" : "false");
	g_string_append(object, ", \"working_dir\": ");
	json_string_add_path(object, plan->working_dir);
	add_names(object, "writable", (const char *const *)writable);
	add_names(object, "limits_unenforced", exr_session_unenforced(session));
	g_string_append_printf(object, ", \"policy\": %s}", policy);
	return object;
}

GString *rpc_session_create(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "policy", "temporary_user", "backend", NULL };
	ExrSessionConfig config = {
		.temporary_user = rpc_bool(call, "temporary_user"),
		.host_env = rpc_peer_host_env(call->peer),
	};
	const char *backend = rpc_string(call, "backend");
	JsonObject *object = rpc_object(call, "policy");
	g_autoptr(JsonNode) node = NULL;
	g_autoptr(StellaPolicy) policy = NULL;
	g_autofree char *message = NULL;
	g_autofree char *skipped = NULL;
	g_autoptr(RpcSession) session = NULL;
	int r;

	if (!object)
		rpc_problem(call, "policy", "expected an object");
	config.backend = backend ? exr_backend_find(backend) : NULL;
	if (backend && !config.backend)
		rpc_problem(call, "backend", "expected " EXR_BACKEND_NAMES);
	if (!rpc_params_ok(call, names))
		return NULL;
	node = json_node_new(JSON_NODE_OBJECT);
	json_node_take_object(node, json_object_ref(object));
	if ((r = policy_json_read(node, &policy, &message)) < 0) {
		(void)exr_error_set_policy(error, r, message);
		return NULL;
	}
	config.policy = policy;
	session = g_new0(RpcSession, 1);
	session->refs = 1;
	/* Which one was taken is in the answer, and why in the log. */
	r = config.backend
		    ? exr_session_new(&config, &session->session, error)
		    : exr_session_new_by_default(&config, &session->session, &skipped, error);
	if (r < 0)
		return NULL;
	if (!rpc_peer_add_session(call->peer, session)) {
		exr_error_set(error, "session-closed", "request", ESHUTDOWN,
			      "no more sessions: the client has gone, or has as many as it may");
		return NULL;
	}
	return describe(session->session);
}

GString *rpc_session_get(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "session_id", NULL };
	g_autoptr(RpcSession) session = rpc_session_of(call);

	(void)error;
	return rpc_params_ok(call, names) ? describe(session->session) : NULL;
}

GString *rpc_session_list(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { NULL };
	g_autoptr(GPtrArray) ids = NULL;
	GString *list;

	(void)error;
	if (!rpc_params_ok(call, names))
		return NULL;
	ids = rpc_peer_sessions(call->peer);
	list = g_string_new("{\"sessions\": [");
	for (guint i = 0; i < ids->len; i++) {
		g_string_append(list, i > 0 ? ", " : "");
		json_string_add(list, ids->pdata[i]);
	}
	return g_string_append(list, "]}");
}

GString *rpc_session_refresh_env(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "session_id", "env", NULL };
	g_autoptr(RpcSession) session = rpc_session_of(call);
	g_autoptr(ExrEnvList) env = rpc_env(call, "env");
	int r;

	if (!env)
		rpc_problem(call, "env", "expected an object");
	else if (env->unset->len > 0)
		rpc_problem(call, "env", "expected strings as values");
	if (!rpc_params_ok(call, names))
		return NULL;
	g_ptr_array_add(env->set, NULL);
	r = exr_session_refresh_env(session->session, (const char *const *)env->set->pdata, error);
	g_ptr_array_remove_index(env->set, env->set->len - 1);
	return r < 0 ? NULL : g_string_new("{}");
}

/* Others may be running commands in it: those get their results, and it is gone when this is answered. */
GString *rpc_session_close(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "session_id", NULL };
	const char *id = rpc_string(call, "session_id");
	g_autoptr(RpcSession) session = NULL;

	(void)error;
	if (rpc_params_ok(call, names) && id)
		session = rpc_peer_take_session(call->peer, id);
	if (!session)
		rpc_problem(call, "session_id", "no session of that name");
	else
		exr_session_close(session->session);
	return call->problem ? NULL : g_string_new("{}");
}
