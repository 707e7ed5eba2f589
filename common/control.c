/* The control socket; see control.h. */
#include "common/control.h"

#include "common/fd-util.h"
#include "common/limits.h"

#include <glib.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

struct ControlSocket {
	int fd;	     /* owned */
	GString *in; /* bytes that have come and are not a whole line yet */
	int in_fd;   /* the fd that came with them, or -1; owned */
};

ControlSocket *control_socket_new(int take_fd)
{
	ControlSocket *socket = g_new0(ControlSocket, 1);

	socket->fd = take_fd;
	socket->in = g_string_new(NULL);
	socket->in_fd = -1;
	return socket;
}

void control_socket_free(ControlSocket *socket)
{
	if (!socket)
		return;
	fd_close(&socket->fd);
	fd_close(&socket->in_fd);
	g_string_free(socket->in, TRUE);
	g_free(socket);
}

int control_socket_fd(const ControlSocket *socket)
{
	return socket->fd;
}

/* The fd travels with the first byte of its line. Both sides take turns (control.h), so that a line
 * with an fd is never on its way together with another one. */
int control_socket_send(ControlSocket *socket, JsonObject *take_object, int fd)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	g_autofree char *text = NULL;
	g_autofree char *line = NULL;
	size_t size, sent = 0;

	json_node_take_object(node, take_object);
	text = json_to_string(node, FALSE);
	line = g_strconcat(text, "\n", NULL);
	size = strlen(line);
	if (size > LIMIT_CONTROL_LINE_BYTES)
		return -EMSGSIZE;
	while (sent < size) {
		union {
			struct cmsghdr header;
			char space[CMSG_SPACE(sizeof(int))];
		} control;
		struct iovec iov = { .iov_base = line + sent, .iov_len = size - sent };
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t r;

		if (sent == 0 && fd >= 0) {
			memset(&control, 0, sizeof control);
			control.header.cmsg_level = SOL_SOCKET;
			control.header.cmsg_type = SCM_RIGHTS;
			control.header.cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
			message.msg_control = control.space;
			message.msg_controllen = sizeof control.space;
		}
		r = sendmsg(socket->fd, &message, MSG_NOSIGNAL);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		sent += (size_t)r;
	}
	return 0;
}

/* Keeps the first fd of a message and closes the rest: a peer cannot make us hold more than one. */
static void keep_fds(ControlSocket *socket, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (socket->in_fd < 0)
				socket->in_fd = fd;
			else
				fd_close(&fd);
		}
	}
}

static int wait_readable(int fd, gint64 deadline_us)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int timeout_ms = -1, r;

		if (deadline_us >= 0) {
			gint64 left = deadline_us - g_get_monotonic_time();

			timeout_ms = left <= 0 ? 0 : (int)((left + 999) / 1000);
		}
		r = poll(&p, 1, timeout_ms);
		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int receive_some(ControlSocket *socket)
{
	char data[16384];
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = sizeof data };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space,
	};
	ssize_t r = recvmsg(socket->fd, &message, MSG_CMSG_CLOEXEC);

	if (r < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	keep_fds(socket, &message);
	if (r == 0)
		return -EPIPE;
	/* We had no room for an fd: what it was for must not be done without. */
	if (message.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	g_string_append_len(socket->in, data, r);
	return socket->in->len > LIMIT_CONTROL_LINE_BYTES ? -EMSGSIZE : 0;
}

static int parse_line(const char *line, size_t size, JsonObject **ret_object)
{
	g_autoptr(JsonNode) root = json_from_string(line, (gssize)size);

	if (!root)
		return -EBADMSG;
	*ret_object = json_node_dup_object(root);
	return 0;
}

int control_socket_receive(ControlSocket *socket, int timeout_ms, JsonObject **ret_object,
			   int *ret_fd)
{
	gint64 deadline_us =
		timeout_ms < 0 ? -1 : g_get_monotonic_time() + (gint64)timeout_ms * 1000;
	const char *end;
	int r;

	while (!(end = memchr(socket->in->str, '\n', socket->in->len))) {
		if ((r = wait_readable(socket->fd, deadline_us)) < 0)
			return r;
		if ((r = receive_some(socket)) < 0)
			return r;
	}
	r = parse_line(socket->in->str, (size_t)(end - socket->in->str), ret_object);
	g_string_erase(socket->in, 0, end - socket->in->str + 1);
	if (ret_fd)
		*ret_fd = fd_steal(&socket->in_fd);
	fd_close(&socket->in_fd);
	if (r < 0 && ret_fd)
		fd_close(ret_fd);
	return r;
}
