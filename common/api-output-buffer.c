/* The output buffer at the edge; see stella/output-buffer.h. One and the same object as inside. */
#include "stella/output-buffer.h"

#include "common/limits.h"
#include "common/output-buffer.h"

_Static_assert((uint64_t)STELLA_MAX_EXEC_OUTPUT_BYTES == LIMIT_OUTPUT_BYTES_DEFAULT, "one default");

struct StellaOutputBuffer {
	OutputBuffer *kept;
};

StellaOutputBuffer *stella_output_buffer_new(guint64 limit_bytes)
{
	StellaOutputBuffer *buffer = g_new0(StellaOutputBuffer, 1);

	buffer->kept = output_buffer_new(limit_bytes);
	return buffer;
}

StellaOutputBuffer *stella_output_buffer_new_exec(void)
{
	return stella_output_buffer_new(STELLA_MAX_EXEC_OUTPUT_BYTES);
}

void stella_output_buffer_free(StellaOutputBuffer *buffer)
{
	if (!buffer)
		return;
	output_buffer_free(buffer->kept);
	g_free(buffer);
}

gsize stella_output_buffer_write(StellaOutputBuffer *buffer, const void *data, gsize size)
{
	g_return_val_if_fail(buffer != NULL && (data != NULL || size == 0), size);
	if (size > 0)
		output_buffer_write(buffer->kept, data, size);
	return size;
}

const char *stella_output_buffer_get_bytes(StellaOutputBuffer *buffer, gsize *ret_size)
{
	g_return_val_if_fail(buffer != NULL, NULL);
	return output_buffer_data(buffer->kept, ret_size);
}

char *stella_output_buffer_dup_string(const StellaOutputBuffer *buffer)
{
	g_return_val_if_fail(buffer != NULL, NULL);
	return output_buffer_text(buffer->kept, NULL, NULL);
}

guint64 stella_output_buffer_get_total(const StellaOutputBuffer *buffer)
{
	g_return_val_if_fail(buffer != NULL, 0);
	return output_buffer_total(buffer->kept);
}

gboolean stella_output_buffer_get_truncated(const StellaOutputBuffer *buffer)
{
	g_return_val_if_fail(buffer != NULL, FALSE);
	return output_buffer_truncated(buffer->kept);
}
