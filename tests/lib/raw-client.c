/* Requests without a kernel; see raw-client.h. */
#include "lib/raw-client.h"

#include "common/control.h"
#include "common/fd-util.h"
#include "common/program-path.h"
#include "config.h"
#include "lib/workspace-fixture.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define START_MS   10000
#define CONTROL_FD 3

struct RawClient {
	pid_t gateway;
	ControlSocket *control;
	int device; /* our end */
	uint64_t unique;
};

static G_GNUC_NORETURN void run_gateway(int control)
{
	g_autofree char *program = program_path("stella-fsgate");

	/* dup2 to itself would leave close-on-exec set */
	if (control == CONTROL_FD)
		(void)fcntl(control, F_SETFD, 0);
	else
		dup2(control, CONTROL_FD);
	execl(program, program, "serve", "--control-fd", "3", (char *)NULL);
	_exit(127);
}

static void send_start(RawClient *client, const char *policy)
{
	g_autoptr(JsonNode) node = json_from_string(policy, -1);
	JsonObject *start = json_object_new(), *message = json_object_new();

	assert_non_null(node);
	json_object_set_string_member(start, "version", STELLA_VERSION);
	json_object_set_member(start, "policy", g_steal_pointer(&node));
	json_object_set_int_member(start, "uid", geteuid());
	json_object_set_int_member(start, "gid", getegid());
	json_object_set_object_member(message, "start", start);
	assert_int_equal(control_socket_send(client->control, message, -1), 0);
}

static void expect_answer(RawClient *client, const char *name)
{
	g_autoptr(JsonObject) answer = NULL;

	assert_int_equal(control_socket_receive(client->control, START_MS, &answer, NULL), 0);
	if (!json_object_has_member(answer, name))
		fail_msg("the gateway is not %s", name);
}

static void attach(RawClient *client, int take_device)
{
	FD_AUTO device = take_device;
	JsonObject *message = json_object_new();

	json_object_set_string_member(message, "attach", "device");
	assert_int_equal(control_socket_send(client->control, message, device), 0);
	expect_answer(client, "serving");
}

static void negotiate(RawClient *client)
{
	g_autoptr(GByteArray) body = g_byte_array_new();
	struct fuse_init_in in = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = 131072,
		.flags = FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES | FUSE_ASYNC_READ,
	};
	struct fuse_init_out out;

	g_byte_array_append(body, (const guint8 *)&in, sizeof in);
	assert_int_equal(raw_client_call(client, FUSE_INIT, 0, body, &out, sizeof out), 0);
	assert_int_equal(out.major, FUSE_KERNEL_VERSION);
}

RawClient *raw_client_new(const char *policy)
{
	RawClient *client = g_new0(RawClient, 1);
	int control[2], device[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
	/* Packets: one read gives one request, as from the device. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, device), 0);
	client->gateway = fork_helper();
	if (client->gateway == 0)
		run_gateway(control[1]);
	close(control[1]);
	client->control = control_socket_new(control[0]);
	client->device = device[0];
	send_start(client, policy);
	expect_answer(client, "ready");
	attach(client, device[1]);
	negotiate(client);
	return client;
}

void raw_client_free(RawClient *client)
{
	int status;

	control_socket_free(client->control);
	close(client->device);
	status = wait_for_child(client->gateway, START_MS);
	if (status == -1)
		kill(client->gateway, SIGKILL);
	g_free(client);
	assert_int_equal(status, 0);
}

int raw_client_call(RawClient *client, uint32_t opcode, uint64_t node, GByteArray *body,
		    void *reply, size_t size)
{
	union {
		struct fuse_out_header header;
		char bytes[65536];
	} answer;
	struct fuse_in_header header = {
		.len = (uint32_t)(sizeof header + body->len),
		.opcode = opcode,
		.unique = client->unique += 2,
		.nodeid = node,
		.uid = geteuid(),
		.gid = getegid(),
		.pid = (uint32_t)getpid(),
	};
	ssize_t got;

	g_byte_array_prepend(body, (const guint8 *)&header, sizeof header);
	assert_int_equal(send(client->device, body->data, body->len, MSG_NOSIGNAL), body->len);
	g_byte_array_set_size(body, 0);
	got = recv(client->device, &answer, sizeof answer, 0);
	assert_true(got >= (ssize_t)sizeof answer.header);
	assert_int_equal(answer.header.unique, client->unique);
	got -= (ssize_t)sizeof answer.header;
	if (reply && answer.header.error == 0)
		memcpy(reply, answer.bytes + sizeof answer.header, MIN((size_t)got, size));
	return answer.header.error;
}

uint64_t raw_client_walk(RawClient *client, const char *path)
{
	g_auto(GStrv) names = g_strsplit(path, "/", -1);
	g_autoptr(GByteArray) body = g_byte_array_new();
	uint64_t node = FUSE_ROOT_ID;

	for (char **name = names; *name && node; name++) {
		struct fuse_entry_out entry = { 0 };

		raw_add_text(body, *name);
		if (raw_client_call(client, FUSE_LOOKUP, node, body, &entry, sizeof entry) != 0)
			return 0;
		node = entry.nodeid;
	}
	return node;
}

void raw_add_text(GByteArray *body, const char *text)
{
	g_byte_array_append(body, (const guint8 *)text, (guint)strlen(text) + 1);
}
