/* Input on its way; see relay-input.h. Copied, never spliced: the pages of a file of the caller's,
 * or of another program's pipe, never become part of a pipe that the command holds. */
#include "executor/relay-input.h"

#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STEP_BYTES	 (64 * 1024)
#define TERMINAL_ROOM	 4096	      /* what a terminal holds unread */
#define END_PAUSE	 (200 * 1000) /* microseconds between ends of input */
#define BACKGROUND_PAUSE (500 * 1000) /* microseconds; nothing tells when a job is in front again */

static void say_end(ExrRelayInput *input, int64_t now)
{
	exr_terminal_end_input(&input->end);
	input->retry_at = now + END_PAUSE;
}

static void source_has_ended(ExrRelayInput *input, int64_t now)
{
	input->ended = input->is_terminal;
	input->done = !input->is_terminal;
	if (input->ended)
		say_end(input, now);
}

void exr_relay_input_init(ExrRelayInput *input, const ExrRelayConfig *config, int sink)
{
	*input = (ExrRelayInput){
		.source = EXR_CALLER_FD_NONE,
		.sink = sink,
		.is_terminal = sink >= 0 && isatty(sink),
		.end = { .master = sink, .slave = -1 },
	};
	if (config->stdin_fd >= 0 && sink >= 0) {
		exr_caller_fd_init(&input->source, config->stdin_fd, O_RDONLY);
	} else if (config->input_size > 0 && sink >= 0) {
		input->from_memory = config->input;
		input->size = config->input_size;
	} else {
		source_has_ended(input, g_get_monotonic_time());
	}
}

void exr_relay_input_clear(ExrRelayInput *input)
{
	exr_caller_fd_clear(&input->source);
	exr_terminal_end_clear(&input->end);
	g_clear_pointer(&input->buffer, g_free);
	input->done = true;
}

void exr_relay_input_wants(const ExrRelayInput *input, int64_t now, int *ret_source_fd,
			   short *ret_sink_events)
{
	bool reads = !input->ended && input->size == 0 && !input->waits_for_room &&
		     now >= input->retry_at;

	*ret_source_fd = reads ? exr_caller_fd_get(&input->source) : -1;
	*ret_sink_events = input->size > 0 || input->waits_for_room ? POLLOUT : 0;
}

/* Bytes that the sink takes now, at least 1 if it takes any. */
static size_t sink_room(const ExrRelayInput *input)
{
	int fd = input->sink;
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	int capacity, unread;

	if (poll(&poll_fd, 1, 0) <= 0 || !(poll_fd.revents & POLLOUT))
		return 0;
	if (input->is_terminal)
		return TERMINAL_ROOM;
	capacity = fcntl(fd, F_GETPIPE_SZ);
	if (capacity < 0 || ioctl(fd, FIONREAD, &unread) < 0)
		return 1;
	return capacity > unread ? (size_t)(capacity - unread) : 1;
}

static void read_source(ExrRelayInput *input, int64_t now)
{
	size_t room = sink_room(input);
	ssize_t got;

	if (room == 0) {
		input->waits_for_room = true;
		return;
	}
	if (!input->buffer)
		input->buffer = g_malloc(STEP_BYTES);
	got = exr_caller_fd_read(&input->source, input->buffer, MIN(room, STEP_BYTES));
	if (got > 0) {
		input->start = 0;
		input->size = (size_t)got;
	} else if (got == -EIO && exr_caller_fd_is_in_background(&input->source)) {
		input->retry_at = now + BACKGROUND_PAUSE;
	} else if (got != -EAGAIN && got != -EINTR) {
		/* The end; or a directory, or something that cannot be read: no input either. */
		source_has_ended(input, now);
	}
}

static void write_sink(ExrRelayInput *input, int64_t now)
{
	const char *data = input->from_memory ? input->from_memory : input->buffer;
	ssize_t written = io_write_without_sigpipe(input->sink, data + input->start, input->size);

	if (written >= 0) {
		input->start += (size_t)written;
		input->size -= (size_t)written;
		if (input->from_memory && input->size == 0)
			source_has_ended(input, now);
	} else if (written != -EAGAIN && written != -EINTR) {
		input->done = true; /* nobody reads it any more, which is no error */
	}
}

void exr_relay_input_pump(ExrRelayInput *input, int64_t now, bool source_ready, short sink_revents)
{
	if (input->done)
		return;
	if (sink_revents & (POLLERR | POLLNVAL)) {
		input->done = true;
		return;
	}
	if (sink_revents & POLLOUT)
		input->waits_for_room = false;
	if (input->ended) {
		if (now >= input->retry_at)
			say_end(input, now);
		return;
	}
	if (source_ready && input->size == 0)
		read_source(input, now);
	if (!input->done && input->size > 0)
		write_sink(input, now);
}
