/* process.start, .write, .close_stdin, .signal, .wait, .close; see rpc.h.
 *
 * Two threads of a process pass its output on, and wait while the client does not read: then the process waits in its
 * turn. A third one tells its end, after all of its output. They are joined with the last reference. */
#include "executor/rpc.h"

#include "common/cond-util.h"
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/json-string.h"
#include "executor/result.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PIECE_BYTES (32 * 1024)

typedef struct {
	RpcPeer *peer;
	RpcProcess *process;
	int which; /* 1 or 2 */
} Pump;

static void tell_piece(const Pump *pump, const char *data, size_t size)
{
	GString *params = g_string_new("{\"process_id\": ");

	json_string_add(params, pump->process->id);
	g_string_append_printf(params, ", \"stream\": \"%s\", ",
			       pump->which == 1 ? "stdout" : "stderr");
	rpc_add_data(params, "data", data, size);
	g_string_append_c(params, '}');
	(void)rpc_peer_tell(pump->peer, rpc_line_notification("process.output", params), true);
	g_string_free(params, TRUE);
}

/* Until the stream ends; or the process has, and what it wrote is passed on: a copy of its pipe may be open elsewhere. */
static void *pump_stream(void *data)
{
	g_autofree Pump *pump = data;
	g_autofree char *piece = g_malloc(PIECE_BYTES);
	ExrLive *live = pump->process->live;
	struct pollfd fds[] = {
		{ .fd = pump->which == 1 ? exr_live_stdout(live) : exr_live_stderr(live),
		  .events = POLLIN },
		{ .fd = exr_live_end_fd(live), .events = POLLIN },
	};
	size_t left = SIZE_MAX;

	while (fds[0].fd >= 0 && left > 0) {
		ssize_t got;
		int bytes;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		/* Of a process that has ended what is in its pipe now is the rest, whoever else writes to it. */
		if (fds[1].revents && left == SIZE_MAX && ioctl(fds[0].fd, FIONREAD, &bytes) == 0)
			left = (size_t)MAX(bytes, 0);
		got = read(fds[0].fd, piece, MIN(left, PIECE_BYTES));
		if (got > 0 && left != SIZE_MAX)
			left -= (size_t)got;
		if (got > 0)
			tell_piece(pump, piece, (size_t)got);
		else if (got == 0 || (errno != EAGAIN && errno != EINTR) || fds[1].revents)
			break;
	}
	return NULL;
}

static void *tell_end(void *data)
{
	g_autofree Pump *pump = data;
	RpcProcess *process = pump->process;
	const ExrOutcome *outcome = exr_live_await(process->live, EXR_NO_TIMEOUT);
	GString *params, *result = exr_result_to_json(&outcome->result);

	for (int i = 0; i < 2; i++)
		if (process->threads[i])
			g_thread_join(process->threads[i]);
	params = g_string_new("{\"process_id\": ");
	json_string_add(params, process->id);
	g_string_append_printf(params, ", \"result\": %s}", result->str);
	(void)rpc_peer_tell(pump->peer, rpc_line_notification("process.ended", params), true);
	g_string_free(params, TRUE);
	g_string_free(result, TRUE);
	return NULL;
}

static GThread *start_thread(RpcPeer *peer, RpcProcess *process, int which, GThreadFunc run)
{
	Pump *pump = g_new0(Pump, 1);
	GThread *thread;

	*pump = (Pump){ peer, process, which };
	thread = g_thread_try_new("stella-rpc", run, pump, NULL);
	if (!thread)
		g_free(pump);
	return thread;
}

/* A process that nobody can be told of is none. */
static int start_threads(RpcPeer *peer, RpcProcess *process, ExrError *error)
{
	const int fds[] = { exr_live_stdin(process->live), exr_live_stdout(process->live),
			    exr_live_stderr(process->live) };

	for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
		if (fds[i] >= 0)
			(void)fd_set_nonblock(fds[i], true);
	process->threads[0] = start_thread(peer, process, 1, pump_stream);
	process->threads[1] = start_thread(peer, process, 2, pump_stream);
	if (process->threads[0] && process->threads[1])
		process->threads[2] = start_thread(peer, process, 0, tell_end);
	if (process->threads[2])
		return 0;
	exr_live_kill(process->live);
	for (int i = 0; i < 2; i++)
		if (process->threads[i])
			g_thread_join(process->threads[i]);
	return exr_error_set(error, "internal", "request", EAGAIN,
			     "no thread to pass on the output of the process");
}

RpcProcess *rpc_process_ref(RpcProcess *process)
{
	g_atomic_int_inc(&process->refs);
	return process;
}

void rpc_process_unref(RpcProcess *process)
{
	if (!process || !g_atomic_int_dec_and_test(&process->refs))
		return;
	if (process->live)
		exr_live_kill(process->live);
	if (process->threads[2])
		g_thread_join(process->threads[2]);
	exr_live_unref(process->live);
	rpc_session_unref(process->owner);
	pthread_mutex_destroy(&process->lock);
	pthread_cond_destroy(&process->turn);
	g_free(process->id);
	g_free(process);
}

GString *rpc_process_start(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "session_id", "command",	    "argv",
					     "cwd",	   "env",	    "timeout_ms",
					     "leftover",   "kill_grace_ms", "merge_stderr",
					     NULL };
	g_autoptr(RpcProcess) process = g_new0(RpcProcess, 1);
	RpcCommand command;
	GString *result = NULL;

	process->refs = 1;
	pthread_mutex_init(&process->lock, NULL);
	cond_init(&process->turn);
	process->owner = rpc_session_of(call);
	if (rpc_command_read(call, &command) && rpc_params_ok(call, names) &&
	    exr_live_start(process->owner->session, &command.options, &process->live, error) == 0) {
		if (!rpc_peer_add_process(call->peer, process)) {
			(void)exr_error_set(error, "internal", "request", EAGAIN,
					    "no more processes: the client has gone, or has as "
					    "many as it may");
		} else if (start_threads(call->peer, process, error) == 0) {
			result = g_string_new("{\"process_id\": ");
			json_string_add(result, process->id);
			g_string_append_printf(result, ", \"pid\": %d}",
					       (int)exr_live_pid(process->live));
		} else {
			rpc_process_unref(rpc_peer_take_process(call->peer, process->id));
		}
	}
	rpc_command_clear(&command);
	return result;
}

/* Requests about the input take effect in the order in which they came. */
static void take_turn(RpcCall *call)
{
	RpcProcess *process = call->process;

	pthread_mutex_lock(&process->lock);
	while (process->now != call->turn)
		(void)pthread_cond_wait(&process->turn, &process->lock);
	pthread_mutex_unlock(&process->lock);
}

static void pass_turn(RpcCall *call)
{
	RpcProcess *process = call->process;

	pthread_mutex_lock(&process->lock);
	process->now++;
	pthread_cond_broadcast(&process->turn);
	pthread_mutex_unlock(&process->lock);
}

static int write_input(ExrLive *live, const char *data, size_t size)
{
	while (size > 0) {
		struct pollfd fds[] = {
			{ .fd = exr_live_stdin(live), .events = POLLOUT },
			{ .fd = exr_live_end_fd(live), .events = POLLIN },
		};
		ssize_t written;

		if (fds[0].fd < 0)
			return -EPIPE;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			return -EPIPE;
		written = io_write_without_sigpipe(fds[0].fd, data, size);
		if (written < 0 && written != -EAGAIN && written != -EINTR)
			return (int)written;
		data += MAX(written, 0);
		size -= (size_t)MAX(written, 0);
	}
	return 0;
}

GString *rpc_process_write(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "process_id", "data", NULL };
	size_t size;
	g_autofree char *data = rpc_bytes(call, "data", &size);
	int r = 0;

	if (!data)
		rpc_problem(call, "data", "expected a string or {\"b64\": \"...\"}");
	if (!call->process) {
		rpc_problem(call, "process_id", "no process of that name");
		return NULL;
	}
	take_turn(call);
	if (rpc_params_ok(call, names))
		r = write_input(call->process->live, data, size);
	pass_turn(call);
	if (r < 0)
		exr_error_set(error, "request-invalid", "request", -r,
			      "the process does not read its input any more: %s", errno_text(-r));
	return r < 0 || call->problem ? NULL : g_string_new("{}");
}

GString *rpc_process_close_stdin(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "process_id", NULL };

	(void)error;
	if (!call->process) {
		rpc_problem(call, "process_id", "no process of that name");
		return NULL;
	}
	take_turn(call);
	if (rpc_params_ok(call, names))
		exr_live_close_stdin(call->process->live);
	pass_turn(call);
	return call->problem ? NULL : g_string_new("{}");
}

/* "SIGTERM", "TERM" or 15; -1 for none. */
static int read_signal(RpcCall *call)
{
	JsonNode *node = call->params ? json_object_get_member(call->params, "signal") : NULL;
	const char *name = node ? json_node_get_string(node) : NULL;

	if (node && json_node_holds(node, JSON_NODE_INT) && json_node_get_int(node) > 0 &&
	    json_node_get_int(node) <= SIGRTMAX)
		return (int)json_node_get_int(node);
	if (name && g_str_has_prefix(name, "SIG"))
		name += strlen("SIG");
	for (int sig = 1; name && sig < NSIG; sig++)
		if (g_strcmp0(sigabbrev_np(sig), name) == 0)
			return sig;
	rpc_problem(call, "signal", "expected the name or the number of a signal");
	return -1;
}

GString *rpc_process_signal(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "process_id", "signal", NULL };
	g_autoptr(RpcProcess) process = rpc_process_of(call);
	int sig = read_signal(call), r;

	if (!rpc_params_ok(call, names))
		return NULL;
	r = exr_live_signal(process->live, sig);
	if (r < 0)
		exr_error_set(error, "request-invalid", "request", -r, "%s",
			      r == -ESRCH ? "the process has ended" : errno_text(-r));
	return r < 0 ? NULL : g_string_new("{}");
}

GString *rpc_process_wait(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "process_id", "timeout_ms", NULL };
	g_autoptr(RpcProcess) process = rpc_process_of(call);
	int64_t timeout_ms = rpc_int(call, "timeout_ms", EXR_NO_TIMEOUT, EXR_NO_TIMEOUT);

	(void)error;
	if (!rpc_params_ok(call, names))
		return NULL;
	return exr_result_to_json(&exr_live_await(process->live, timeout_ms)->result);
}

/* Its end has been told when this is answered. */
GString *rpc_process_close(RpcCall *call, ExrError *error)
{
	static const char *const names[] = { "process_id", NULL };
	g_autoptr(RpcProcess) process = NULL;
	const char *id = rpc_string(call, "process_id");

	(void)error;
	if (rpc_params_ok(call, names) && id)
		process = rpc_peer_take_process(call->peer, id);
	if (!process) {
		rpc_problem(call, "process_id", "no process of that name");
		return NULL;
	}
	exr_live_kill(process->live);
	return exr_result_to_json(&exr_live_await(process->live, EXR_NO_TIMEOUT)->result);
}
