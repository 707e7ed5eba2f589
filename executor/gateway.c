/* The gateway's process; see gateway.h. What is said on the socket is in common/control.h. */
#include "executor/gateway.h"

#include "common/control.h"
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/policy-json.h"
#include "common/program-path.h"
#include "config.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CODE	  "gateway-failed"
#define ANSWER_MS 15000
#define END_MS	  2000
#define KILL_MS	  2000
/* A little more than the gateway takes at the most. */
#define START_MS    2000
#define END_EXEC_MS 300

struct ExrGateway {
	unsigned int refs;
	ExrProcess process;
	ControlSocket *control; /* NULL once it was closed */
	int64_t last_id;	/* of what was asked */
	bool slow;		/* the last answer did not come in time */
};

static int start_process(ExrGateway *gateway, ExrError *error)
{
	g_autofree char *program = program_path("stella-fsgate");
	const char *const argv[] = { "stella-fsgate", "serve", "--control-fd", "3", NULL };
	g_auto(GStrv) env = exr_spawn_env();
	FD_AUTO theirs = -1;
	int pair[2], r;

	if ((r = exr_socketpair(SOCK_STREAM, pair)) < 0)
		return exr_error_set(error, CODE, "gateway", -r, "control socket: %s",
				     errno_text(-r));
	gateway->control = control_socket_new(pair[0]);
	theirs = pair[1];
	r = exr_spawn(program, argv, (const char *const *)env, theirs, -1,
		      &gateway->process);
	if (r < 0) {
		exr_error_set(error, CODE, "gateway", -r, "cannot start \"%s\": %s", program,
			      errno_text(-r));
		if (access(program, X_OK) != 0)
			exr_error_set_hint(error, "both programs have to be installed, or be run "
						  "from one build directory");
	}
	return r;
}

static int send_start(ExrGateway *gateway, const StellaPolicy *policy, uid_t uid, gid_t gid,
		      const char *state_dir, ExrError *error)
{
	g_autofree char *text = policy_json_write(policy, false);
	g_autoptr(JsonNode) node = json_from_string(text, -1);
	JsonObject *start, *message;
	int r;

	if (!node || !JSON_NODE_HOLDS_OBJECT(node))
		return exr_error_set(
			error, "policy-invalid", "policy", EILSEQ,
			"the policy cannot be told to the gateway: it holds a path or a "
			"value that is not UTF-8");
	start = json_object_new();
	json_object_set_string_member(start, "version", STELLA_VERSION);
	json_object_set_object_member(start, "policy", json_node_dup_object(node));
	json_object_set_int_member(start, "uid", uid);
	json_object_set_int_member(start, "gid", gid);
	json_object_set_string_member(start, "state_dir", state_dir);
	message = json_object_new();
	json_object_set_object_member(message, "start", start);
	r = control_socket_send(gateway->control, message, -1);
	/* A gateway that ended at once is noticed when its answer is awaited. */
	if (r == -EPIPE)
		return 0;
	if (r < 0)
		return exr_error_set(error, CODE, "gateway", -r, "cannot send the policy: %s",
				     errno_text(-r));
	return 0;
}

int exr_gateway_new(const StellaPolicy *policy, uid_t uid, gid_t gid, const char *state_dir,
		    ExrGateway **ret_gateway, ExrError *reterr_error)
{
	g_autoptr(ExrGateway) gateway = g_new0(ExrGateway, 1);
	int r;

	gateway->refs = 1;
	gateway->process.pidfd = -1;
	if ((r = start_process(gateway, reterr_error)) < 0 ||
	    (r = send_start(gateway, policy, uid, gid, state_dir, reterr_error)) < 0)
		return r;
	*ret_gateway = g_steal_pointer(&gateway);
	return 0;
}

/* The gateway's own line, made printable; it has looked at the agent's files by now. */
static int told_error(JsonObject *object, ExrError *error)
{
	JsonNode *node = json_object_get_member(object, "error");
	JsonObject *told = node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
	JsonNode *text = told ? json_object_get_member(told, "message") : NULL;
	g_autofree char *line = NULL;

	if (json_node_holds(text, JSON_NODE_STRING))
		line = path_escape(json_node_get_string(text));
	return exr_error_set(error, CODE, "gateway", EIO, "gateway: %s",
			     line ? line : "an answer that makes no sense");
}

static bool says(JsonObject *object, const char *word)
{
	JsonNode *node = json_object_get_member(object, word);

	return json_node_holds(node, JSON_NODE_BOOLEAN) && json_node_get_boolean(node);
}

static int await(ExrGateway *gateway, const char *word, ExrError *error)
{
	g_autoptr(JsonObject) object = NULL;
	int r = control_socket_receive(gateway->control, ANSWER_MS, &object, NULL);

	if (r == -EPIPE || r == -ECONNRESET)
		return exr_error_set(error, CODE, "gateway", EPIPE,
				     "the gateway ended before it was %s", word);
	if (r == -ETIMEDOUT)
		return exr_error_set(error, CODE, "gateway", ETIMEDOUT,
				     "the gateway was not %s within %d s", word, ANSWER_MS / 1000);
	if (r < 0)
		return exr_error_set(error, CODE, "gateway", -r, "the gateway's answer: %s",
				     errno_text(-r));
	return says(object, word) ? 0 : told_error(object, error);
}

static int hand_over(ExrGateway *gateway, const char *how, const char *path, int fd)
{
	JsonObject *message = json_object_new();
	int r;

	json_object_set_string_member(message, "attach", how);
	if (path)
		json_object_set_string_member(message, "path", path);
	r = control_socket_send(gateway->control, message, fd);
	return r == -EPIPE ? 0 : r; /* it has ended, and its last answer says why */
}

int exr_gateway_attach(ExrGateway *gateway, int device_fd, int tasks_fd, const char *path,
		       ExrError *reterr_error)
{
	int r;

	if ((r = await(gateway, "ready", reterr_error)) < 0)
		return r;
	if (tasks_fd >= 0)
		r = hand_over(gateway, "tasks", NULL, tasks_fd);
	if (r == 0)
		r = device_fd >= 0 ? hand_over(gateway, "device", NULL, device_fd)
				   : hand_over(gateway, "fusermount", path, -1);
	if (r < 0)
		return exr_error_set(reterr_error, CODE, "gateway", -r,
				     "cannot hand over the view: %s", errno_text(-r));
	return await(gateway, "serving", reterr_error);
}

static int64_t get_number(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return node && json_node_holds(node, JSON_NODE_INT) ? json_node_get_int(node)
								      : -1;
}

static int send_boundary(ExrGateway *gateway, const char *which, int64_t exec)
{
	JsonObject *message;

	if (!gateway->control)
		return -EPIPE;
	message = json_object_new();
	json_object_set_string_member(message, "boundary", which);
	json_object_set_int_member(message, "id", ++gateway->last_id);
	if (exec >= 0)
		json_object_set_int_member(message, "exec", exec);
	return control_socket_send(gateway->control, message, -1);
}

/* The answer to what was sent last; those to earlier questions, which came too late, go. A gateway that was slow
 * once is not waited for again until it has caught up. */
static JsonObject *await_boundary(ExrGateway *gateway, int timeout_ms)
{
	gint64 deadline_us =
		g_get_monotonic_time() + (gateway->slow ? 0 : (gint64)timeout_ms * 1000);

	for (;;) {
		gint64 left_us = MAX(deadline_us - g_get_monotonic_time(), 0);
		JsonObject *answer = NULL;

		if (control_socket_receive(gateway->control, (int)((left_us + 999) / 1000), &answer,
					   NULL) < 0) {
			gateway->slow = true;
			return NULL;
		}
		if (get_number(answer, "id") == gateway->last_id) {
			gateway->slow = false;
			return answer;
		}
		json_object_unref(answer);
	}
}

bool exr_gateway_exec_starts(ExrGateway *gateway)
{
	return send_boundary(gateway, "start", -1) == 0;
}

bool exr_gateway_await_start(ExrGateway *gateway, ExrBoundary *ret_boundary)
{
	g_autoptr(JsonObject) answer = await_boundary(gateway, START_MS);

	*ret_boundary = (ExrBoundary){ .exec = INT64_MAX, .denials = -1 };
	if (!answer || get_number(answer, "exec") < 0)
		return false;
	ret_boundary->exec = get_number(answer, "exec");
	ret_boundary->denials = get_number(answer, "denials");
	return says(answer, "caught_up");
}

bool exr_gateway_exec_ended(ExrGateway *gateway, const ExrBoundary *boundary)
{
	g_autoptr(JsonObject) answer = NULL;

	if (send_boundary(gateway, "end", boundary->exec) < 0)
		return false;
	answer = await_boundary(gateway, END_EXEC_MS);
	return answer && says(answer, "caught_up");
}

JsonObject *exr_gateway_denials(ExrGateway *gateway, int64_t since)
{
	gint64 deadline_us = g_get_monotonic_time() + (gint64)END_EXEC_MS * 1000;
	JsonObject *inner, *message;

	if (!gateway->control)
		return NULL;
	inner = json_object_new();
	message = json_object_new();
	json_object_set_int_member(inner, "since", MAX(since, 0));
	json_object_set_object_member(message, "denials", inner);
	if (control_socket_send(gateway->control, message, -1) < 0)
		return NULL;
	for (;;) {
		gint64 left_us = MAX(deadline_us - g_get_monotonic_time(), 0);
		g_autoptr(JsonObject) answer = NULL;
		JsonNode *node;

		if (control_socket_receive(gateway->control, (int)((left_us + 999) / 1000), &answer,
					   NULL) < 0)
			return NULL;
		/* What came too late for another question goes. */
		node = json_object_has_member(answer, "boundary")
			       ? NULL
			       : json_object_get_member(answer, "denials");
		if (node && JSON_NODE_HOLDS_OBJECT(node))
			return json_object_ref(json_node_get_object(node));
	}
}

ExrGateway *exr_gateway_ref(ExrGateway *gateway)
{
	gateway->refs++;
	return gateway;
}

void exr_gateway_unref(ExrGateway *gateway)
{
	if (gateway && --gateway->refs == 0)
		g_free(gateway);
}

bool exr_gateway_alive(const ExrGateway *gateway)
{
	return gateway->process.pidfd >= 0 &&
	       exr_wait_readable(gateway->process.pidfd, 0) == -ETIMEDOUT;
}

void exr_gateway_kill(ExrGateway *gateway)
{
	exr_process_kill(&gateway->process);
}

void exr_gateway_free(ExrGateway *gateway)
{
	if (!gateway)
		return;
	/* The end of file tells it to end. */
	control_socket_free(g_steal_pointer(&gateway->control));
	(void)exr_process_end(&gateway->process, END_MS, KILL_MS);
	exr_gateway_unref(gateway);
}
