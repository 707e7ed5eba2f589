/* Capped capture of one stream; see output-buffer.h. The stream is an untrusted program's: nothing
 * here depends on what its bytes are, and no amount of them makes more memory than the cap. */
#include "common/output-buffer.h"

#include <string.h>

#define FIRST_CAPACITY_BYTES 4096

struct OutputBuffer {
	uint64_t limit;
	uint64_t total;
	char *data; /* NULL while nothing is kept */
	size_t size;
	size_t capacity; /* without the byte for the NUL */
};

OutputBuffer *output_buffer_new(uint64_t limit_bytes)
{
	OutputBuffer *buffer = g_new0(OutputBuffer, 1);

	buffer->limit = limit_bytes;
	return buffer;
}

void output_buffer_free(OutputBuffer *buffer)
{
	if (!buffer)
		return;
	g_free(buffer->data);
	g_free(buffer);
}

/* Makes room for at least one more byte than now, for `wanted` of them where memory allows. The
 * room doubles, so that n bytes cost O(n), and ends at the limit. */
static void grow(OutputBuffer *buffer, uint64_t wanted)
{
	uint64_t capacity = MAX(buffer->capacity * UINT64_C(2), FIRST_CAPACITY_BYTES);
	char *data;

	capacity = MIN(MAX(capacity, buffer->size + wanted), buffer->limit);
	if (capacity >= SIZE_MAX)
		return;
	data = g_try_realloc(buffer->data, (size_t)capacity + 1);
	if (!data)
		return;
	buffer->data = data;
	buffer->capacity = (size_t)capacity;
}

void output_buffer_write(OutputBuffer *buffer, const void *data, size_t size)
{
	bool whole_so_far = !output_buffer_truncated(buffer);
	size_t kept;

	buffer->total = size > UINT64_MAX - buffer->total ? UINT64_MAX : buffer->total + size;
	/* After a loss nothing more is kept, or the text would have a hole in it. */
	if (!whole_so_far || size == 0)
		return;
	if (size > buffer->capacity - buffer->size && buffer->capacity < buffer->limit)
		grow(buffer, MIN(size, buffer->limit - buffer->size));
	kept = MIN(size, buffer->capacity - buffer->size);
	if (kept == 0)
		return;
	memcpy(buffer->data + buffer->size, data, kept);
	buffer->size += kept;
	buffer->data[buffer->size] = '\0';
}

const char *output_buffer_data(const OutputBuffer *buffer, size_t *ret_size)
{
	if (ret_size)
		*ret_size = buffer->size;
	return buffer->data ? buffer->data : "";
}

uint64_t output_buffer_total(const OutputBuffer *buffer)
{
	return buffer->total;
}

bool output_buffer_truncated(const OutputBuffer *buffer)
{
	return buffer->total > buffer->size;
}

/* The cap in the largest binary unit that expresses it exactly. */
static char *format_cap(uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	size_t unit = 0;

	while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < G_N_ELEMENTS(units)) {
		bytes /= 1024;
		unit++;
	}
	return g_strdup_printf("%" G_GUINT64_FORMAT "%s", bytes, units[unit]);
}

/* How many bytes at the end of data are the beginning of a UTF-8 character and not all of it. */
static size_t incomplete_tail(const char *data, size_t size)
{
	for (size_t length = 1; length <= 3 && length <= size; length++) {
		const char *start = data + size - length;

		if (((unsigned char)*start & 0xc0) == 0x80)
			continue; /* inside a character: look further back */
		return g_utf8_get_char_validated(start, (gssize)length) == (gunichar)-2 ? length
											: 0;
	}
	return 0;
}

char *output_buffer_text(const OutputBuffer *buffer, size_t *ret_size)
{
	size_t size;
	const char *data = output_buffer_data(buffer, &size);
	GString *text;

	if (output_buffer_truncated(buffer))
		size -= incomplete_tail(data, size);
	text = g_string_new_len(data, (gssize)size);
	if (output_buffer_truncated(buffer)) {
		g_autofree char *cap = format_cap(buffer->limit);

		g_string_append_printf(text, "\n[stella: output truncated, exceeded %s]\n", cap);
	}
	if (ret_size)
		*ret_size = text->len;
	return g_string_free(text, FALSE);
}
