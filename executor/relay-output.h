/* One stream of the command's output on its way to the caller. */
#pragma once

#include "executor/caller-fd.h"
#include "executor/relay.h"

#include <stdbool.h>

typedef struct {
	int source;	  /* our end of the command's pipe, borrowed */
	ExrCallerFd sink; /* fd -1: only captured */
	ExrRelayCapture capture;
	void *capture_data;
	char *buffer; /* read and not yet written: size bytes from start */
	size_t start, size;
	size_t left;	     /* once the source has ended: bytes of it that are still to be read */
	bool has_left;	     /* left is known */
	bool splices;	     /* from pipe to pipe, past our memory */
	bool waits_for_sink; /* else it waits for the source */
	bool done;  /* nothing more will come, or nobody wants it: the source is to be closed */
	int errnum; /* why the sink takes no more, or 0 */
} ExrRelayStream;

void exr_relay_stream_init(ExrRelayStream *stream, int source, const ExrRelayOutput *output);
void exr_relay_stream_clear(ExrRelayStream *stream);

/* Moves what can be moved now, in one bounded step; bytes that reached the caller or the capture.
 * source_ended: nobody can write to the source any more, so an empty one is at its end even if a
 * copy of its write end is still open somewhere. */
size_t exr_relay_stream_pump(ExrRelayStream *stream, bool source_ended);
