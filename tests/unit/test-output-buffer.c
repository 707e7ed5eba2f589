/* output-buffer: all is taken, the cap is kept, the rest is counted and said. */
#include "common/limits.h"
#include "common/output-buffer.h"

#include <glib.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The linker puts these around the buffer's calls: memory runs out when the test says so. */
gpointer __real_g_try_realloc(gpointer memory, gsize size);
gpointer __wrap_g_try_realloc(gpointer memory, gsize size);
static gsize memory_ends_at = G_MAXSIZE;

gpointer __wrap_g_try_realloc(gpointer memory, gsize size)
{
	return size > memory_ends_at ? NULL : __real_g_try_realloc(memory, size);
}

static void assert_text(const OutputBuffer *buffer, const char *expected)
{
	size_t size;
	g_autofree char *text = output_buffer_text(buffer, NULL, &size);

	assert_int_equal(size, strlen(expected));
	assert_string_equal(text, expected);
}

static void an_empty_stream_is_whole(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(8);
	size_t size = 99;

	(void)state;
	assert_string_equal(output_buffer_data(buffer, &size), "");
	assert_int_equal(size, 0);
	assert_int_equal(output_buffer_total(buffer), 0);
	output_buffer_write(buffer, "", 0);
	output_buffer_write(buffer, NULL, 0);
	assert_false(output_buffer_truncated(buffer));
	assert_text(buffer, "");
}

static void exactly_the_cap_is_whole_and_one_byte_more_is_not(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(8);
	size_t size;

	(void)state;
	output_buffer_write(buffer, "abcd", 4);
	output_buffer_write(buffer, "efgh", 4);
	assert_false(output_buffer_truncated(buffer));
	assert_text(buffer, "abcdefgh");
	output_buffer_write(buffer, "i", 1);
	assert_true(output_buffer_truncated(buffer));
	assert_int_equal(output_buffer_total(buffer), 9);
	assert_string_equal(output_buffer_data(buffer, &size), "abcdefgh");
	assert_int_equal(size, 8);
	assert_text(buffer, "abcdefgh\n[stella: output truncated, exceeded 8B]\n");
}

static void one_write_across_the_cap_is_kept_up_to_it(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(5);
	size_t size;

	(void)state;
	output_buffer_write(buffer, "ab", 2);
	output_buffer_write(buffer, "cdefgh", 6);
	assert_string_equal(output_buffer_data(buffer, &size), "abcde");
	assert_int_equal(size, 5);
	assert_int_equal(output_buffer_total(buffer), 8);
}

static void nothing_is_kept_with_a_cap_of_zero(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(0);

	(void)state;
	assert_false(output_buffer_truncated(buffer));
	output_buffer_write(buffer, "x", 1);
	assert_true(output_buffer_truncated(buffer));
	assert_int_equal(output_buffer_total(buffer), 1);
	assert_text(buffer, "\n[stella: output truncated, exceeded 0B]\n");
}

static void the_marker_names_the_cap(void **state)
{
	static const struct {
		uint64_t limit;
		const char *name;
	} cases[] = {
		{ 1, "1B" },
		{ 1000, "1000B" },
		{ 1024, "1KiB" },
		{ 1025, "1025B" },
		{ 512 * 1024, "512KiB" },
		{ 3 * 512 * 1024, "1536KiB" },
		{ LIMIT_OUTPUT_BYTES_DEFAULT, "10MiB" },
		{ LIMIT_OUTPUT_BYTES_DEFAULT + 1, "10485761B" },
	};
	g_autofree char *chunk = g_malloc(1024 * 1024);

	(void)state;
	memset(chunk, 'x', 1024 * 1024);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(OutputBuffer) buffer = output_buffer_new(cases[i].limit);
		g_autofree char *marker = g_strdup_printf(
			"x\n[stella: output truncated, exceeded %s]\n", cases[i].name);
		g_autofree char *text = NULL;
		size_t size;

		for (int n = 0; n < 11; n++)
			output_buffer_write(buffer, chunk, 1024 * 1024);
		text = output_buffer_text(buffer, NULL, &size);
		assert_true(g_str_has_suffix(text, marker));
		assert_int_equal(size, cases[i].limit + strlen(marker) - 1);
	}
}

static void every_byte_value_is_kept(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(1 << 20);
	g_autofree char *text = NULL;
	char all[256];
	size_t size;

	(void)state;
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	for (int i = 0; i < 100; i++)
		output_buffer_write(buffer, all, sizeof all);
	assert_memory_equal(output_buffer_data(buffer, &size) + 99 * 256, all, 256);
	assert_int_equal(size, 25600);
	text = output_buffer_text(buffer, NULL, &size);
	assert_int_equal(size, 25600);
	assert_memory_equal(text, all, 256);
}

static void a_character_cut_by_the_cap_is_left_out_of_the_text(void **state)
{
	static const struct {
		const char *written;
		uint64_t limit;
		const char *text; /* before the marker */
	} cases[] = {
		{ "a\xc3\xa9", 2, "a" },	   /* é after one byte */
		{ "a\xc3\xa9zz", 3, "a\xc3\xa9" }, /* whole */
		{ "a\xe2\x82\xac", 2, "a" },	   /* € after one */
		{ "a\xe2\x82\xac", 3, "a" },	   /* after two */
		{ "a\xf0\x9f\x98\x80", 4, "a" },   /* after three of four */
		{ "a\xff\xff", 2, "a\xff" },	   /* no character at all: left alone */
		{ "\x80\x80\x80\x80", 3, "\x80\x80\x80" },
		{ "\xc3\xa9", 1, "" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(OutputBuffer) buffer = output_buffer_new(cases[i].limit);
		g_autofree char *expected =
			g_strdup_printf("%s\n[stella: output truncated, exceeded %uB]\n",
					cases[i].text, (unsigned int)cases[i].limit);
		size_t size;

		output_buffer_write(buffer, cases[i].written, strlen(cases[i].written));
		assert_text(buffer, expected);
		(void)output_buffer_data(buffer, &size); /* the bytes stay all there */
		assert_int_equal(size, cases[i].limit);
	}
}

static void an_unfinished_character_of_a_whole_stream_stays(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(8);

	(void)state;
	output_buffer_write(buffer, "a\xc3", 2);
	assert_text(buffer, "a\xc3");
}

static void memory_follows_the_content_not_the_cap(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(LIMIT_OUTPUT_BYTES_MAX);
	const char *data;
	size_t size;

	(void)state;
	for (int i = 0; i < 100000; i++)
		output_buffer_write(buffer, "0123456789", 10);
	data = output_buffer_data(buffer, &size);
	assert_int_equal(size, 1000000);
	assert_true(malloc_usable_size((void *)(uintptr_t)data) <= 2 * 1000000 + 8192);
	assert_memory_equal(data + 999990, "0123456789", 11);
}

static void a_flood_is_counted_and_not_kept(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(1000);
	g_autofree char *chunk = g_malloc0(1 << 20);
	const char *data;
	size_t size;

	(void)state;
	for (int i = 0; i < 6000; i++)
		output_buffer_write(buffer, chunk, 1 << 20);
	data = output_buffer_data(buffer, &size);
	assert_int_equal(size, 1000);
	assert_true(malloc_usable_size((void *)(uintptr_t)data) < 8192);
	assert_int_equal(output_buffer_total(buffer), UINT64_C(6000) << 20);
}

static void a_cap_beyond_all_memory_still_takes_all(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(UINT64_MAX);

	(void)state;
	output_buffer_write(buffer, "abc", 3);
	assert_text(buffer, "abc");
}

static void without_memory_the_beginning_is_kept_without_a_hole(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new(1 << 20);
	g_autofree char *chunk = g_strnfill(8000, 'x');
	size_t size;

	(void)state;
	output_buffer_write(buffer, "begin", 5);
	memory_ends_at = 5000;
	output_buffer_write(buffer, chunk, 8000);
	memory_ends_at = G_MAXSIZE;
	output_buffer_write(buffer, "end", 3); /* would fit again, behind a hole */
	(void)output_buffer_data(buffer, &size);
	assert_int_equal(size, 4096);
	assert_int_equal(output_buffer_total(buffer), 8008);
	assert_true(output_buffer_truncated(buffer));
	assert_int_equal(output_buffer_data(buffer, NULL)[4095], 'x');
}

/* What the buffer has to be after any stream, said in another way than it is done. */
static void assert_head_and_tail(OutputBuffer *buffer, const char *stream, size_t total,
				 size_t limit, size_t tail)
{
	g_autoptr(GString) kept = g_string_new(NULL), text = g_string_new(NULL);
	g_autofree char *shown = NULL;
	size_t size;

	if (total <= limit) {
		g_string_append_len(kept, stream, (gssize)total);
		g_string_append_len(text, stream, (gssize)total);
	} else {
		g_string_append_len(kept, stream, (gssize)(limit - tail));
		g_string_append_len(text, stream, (gssize)(limit - tail));
		if (tail > 0)
			g_string_append_printf(text, "\n[stella: %zu bytes left out]\n",
					       total - limit);
		else
			g_string_append_printf(
				text, "\n[stella: output truncated, exceeded %zuB]\n", limit);
		g_string_append_len(kept, stream + total - tail, (gssize)tail);
		g_string_append_len(text, stream + total - tail, (gssize)tail);
	}
	shown = output_buffer_text(buffer, NULL, &size); /* before its bytes are put in order */
	assert_int_equal(size, text->len);
	assert_memory_equal(shown, text->str, size);
	for (int again = 0; again < 2; again++) {
		const char *data = output_buffer_data(buffer, &size);

		assert_int_equal(size, kept->len);
		assert_memory_equal(data, kept->str, size + 1);
	}
	g_free(shown);
	shown = output_buffer_text(buffer, NULL, &size); /* and after */
	assert_memory_equal(shown, text->str, text->len + 1);
	assert_int_equal(output_buffer_total(buffer), total);
	assert_int_equal(output_buffer_truncated(buffer), total > limit);
}

static void beginning_and_end_are_kept_whatever_the_writes_are(void **state)
{
	static const size_t limits[] = { 1, 2, 13, 100 };
	static const size_t steps[] = { 1, 2, 3, 7, 12, 13, 14, 99, 1000 };
	char stream[1000];
	size_t rows = 0;

	(void)state;
	for (size_t i = 0; i < sizeof stream; i++)
		stream[i] = (char)(i * 7 % 127); /* NULs too */
	for (size_t l = 0; l < G_N_ELEMENTS(limits); l++) {
		size_t limit = limits[l];
		const size_t totals[] = { 0,	     limit - 1, limit,	       limit + 1,
					  limit + 2, 2 * limit, 3 * limit + 1, 1000 };
		const size_t tails[] = { 0, 1, limit / 2, limit - 1, limit };

		for (size_t row = 0;
		     row < G_N_ELEMENTS(totals) * G_N_ELEMENTS(tails) * G_N_ELEMENTS(steps);
		     row++, rows++) {
			size_t step = steps[row % G_N_ELEMENTS(steps)];
			size_t tail = tails[row / G_N_ELEMENTS(steps) % G_N_ELEMENTS(tails)];
			size_t total = totals[row / G_N_ELEMENTS(steps) / G_N_ELEMENTS(tails)];
			g_autoptr(OutputBuffer) buffer = output_buffer_new_with_tail(limit, tail);

			for (size_t done = 0; done < total; done += step)
				output_buffer_write(buffer, stream + done, MIN(step, total - done));
			assert_head_and_tail(buffer, stream, total, limit, tail);
		}
	}
	assert_int_equal(rows, 4 * 8 * 5 * 9);
}

static void reading_half_way_changes_nothing(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new_with_tail(10, 5);
	const char stream[] = "0123456789abcdefghijkl";

	(void)state;
	for (size_t i = 0; i < sizeof stream - 1; i++) {
		output_buffer_write(buffer, stream + i, 1);
		assert_head_and_tail(buffer, stream, i + 1, 10, 5);
	}
}

static void a_tail_beyond_the_cap_is_the_cap(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new_with_tail(4, UINT64_MAX);

	(void)state;
	output_buffer_write(buffer, "abcdef", 6);
	assert_head_and_tail(buffer, "abcdef", 6, 4, 4);
}

static void characters_cut_on_either_side_are_left_out_and_counted(void **state)
{
	static const struct {
		const char *written;
		uint64_t limit, tail;
		const char *text;
	} cases[] = {
		/* é and é, each half cut */
		{ "a\xc3\xa9zzz\xc3\xa9"
		  "b",
		  4, 2, "a\n[stella: 7 bytes left out]\nb" },
		/* whole on both sides */
		{ "a\xc3\xa9zzz\xc3\xa9"
		  "b",
		  6, 3,
		  "a\xc3\xa9\n[stella: 3 bytes left out]\n\xc3\xa9"
		  "b" },
		/* all but the first of four bytes */
		{ "abcd\xf0\x9f\x98\x80", 4, 3, "a\n[stella: 7 bytes left out]\n" },
		{ "abcd\xf0\x9f\x98\x80z", 5, 4, "a\n[stella: 7 bytes left out]\nz" },
		{ "abcd\xf0\x9f\x98\x80", 5, 4, "a\n[stella: 3 bytes left out]\n\xf0\x9f\x98\x80" },
		/* four are of no character */
		{ "abcd\x80\x80\x80\x80", 5, 4, "a\n[stella: 3 bytes left out]\n\x80\x80\x80\x80" },
		/* the stream's own end is as it is */
		{ "abcdefg\xc3", 4, 2, "ab\n[stella: 4 bytes left out]\ng\xc3" },
		/* nothing of the only character is left */
		{ "\xe2\x82\xac", 1, 1, "\n[stella: 3 bytes left out]\n" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		/* By single bytes too: the ring then begins in its middle. */
		for (size_t step = 1; step < 100; step += 98) {
			g_autoptr(OutputBuffer) buffer =
				output_buffer_new_with_tail(cases[i].limit, cases[i].tail);
			size_t length = strlen(cases[i].written);

			for (size_t done = 0; done < length; done += step)
				output_buffer_write(buffer, cases[i].written + done,
						    MIN(step, length - done));
			assert_text(buffer, cases[i].text);
		}
	}
}

static void a_remark_goes_into_the_marker(void **state)
{
	static const struct {
		uint64_t tail;
		const char *remark, *text;
	} cases[] = {
		{ 0, "whole output in /tmp/x",
		  "abcd\n[stella: output truncated, exceeded 4B, whole output in /tmp/x]\n" },
		{ 1, "whole output in /tmp/x",
		  "abc\n[stella: 1 bytes left out, whole output in /tmp/x]\ne" },
		{ 1, NULL, "abc\n[stella: 1 bytes left out]\ne" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(OutputBuffer) buffer = output_buffer_new_with_tail(4, cases[i].tail);
		g_autofree char *whole = NULL;
		g_autofree char *cut = NULL;

		output_buffer_write(buffer, "abcd", 4);
		whole = output_buffer_text(buffer, cases[i].remark, NULL);
		assert_string_equal(whole, "abcd");
		output_buffer_write(buffer, "e", 1);
		cut = output_buffer_text(buffer, cases[i].remark, NULL);
		assert_string_equal(cut, cases[i].text);
	}
}

static void the_end_of_a_flood_is_kept_in_no_more_memory(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new_with_tail(1000, 400);
	g_autofree char *chunk = g_malloc0(1 << 20);
	const char *data;
	size_t size;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		memset(chunk, i, 1 << 20);
		output_buffer_write(buffer, chunk, 1 << 20);
		output_buffer_write(buffer, "end", 3);
	}
	data = output_buffer_data(buffer, &size);
	assert_int_equal(size, 1000);
	assert_true(malloc_usable_size((void *)(uintptr_t)data) < 8192);
	assert_int_equal(data[599], 0);
	assert_int_equal(data[600], (char)1999);
	assert_string_equal(data + 997, "end");
	assert_int_equal(output_buffer_total(buffer), (UINT64_C(2000) << 20) + 6000);
}

static void without_memory_the_end_is_kept_in_what_there_is(void **state)
{
	g_autoptr(OutputBuffer) buffer = output_buffer_new_with_tail(1 << 20, (1 << 20) - 4000);
	g_autofree char *chunk = g_strnfill(8000, 'x');
	const char *data;
	size_t size;

	(void)state;
	output_buffer_write(buffer, "begin", 5);
	memory_ends_at = 5000;
	output_buffer_write(buffer, chunk, 8000);
	memory_ends_at = G_MAXSIZE;
	output_buffer_write(buffer, "end", 3);
	data = output_buffer_data(buffer, &size);
	assert_int_equal(size, 4096);
	assert_string_equal(data + 4092, "xend");
	assert_true(output_buffer_truncated(buffer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_stream_is_whole),
		cmocka_unit_test(exactly_the_cap_is_whole_and_one_byte_more_is_not),
		cmocka_unit_test(one_write_across_the_cap_is_kept_up_to_it),
		cmocka_unit_test(nothing_is_kept_with_a_cap_of_zero),
		cmocka_unit_test(the_marker_names_the_cap),
		cmocka_unit_test(every_byte_value_is_kept),
		cmocka_unit_test(a_character_cut_by_the_cap_is_left_out_of_the_text),
		cmocka_unit_test(an_unfinished_character_of_a_whole_stream_stays),
		cmocka_unit_test(memory_follows_the_content_not_the_cap),
		cmocka_unit_test(a_flood_is_counted_and_not_kept),
		cmocka_unit_test(a_cap_beyond_all_memory_still_takes_all),
		cmocka_unit_test(without_memory_the_beginning_is_kept_without_a_hole),
		cmocka_unit_test(beginning_and_end_are_kept_whatever_the_writes_are),
		cmocka_unit_test(reading_half_way_changes_nothing),
		cmocka_unit_test(a_tail_beyond_the_cap_is_the_cap),
		cmocka_unit_test(characters_cut_on_either_side_are_left_out_and_counted),
		cmocka_unit_test(a_remark_goes_into_the_marker),
		cmocka_unit_test(the_end_of_a_flood_is_kept_in_no_more_memory),
		cmocka_unit_test(without_memory_the_end_is_kept_in_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
