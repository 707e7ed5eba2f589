/* run-options, env-list: the arguments of run and sh. */
#include "executor/run-options.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char home[] = "HOME=/home/me", empty[] = "EMPTY=", homely[] = "HOMELY=no";
static char *host_env[] = { homely, home, empty, NULL };

/* Reads a command line of words; the error, or NULL. */
static char *parse(const char *line, ExrRunOptions *ret_options, char ***ret_argv)
{
	g_autofree char *command = g_strconcat("run ", line, NULL);
	char *message = NULL;
	int argc, r;

	assert_true(g_shell_parse_argv(command, &argc, ret_argv, NULL));
	r = exr_run_options_parse(argc, *ret_argv, host_env, ret_options, &message);
	assert_int_equal(r < 0, message != NULL);
	return message;
}

static char *rest_of(const ExrRunOptions *options)
{
	return g_strjoinv(" ", options->rest);
}

static char *env_of(const ExrRunOptions *options)
{
	GString *text = g_string_new(NULL);

	for (guint i = 0; i < options->env->set->len; i++)
		g_string_append_printf(text, "%s;", (char *)options->env->set->pdata[i]);
	for (guint i = 0; i < options->env->unset->len; i++)
		g_string_append_printf(text, "-%s;", (char *)options->env->unset->pdata[i]);
	return g_string_free(text, FALSE);
}

static void options_end_at_the_program(void **state)
{
	static const struct {
		const char *line, *rest;
	} cases[] = {
		{ "true", "true" },
		{ "-- true", "true" },
		{ "-- -- x", "-- x" },
		{ "--json ls --json -l", "ls --json -l" },
		{ "--json -- --quiet", "--quiet" },
		{ "--cwd=/x ls -- -l", "ls -- -l" },
		{ "--cwd -- ls", "ls" },
		{ "--quiet - x", "- x" },
		{ "", "" },
		{ "--", "" },
		{ "--json", "" },
		{ "--lossy-text --json x", "x" },
		{ "--result r --lossy-text x", "x" },
		{ "'' x", " x" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_auto(GStrv) argv = NULL;
		ExrRunOptions options;
		g_autofree char *message = parse(cases[i].line, &options, &argv);
		g_autofree char *rest = rest_of(&options);

		assert_null(message);
		assert_string_equal(rest, cases[i].rest);
		exr_run_options_clear(&options);
	}
}

static void values_come_behind_or_with_an_equals_sign(void **state)
{
	static const char *const lines[] = {
		"--result r --stdin - --timeout 1.5s --kill-after 0 --cwd d --tty --quiet x",
		"--result=r --stdin=- --timeout=1.5s --kill-after=0 --cwd=d --tty --quiet x",
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
		g_auto(GStrv) argv = NULL;
		ExrRunOptions options;
		g_autofree char *message = parse(lines[i], &options, &argv);

		assert_null(message);
		assert_string_equal(options.result_path, "r");
		assert_string_equal(options.stdin_path, "-");
		assert_string_equal(options.cwd, "d");
		assert_int_equal(options.timeout_ms, 1500);
		assert_int_equal(options.kill_after_ms, 0);
		assert_true(options.quiet && options.tty);
		assert_false(options.json);
		assert_false(options.has_policy_file);
		exr_run_options_clear(&options);
	}
}

static void absent_options_have_their_defaults(void **state)
{
	g_auto(GStrv) argv = NULL;
	ExrRunOptions options;
	g_autofree char *message = parse("x", &options, &argv);

	assert_null(message);
	assert_null(options.result_path);
	assert_null(options.stdin_path);
	assert_null(options.cwd);
	assert_int_equal(options.timeout_ms, 0);
	assert_int_equal(options.kill_after_ms, 10000);
	assert_false(options.json || options.lossy_text || options.tty || options.quiet ||
		     options.wants_help);
	exr_run_options_clear(&options);
	(void)state;
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *message;
		bool json;
	} cases[] = {
		{ "--nope x", "--nope: unknown option", false },
		{ "-x", "-x: unknown option", false },
		{ "--jso", "--jso: unknown option", false },
		{ "--tty=1 x", "--tty: takes no value", false },
		{ "'--a\nb' x", "--a\\x0ab: unknown option", false },
		{ "--json=1 x", "--json: takes no value", false },
		{ "--timeout", "--timeout: needs a value", false },
		{ "--cwd= x", "--cwd: is empty", false },
		{ "--cwd a --cwd b x", "--cwd: given twice", false },
		{ "--timeout 1d x",
		  "--timeout: expected a duration such as 500ms, 10s, 5m or 1h, got '1d'", false },
		{ "--timeout -1 x",
		  "--timeout: expected a duration such as 500ms, 10s, 5m or 1h, got '-1'", false },
		{ "--timeout 9223372036854775807 x", "--timeout: '9223372036854775807' is too long",
		  false },
		{ "--lossy-text x", "--lossy-text: needs --json or --result", false },
		{ "--json --result r x", "--result: cannot be used with --json", true },
		{ "--json --nope x", "--nope: unknown option", true },
		{ "--nope --json x", "--nope: unknown option", true },
		{ "--nope -- x --json", "--nope: unknown option", false },
		{ "--setenv '' x", "--setenv: expected NAME=value, got ''", false },
		{ "--setenv =v x", "--setenv: expected NAME=value, got '=v'", false },
		{ "--setenv HOM x",
		  "--setenv: HOM is not in the caller's environment; give NAME=value", false },
		{ "--unsetenv A=b x", "--unsetenv: expected a variable's name, got 'A=b'", false },
		{ "--unsetenv '' x", "--unsetenv: expected a variable's name, got ''", false },
		{ "--env-file /nonexistent/f x",
		  "--env-file: \"/nonexistent/f\": No such file or directory", false },
		{ "--env-file / x", "--env-file: \"/\": Is a directory", false },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_auto(GStrv) argv = NULL;
		ExrRunOptions options;
		g_autofree char *message = parse(cases[i].line, &options, &argv);

		assert_non_null(message);
		assert_string_equal(message, cases[i].message);
		assert_int_equal(options.json, cases[i].json);
		exr_run_options_clear(&options);
	}
}

static void later_changes_of_a_variable_win(void **state)
{
	static const struct {
		const char *line, *env;
	} cases[] = {
		{ "--setenv A=1 --setenv B=2 x", "A=1;B=2;" },
		{ "--setenv A=1 --setenv A=2 x", "A=2;" },
		{ "--setenv A=1 --setenv AB=2 x", "A=1;AB=2;" },
		{ "--setenv AB=2 --setenv A=1 x", "AB=2;A=1;" },
		{ "--setenv A=1 --unsetenv A x", "-A;" },
		{ "--unsetenv A --setenv A=1 x", "A=1;" },
		{ "--unsetenv A --unsetenv A x", "-A;" },
		{ "--setenv HOME x", "HOME=/home/me;" },
		{ "--setenv EMPTY x", "EMPTY=;" },
		{ "--setenv A= x", "A=;" },
		{ "--setenv A=b=c x", "A=b=c;" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_auto(GStrv) argv = NULL;
		ExrRunOptions options;
		g_autofree char *message = parse(cases[i].line, &options, &argv);
		g_autofree char *env = env_of(&options);

		assert_null(message);
		assert_string_equal(env, cases[i].env);
		exr_run_options_clear(&options);
	}
}

static void an_env_file_is_taken_whole_or_not_at_all(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *env;     /* or NULL, then */
		const char *message; /* behind the file's name */
	} cases[] = {
#define TEXT(text) text, sizeof(text) - 1
		{ TEXT(""), "", NULL },
		{ TEXT("# A=0\n\nA=1\nB=two words # kept\n"), "A=1;B=two words # kept;", NULL },
		{ TEXT("A=$HOME\nB=\"q\"\nC="), "A=$HOME;B=\"q\";C=;", NULL },
		{ TEXT("A=1\nA=2"), "A=2;", NULL },
		{ TEXT("A=\xff\xfe\n"), "A=\xff\xfe;", NULL },
		{ TEXT("A=1\nB\n"), NULL, "line 2: expected NAME=value" },
		{ TEXT("=1\n"), NULL, "line 1: expected NAME=value" },
		{ TEXT("A=1\n\nexport B=1\n"), NULL, "line 3: expected NAME=value" },
		{ TEXT(" A=1\n"), NULL, "line 1: expected NAME=value" },
		{ TEXT("A=1\0\n"), NULL, "holds a NUL byte" },
#undef TEXT
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(ExrEnvList) list = exr_env_list_new();
		ExrRunOptions options = { .env = list };
		char path[] = "/tmp/stella-test-env-XXXXXX";
		g_autofree char *message = NULL, *env = NULL, *expected = NULL;
		int r, fd = mkstemp(path);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, cases[i].text, cases[i].size), cases[i].size);
		assert_int_equal(close(fd), 0);
		r = exr_env_list_add_file(list, path, &message);
		assert_int_equal(unlink(path), 0);
		env = env_of(&options);
		if (cases[i].env) {
			assert_int_equal(r, 0);
			assert_string_equal(env, cases[i].env);
		} else {
			expected = g_strdup_printf("\"%s\": %s", path, cases[i].message);
			assert_int_equal(r, -EINVAL);
			assert_string_equal(message, expected);
			assert_string_equal(env, "");
		}
	}
}

static void options_of_the_policy_are_passed_on(void **state)
{
	g_auto(GStrv) argv = NULL, bad_argv = NULL;
	ExrRunOptions options, bad;
	g_autofree char *message =
		parse("--json --policy=p --no-network x --ro y", &options, &argv);
	g_autofree char *bad_message = parse("--json --runtime nowhere x", &bad, &bad_argv);
	g_autofree char *rest = rest_of(&options);

	assert_null(message);
	assert_true(options.has_policy_file);
	assert_string_equal(rest, "x --ro y");
	assert_true(g_str_has_prefix(bad_message, "--runtime: "));
	assert_true(bad.json);
	exr_run_options_clear(&options);
	exr_run_options_clear(&bad);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_end_at_the_program),
		cmocka_unit_test(values_come_behind_or_with_an_equals_sign),
		cmocka_unit_test(absent_options_have_their_defaults),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(later_changes_of_a_variable_win),
		cmocka_unit_test(an_env_file_is_taken_whole_or_not_at_all),
		cmocka_unit_test(options_of_the_policy_are_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
