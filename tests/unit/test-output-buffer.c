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
	g_autofree char *text = output_buffer_text(buffer, &size);

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
		text = output_buffer_text(buffer, &size);
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
	text = output_buffer_text(buffer, &size);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
