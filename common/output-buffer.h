/* The captured output of one stream: its first bytes, its last ones if they are asked for, both
 * together at most a cap, and how many there were in all.
 *
 * Bytes in between are counted and thrown away, so that a program never blocks on us and never
 * costs more memory than the cap; memory grows with the content. Binary-safe. One thread per
 * object. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct OutputBuffer OutputBuffer;

/* A buffer that keeps the first limit_bytes of a stream; 0 keeps nothing. Takes no memory for the
 * content yet. */
OutputBuffer *output_buffer_new(uint64_t limit_bytes);
/* The same, with tail_bytes of the limit (more is the limit) for the end of a stream that is longer
 * than the limit: then the beginning has the rest. */
OutputBuffer *output_buffer_new_with_tail(uint64_t limit_bytes, uint64_t tail_bytes);
void output_buffer_free(OutputBuffer *buffer); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OutputBuffer, output_buffer_free)

/* Takes all size bytes, always; what does not fit (or finds no memory) is counted only. */
void output_buffer_write(OutputBuffer *buffer, const void *data, size_t size);

/* The kept bytes, with a NUL behind them that *ret_size (may be NULL) does not count. Borrowed
 * until the next write or free. No marker: this is what base64 is made of. Of a stream that was cut
 * the last tail_bytes of them are its end, what is before them is its beginning, and the total says
 * how many are missing in between. Puts the end in order in place, so it is no const. */
const char *output_buffer_data(OutputBuffer *buffer, size_t *ret_size);

/* How many bytes were written in all; stays at UINT64_MAX once there. */
uint64_t output_buffer_total(const OutputBuffer *buffer);

/* Whether bytes were thrown away. A stream of exactly the limit is whole. */
bool output_buffer_truncated(const OutputBuffer *buffer);

/* Whether size more bytes would leave the stream whole. */
bool output_buffer_fits(const OutputBuffer *buffer, size_t size);

/* The output as text for a reader: the kept bytes, and, when some were thrown away, a marker on top
 * of the cap. Without a tail it comes last: "\n[stella: output truncated, exceeded 10MiB]\n"; with one
 * it is between beginning and end: "\n[stella: 123 bytes left out]\n". remark (may be NULL) goes into
 * either, behind ", ". A character that a cut has split is left out, and counted as such. The marker is
 * text like any other: who has to be sure compares the total. NUL-terminated, with *ret_size (may be
 * NULL) not counting that; the caller frees. */
char *output_buffer_text(const OutputBuffer *buffer, const char *remark, size_t *ret_size);

/* A size in the largest binary unit that expresses it exactly: "10MiB", "1025B". The caller frees. */
char *output_buffer_format_size(uint64_t bytes);
