/* The deny list of inherited variables; see env-filter.h. To extend it add a row below its
 * reason. */
#include "common/env-filter.h"

#include <glib.h>
#include <string.h>

static const EnvFilterRule rules[] = {
	/* Our own settings, and those of the service that we run in. */
	{ "STELLA_*", false },
	/* Tool trees are declared by the policy; the caller's would lead mise to host paths, trust
	 * and tokens. */
	{ "MISE_*", false },
	/* What an activated shell keeps of its state: old values of variables among it. */
	{ "__MISE_*", false },

	/* Code that the dynamic loader and the C library load, or files that they read. */
	{ "LD_*", false },
	{ "GLIBC_TUNABLES", false },
	{ "GCONV_PATH", false },
	{ "GETCONF_DIR", false },
	{ "LOCPATH", false },
	{ "NLSPATH", false },
	{ "TZDIR", false },
	{ "MALLOC_*", false },
	{ "HOSTALIASES", false },
	{ "LOCALDOMAIN", false },
	{ "RES_OPTIONS", false },
	{ "RESOLV_*", false },

	/* Code and options that shells take over at their start. */
	{ "BASH_ENV", false },
	{ "ENV", false },
	{ "BASH_FUNC_*", false },
	{ "BASHOPTS", false },
	{ "SHELLOPTS", false },
	{ "PROMPT_COMMAND", false },
	{ "PS4", false },
	{ "IFS", false },
	{ "CDPATH", false },
	{ "GLOBIGNORE", false },
	{ "ZDOTDIR", false },
	{ "FPATH", false },

	/* The same of interpreters. */
	{ "PYTHON*", false },
	{ "NODE_OPTIONS", false },
	{ "NODE_PATH", false },
	{ "PERL5*", false },
	{ "PERLLIB", false },
	{ "PERLIO*", false },
	{ "RUBYOPT", false },
	{ "RUBYLIB", false },
	{ "LUA_*", false },
	{ "PHPRC", false },
	{ "PHP_INI_SCAN_DIR", false },
	{ "JAVA_TOOL_OPTIONS", false },
	{ "JDK_JAVA_OPTIONS", false },
	{ "_JAVA_OPTIONS", false },
	{ "CLASSPATH", false },

	/* Programs that others start, with their arguments. */
	{ "GIT_*", false },
	{ "SSH_*", false },
	{ "*_ASKPASS", false },
	{ "LESSOPEN", false },
	{ "LESSCLOSE", false },
	{ "RUSTC_WRAPPER", false },
	{ "MAKEFLAGS", false }, /* with the fds of the caller's job server */
	{ "MFLAGS", false },
	{ "MAKELEVEL", false },

	/* Ways to the host's services: sockets, displays, clusters, service managers. */
	{ "GPG_*", false },
	{ "GNUPGHOME", false },
	{ "DBUS_*", false },
	{ "DOCKER_*", false },
	{ "CONTAINER_HOST", false },
	{ "KUBECONFIG", false },
	{ "KUBERNETES_*", false },
	{ "XDG_RUNTIME_DIR", false },
	{ "XDG_SESSION_*", false },
	{ "DISPLAY", false },
	{ "XAUTHORITY", false },
	{ "WAYLAND_*", false },
	{ "TMUX*", false },
	{ "NOTIFY_SOCKET", false },
	{ "LISTEN_*", false },
	{ "WATCHDOG_*", false },
	{ "CREDENTIALS_DIRECTORY", false },
	{ "JOURNAL_STREAM", false },
	{ "INVOCATION_ID", false },
	{ "MAINPID", false },

	/* Host paths and facts that mean nothing inside. */
	{ "OLDPWD", false },
	{ "_", false },
	{ "TMP", false },
	{ "TEMP", false },
	{ "TEMPDIR", false },
	{ "MAIL", false },
	{ "SUDO_*", false },

	/* What is called like a secret. */
	{ "*TOKEN", true },
	{ "*_TOKEN_*", true },
	{ "*SECRET", true },
	{ "*_SECRET_*", true },
	{ "SECRET_*", true },
	{ "*_KEY", true },
	{ "*APIKEY", true },
	{ "*_KEY_ID", true },
	{ "*PASSWORD", true },
	{ "*PASSWD", true },
	{ "*PASSPHRASE", true },
	{ "*_PASS", true },
	{ "*_PWD", true },
	{ "*_AUTH", true },
	{ "*AUTHORIZATION", true },
	{ "*CREDENTIAL", true },
	{ "*CREDENTIALS", true },
	{ "*_PAT", true },
	{ "*_COOKIE", true },
	{ "*_DSN", true },
	{ "*DATABASE_URL", true },
	{ "*CONNECTION_STRING", true },
	{ "PGPASSFILE", false },
	{ "NPM_CONFIG_*AUTH*", true },
	{ "AWS_*", true },
	{ "AZURE_*", true },
	{ "GOOGLE_*", true },
	{ "CLOUDSDK_*", true },
	{ "VAULT_*", true },
};

const EnvFilterRule *env_filter_rules(size_t *ret_count)
{
	*ret_count = G_N_ELEMENTS(rules);
	return rules;
}

/* The usual walk with one point to come back to: after a mismatch the last '*' takes one byte
 * more. */
bool env_filter_match(const char *pattern, const char *name, bool any_case)
{
	const char *star = NULL, *retry = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			retry = name;
		} else if (*pattern == *name ||
			   (any_case && g_ascii_toupper(*pattern) == g_ascii_toupper(*name))) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star + 1;
			name = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool env_filter_denied(const char *name, const char *const *extra)
{
	if (name[0] == '\0' || strchr(name, '='))
		return true;
	for (size_t i = 0; i < G_N_ELEMENTS(rules); i++) {
		if (env_filter_match(rules[i].pattern, name, rules[i].any_case))
			return true;
	}
	for (; extra && *extra; extra++) {
		if (env_filter_match(*extra, name, false))
			return true;
	}
	return false;
}
