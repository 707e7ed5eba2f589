/* `stella-exec serve`: the JSON-RPC door, on stdin and stdout or on a unix socket; see rpc.h for what is said.
 *
 * A socket is for our own user: its file has mode 0600, and who connects is looked at once more (root may always). */
#include "executor/cmd-serve.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/limits.h"
#include "common/log.h"
#include "executor/help.h"
#include "executor/message.h"
#include "executor/result.h"
#include "executor/rpc.h"
#include "executor/signals.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PAUSE_MS 100

typedef struct {
	int listen_fd;
	int stop_fd; /* an eventfd for all clients */
	char **host_env;
	pthread_mutex_t lock;
	pthread_cond_t left;
	unsigned int clients;
} Server;

typedef struct {
	Server *server;
	int fd; /* owned */
} Client;

static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

static void *serve_client(void *data)
{
	Client *client = data;
	Server *server = client->server;

	(void)rpc_peer_serve(client->fd, client->fd, server->stop_fd, server->host_env);
	fd_close(&client->fd);
	g_free(client);
	pthread_mutex_lock(&server->lock);
	server->clients--;
	pthread_cond_broadcast(&server->left);
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

/* false: there was none to be had. */
static bool accept_client(Server *server)
{
	Client *client = g_new0(Client, 1);
	GThread *thread = NULL;
	bool room;

	client->server = server;
	client->fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (client->fd < 0) {
		g_free(client);
		return false;
	}
	pthread_mutex_lock(&server->lock);
	room = server->clients < LIMIT_RPC_CLIENTS;
	if (room && is_ours(client->fd)) {
		server->clients++;
		thread = g_thread_try_new("stella-client", serve_client, client, NULL);
		if (!thread)
			server->clients--;
	}
	pthread_mutex_unlock(&server->lock);
	if (thread) {
		g_thread_unref(thread);
		return true;
	}
	fd_close(&client->fd);
	g_free(client);
	return true;
}

/* Nobody listens at it any more: a server that was killed has left it. */
static bool is_stale(const struct sockaddr_un *address)
{
	FD_AUTO fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	return lstat(address->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) && fd >= 0 &&
	       connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
	       errno == ECONNREFUSED;
}

static int listen_at(const char *path, int *ret_fd)
{
	FD_AUTO fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t mask;
	int r;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (is_stale(&address))
		(void)unlink(path);
	mask = umask(0177); /* no thread of ours makes a file yet */
	r = bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ? -errno : 0;
	(void)umask(mask);
	if (r == 0 && listen(fd, LIMIT_RPC_CLIENTS) != 0)
		r = -errno;
	if (r == 0)
		*ret_fd = fd_steal(&fd);
	return r;
}

static void serve_socket(Server *server, int signal_fd)
{
	struct pollfd fds[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = server->listen_fd, .events = POLLIN },
	};

	for (;;) {
		/* Without a descriptor for one more the socket stays readable: it is left alone for a while. */
		bool pauses = fds[1].fd < 0;
		int r = poll(fds, 2, pauses ? PAUSE_MS : -1);

		if (r < 0 && errno != EINTR)
			break;
		fds[1].fd = server->listen_fd;
		if (r > 0 && fds[0].revents)
			break;
		if (r > 0 && !pauses && fds[1].revents && !accept_client(server))
			fds[1].fd = -1;
	}
	(void)eventfd_write(server->stop_fd, 1);
	pthread_mutex_lock(&server->lock);
	while (server->clients > 0)
		(void)pthread_cond_wait(&server->left, &server->lock);
	pthread_mutex_unlock(&server->lock);
}

static int fail(const char *what, int r)
{
	exr_message_print(NULL, "serve: %s: %s", what, errno_text(-r));
	return EXR_EXIT_FAILED;
}

static int serve_at(const char *path, const ExrSignals *signals, char **host_env)
{
	Server server = {
		.listen_fd = -1,
		.stop_fd = eventfd(0, EFD_CLOEXEC),
		.host_env = host_env,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.left = PTHREAD_COND_INITIALIZER,
	};
	int r = server.stop_fd < 0 ? -errno : listen_at(path, &server.listen_fd);

	if (r < 0)
		return fail(path, r);
	serve_socket(&server, signals->fd);
	(void)unlink(path);
	fd_close(&server.listen_fd);
	fd_close(&server.stop_fd);
	return 0;
}

typedef struct {
	const char *socket;
	const char *log_format;
	bool help;
} Options;

/* Whether argv[*index] is that option; then *ret_value is what it is given, and *index at its last argument. */
static bool take_value(const char *name, char **argv, int *index, const char **ret_value)
{
	size_t length = strlen(name);

	if (strncmp(argv[*index], name, length) != 0)
		return false;
	if (argv[*index][length] == '=')
		*ret_value = argv[*index] + length + 1;
	else if (argv[*index][length] == '\0' && argv[*index + 1])
		*ret_value = argv[++*index];
	else
		return false;
	return true;
}

static int refuse(const char *argument, const char *why)
{
	exr_message_print("see stella-exec serve --help", "serve: %s: %s", argument, why);
	return -EINVAL;
}

static int read_options(char **argv, Options *ret_options)
{
	*ret_options = (Options){ .log_format = "text" };
	for (int i = 1; argv[i]; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			ret_options->help = true;
		else if (!take_value("--socket", argv, &i, &ret_options->socket) &&
			 !take_value("--log-format", argv, &i, &ret_options->log_format))
			return refuse(argv[i], strcmp(argv[i], "--socket") == 0 ||
							       strcmp(argv[i], "--log-format") == 0
						       ? "needs a value"
						       : "unknown argument");
	}
	if (log_format_find(ret_options->log_format) < 0)
		return refuse("--log-format", "expected text or json");
	return 0;
}

int exr_cmd_serve(int argc, char **argv, char **host_env)
{
	Options options;
	ExrSignals signals;
	int r, status = 0;

	(void)argc;
	if (read_options(argv, &options) < 0)
		return EXR_EXIT_FAILED;
	if (options.help)
		return exr_help_print_serve() < 0 ? EXR_EXIT_FAILED : 0;
	log_setup((LogFormat)log_format_find(options.log_format));
	if ((r = exr_signals_init(&signals)) < 0)
		return fail("signals", r);
	if (options.socket)
		status = serve_at(options.socket, &signals, host_env);
	else if ((r = rpc_peer_serve(STDIN_FILENO, STDOUT_FILENO, signals.fd, host_env)) < 0)
		status = fail("standard input", r);
	exr_signals_clear(&signals);
	return status;
}
