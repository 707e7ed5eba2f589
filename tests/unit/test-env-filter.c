/* env-filter: what of a caller's environment is never inherited, and that the rest is. */
#include "common/env-filter.h"

#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void what_can_run_code_or_holds_a_secret_is_denied(void **state)
{
	static const char *const names[] = {
		"STELLA_VAULT_KEY",
		"STELLA_STATE_DIR",
		"LD_PRELOAD",
		"LD_LIBRARY_PATH",
		"LD_AUDIT",
		"GLIBC_TUNABLES",
		"GCONV_PATH",
		"BASH_ENV",
		"ENV",
		"BASH_FUNC_ls%%",
		"BASH_FUNC_x()",
		"SHELLOPTS",
		"PS4",
		"IFS",
		"PROMPT_COMMAND",
		"PYTHONSTARTUP",
		"PYTHONPATH",
		"NODE_OPTIONS",
		"PERL5OPT",
		"PERL5LIB",
		"RUBYOPT",
		"RUBYLIB",
		"LUA_INIT",
		"_JAVA_OPTIONS",
		"GIT_DIR",
		"GIT_SSH_COMMAND",
		"GIT_ASKPASS",
		"SSH_AUTH_SOCK",
		"SSH_ASKPASS",
		"SUDO_ASKPASS",
		"DOCKER_HOST",
		"DBUS_SESSION_BUS_ADDRESS",
		"KUBECONFIG",
		"XDG_RUNTIME_DIR",
		"DISPLAY",
		"TMUX",
		"NOTIFY_SOCKET",
		"LISTEN_FDS",
		"OLDPWD",
		"_",
		"TMP",
		"MAKEFLAGS",
		"MISE_TRUSTED_CONFIG_PATHS",
		"MISE_GITHUB_TOKEN",
		"MISE_YES",
		"__MISE_DIFF",
		"__MISE_SESSION",
		/* secrets, by their names */
		"GITHUB_TOKEN",
		"TOKEN",
		"MY_SECRET",
		"CLIENT_SECRET_V2",
		"OPENAI_API_KEY",
		"SSH_KEY",
		"PGPASSWORD",
		"DB_PASSWORD",
		"MYSQL_PWD",
		"AWS_ACCESS_KEY_ID",
		"AWS_PROFILE",
		"AZURE_CLIENT_ID",
		"GOOGLE_APPLICATION_CREDENTIALS",
		"DATABASE_URL",
		"SENTRY_DSN",
		"github_token",
		"My_Api_Key",
		"npm_config_//registry.npmjs.org/:_authToken",
		/* no name at all */
		"",
		"=",
		"A=B",
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		if (!env_filter_denied(names[i], NULL))
			fail_msg("%s is inherited", names[i]);
	}
}

static void ordinary_variables_are_inherited(void **state)
{
	static const char *const names[] = {
		"PATH",	       "HOME",	       "USER",
		"LANG",	       "LC_ALL",       "TERM",
		"TZ",	       "EDITOR",       "PAGER",
		"CI",	       "CC",	       "CFLAGS",
		"http_proxy",  "FOO",	       "ENVIRONMENT",
		"MY_ENV",      "env",	       "LDFLAGS",
		"xLD_PRELOAD", "BASH_VERSION", "GITHUB_REPOSITORY",
		"KEYBOARD",    "KEY_BINDINGS", "MONKEY",
		"TOKENIZERS",  "NODE_ENV",     "GOPATH",
		"DEBUG",       "PWD",	       "SHLVL",
		"COMPASS",     "PATCH",
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		if (env_filter_denied(names[i], NULL))
			fail_msg("%s is denied", names[i]);
	}
}

static void patterns_match_whole_names(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool any_case, matches;
	} cases[] = {
		{ "ENV", "ENV", false, true },
		{ "ENV", "env", false, false },
		{ "ENV", "env", true, true },
		{ "ENV", "ENVX", false, false },
		{ "ENV", "XENV", false, false },
		{ "LD_*", "LD_", false, true },
		{ "LD_*", "LD", false, false },
		{ "LD_*", "LD_PRELOAD", false, true },
		{ "*_KEY", "_KEY", false, true },
		{ "*_KEY", "A_KEY", false, true },
		{ "*_KEY", "A_KEYS", false, false },
		{ "*_KEY", "A_KEY_B_KEY", false, true },
		{ "*_A_*", "X_A_Y", false, true },
		{ "*_A_*", "X_AY", false, false },
		{ "A*B*C", "AxBxBxC", false, true },
		{ "A*B*C", "AxCxB", false, false },
		{ "*", "", false, true },
		{ "", "", false, true },
		{ "", "x", false, false },
		{ "**", "x", false, true },
		{ "a?c", "abc", false, false },
		{ "[ab]", "a", false, false },
		{ "*", "\xff\n", false, true },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		if (env_filter_match(cases[i].pattern, cases[i].name, cases[i].any_case) !=
		    cases[i].matches)
			fail_msg("%s against %s", cases[i].pattern, cases[i].name);
	}
}

static void every_row_denies_something_and_the_list_can_be_extended(void **state)
{
	static const char *const extra[] = { "FOO", "MY_*", NULL };
	size_t count;
	const EnvFilterRule *rules = env_filter_rules(&count);

	(void)state;
	assert_true(count > 50);
	for (size_t i = 0; i < count; i++) {
		g_autofree char *name = g_strdelimit(g_strdup(rules[i].pattern), "*", 'X');

		assert_true(env_filter_match(rules[i].pattern, name, rules[i].any_case));
		assert_true(env_filter_denied(name, NULL));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(rules[j].pattern, rules[i].pattern);
	}
	assert_true(env_filter_denied("FOO", extra));
	assert_true(env_filter_denied("MY_X", extra));
	assert_true(env_filter_denied("LD_PRELOAD", extra));
	assert_false(env_filter_denied("foo", extra));
	assert_false(env_filter_denied("FOOD", extra));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_can_run_code_or_holds_a_secret_is_denied),
		cmocka_unit_test(ordinary_variables_are_inherited),
		cmocka_unit_test(patterns_match_whole_names),
		cmocka_unit_test(every_row_denies_something_and_the_list_can_be_extended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
