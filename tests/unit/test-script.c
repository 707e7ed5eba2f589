/* script: long shell commands, run by the shells that this machine has. */
#include "executor/script.h"

#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Runs it by `shell` in place of sh; the output. */
static char *run(const char *shell, const char *text, int *ret_status)
{
	g_auto(GStrv) argv = exr_script_argv(text);
	char *out = NULL;

	g_free(argv[0]);
	argv[0] = g_strdup(shell);
	assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, NULL,
				 ret_status, NULL));
	return out;
}

static GString *padding(size_t size)
{
	GString *text = g_string_sized_new(size + 64);

	while (text->len < size)
		g_string_append(text, ": '\xe2\x82\xac \x81\x88 filler'\n");
	return text;
}

static void a_short_command_is_one_argument(void **state)
{
	g_auto(GStrv) argv = exr_script_argv("echo \"$0\" $#");

	assert_int_equal(g_strv_length(argv), 3);
	assert_string_equal(argv[0], "sh");
	assert_string_equal(argv[1], "-c");
	assert_string_equal(argv[2], "echo \"$0\" $#");
	(void)state;
}

static void no_argument_is_longer_than_the_kernel_takes(void **state)
{
	g_autoptr(GString) text = padding(1000 * 1000);
	g_auto(GStrv) argv = exr_script_argv(text->str);
	g_autoptr(GString) joined = g_string_new(NULL);

	assert_true(g_strv_length(argv) > 8);
	for (char **arg = argv; *arg; arg++)
		assert_true(strlen(*arg) <= EXR_SCRIPT_PART_BYTES);
	for (char **part = argv + 4; *part; part++)
		g_string_append(joined, *part);
	assert_true(strcmp(joined->str, text->str) == 0);
	(void)state;
}

static void parts_end_between_characters(void **state)
{
	for (size_t shift = 0; shift < 4; shift++) {
		g_autoptr(GString) text = g_string_new(&"xxx"[3 - MIN(shift, 3)]);
		g_auto(GStrv) argv = NULL;

		while (text->len < 3 * EXR_SCRIPT_PART_BYTES)
			g_string_append(text, "\xf0\x9f\x98\x80");
		argv = exr_script_argv(text->str);
		for (char **part = argv + 4; *part; part++)
			assert_true(g_utf8_validate(*part, -1, NULL));
	}
	(void)state;
}

/* It behaves as a short one: $0, no parameters, no variable of ours, its status, its input. */
static void a_long_command_runs_as_a_short_one(void **state)
{
	static const char *const shells[] = { "sh", "bash", "dash" };
	static const char tail[] = "printf '%s %s [%s] ' \"$0\" \"$#\" \"$*\"\n"
				   "set | grep -c '^stella_'\n"
				   "cat <<'END'\n"
				   "here \\ \"$0\" \x81\xe2\x82\xac*\n"
				   "END\n"
				   "exit 9\n";

	for (size_t i = 0; i < G_N_ELEMENTS(shells); i++) {
		g_autofree char *path = g_find_program_in_path(shells[i]);

		for (size_t size = 0; path && size < 400000; size += 390000) {
			g_autoptr(GString) text = padding(size);
			g_autofree char *out = NULL;
			int status;

			g_string_append(text, tail);
			out = run(path, text->str, &status);
			/* A short command has $0 from the shell's own name. */
			assert_string_equal(strchr(out, ' '),
					    " 0 [] 0\nhere \\ \"$0\" \x81\xe2\x82\xac*\n");
			assert_true(size == 0 || g_str_has_prefix(out, "sh "));
			assert_int_equal(status, 9 << 8);
		}
	}
	(void)state;
}

static void a_command_is_never_an_option(void **state)
{
	static const char *const commands[] = { "-x", "--version", "+x", "-c 'exit 0'" };

	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
		g_autofree char *quiet = g_strconcat(commands[i], " 2>/dev/null", NULL);
		g_autofree char *path = g_find_program_in_path("sh");
		g_autofree char *out = NULL;
		int status;

		out = run(path, quiet, &status);
		assert_string_equal(out, "");
		assert_int_equal(status, 127 << 8);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_short_command_is_one_argument),
		cmocka_unit_test(a_command_is_never_an_option),
		cmocka_unit_test(no_argument_is_longer_than_the_kernel_takes),
		cmocka_unit_test(parts_end_between_characters),
		cmocka_unit_test(a_long_command_runs_as_a_short_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
