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

struct ExrGateway {
	ExrProcess process;
	ControlSocket *control; /* NULL once it was closed */
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
	r = exr_spawn(program, argv, (const char *const *)env, theirs, &gateway->process);
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
	g_autoptr(JsonNode) node = json_from_string(text, NULL);
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

	if (text && JSON_NODE_HOLDS_VALUE(text) && json_node_get_string(text))
		line = path_escape(json_node_get_string(text));
	return exr_error_set(error, CODE, "gateway", EIO, "gateway: %s",
			     line ? line : "an answer that makes no sense");
}

static bool says(JsonObject *object, const char *word)
{
	JsonNode *node = json_object_get_member(object, word);

	return node && JSON_NODE_HOLDS_VALUE(node) &&
	       json_node_get_value_type(node) == G_TYPE_BOOLEAN && json_node_get_boolean(node);
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
	g_free(gateway);
}
