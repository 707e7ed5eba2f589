/* host-env: which PATH entries and variables of the host reach a command. */
#include "common/host-env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define STANDARD                                                                                   \
	"/run/current-system/sw/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static void only_system_directories_and_bin_are_allowed(void **state)
{
	static const struct {
		const char *entry;
		bool allowed;
	} cases[] = {
		{ "/home/bin", true },
		{ "/home/bin/", true },
		{ "/home/bin/x", false },
		{ "/home", false },
		{ "/usr", true },
		{ "/usr/bin", true },
		{ "/usr/local/go/bin", true },
		{ "/usr/", true },
		{ "/usrx", false },
		{ "/usrx/bin", false },
		{ "/bin", true },
		{ "/binx", false },
		{ "/sbin", true },
		{ "/nix/store/a/bin", true },
		{ "/nixos", false },
		{ "/run/current-system/sw", true },
		{ "/run/current-system/sw/bin", true },
		{ "/run/current-system", false },
		{ "/run", false },
		{ "/root/bin", false },
		{ "/opt/bin", false },
		{ "/tmp", false },
		{ "/", false },
		{ "", false },
		{ ".", false },
		{ "usr/bin", false },
		{ "/usr/../tmp", false },
		{ "/usr/./bin", true },
		{ "/usr/bin/../../home/evil", false },
		{ "/tmp/../usr/bin", true },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		if (host_env_path_allowed(cases[i].entry, "/home/bin") != cases[i].allowed)
			fail_msg("%s", cases[i].entry);
	}
	assert_false(host_env_path_allowed("", ""));
	assert_false(host_env_path_allowed("/home/bin", ""));
	assert_true(host_env_path_allowed("/bin", ""));
}

static void the_path_is_built_in_order(void **state)
{
	static const struct {
		const char *home, *user_shims, *host_path, *path;
	} cases[] = {
		{ "/h", "/h/users/u/.mise-tools/shims", "/usr/games:/usr/bin",
		  "/h/users/u/.mise-tools/shims:/h/.mise-tools/shims:/h/bin:/usr/games:/usr/bin:"
		  "/run/current-system/sw/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/"
		  "bin" },
		{ "/h", "", NULL, "/h/.mise-tools/shims:/h/bin:" STANDARD },
		{ "", "", "", STANDARD },
		{ "", "", "/bin:/usr/bin:/sbin",
		  "/bin:/usr/bin:/sbin:/run/current-system/sw/bin:/usr/local/sbin:/usr/local/bin:"
		  "/usr/sbin" },
		/* what could name a place that a command or its user writes to */
		{ "/h", "", ":.:bin:/home/me/bin:/tmp::/usr/../tmp:~/bin:/workspace/bin",
		  "/h/.mise-tools/shims:/h/bin:" STANDARD },
		/* repeats, in other spellings too */
		{ "/h/", "/h/.mise-tools/shims", "/h/bin/:/usr//games/:/usr/games",
		  "/h/.mise-tools/shims:/h/bin:/usr/games:" STANDARD },
		/* a colon inside an entry of ours, a relative one */
		{ "/h:.", "", NULL, STANDARD },
		{ "h", "shims", NULL, STANDARD },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *path =
			host_env_build_path(cases[i].home, cases[i].user_shims, cases[i].host_path);

		assert_string_equal(path, cases[i].path);
	}
}

static void only_listed_variables_that_are_not_empty_are_copied(void **state)
{
	static const char *const host[] = {
		"TERM=xterm",
		"COLORTERM=",
		"LANG=de_DE.UTF-8",
		"LC_ALL=C",
		"LC_CTYPE=C.UTF-8",
		"LC_MESSAGES=C",
		"TZ=UTC",
		"HTTP_PROXY=1",
		"HTTPS_PROXY=2",
		"NO_PROXY=3",
		"ALL_PROXY=4",
		"http_proxy=5",
		"https_proxy=6",
		"no_proxy=7",
		"all_proxy=8=8",
		"FTP_PROXY=9",
		"PATH=/x",
		"HOME=/root",
		"TERMINFO=/x",
		"TERM=second",
		"term=x",
		"LD_PRELOAD=/x.so",
		"STELLA_VAULT_KEY=k",
		"malformed",
		"=x",
		NULL,
	};
	static const char *const expected[] = {
		"TERM",	       "xterm",	  "LANG",	 "de_DE.UTF-8", "LC_ALL",     "C",
		"LC_CTYPE",    "C.UTF-8", "TZ",		 "UTC",		"HTTP_PROXY", "1",
		"HTTPS_PROXY", "2",	  "NO_PROXY",	 "3",		"ALL_PROXY",  "4",
		"http_proxy",  "5",	  "https_proxy", "6",		"no_proxy",   "7",
		"all_proxy",   "8=8",
	};
	g_autoptr(GHashTable) env = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

	(void)state;
	host_env_copy(NULL, env);
	assert_int_equal(g_hash_table_size(env), 0);
	g_hash_table_insert(env, g_strdup("TERM"), g_strdup("before"));
	host_env_copy(host, env);
	assert_int_equal(g_hash_table_size(env), G_N_ELEMENTS(expected) / 2);
	for (size_t i = 0; i < G_N_ELEMENTS(expected); i += 2) {
		const char *value = g_hash_table_lookup(env, expected[i]);

		assert_non_null(value);
		assert_string_equal(value, expected[i + 1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_system_directories_and_bin_are_allowed),
		cmocka_unit_test(the_path_is_built_in_order),
		cmocka_unit_test(only_listed_variables_that_are_not_empty_are_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
