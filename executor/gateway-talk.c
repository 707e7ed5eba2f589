/* Asking a gateway that serves, from any thread; see gateway.h and common/control.h.
 *
 * Answers come in the order of the questions, but the threads that wait for them have deadlines of their own. Whoever
 * waits while nobody reads reads for all, and hands over when it has its own answer or no time left. A
 * gateway that lets an answer wait is not waited for again until it has caught up; and is not even asked when it owes
 * many: its socket would fill up, and a stopped gateway would stop us. */
#include "executor/gateway-internal.h"

#include "common/fd-util.h"

#include <poll.h>
#include <sys/socket.h>

/* A little more than the gateway takes at the most. */
#define START_MS    2000
#define END_EXEC_MS 300
/* Lines that fit into the socket by far. */
#define LATE_MAX 32

struct ExrQuestion {
	ExrQuestion *next;
	int64_t id;
	JsonObject *answer;
};

static int64_t get_number(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return node && json_node_holds(node, JSON_NODE_INT) ? json_node_get_int(node) : -1;
}

/* Under the lock: takes it off the list. */
static void forget(ExrGateway *gateway, ExrQuestion *question)
{
	for (ExrQuestion **at = &gateway->questions; *at; at = &(*at)->next)
		if (*at == question) {
			*at = question->next;
			return;
		}
}

/* Under the lock: gives an answer to who waits for it. */
static void give_out(ExrGateway *gateway, JsonObject *take_answer)
{
	int64_t id = get_number(take_answer, "id");

	for (ExrQuestion *question = gateway->questions; question; question = question->next)
		if (question->id == id && !question->answer) {
			question->answer = take_answer;
			return;
		}
	if (gateway->late > 0)
		gateway->late--;
	json_object_unref(take_answer);
}

/* Under the lock, which is let go of meanwhile: reads one answer, whosever it is. false: none came. */
static bool read_one(ExrGateway *gateway, gint64 deadline_us)
{
	gint64 left_us = MAX(deadline_us - g_get_monotonic_time(), 0);
	JsonObject *answer = NULL;
	int r;

	gateway->reading = true;
	pthread_mutex_unlock(&gateway->lock);
	r = control_socket_receive(gateway->control, (int)((left_us + 999) / 1000), &answer, NULL);
	pthread_mutex_lock(&gateway->lock);
	gateway->reading = false;
	if (r == 0)
		give_out(gateway, answer);
	else if (r != -ETIMEDOUT)
		gateway->gone = true;
	pthread_cond_broadcast(&gateway->answered);
	return r == 0;
}

/* Sends with the next number, which it adds. NULL: it cannot be asked. */
static ExrQuestion *ask(ExrGateway *gateway, JsonObject *take_message)
{
	ExrQuestion *question = g_new0(ExrQuestion, 1);
	bool asks;

	pthread_mutex_lock(&gateway->send_lock);
	pthread_mutex_lock(&gateway->lock);
	asks = !gateway->gone && gateway->late < LATE_MAX;
	if (asks) {
		question->id = ++gateway->last_id;
		question->next = gateway->questions;
		gateway->questions = question;
	}
	pthread_mutex_unlock(&gateway->lock);
	if (asks)
		json_object_set_int_member(take_message, "id", question->id);
	if (!asks)
		json_object_unref(take_message);
	else if (control_socket_send(gateway->control, take_message, -1) < 0) {
		pthread_mutex_lock(&gateway->lock);
		forget(gateway, question);
		pthread_mutex_unlock(&gateway->lock);
		asks = false;
	}
	pthread_mutex_unlock(&gateway->send_lock);
	if (!asks)
		g_clear_pointer(&question, g_free);
	return question;
}

/* The answer, which the caller owns, or NULL. Frees the question (NULL: none was asked). */
static JsonObject *await(ExrGateway *gateway, ExrQuestion *take_question, int timeout_ms)
{
	JsonObject *answer;
	gint64 deadline_us;

	if (!take_question)
		return NULL;
	pthread_mutex_lock(&gateway->lock);
	deadline_us = g_get_monotonic_time() + (gateway->late > 0 ? 0 : (gint64)timeout_ms * 1000);
	while (!take_question->answer && !gateway->gone) {
		/* What has come is taken, also after the deadline. */
		bool late = g_get_monotonic_time() >= deadline_us;

		if (!gateway->reading) {
			if (!read_one(gateway, deadline_us) && late)
				break;
		} else if (late) {
			break;
		} else {
			(void)cond_wait_until(&gateway->answered, &gateway->lock, deadline_us);
		}
	}
	forget(gateway, take_question);
	answer = take_question->answer;
	if (!answer)
		gateway->late++;
	pthread_mutex_unlock(&gateway->lock);
	g_free(take_question);
	return answer;
}

/* --- the start of an exec, and its end --- */

/* Whether all that the host has changed before the call is visible in the view already. In that order: what is taken
 * off a list or out of the queue is said to be worked on before. */
static bool is_caught_up(ExrGateway *gateway)
{
	ExecBoard *board = gateway->board;
	struct pollfd queue = { .events = POLLIN };
	bool empty;

	if (atomic_load(&board->believed_us) > g_get_monotonic_time())
		return false;
	pthread_mutex_lock(&gateway->lock);
	queue.fd = gateway->queue_fd;
	empty = !gateway->gone && (queue.fd < 0 || poll(&queue, 1, 0) == 0);
	pthread_mutex_unlock(&gateway->lock);
	return empty && atomic_load(&board->at_events) == 0 &&
	       atomic_load(&board->taking_back) == 0;
}

ExrQuestion *exr_gateway_exec_starts(ExrGateway *gateway, ExrGatewayExec *ret_exec)
{
	ExecBoard *board = gateway->board;
	JsonObject *message;

	*ret_exec = (ExrGatewayExec){ .happened = atomic_load(&board->happened) };
	atomic_fetch_add(&board->running, 1);
	ret_exec->number = atomic_fetch_add(&board->execs, 1) + 1;
	if (is_caught_up(gateway))
		return NULL;
	message = json_object_new();
	json_object_set_string_member(message, "boundary", "start");
	json_object_set_int_member(message, "exec", (gint64)ret_exec->number);
	return ask(gateway, message);
}

bool exr_gateway_await_start(ExrGateway *gateway, ExrQuestion *take_question)
{
	g_autoptr(JsonObject) answer = await(gateway, take_question, START_MS);

	return answer && exr_gateway_says(answer, "caught_up");
}

/* Nothing was refused or changed since before the exec began, and none of the files that are open was opened since:
 * what the gateway would look for is not there. */
static bool is_quiet(ExrGateway *gateway, const ExrGatewayExec *exec)
{
	ExecBoard *board = gateway->board;

	return atomic_load(&board->opened) < exec->number &&
	       atomic_load(&board->happened) == exec->happened;
}

void exr_gateway_exec_ends(ExrGateway *gateway, ExrGatewayExec *exec, bool is_gone)
{
	JsonObject *message;

	if (exec->is_over)
		return;
	exec->is_over = true;
	atomic_fetch_sub(&gateway->board->running, 1);
	exec->is_quiet = is_gone && is_quiet(gateway, exec);
	if (exec->is_quiet)
		return;
	message = json_object_new();
	json_object_set_string_member(message, "boundary", "end");
	json_object_set_int_member(message, "exec", (gint64)exec->number);
	if (exec->pid_namespace != 0)
		json_object_set_int_member(message, "pidns", (gint64)exec->pid_namespace);
	exec->question = ask(gateway, message);
}

/* What the gateway would have answered. */
static JsonObject *tell_nothing(ExrGateway *gateway, const ExrGatewayExec *exec)
{
	JsonObject *answer = json_object_new();

	json_object_set_boolean_member(answer, "caught_up", TRUE);
	if (exec->pid_namespace == 0 || atomic_load(&gateway->board->knows) == 0)
		return answer;
	json_object_set_array_member(answer, "denials", json_array_new());
	json_object_set_int_member(answer, "denials_dropped", 0);
	json_object_set_array_member(answer, "changes", json_array_new());
	json_object_set_int_member(answer, "changes_dropped", 0);
	json_object_set_boolean_member(answer, "changes_incomplete", FALSE);
	return answer;
}

JsonObject *exr_gateway_await_end(ExrGateway *gateway, ExrGatewayExec *exec)
{
	if (exec->is_quiet)
		return tell_nothing(gateway, exec);
	return await(gateway, g_steal_pointer(&exec->question), END_EXEC_MS);
}

void exr_gateway_hang_up(ExrGateway *gateway)
{
	int queue;

	pthread_mutex_lock(&gateway->lock);
	gateway->gone = true;
	queue = fd_steal(&gateway->queue_fd);
	if (gateway->control) /* else it could not even be made */
		(void)shutdown(control_socket_fd(gateway->control), SHUT_RDWR);
	pthread_cond_broadcast(&gateway->answered);
	pthread_mutex_unlock(&gateway->lock);
	/* Before the gateway's own, if it lives: who closes the last one waits for the marks to go. */
	fd_close(&queue);
}
