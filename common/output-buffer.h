/* The captured output of one stream: its first bytes up to a cap, and how many there were in all.
 *
 * Bytes past the cap are counted and thrown away, so that a program never blocks on us and never
 * costs more memory than the cap; memory grows with the content. Binary-safe. One thread per
 * object. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct OutputBuffer OutputBuffer;

/* A buffer that keeps at most limit_bytes; 0 keeps nothing. Takes no memory for the content yet. */
OutputBuffer *output_buffer_new(uint64_t limit_bytes);
void output_buffer_free(OutputBuffer *buffer); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OutputBuffer, output_buffer_free)

/* Takes all size bytes, always; what does not fit (or finds no memory) is counted only. */
void output_buffer_write(OutputBuffer *buffer, const void *data, size_t size);

/* The kept bytes, with a NUL behind them that *ret_size (may be NULL) does not count. Borrowed
 * until the next write or free. No marker: this is what base64 is made of. */
const char *output_buffer_data(const OutputBuffer *buffer, size_t *ret_size);

/* How many bytes were written in all; stays at UINT64_MAX once there. */
uint64_t output_buffer_total(const OutputBuffer *buffer);

/* Whether bytes were thrown away. A stream of exactly the limit is whole. */
bool output_buffer_truncated(const OutputBuffer *buffer);

/* The output as text for a reader: the kept bytes, and, when some were thrown away, the marker on
 * top of the cap: "\n[stella: output truncated, exceeded 10MiB]\n". A character that the cap cut in
 * two is left out then. NUL-terminated, with *ret_size (may be NULL) not counting that; the caller
 * frees. */
char *output_buffer_text(const OutputBuffer *buffer, size_t *ret_size);
