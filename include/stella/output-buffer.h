/* The captured output of one stream: its first bytes up to a cap, and how many there were in all. What is beyond the cap is
 * counted and thrown away. Binary-safe. One thread per object; no function blocks. */
#ifndef STELLA_OUTPUT_BUFFER_H
#define STELLA_OUTPUT_BUFFER_H

#include <glib-object.h>
#include <stella/exec.h>
#include <stella/types.h>

G_BEGIN_DECLS

typedef struct StellaOutputBuffer StellaOutputBuffer;

/* A buffer that keeps at most limit_bytes; 0 keeps nothing. Takes no memory for the content yet. Never NULL. */
STELLA_API StellaOutputBuffer *stella_output_buffer_new(guint64 limit_bytes);
/* One for an output stream of a command: STELLA_MAX_EXEC_OUTPUT_BYTES. */
STELLA_API StellaOutputBuffer *stella_output_buffer_new_exec(void);
STELLA_API void stella_output_buffer_free(StellaOutputBuffer *buffer); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaOutputBuffer, stella_output_buffer_free)

/* Takes size bytes, always all of them, and gives size back. data may be NULL when size is 0. */
STELLA_API gsize stella_output_buffer_write(StellaOutputBuffer *buffer, const void *data,
					    gsize size);
/* The bytes that were kept, without any marker; *ret_size (may be NULL) is their number, a NUL follows. Borrowed until the
 * next write. Never NULL. */
STELLA_API const char *stella_output_buffer_get_bytes(StellaOutputBuffer *buffer, gsize *ret_size);
/* The same as text for a reader: when bytes were thrown away, a last line says so, on top of the cap, and a character that
 * the cap has split is left out. */
STELLA_API char *stella_output_buffer_dup_string(const StellaOutputBuffer *buffer);
/* How many bytes were written in all. */
STELLA_API guint64 stella_output_buffer_get_total(const StellaOutputBuffer *buffer);
/* Whether bytes were thrown away; a stream of exactly the limit is whole. */
STELLA_API gboolean stella_output_buffer_get_truncated(const StellaOutputBuffer *buffer);

G_END_DECLS

#endif
