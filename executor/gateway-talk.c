/* Asking a gateway that serves, from any thread; see gateway.h and common/control.h.
 *
 * Answers come in the order of the questions, but the threads that wait for them have deadlines of their own. Whoever
 * waits while nobody reads reads for all, and hands over when it has its own answer or no time left. A
 * gateway that lets an answer wait is not waited for again until it has caught up; and is not even asked when it owes
 * many: its socket would fill up, and a stopped gateway would stop us. */
#include "executor/gateway-internal.h"

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

ExrQuestion *exr_gateway_exec_starts(ExrGateway *gateway)
{
	JsonObject *message = json_object_new();

	json_object_set_string_member(message, "boundary", "start");
	return ask(gateway, message);
}

bool exr_gateway_await_start(ExrGateway *gateway, ExrQuestion *take_question, int64_t *ret_exec)
{
	g_autoptr(JsonObject) answer = await(gateway, take_question, START_MS);

	*ret_exec = answer ? get_number(answer, "exec") : -1;
	return answer && *ret_exec >= 0 && exr_gateway_says(answer, "caught_up");
}

ExrQuestion *exr_gateway_exec_ends(ExrGateway *gateway, int64_t exec, uint64_t pid_namespace)
{
	JsonObject *message = json_object_new();

	json_object_set_string_member(message, "boundary", "end");
	/* Its start was not answered: then wait for whatever may be of it. */
	json_object_set_int_member(message, "exec", exec >= 0 ? exec : INT64_MAX);
	if (pid_namespace != 0)
		json_object_set_int_member(message, "pidns", (gint64)pid_namespace);
	return ask(gateway, message);
}

JsonObject *exr_gateway_await_end(ExrGateway *gateway, ExrQuestion *take_question)
{
	return await(gateway, take_question, END_EXEC_MS);
}

void exr_gateway_hang_up(ExrGateway *gateway)
{
	pthread_mutex_lock(&gateway->lock);
	gateway->gone = true;
	if (gateway->control) /* else it could not even be made */
		(void)shutdown(control_socket_fd(gateway->control), SHUT_RDWR);
	pthread_cond_broadcast(&gateway->answered);
	pthread_mutex_unlock(&gateway->lock);
}
