/* The gateway's process; see gateway.h. What is said on the socket is in common/control.h. */
#include "executor/gateway-internal.h"

#include "common/control.h"
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/policy-json.h"
#include "common/program-path.h"
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CODE	  "gateway-failed"
#define ANSWER_MS 15000
#define END_MS	  2000
#define KILL_MS	  2000
static int start_process(ExrGateway *gateway, ExrError *error)
{
	g_autofree char *program = program_path("stella-fsgate");
	const char *const argv[] = { "stella-fsgate", "serve", "--control-fd", "3", NULL };
	g_auto(GStrv) env = exr_spawn_env();
	FD_AUTO theirs = -1, leash = -1;
	int pair[2], leash_ends[2], r;

	if ((r = exr_socketpair(SOCK_STREAM, pair)) < 0)
		return exr_error_set(error, CODE, "gateway", -r, "control socket: %s",
				     errno_text(-r));
	gateway->control = control_socket_new(pair[0]);
	theirs = pair[1];
	if (pipe2(leash_ends, O_CLOEXEC) != 0) {
		r = errno;
		return exr_error_set(error, CODE, "gateway", r, "leash: %s", errno_text(r));
	}
	leash = leash_ends[0];
	gateway->leash_fd = leash_ends[1];
	r = exr_spawn(program, argv, (const char *const *)env, theirs, leash, &gateway->process);
	if (r < 0) {
		exr_error_set(error, CODE, "gateway", -r, "cannot start \"%s\": %s", program,
			      errno_text(-r));
		exr_error_set_known_hint(error);
	}
	return r;
}

int exr_gateway_new(ExrGateway **ret_gateway, ExrError *reterr_error)
{
	g_autoptr(ExrGateway) gateway = g_new0(ExrGateway, 1);
	int r;

	gateway->refs = 1;
	gateway->process.pidfd = gateway->leash_fd = gateway->queue_fd = -1;
	pthread_mutex_init(&gateway->lock, NULL);
	pthread_mutex_init(&gateway->send_lock, NULL);
	cond_init(&gateway->answered);
	if ((r = start_process(gateway, reterr_error)) < 0)
		return r;
	*ret_gateway = g_steal_pointer(&gateway);
	return 0;
}

int exr_gateway_configure(ExrGateway *gateway, const StellaPolicy *policy, uid_t uid, gid_t gid,
			  const char *state_dir, bool one_exec, ExrError *reterr_error)
{
	g_autofree char *text = policy_json_write(policy, false);
	g_autoptr(JsonNode) node = json_from_string(text, -1);
	JsonObject *start, *message;
	FD_AUTO board = -1;
	int r;

	if (!node)
		return exr_error_set(
			reterr_error, "policy-invalid", "policy", EILSEQ,
			"the policy cannot be told to the gateway: it holds a path or a "
			"value that is not UTF-8");
	if ((r = exec_board_new(&gateway->board, &board)) < 0)
		return exr_error_set(reterr_error, CODE, "gateway", -r, "memory to share: %s",
				     errno_text(-r));
	start = json_object_new();
	json_object_set_string_member(start, "version", STELLA_VERSION);
	json_object_set_object_member(start, "policy", json_node_dup_object(node));
	json_object_set_int_member(start, "uid", uid);
	json_object_set_int_member(start, "gid", gid);
	json_object_set_string_member(start, "state_dir", state_dir);
	json_object_set_boolean_member(start, "one_exec", one_exec);
	message = json_object_new();
	json_object_set_object_member(message, "start", start);
	r = control_socket_send(gateway->control, message, board);
	/* A gateway that ended at once is noticed when its answer is awaited. */
	if (r == -EPIPE)
		return 0;
	if (r < 0)
		return exr_error_set(reterr_error, CODE, "gateway", -r,
				     "cannot send the policy: %s", errno_text(-r));
	return 0;
}

/* The gateway's own line, made printable; it has looked at the agent's files by now. */
static int told_error(JsonObject *object, ExrError *error)
{
	JsonNode *node = json_object_get_member(object, "error");
	JsonObject *told = json_node_get_object(node);
	JsonNode *text = told ? json_object_get_member(told, "message") : NULL;
	g_autofree char *line = NULL;

	if (json_node_get_string(text))
		line = path_escape(json_node_get_string(text));
	return exr_error_set(error, CODE, "gateway", EIO, "gateway: %s",
			     line ? line : "an answer that makes no sense");
}

bool exr_gateway_says(JsonObject *object, const char *word)
{
	return json_node_get_boolean(json_object_get_member(object, word));
}

/* A queue of fanotify's: nothing else that a gateway could send. */
static bool is_queue(int fd)
{
	static const char queue[] = "anon_inode:[fanotify]";
	char path[FD_PROC_PATH_SIZE], target[sizeof queue];
	ssize_t size;

	fd_proc_path(fd, path);
	size = readlink(path, target, sizeof target);
	return size == (ssize_t)(sizeof queue - 1) && memcmp(target, queue, sizeof queue - 1) == 0;
}

/* ret_fd: what came with it, or -1; NULL: nothing is to come. */
static int await(ExrGateway *gateway, const char *word, int *ret_fd, ExrError *error)
{
	g_autoptr(JsonObject) object = NULL;
	int r = control_socket_receive(gateway->control, ANSWER_MS, &object, ret_fd);

	if (r == -EPIPE || r == -ECONNRESET)
		return exr_error_set(error, CODE, "gateway", EPIPE,
				     "the gateway ended before it was %s", word);
	if (r == -ETIMEDOUT)
		return exr_error_set(error, CODE, "gateway", ETIMEDOUT,
				     "the gateway was not %s within %d s", word, ANSWER_MS / 1000);
	if (r < 0)
		return exr_error_set(error, CODE, "gateway", -r, "the gateway's answer: %s",
				     errno_text(-r));
	if (!exr_gateway_says(object, word))
		return told_error(object, error);
	/* Looking at it and closing it must wait for nobody. */
	if (ret_fd && *ret_fd >= 0 && !is_queue(*ret_fd))
		return exr_error_set(error, CODE, "gateway", EBADF,
				     "the gateway sent something that is no queue of events");
	return 0;
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

	if ((r = await(gateway, "ready", NULL, reterr_error)) < 0)
		return r;
	if (tasks_fd >= 0)
		r = hand_over(gateway, "tasks", NULL, tasks_fd);
	if (r == 0)
		r = device_fd >= 0 ? hand_over(gateway, "device", NULL, device_fd)
				   : hand_over(gateway, "fusermount", path, -1);
	if (r < 0)
		return exr_error_set(reterr_error, CODE, "gateway", -r,
				     "cannot hand over the view: %s", errno_text(-r));
	return await(gateway, "serving", &gateway->queue_fd, reterr_error);
}

bool exr_gateway_alive(const ExrGateway *gateway)
{
	return gateway->process.pidfd >= 0 &&
	       exr_wait_readable(gateway->process.pidfd, 0) == -ETIMEDOUT;
}

int exr_gateway_pidfd(const ExrGateway *gateway)
{
	return gateway->process.pidfd;
}

/* The process is reaped by exr_gateway_end() alone, so the pidfd stays what it is until then. */
void exr_gateway_kill(ExrGateway *gateway)
{
	pthread_mutex_lock(&gateway->lock);
	exr_process_kill(&gateway->process);
	pthread_mutex_unlock(&gateway->lock);
}

void exr_gateway_end(ExrGateway *gateway)
{
	ExrProcess process;

	exr_gateway_hang_up(gateway);
	pthread_mutex_lock(&gateway->lock);
	process = gateway->process;
	gateway->process = (ExrProcess)EXR_NO_PROCESS;
	pthread_mutex_unlock(&gateway->lock);
	(void)exr_process_end(&process, END_MS, KILL_MS);
}

ExrGateway *exr_gateway_ref(ExrGateway *gateway)
{
	g_atomic_int_inc(&gateway->refs);
	return gateway;
}

void exr_gateway_unref(ExrGateway *gateway)
{
	if (!gateway || !g_atomic_int_dec_and_test(&gateway->refs))
		return;
	control_socket_free(gateway->control);
	exec_board_unmap(gateway->board);
	fd_close(&gateway->leash_fd);
	pthread_mutex_destroy(&gateway->lock);
	pthread_mutex_destroy(&gateway->send_lock);
	pthread_cond_destroy(&gateway->answered);
	g_free(gateway);
}

void exr_gateway_free(ExrGateway *gateway)
{
	if (!gateway)
		return;
	exr_gateway_end(gateway);
	exr_gateway_unref(gateway);
}
