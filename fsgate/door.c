/* The door's thread; see door.h. One poll loop over everybody, nothing in it blocks but the making of an
 * answer. While an asker's answer waits to be sent nothing more is read from it. */
#include "fsgate/door.h"

#include "common/fd-util.h"
#include "common/limits.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* What an asker of a mounted view may take for a question, and for reading its answer. */
#define PATIENCE_US (10 * G_TIME_SPAN_SECOND)

typedef struct {
	int fd;	      /* -1: free */
	bool trusted; /* the session's owner: no deadline, and its fd is not ours */
	bool follows; /* has been told once to wait */
	bool waits;   /* for the answer to the line that `in` begins with: no deadline */
	gint64 deadline_us;
	GString *in;
	GString *out;
	size_t sent; /* of out */
} Client;

struct FsgDoor {
	int listen_fd;
	int stop_fd; /* eventfd */
	int wake_fd; /* likewise; borrowed */
	int end_fd;  /* eventfd: the thread has ended */
	FsgAnswer answer;
	void *data;
	GThread *thread;
	Client clients[LIMIT_DOOR_CLIENTS];
};

static void client_clear(Client *client)
{
	if (!client->trusted)
		fd_close(&client->fd);
	client->fd = -1;
	if (client->in)
		g_string_free(g_steal_pointer(&client->in), TRUE);
	if (client->out)
		g_string_free(g_steal_pointer(&client->out), TRUE);
}

static void client_init(Client *client, int fd, bool trusted)
{
	*client = (Client){
		.fd = fd,
		.trusted = trusted,
		.deadline_us = g_get_monotonic_time() + PATIENCE_US,
		.in = g_string_new(NULL),
		.out = g_string_new(NULL),
	};
}

static Client *find_free(FsgDoor *door)
{
	for (size_t i = 0; i < LIMIT_DOOR_CLIENTS; i++)
		if (door->clients[i].fd < 0)
			return &door->clients[i];
	return NULL;
}

/* The directory keeps others out already; that is asked once more of the kernel. */
static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

static void take_client(FsgDoor *door)
{
	Client *client = find_free(door);
	FD_AUTO fd = accept4(door->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 && client && may_ask(fd))
		client_init(client, fd_steal(&fd), false);
}

static JsonObject *complaint(const char *text)
{
	JsonObject *inner = json_object_new(), *outer = json_object_new();

	json_object_set_string_member(inner, "message", text);
	json_object_set_object_member(outer, "error", inner);
	return outer;
}

static void put_answer(Client *client, JsonObject *take_object)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	g_autofree char *text = NULL;

	json_node_take_object(node, take_object);
	text = json_to_string(node, FALSE);
	g_string_append(client->out, text);
	g_string_append_c(client->out, '\n');
}

/* Others must find room to ask too. And who has one socket for all its questions must not wait on it. */
static bool may_wait(const FsgDoor *door, const Client *client)
{
	size_t following = 0;

	for (size_t i = 0; i < LIMIT_DOOR_CLIENTS; i++)
		following += door->clients[i].fd >= 0 && door->clients[i].follows;
	return !client->trusted && (client->follows || following < LIMIT_DOOR_FOLLOWERS);
}

static void answer_line(FsgDoor *door, Client *client, const char *line, size_t size)
{
	g_autoptr(JsonNode) root = json_from_string(line, (gssize)size);
	JsonObject *answer;

	client->waits = false;
	if (!root)
		answer = complaint("a request is one JSON object on one line");
	else
		answer = door->answer(door->data, json_node_get_object(root));
	if (!answer && may_wait(door, client))
		client->waits = client->follows = true;
	else
		put_answer(client, answer ? answer
					  : complaint("too many programs wait for events already"));
}

/* One at a time: the next is read when the answer is gone. */
static void answer_next(FsgDoor *door, Client *client)
{
	const char *end = memchr(client->in->str, '\n', client->in->len);

	if (!end || client->out->len > 0)
		return;
	answer_line(door, client, client->in->str, (size_t)(end - client->in->str));
	if (!client->waits)
		g_string_erase(client->in, 0, end - client->in->str + 1);
}

/* false: it has gone, or sends more than a request can be. */
static bool read_some(Client *client)
{
	char data[LIMIT_DOOR_REQUEST_BYTES];
	ssize_t got = recv(client->fd, data, sizeof data, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0)
		return false;
	g_string_append_len(client->in, data, got);
	return client->in->len <= LIMIT_DOOR_REQUEST_BYTES;
}

static bool write_some(Client *client)
{
	ssize_t sent = send(client->fd, client->out->str + client->sent,
			    client->out->len - client->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	client->sent += (size_t)sent;
	if (client->sent == client->out->len) {
		g_string_truncate(client->out, 0);
		client->sent = 0;
		client->deadline_us = g_get_monotonic_time() + PATIENCE_US;
	}
	return true;
}

static bool serve_client(FsgDoor *door, Client *client, short events)
{
	bool reads = client->out->len == 0;

	if (reads && (events & (POLLIN | POLLHUP | POLLERR)) && !read_some(client))
		return false;
	/* Most answers go out at once; what does not is sent when there is room. */
	for (;;) {
		if (!client->waits)
			answer_next(door, client);
		if (client->out->len == 0)
			return true;
		if (!write_some(client))
			return false;
		if (client->out->len > 0)
			return true;
	}
}

static bool has_deadline(const Client *client)
{
	return !client->trusted && !client->waits;
}

/* fds: stop, listen, wake, then one for each client, -1 for a free place. Gives the time until the next deadline. */
#define FDS_FIRST 3
static int fill_fds(const FsgDoor *door, struct pollfd fds[static FDS_FIRST + LIMIT_DOOR_CLIENTS])
{
	gint64 next_us = G_MAXINT64, left_us;
	bool room = false;

	for (size_t i = 0; i < LIMIT_DOOR_CLIENTS; i++) {
		const Client *client = &door->clients[i];

		fds[FDS_FIRST + i] = (struct pollfd){ .fd = client->fd };
		if (client->fd < 0) {
			room = true;
			continue;
		}
		fds[FDS_FIRST + i].events = client->out->len > 0 ? POLLOUT : POLLIN;
		if (has_deadline(client))
			next_us = MIN(next_us, client->deadline_us);
	}
	fds[0] = (struct pollfd){ .fd = door->stop_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = room ? door->listen_fd : -1, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = door->wake_fd, .events = POLLIN };
	if (next_us == G_MAXINT64)
		return -1;
	left_us = next_us - g_get_monotonic_time();
	return left_us <= 0 ? 0 : (int)(left_us / 1000 + 1);
}

/* Whoever waits asks once more. */
static void wake_clients(FsgDoor *door)
{
	eventfd_t count;

	(void)eventfd_read(door->wake_fd, &count);
	for (size_t i = 0; i < LIMIT_DOOR_CLIENTS; i++) {
		Client *client = &door->clients[i];

		if (client->fd < 0 || !client->waits)
			continue;
		client->waits = false;
		client->deadline_us = g_get_monotonic_time() + PATIENCE_US;
		if (!serve_client(door, client, 0))
			client_clear(client);
	}
}

static void serve_clients(FsgDoor *door, const struct pollfd *fds)
{
	for (size_t i = 0; i < LIMIT_DOOR_CLIENTS; i++) {
		Client *client = &door->clients[i];

		if (client->fd < 0)
			continue;
		if ((fds[i].revents && !serve_client(door, client, fds[i].revents)) ||
		    (has_deadline(client) && g_get_monotonic_time() > client->deadline_us))
			client_clear(client);
	}
}

static gpointer run(gpointer data)
{
	FsgDoor *door = data;
	struct pollfd fds[FDS_FIRST + LIMIT_DOOR_CLIENTS];

	for (;;) {
		int timeout_ms = fill_fds(door, fds);

		if (poll(fds, G_N_ELEMENTS(fds), timeout_ms) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			break;
		serve_clients(door, fds + FDS_FIRST);
		if (fds[2].revents)
			wake_clients(door);
		if (fds[1].revents)
			take_client(door);
	}
	(void)eventfd_write(door->end_fd, 1);
	return NULL;
}

static void door_free(FsgDoor *door)
{
	for (size_t i = 0; i < LIMIT_DOOR_CLIENTS; i++)
		client_clear(&door->clients[i]);
	fd_close(&door->listen_fd);
	fd_close(&door->stop_fd);
	fd_close(&door->end_fd);
	g_free(door);
}

int fsg_door_open(int take_listen_fd, int peer_fd, int wake_fd, FsgAnswer answer, void *data,
		  FsgDoor **ret_door)
{
	FsgDoor *door = g_new0(FsgDoor, 1);

	door->listen_fd = take_listen_fd;
	door->wake_fd = wake_fd;
	door->stop_fd = eventfd(0, EFD_CLOEXEC);
	door->end_fd = eventfd(0, EFD_CLOEXEC);
	door->answer = answer;
	door->data = data;
	for (size_t i = 0; i < LIMIT_DOOR_CLIENTS; i++)
		door->clients[i].fd = -1;
	if (peer_fd >= 0)
		client_init(&door->clients[0], peer_fd, true);
	if (door->stop_fd >= 0 && door->end_fd >= 0)
		door->thread = g_thread_try_new("fsgate-door", run, door, NULL);
	if (!door->thread) {
		door_free(door);
		return -EAGAIN;
	}
	*ret_door = door;
	return 0;
}

bool fsg_door_close(FsgDoor *door, int timeout_ms)
{
	struct pollfd end;
	int r;

	if (!door)
		return true;
	(void)eventfd_write(door->stop_fd, 1);
	end = (struct pollfd){ .fd = door->end_fd, .events = POLLIN };
	do
		r = poll(&end, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return false;
	g_thread_join(door->thread);
	door_free(door);
	return true;
}
