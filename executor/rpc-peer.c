/* One client of `stella-exec serve`; see rpc.h.
 *
 * One thread, the caller's, reads lines and writes what is queued, with poll and without ever blocking. Every request
 * starts a thread, which queues its answer. When the input ends, the calls that run are answered yet; when the client has
 * gone, or we are to stop, they are cancelled. In any case all that the client has started is ended before this returns. */
#include "executor/rpc-peer-internal.h"

#include "common/cond-util.h"
#include "common/fd-util.h"
#include "common/json-string.h"
#include "common/limits.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
/* For what is queued when we end, to a client that reads. */
#define FLUSH_MS 2000

void rpc_peer_wake(RpcPeer *peer)
{
	(void)eventfd_write(peer->wake_fd, 1);
}

void rpc_peer_queue(RpcPeer *peer, GString *take_line)
{
	peer->queued += take_line->len;
	g_queue_push_tail(&peer->lines, take_line);
	rpc_peer_wake(peer);
}

void rpc_peer_send(RpcPeer *peer, GString *take_line)
{
	pthread_mutex_lock(&peer->lock);
	rpc_peer_queue(peer, take_line);
	pthread_mutex_unlock(&peer->lock);
}

bool rpc_peer_tell(RpcPeer *peer, GString *take_line, bool wait)
{
	bool tells;

	pthread_mutex_lock(&peer->lock);
	while (wait && !peer->going && peer->queued >= LIMIT_RPC_QUEUE_BYTES)
		(void)pthread_cond_wait(&peer->changed, &peer->lock);
	tells = !peer->going && peer->queued < LIMIT_RPC_QUEUE_BYTES;
	if (tells)
		rpc_peer_queue(peer, take_line);
	pthread_mutex_unlock(&peer->lock);
	if (!tells)
		g_string_free(take_line, TRUE);
	return tells;
}

void rpc_peer_await_room(RpcPeer *peer)
{
	pthread_mutex_lock(&peer->lock);
	while (!peer->going && peer->queued >= LIMIT_RPC_QUEUE_BYTES)
		(void)pthread_cond_wait(&peer->changed, &peer->lock);
	pthread_mutex_unlock(&peer->lock);
}

const char *const *rpc_peer_host_env(const RpcPeer *peer)
{
	return (const char *const *)peer->host_env;
}

static void take_lines(RpcPeer *peer)
{
	char *end;

	while ((end = memchr(peer->line->str + peer->scanned, '\n',
			     peer->line->len - peer->scanned))) {
		size_t size = (size_t)(end - peer->line->str);

		if (size > 0)
			rpc_call_take_line(peer, peer->line->str, size);
		g_string_erase(peer->line, 0, (gssize)size + 1);
		peer->scanned = 0;
	}
	peer->scanned = peer->line->len;
}

static void read_input(RpcPeer *peer)
{
	g_autofree char *data = g_malloc(READ_BYTES);
	ssize_t got = exr_caller_fd_read(&peer->in, data, READ_BYTES);

	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got <= 0) {
		peer->no_input = true;
		return;
	}
	g_string_append_len(peer->line, data, got);
	take_lines(peer);
	if (peer->line->len > LIMIT_RPC_LINE_BYTES) {
		rpc_peer_send(peer, rpc_line_error(NULL, RPC_INVALID_REQUEST,
						   "the line is too long", NULL));
		peer->no_input = true;
	}
}

static void write_lines(RpcPeer *peer)
{
	pthread_mutex_lock(&peer->lock);
	while (!g_queue_is_empty(&peer->lines) && !peer->gone) {
		GString *line = g_queue_peek_head(&peer->lines);
		ssize_t written;

		/* The head is ours: others only add at the end. */
		pthread_mutex_unlock(&peer->lock);
		written = exr_caller_fd_write(&peer->out, line->str + peer->written,
					      line->len - peer->written);
		pthread_mutex_lock(&peer->lock);
		if (written == -EAGAIN || written == -EINTR)
			break;
		if (written < 0) {
			peer->gone = true;
			break;
		}
		peer->written += (size_t)written;
		if (peer->written < line->len)
			continue;
		peer->written = 0;
		peer->queued -= line->len;
		g_string_free(g_queue_pop_head(&peer->lines), TRUE);
		pthread_cond_broadcast(&peer->changed);
	}
	pthread_mutex_unlock(&peer->lock);
}

/* Sessions that have ended by themselves, each once; the fds of the others are added to fds. */
static void watch_sessions(RpcPeer *peer, GArray *fds)
{
	GHashTableIter iter;
	gpointer id, value;

	pthread_mutex_lock(&peer->lock);
	g_hash_table_iter_init(&iter, peer->sessions);
	while (g_hash_table_iter_next(&iter, &id, &value)) {
		RpcSession *session = value;
		struct pollfd p = { .fd = exr_session_done_fd(session->session), .events = POLLIN };

		if (session->told)
			continue;
		if (exr_session_alive(session->session)) {
			g_array_append_val(fds, p);
		} else {
			GString *params = g_string_new("{\"session_id\": ");

			session->told = true;
			json_string_add(params, id);
			g_string_append(params, ", \"reason\": \"died\"}");
			rpc_peer_queue(peer, rpc_line_notification("session.ended", params));
			g_string_free(params, TRUE);
		}
	}
	pthread_mutex_unlock(&peer->lock);
}

/* false: it is over. */
static bool turn(RpcPeer *peer, int stop_fd)
{
	enum { IN, OUT, STOP, WAKE, FIXED };
	g_autoptr(GArray) fds = g_array_new(FALSE, TRUE, sizeof(struct pollfd));
	struct pollfd *p;
	bool reads, writes, done;
	eventfd_t count;

	g_array_set_size(fds, FIXED);
	watch_sessions(peer, fds);
	pthread_mutex_lock(&peer->lock);
	writes = !g_queue_is_empty(&peer->lines);
	reads = !peer->no_input && peer->queued < LIMIT_RPC_QUEUE_BYTES;
	done = peer->no_input && !writes && peer->running == 0;
	pthread_mutex_unlock(&peer->lock);
	if (done)
		return false;
	p = (struct pollfd *)(void *)fds->data;
	p[IN] = (struct pollfd){ reads ? exr_caller_fd_get(&peer->in) : -1, POLLIN, 0 };
	/* Also without anything to write: that nobody reads any more is told. */
	p[OUT] = (struct pollfd){ exr_caller_fd_get(&peer->out), writes ? POLLOUT : 0, 0 };
	p[STOP] = (struct pollfd){ stop_fd, POLLIN, 0 };
	p[WAKE] = (struct pollfd){ peer->wake_fd, POLLIN, 0 };
	if (poll(p, fds->len, -1) < 0)
		return errno == EINTR;
	if (p[WAKE].revents)
		(void)eventfd_read(peer->wake_fd, &count);
	if (p[STOP].revents)
		return false;
	if (p[IN].revents)
		read_input(peer);
	if (p[OUT].revents & POLLOUT)
		write_lines(peer);
	else if (p[OUT].revents & (POLLERR | POLLHUP | POLLNVAL))
		peer->gone = true;
	return !peer->gone;
}

/* Everything that was started ends; calls are answered, to whoever still reads. */
static void wind_up(RpcPeer *peer)
{
	g_autoptr(GPtrArray) sessions =
		g_ptr_array_new_with_free_func((GDestroyNotify)rpc_session_unref);
	gint64 until_us = g_get_monotonic_time() + FLUSH_MS * 1000;
	GHashTableIter iter;
	gpointer value;

	pthread_mutex_lock(&peer->lock);
	peer->going = true;
	g_hash_table_iter_init(&iter, peer->calls);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		rpc_call_cancel(value);
	/* References: calls that still run take sessions off the register. Nothing is added any more. */
	g_hash_table_iter_init(&iter, peer->sessions);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		g_atomic_int_inc(&((RpcSession *)value)->refs);
		g_ptr_array_add(sessions, value);
	}
	pthread_cond_broadcast(&peer->changed);
	pthread_mutex_unlock(&peer->lock);
	/* Closing a session ends its processes, and who waits for them. */
	for (guint i = 0; i < sessions->len; i++)
		exr_session_close(((RpcSession *)sessions->pdata[i])->session);
	pthread_mutex_lock(&peer->lock);
	while (peer->running > 0)
		(void)pthread_cond_wait(&peer->changed, &peer->lock);
	pthread_mutex_unlock(&peer->lock);
	g_hash_table_remove_all(peer->processes);
	g_hash_table_remove_all(peer->sessions);
	while (!peer->gone && !g_queue_is_empty(&peer->lines) &&
	       g_get_monotonic_time() < until_us) {
		struct pollfd p = { exr_caller_fd_get(&peer->out), POLLOUT, 0 };

		if (poll(&p, 1, 100) > 0)
			write_lines(peer);
	}
}

static void free_line(void *line)
{
	g_string_free(line, TRUE);
}

int rpc_peer_serve(int in_fd, int out_fd, int stop_fd, char **host_env)
{
	RpcPeer peer = {
		.host_env = host_env,
		.line = g_string_new(NULL),
		.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.lines = G_QUEUE_INIT,
		.sessions = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
						  (GDestroyNotify)rpc_session_unref),
		.processes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
						   (GDestroyNotify)rpc_process_unref),
		.calls = g_hash_table_new(g_str_hash, g_str_equal),
	};
	int r = peer.wake_fd < 0 ? -errno : 0;

	pthread_mutex_init(&peer.lock, NULL);
	cond_init(&peer.changed);
	exr_caller_fd_init(&peer.in, in_fd, O_RDONLY);
	exr_caller_fd_init(&peer.out, out_fd, O_WRONLY);
	while (r == 0 && turn(&peer, stop_fd))
		;
	wind_up(&peer);
	exr_caller_fd_clear(&peer.in);
	exr_caller_fd_clear(&peer.out);
	g_queue_clear_full(&peer.lines, free_line);
	g_hash_table_unref(peer.sessions);
	g_hash_table_unref(peer.processes);
	g_hash_table_unref(peer.calls);
	g_string_free(peer.line, TRUE);
	fd_close(&peer.wake_fd);
	pthread_mutex_destroy(&peer.lock);
	pthread_cond_destroy(&peer.changed);
	return r;
}
