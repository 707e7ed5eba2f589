/* Output on its way; see relay-output.h. When the caller's end is closed, so is ours: the command gets
 * SIGPIPE at its next write, as in a plain pipeline. */
#include "executor/relay-output.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STEP_BYTES (64 * 1024)
/* Steps while there is more, before anything else is looked at: whoever writes much is faster than a poll of all. */
#define STEPS_MOST 16

void exr_relay_stream_init(ExrRelayStream *stream, int source, const ExrRelayOutput *output)
{
	*stream = (ExrRelayStream){
		.source = source,
		.sink = EXR_CALLER_FD_NONE,
		.capture = output->capture,
		.capture_data = output->capture_data,
		.done = source < 0,
	};
	if (output->fd >= 0) {
		exr_caller_fd_init(&stream->sink, output->fd, O_WRONLY);
		/* Of a terminal a splice would give the end as an error. */
		stream->splices =
			stream->sink.kind == EXR_CALLER_PIPE && !stream->capture && !isatty(source);
	}
}

void exr_relay_stream_clear(ExrRelayStream *stream)
{
	exr_caller_fd_clear(&stream->sink);
	g_clear_pointer(&stream->buffer, g_free);
	stream->done = true;
}

static void fail(ExrRelayStream *stream, int errnum)
{
	stream->errnum = errnum;
	stream->done = true;
}

static void source_is_empty(ExrRelayStream *stream, bool source_ended)
{
	stream->waits_for_sink = false;
	stream->done = source_ended;
}

/* EAGAIN of a splice does not say which side it is about. */
static bool has_input(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLIN);
}

/* Of a command that has ended nothing comes any more: what is in the pipe now is the rest. Without this bound another
 * command to which it has given its end could make its output go on. A terminal's other end is only the command's. */
static void note_left(ExrRelayStream *stream)
{
	int bytes = 0;

	if (stream->has_left)
		return;
	stream->has_left = true;
	stream->left = SIZE_MAX;
	if (fcntl(stream->source, F_GETPIPE_SZ) > 0 && ioctl(stream->source, FIONREAD, &bytes) == 0)
		stream->left = (size_t)MAX(bytes, 0);
}

static size_t step_of(const ExrRelayStream *stream)
{
	return stream->has_left ? MIN(stream->left, STEP_BYTES) : STEP_BYTES;
}

static void count_read(ExrRelayStream *stream, size_t bytes)
{
	if (stream->has_left && stream->left != SIZE_MAX)
		stream->left -= bytes;
}

static size_t pump_splice(ExrRelayStream *stream, bool source_ended)
{
	ssize_t moved = splice(stream->source, NULL, exr_caller_fd_get(&stream->sink), NULL,
			       step_of(stream), SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (moved > 0) {
		stream->waits_for_sink = false;
		count_read(stream, (size_t)moved);
		return (size_t)moved;
	}
	if (moved == 0) {
		stream->done = true;
	} else if (errno == EAGAIN) {
		if (has_input(stream->source))
			stream->waits_for_sink = true;
		else
			source_is_empty(stream, source_ended);
	} else if (errno == EINVAL) {
		stream->splices = false; /* not possible between these two; nothing was moved */
	} else if (errno != EINTR) {
		fail(stream, errno);
	}
	return 0;
}

/* Fills the empty buffer. */
static void read_source(ExrRelayStream *stream, bool source_ended)
{
	ssize_t got;

	if (!stream->buffer)
		stream->buffer = g_malloc(STEP_BYTES);
	got = read(stream->source, stream->buffer, step_of(stream));
	if (got > 0) {
		count_read(stream, (size_t)got);
		stream->start = 0;
		stream->size = (size_t)got;
		if (stream->capture)
			stream->capture(stream->buffer, (size_t)got, stream->capture_data);
	} else if (got < 0 && errno == EAGAIN) {
		source_is_empty(stream, source_ended);
	} else if (got == 0 || errno != EINTR) {
		stream->done = true;
	}
}

static size_t pump_copy(ExrRelayStream *stream, bool source_ended)
{
	size_t moved;

	if (stream->size == 0)
		read_source(stream, source_ended);
	if (stream->size == 0)
		return 0;
	if (stream->sink.fd < 0) {
		moved = stream->size;
	} else {
		ssize_t written = exr_caller_fd_write(&stream->sink, stream->buffer + stream->start,
						      stream->size);

		if (written == -EAGAIN || written == -EINTR) {
			stream->waits_for_sink = true;
			return 0;
		}
		if (written < 0) {
			fail(stream, (int)-written);
			return 0;
		}
		moved = (size_t)written;
	}
	stream->start += moved;
	stream->size -= moved;
	stream->waits_for_sink = stream->size > 0;
	return moved;
}

/* Nothing is left of what had an end. */
static bool is_emptied(const ExrRelayStream *stream)
{
	return stream->has_left && stream->left == 0 && stream->size == 0;
}

size_t exr_relay_stream_pump(ExrRelayStream *stream, bool source_ended)
{
	size_t all = 0;

	if (source_ended && !stream->done)
		note_left(stream);
	for (int i = 0; i < STEPS_MOST && !stream->done; i++) {
		size_t moved = 0;

		if (is_emptied(stream))
			stream->done = true;
		else if (stream->splices)
			moved = pump_splice(stream, source_ended);
		else
			moved = pump_copy(stream, source_ended);
		all += moved;
		if (moved == 0)
			break;
	}
	return all;
}
