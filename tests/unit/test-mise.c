/* mise: names of the layout. The preparation of trees is in test-mise-home.c. */
#include "common/mise.h"

#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void take_equal(char *take_text, const char *expected)
{
	g_autofree char *text = take_text;

	assert_string_equal(text, expected);
}

static void names_are_made_from_the_home(void **state)
{
	(void)state;
	take_equal(mise_tools_dir("/h"), "/h/.mise-tools");
	take_equal(mise_tools_dir("/h/"), "/h/.mise-tools");
	take_equal(mise_tools_dir(""), "");
	take_equal(mise_shims_dir("/h"), "/h/.mise-tools/shims");
	take_equal(mise_shims_dir(""), "");
	take_equal(mise_user_shims_dir("/h/users/u/.mise-tools"), "/h/users/u/.mise-tools/shims");
	take_equal(mise_user_shims_dir(""), "");
	assert_string_equal(mise_home_dirs()[0], "bin");
	assert_string_equal(mise_home_dirs()[1], ".mise-tools");
	assert_null(mise_home_dirs()[2]);
}

static void only_a_safe_principal_and_id_name_a_tree(void **state)
{
	static const struct {
		const char *principal, *id;
		bool valid;
	} cases[] = {
		{ "users", "u1", true },	{ "users", "group-42", true },
		{ "users", "A_z-09", true },	{ "users", "-", true },
		{ "users", "", false },		{ "users", ".", false },
		{ "users", "..", false },	{ "users", "../x", false },
		{ "users", "a/b", false },	{ "users", "/etc", false },
		{ "users", "a b", false },	{ "users", "a.b", false },
		{ "users", "a\n", false },	{ "users", "\xc3\xa9", false },
		{ "groups", "u1", false },	{ "", "u1", false },
		{ "users/", "u1", false },	{ "Users", "u1", false },
		{ "users/u0/..", "u1", false },
	};
	g_autofree char *longest = g_strnfill(255, 'a');
	g_autofree char *too_long = g_strnfill(256, 'a');
	g_autofree char *dir = mise_user_tools_dir("/h", "users", longest);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *expected =
			cases[i].valid ? g_strconcat("/h/users/", cases[i].id, "/.mise-tools", NULL)
				       : g_strdup("");

		take_equal(mise_user_tools_dir("/h", cases[i].principal, cases[i].id), expected);
	}
	take_equal(mise_user_tools_dir("", "users", "u1"), "");
	take_equal(mise_user_tools_dir("/h", "users", too_long), "");
	assert_int_equal(strlen(dir), strlen("/h/users//.mise-tools") + 255);
}

static void the_data_dir_of_a_user_is_not_the_systems(void **state)
{
	static const struct {
		const char *value, *home, *expected;
	} cases[] = {
		{ NULL, "/h", "" },
		{ "", "/h", "" },
		{ "/h/.mise-tools", "/h", "" },
		{ "/h/.mise-tools/", "/h", "" },
		{ "/h//./.mise-tools", "/h/", "" },
		{ "/h/users/u/.mise-tools", "/h", "/h/users/u/.mise-tools" },
		{ "/h/.mise-tools2", "/h", "/h/.mise-tools2" },
		{ "/user/.mise-tools", "", "/user/.mise-tools" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GHashTable) env = g_hash_table_new(g_str_hash, g_str_equal);

		if (cases[i].value)
			g_hash_table_insert(env, (void *)(uintptr_t) "MISE_DATA_DIR",
					    (void *)(uintptr_t)cases[i].value);
		take_equal(per_user_mise_data_dir(env, cases[i].home), cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_made_from_the_home),
		cmocka_unit_test(only_a_safe_principal_and_id_name_a_tree),
		cmocka_unit_test(the_data_dir_of_a_user_is_not_the_systems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
