/* Capped capture of one stream; see output-buffer.h. The stream is an untrusted program's: nothing
 * here depends on what its bytes are, and no amount of them makes more memory than the cap. */
#include "common/output-buffer.h"

#include <string.h>

#define FIRST_CAPACITY_BYTES 4096

struct OutputBuffer {
	uint64_t limit;
	uint64_t head;	/* bytes of the limit that are for the beginning */
	uint64_t room;	/* the limit, or less where memory ended */
	uint64_t total; /* bytes that were written */
	char *data;	/* NULL while nothing is kept */
	size_t size;
	size_t capacity; /* without the byte for the NUL */
	size_t oldest;	 /* of a stream that was cut: where its end begins, from data + head on */
};

OutputBuffer *output_buffer_new_with_tail(uint64_t limit_bytes, uint64_t tail_bytes)
{
	OutputBuffer *buffer = g_new0(OutputBuffer, 1);

	buffer->limit = buffer->room = limit_bytes;
	buffer->head = limit_bytes - MIN(tail_bytes, limit_bytes);
	return buffer;
}

OutputBuffer *output_buffer_new(uint64_t limit_bytes)
{
	return output_buffer_new_with_tail(limit_bytes, 0);
}

void output_buffer_free(OutputBuffer *buffer)
{
	if (!buffer)
		return;
	g_free(buffer->data);
	g_free(buffer);
}

/* Makes room for at least one more byte than now, for `wanted` of them where memory allows. The
 * capacity doubles, so that n bytes cost O(n), and ends at the limit. Where memory ends it stays what
 * it is, for good: bytes that fit again later would stand behind a hole. */
static void grow(OutputBuffer *buffer, uint64_t wanted)
{
	uint64_t capacity = MAX(buffer->capacity * UINT64_C(2), FIRST_CAPACITY_BYTES);
	char *data = NULL;

	capacity = MIN(MAX(capacity, buffer->size + wanted), buffer->room);
	if (capacity < SIZE_MAX)
		data = g_try_realloc(buffer->data, (size_t)capacity + 1);
	if (!data) {
		buffer->room = buffer->capacity;
		return;
	}
	buffer->data = data;
	buffer->capacity = (size_t)capacity;
}

/* What is for the end of the stream, once all room is taken: a ring. */
static char *tail_of(const OutputBuffer *buffer, size_t *ret_size)
{
	size_t head = MIN(buffer->head, buffer->size);

	*ret_size = buffer->size - head;
	return buffer->data ? buffer->data + head : NULL;
}

/* Overwrites the oldest bytes of the ring. */
static void keep_tail(OutputBuffer *buffer, const char *data, size_t size)
{
	size_t ring_size, first;
	char *ring = tail_of(buffer, &ring_size);

	if (ring_size == 0)
		return;
	if (size >= ring_size) {
		memcpy(ring, data + size - ring_size, ring_size);
		buffer->oldest = 0;
		return;
	}
	first = MIN(size, ring_size - buffer->oldest);
	memcpy(ring + buffer->oldest, data, first);
	memcpy(ring, data + first, size - first);
	buffer->oldest = (buffer->oldest + size) % ring_size;
}

void output_buffer_write(OutputBuffer *buffer, const void *data, size_t size)
{
	size_t kept;

	buffer->total = size > UINT64_MAX - buffer->total ? UINT64_MAX : buffer->total + size;
	if (size == 0)
		return;
	if (size > buffer->capacity - buffer->size && buffer->capacity < buffer->room)
		grow(buffer, MIN(size, buffer->room - buffer->size));
	kept = MIN(size, buffer->capacity - buffer->size);
	if (kept > 0) {
		memcpy(buffer->data + buffer->size, data, kept);
		buffer->size += kept;
		buffer->data[buffer->size] = '\0';
	}
	if (kept < size)
		keep_tail(buffer, (const char *)data + kept, size - kept);
}

static void reverse(char *data, size_t size)
{
	for (size_t i = 0; i < size / 2; i++) {
		char byte = data[i];

		data[i] = data[size - 1 - i];
		data[size - 1 - i] = byte;
	}
}

const char *output_buffer_data(OutputBuffer *buffer, size_t *ret_size)
{
	if (ret_size)
		*ret_size = buffer->size;
	if (buffer->oldest > 0) {
		size_t size;
		char *ring = tail_of(buffer, &size);

		/* The ring turned without a second one. */
		reverse(ring, buffer->oldest);
		reverse(ring + buffer->oldest, size - buffer->oldest);
		reverse(ring, size);
		buffer->oldest = 0;
	}
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

bool output_buffer_fits(const OutputBuffer *buffer, size_t size)
{
	return !output_buffer_truncated(buffer) && size <= buffer->limit - buffer->total;
}

char *output_buffer_format_size(uint64_t bytes)
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
static size_t unfinished_at_end(const char *data, size_t size)
{
	for (size_t length = 1; length <= 3 && length <= size; length++) {
		const char *start = data + size - length;

		if (((unsigned char)*start & 0xc0) == 0x80)
			continue; /* inside a character: look further back */
		/* GLib takes a NUL for an unfinished one. */
		if (*start == '\0')
			return 0;
		return g_utf8_get_char_validated(start, (gssize)length) == (gunichar)-2 ? length
											: 0;
	}
	return 0;
}

/* How many bytes at the beginning of the ring are the rest of a character that began before it. More
 * than three are of no character, and stay. */
static size_t unfinished_at_start(const char *ring, size_t size, size_t oldest)
{
	size_t count = 0;

	while (count < size && ((unsigned char)ring[(oldest + count) % size] & 0xc0) == 0x80)
		count++;
	return count > 3 ? 0 : count;
}

static void add_marker(GString *text, const OutputBuffer *buffer, bool has_tail, uint64_t shown,
		       const char *remark)
{
	if (has_tail) {
		g_string_append_printf(text, "\n[stella: %" G_GUINT64_FORMAT " bytes left out",
				       buffer->total - shown);
	} else {
		g_autofree char *cap = output_buffer_format_size(buffer->limit);

		g_string_append_printf(text, "\n[stella: output truncated, exceeded %s", cap);
	}
	g_string_append_printf(text, "%s%s]\n", remark ? ", " : "", remark ? remark : "");
}

/* The bytes of the ring from its oldest on, but for the first `skipped`. */
static void add_ring(GString *text, const char *ring, size_t size, size_t oldest, size_t skipped)
{
	size_t from = oldest + skipped;

	if (from < size) {
		g_string_append_len(text, ring + from, (gssize)(size - from));
		from = size;
	}
	g_string_append_len(text, ring + (from - size), (gssize)(size + oldest - from));
}

char *output_buffer_text(const OutputBuffer *buffer, const char *remark, size_t *ret_size)
{
	/* The marker is most of the rest; a path in it may be longer. */
	GString *text = g_string_sized_new(buffer->size + 256);
	size_t head = buffer->size, tail = 0, skipped = 0;
	const char *ring = NULL;

	if (output_buffer_truncated(buffer)) {
		ring = tail_of(buffer, &tail);
		skipped = unfinished_at_start(ring, tail, buffer->oldest);
		head -= tail;
		head -= unfinished_at_end(buffer->data, head);
	}
	if (head > 0)
		g_string_append_len(text, buffer->data, (gssize)head);
	if (output_buffer_truncated(buffer))
		add_marker(text, buffer, tail > 0, head + tail - skipped, remark);
	if (tail > 0)
		add_ring(text, ring, tail, buffer->oldest, skipped);
	if (ret_size)
		*ret_size = text->len;
	return g_string_free(text, FALSE);
}
