/* The caller's input on its way to the command. */
#pragma once

#include "executor/caller-fd.h"
#include "executor/relay-terminal.h"
#include "executor/relay.h"

#include <stdint.h>

typedef struct {
	ExrCallerFd source;
	int sink; /* our non-blocking end of the command's pipe or terminal, borrowed */
	const char *from_memory; /* all of the input, borrowed; or NULL */
	char *buffer;		 /* else: read and not yet written: size bytes from start */
	size_t start, size;
	bool waits_for_room; /* the pipe is full: nothing is read before it has room */
	int64_t retry_at; /* monotonic microseconds: not read before, see below; 0: at any time */
	bool is_terminal; /* the sink is the master of one */
	bool ended; /* the source of a terminal is at its end; retry_at: when to say so again */
	ExrTerminalEnd end;
	bool done; /* the input is at its end, or the command's pipe is: close the sink */
} ExrRelayInput;

/* Without a source there is no input, and it is done at once. Into a terminal it is never done by itself: at the
 * end of the source the command is told so, again and again. */
void exr_relay_input_init(ExrRelayInput *input, const ExrRelayConfig *config, int sink);
void exr_relay_input_clear(ExrRelayInput *input);

/* What it waits for: at most the two descriptors, with their events; -1 for none. The sink is always
 * watched, for its reader may go away. */
void exr_relay_input_wants(const ExrRelayInput *input, int64_t now, int *ret_source_fd,
			   short *ret_sink_events);

/* Reads when the source is ready, and no more than the command's pipe takes: what the command does not
 * read should, as far as possible, still be there for the caller's next program. Writes when the
 * sink is. The terminal of a job in the background is left alone and looked at again later. */
void exr_relay_input_pump(ExrRelayInput *input, int64_t now, bool source_ready, short sink_revents);
