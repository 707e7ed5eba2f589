/* gateway-talk: what the board answers is not asked, and whatever it does not answer is. The gateway is a socket here. */
#include "executor/gateway-internal.h"

#include "common/fd-util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cmocka.h>

#define NAMESPACE 4026532000u

typedef struct {
	ExrGateway gateway;
	ControlSocket *theirs;
	int queue; /* an eventfd in the place of the host's queue */
} Fixture;

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);
	FD_AUTO board = -1;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	f->gateway.control = control_socket_new(pair[0]);
	f->theirs = control_socket_new(pair[1]);
	assert_int_equal(exec_board_new(&f->gateway.board, &board), 0);
	f->queue = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->gateway.queue_fd = fd_dup(f->queue);
	pthread_mutex_init(&f->gateway.lock, NULL);
	pthread_mutex_init(&f->gateway.send_lock, NULL);
	cond_init(&f->gateway.answered);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	exr_gateway_hang_up(&f->gateway);
	control_socket_free(f->gateway.control);
	control_socket_free(f->theirs);
	exec_board_unmap(f->gateway.board);
	fd_close(&f->queue);
	g_free(f);
	return 0;
}

/* The question that has come, which the caller owns; NULL: none. */
static JsonObject *take_question(Fixture *f)
{
	JsonObject *question = NULL;
	int r = control_socket_receive(f->theirs, 0, &question, NULL);

	assert_true(r == 0 || r == -ETIMEDOUT);
	return question;
}

static void answer(Fixture *f, JsonObject *take_question, const char *name, int number)
{
	JsonObject *told = json_object_new();

	json_object_set_int_member(told, "id",
				   json_node_get_int(json_object_get_member(take_question, "id")));
	json_object_set_boolean_member(told, "caught_up", TRUE);
	if (name)
		json_object_set_int_member(told, name, number);
	assert_int_equal(control_socket_send(f->theirs, told, -1), 0);
	json_object_unref(take_question);
}

static int64_t number_of(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return json_node_holds(node, JSON_NODE_INT) ? json_node_get_int(node) : -1;
}

/* The gateway is asked at the start of an exec, exactly if that is expected; and there it can be let go on. */
static void expect_start(Fixture *f, bool asked)
{
	const uint64_t running = atomic_load(&f->gateway.board->running);
	ExrGatewayExec exec;
	ExrQuestion *waits = exr_gateway_exec_starts(&f->gateway, &exec);
	JsonObject *question = take_question(f);

	assert_int_equal(exec.number, atomic_load(&f->gateway.board->execs));
	assert_int_equal(atomic_load(&f->gateway.board->running), running + 1);
	assert_int_equal(question != NULL, asked);
	assert_int_equal(waits != NULL, asked);
	if (question) {
		assert_int_equal(number_of(question, "exec"), exec.number);
		answer(f, question, NULL, 0);
		assert_true(exr_gateway_await_start(&f->gateway, waits));
	}
	atomic_fetch_sub(&f->gateway.board->running, 1);
}

static void a_start_asks_when_there_may_be_something_to_catch_up_with(void **state)
{
	Fixture *f = *state;
	ExecBoard *board = f->gateway.board;
	eventfd_t value;

	expect_start(f, false);
	atomic_store(&board->believed_us, g_get_monotonic_time() + 60 * G_USEC_PER_SEC);
	expect_start(f, true);
	atomic_store(&board->believed_us, g_get_monotonic_time() - 1);
	expect_start(f, false);
	atomic_store(&board->taking_back, 1);
	expect_start(f, true);
	atomic_store(&board->taking_back, 0);
	atomic_store(&board->at_events, 1);
	expect_start(f, true);
	atomic_store(&board->at_events, 0);
	assert_int_equal(eventfd_write(f->queue, 1), 0);
	expect_start(f, true);
	assert_int_equal(eventfd_read(f->queue, &value), 0);
	expect_start(f, false);
	/* what others open or change is nothing that a start waits for */
	atomic_store(&board->happened, 5);
	atomic_store(&board->opened, 5);
	expect_start(f, false);
	/* without a queue the rest counts all the same */
	fd_close(&f->gateway.queue_fd);
	expect_start(f, false);
	atomic_store(&board->taking_back, 1);
	expect_start(f, true);
}

static ExrGatewayExec begin(Fixture *f)
{
	ExrGatewayExec exec;

	assert_null(exr_gateway_exec_starts(&f->gateway, &exec));
	exec.pid_namespace = NAMESPACE;
	return exec;
}

/* What is known of the exec is what the gateway says if it is asked, and else that there is nothing. */
static void expect_end(Fixture *f, ExrGatewayExec *exec, bool is_gone, bool asked)
{
	JsonObject *question, *told;

	exr_gateway_exec_ends(&f->gateway, exec, is_gone);
	assert_int_equal(atomic_load(&f->gateway.board->running), 0);
	/* once */
	exr_gateway_exec_ends(&f->gateway, exec, is_gone);
	assert_int_equal(atomic_load(&f->gateway.board->running), 0);
	question = take_question(f);
	assert_int_equal(question != NULL, asked);
	if (question) {
		assert_int_equal(number_of(question, "exec"), exec->number);
		assert_int_equal(number_of(question, "pidns"), NAMESPACE);
		answer(f, question, "changes_dropped", 42);
	}
	assert_null(take_question(f));
	told = exr_gateway_await_end(&f->gateway, exec);
	assert_non_null(told);
	assert_int_equal(number_of(told, "changes_dropped"), asked ? 42 : 0);
	if (!asked) {
		assert_int_equal(
			json_array_get_length(json_object_get_array_member(told, "denials")), 0);
		assert_int_equal(
			json_array_get_length(json_object_get_array_member(told, "changes")), 0);
		assert_false(exr_gateway_says(told, "changes_incomplete"));
	}
	assert_true(exr_gateway_says(told, "caught_up"));
	json_object_unref(told);
}

static void an_end_asks_when_anything_has_happened_since_the_start(void **state)
{
	Fixture *f = *state;
	ExecBoard *board = f->gateway.board;
	ExrGatewayExec exec;

	atomic_store(&board->knows, 1);
	exec = begin(f);
	expect_end(f, &exec, true, false);
	/* something happened */
	exec = begin(f);
	atomic_fetch_add(&board->happened, 1);
	expect_end(f, &exec, true, true);
	/* before it */
	exec = begin(f);
	expect_end(f, &exec, true, false);
	/* a file that was opened since is open still */
	exec = begin(f);
	atomic_store(&board->opened, exec.number);
	expect_end(f, &exec, true, true);
	/* one that was opened before */
	exec = begin(f);
	expect_end(f, &exec, true, false);
	/* one of its processes may go on */
	exec = begin(f);
	expect_end(f, &exec, false, true);
}

/* Where nobody knows whose changes are, nothing is said of them: also not that there are none. */
static void what_is_not_known_is_not_there(void **state)
{
	Fixture *f = *state;
	ExrGatewayExec exec = begin(f);
	JsonObject *told;

	exr_gateway_exec_ends(&f->gateway, &exec, true);
	told = exr_gateway_await_end(&f->gateway, &exec);
	assert_false(json_object_has_member(told, "denials"));
	assert_false(json_object_has_member(told, "changes"));
	json_object_unref(told);
	atomic_store(&f->gateway.board->knows, 1);
	exec = begin(f);
	exec.pid_namespace = 0;
	exr_gateway_exec_ends(&f->gateway, &exec, true);
	told = exr_gateway_await_end(&f->gateway, &exec);
	assert_false(json_object_has_member(told, "denials"));
	json_object_unref(told);
}

static void nobody_is_asked_who_has_gone(void **state)
{
	Fixture *f = *state;
	ExrGatewayExec exec;

	exr_gateway_hang_up(&f->gateway);
	assert_int_equal(f->gateway.queue_fd, -1);
	assert_null(exr_gateway_exec_starts(&f->gateway, &exec));
	exr_gateway_exec_ends(&f->gateway, &exec, false);
	assert_null(exr_gateway_await_end(&f->gateway, &exec));
	assert_int_equal(atomic_load(&f->gateway.board->running), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_start_asks_when_there_may_be_something_to_catch_up_with),
		TEST(an_end_asks_when_anything_has_happened_since_the_start),
		TEST(what_is_not_known_is_not_there),
		TEST(nobody_is_asked_who_has_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
