/* path-util: cleaning, comparing and splitting paths as strings. */
#include "common/path-util.h"

#include <errno.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_spelling_cleans_to_one_path(void **state)
{
	static const struct {
		const char *path, *clean;
	} cases[] = {
		{ "/", "/" },
		{ "//", "/" },
		{ "/workspace", "/workspace" },
		{ "/workspace/", "/workspace" },
		{ "//workspace", "/workspace" },
		{ "/workspace/.", "/workspace" },
		{ "/workspace//a/./b", "/workspace/a/b" },
		{ "/workspace/a/../../opt/stella/x", "/opt/stella/x" },
		{ "/..", "/" },
		{ "/../../etc", "/etc" },
		{ "/a/..", "/" },
		{ "/...", "/..." },
		{ "/a/.b/..c", "/a/.b/..c" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *clean = path_clean(cases[i].path);

		assert_string_equal(clean, cases[i].clean);
	}
	assert_null(path_clean("workspace/x"));
	assert_null(path_clean(""));
}

static void a_relative_path_starts_at_its_base(void **state)
{
	static const struct {
		const char *path, *clean;
	} cases[] = {
		{ "x", "/workspace/src/x" }, { "", "/workspace/src" }, { ".", "/workspace/src" },
		{ "../y", "/workspace/y" },  { "../../../..", "/" },   { "/abs", "/abs" },
		{ "~", "/workspace/src/~" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *clean = path_clean_from("/workspace/src", cases[i].path);

		assert_string_equal(clean, cases[i].clean);
	}
}

static void below_compares_whole_components(void **state)
{
	(void)state;
	assert_true(path_is_below("/workspace", "/workspace"));
	assert_true(path_is_below("/workspace/x", "/workspace"));
	assert_true(path_is_below("/anything", "/"));
	assert_true(path_is_below("/", "/"));
	assert_false(path_is_below("/workspace-evil", "/workspace"));
	assert_false(path_is_below("/workspace-evil/x", "/workspace"));
	assert_false(path_is_below("/work", "/workspace"));
	assert_string_equal(path_below("/workspace/a/b", "/workspace"), "a/b");
	assert_string_equal(path_below("/workspace", "/workspace"), "");
	assert_string_equal(path_below("/a/b", "/"), "a/b");
}

static void a_name_is_one_directory_entry(void **state)
{
	char longest[257];

	(void)state;
	memset(longest, 'n', sizeof longest);
	longest[256] = '\0';
	assert_int_equal(path_check_name(longest), -ENAMETOOLONG);
	longest[255] = '\0';
	assert_int_equal(path_check_name(longest), 0);
	assert_int_equal(path_check_name(""), -EINVAL);
	assert_int_equal(path_check_name("."), -EINVAL);
	assert_int_equal(path_check_name(".."), -EINVAL);
	assert_int_equal(path_check_name("a/b"), -EINVAL);
	assert_int_equal(path_check_name("/etc"), -EINVAL);
	assert_int_equal(path_check_name("../x"), -EINVAL);
	assert_int_equal(path_check_name("..."), 0);
	assert_int_equal(path_check_name("\xff\n"), 0);
}

static void escaped_text_is_one_printable_line(void **state)
{
	g_autofree char *odd = path_escape("a\nb\x1b[31m\\\xff\xc3\xa9");
	g_autofree char *plain = path_escape("/workspace/f\xc3\xbcr");

	(void)state;
	assert_string_equal(odd, "a\\x0ab\\x1b[31m\\x5c\\xff\xc3\xa9");
	assert_string_equal(plain, "/workspace/f\xc3\xbcr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_cleans_to_one_path),
		cmocka_unit_test(a_relative_path_starts_at_its_base),
		cmocka_unit_test(below_compares_whole_components),
		cmocka_unit_test(a_name_is_one_directory_entry),
		cmocka_unit_test(escaped_text_is_one_printable_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
