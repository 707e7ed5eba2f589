/* Judges a policy by its structure.
 *
 * Host paths are not looked at: a policy is as valid on another machine. What a reader cannot express
 * (a NUL in a path) is refused there. Every message begins with the key, so that a person finds the
 * place in a long policy. */
#include "common/limits.h"
#include "common/path-util.h"
#include "common/policy.h"
#include "common/quote.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static int refuse(char **reterr_message, const char *format, ...) G_GNUC_PRINTF(2, 3);

static int refuse(char **reterr_message, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*reterr_message = g_strdup_vprintf(format, args);
	va_end(args);
	return -EINVAL;
}

/* As refuse(), with the value behind the sentence. */
static int refuse_value(char **reterr_message, const char *key, const char *expected,
			const char *value)
{
	g_autofree char *shown = quote_text(value);

	return refuse(reterr_message, "%s: expected %s, got %s", key, expected, shown);
}

static bool names_are_short(const char *path)
{
	const char *name;
	size_t length;

	while ((name = path_next(&path, &length))) {
		if (length > LIMIT_NAME_BYTES)
			return false;
	}
	return true;
}

static int check_path(const char *key, const char *path, char **reterr_message)
{
	g_autofree char *clean = path_clean(path);

	if (path[0] == '\0')
		return refuse(reterr_message, "%s: is empty, expected an absolute path", key);
	if (!g_utf8_validate(path, -1, NULL)) /* a policy is JSON on its way to the gateway */
		return refuse_value(reterr_message, key, "valid UTF-8", path);
	if (!clean)
		return refuse_value(reterr_message, key, "an absolute path", path);
	if (strcmp(clean, path) != 0)
		return refuse_value(reterr_message, key, "a path without //, . and ..", path);
	if (strlen(path) >= LIMIT_PATH_BYTES)
		return refuse(reterr_message, "%s: is longer than %d bytes", key,
			      LIMIT_PATH_BYTES - 1);
	if (!names_are_short(path))
		return refuse(reterr_message, "%s: has a name longer than %d bytes", key,
			      LIMIT_NAME_BYTES);
	return 0;
}

/* "" stands for "not given". */
static int check_optional_path(const char *key, const char *path, char **reterr_message)
{
	return path[0] == '\0' ? 0 : check_path(key, path, reterr_message);
}

/* Every sandbox has its own kernel file systems at these places. */
static int check_reserved(const char *key, const char *view_path, char **reterr_message)
{
	static const char *const reserved[] = { "/proc", "/dev", "/sys" };

	if (strcmp(view_path, "/") == 0)
		return refuse(reterr_message, "%s: \"/\" is the view itself, name a place below it",
			      key);
	for (size_t i = 0; i < G_N_ELEMENTS(reserved); i++) {
		if (path_is_below(view_path, reserved[i])) {
			g_autofree char *shown = quote_text(view_path);

			return refuse(reterr_message,
				      "%s: %s lies in %s, which the view keeps for itself", key,
				      shown, reserved[i]);
		}
	}
	return 0;
}

/* What administrators install for an agent must not be changed by it. */
static bool is_always_read_only(const char *view_path)
{
	return strcmp(view_path, STELLA_MOUNT_AGENT_SKILLS) == 0 ||
	       strcmp(view_path, STELLA_MOUNT_SYSTEM_DB_SKILLS) == 0;
}

/* What comes from JSON is one of the words; a host agent's struct may hold any number. */
static int check_word(const char *key, const PolicyWords *words, int value, char **reterr_message)
{
	g_autofree char *expected = NULL;

	if (value >= 0 && value < words->count)
		return 0;
	expected = policy_words_expected(words, true);
	return refuse(reterr_message, "%s: expected %s, got the number %d", key, expected, value);
}

static int check_words(const StellaPolicy *policy, char **reterr_message)
{
	const struct {
		const char *key;
		const PolicyWords *words;
		int value;
	} rows[] = {
		{ "filesystem.runtime", &policy_runtime_words, (int)policy->runtime },
		{ "filesystem.symlinks", &policy_symlinks_words, (int)policy->symlinks },
		{ "filesystem.cache", &policy_cache_words, (int)policy->cache },
		{ "filesystem.ownership", &policy_ownership_words, (int)policy->ownership },
		{ "network.mode", &policy_network_words, (int)policy->network_mode },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(rows); i++)
		r = check_word(rows[i].key, rows[i].words, rows[i].value, reterr_message);
	return r;
}

static int check_mount(const PolicyMount *mount, unsigned int i, char **reterr_message)
{
	g_autofree char *host_key = g_strdup_printf("filesystem.mounts[%u].host_path", i);
	g_autofree char *view_key = g_strdup_printf("filesystem.mounts[%u].view_path", i);
	g_autofree char *access_key = g_strdup_printf("filesystem.mounts[%u].access", i);
	int r;

	if ((r = check_path(host_key, mount->host_path, reterr_message)) < 0)
		return r;
	if ((r = check_path(view_key, mount->view_path, reterr_message)) < 0)
		return r;
	if ((r = check_reserved(view_key, mount->view_path, reterr_message)) < 0)
		return r;
	if ((r = check_word(access_key, &policy_access_words, (int)mount->access, reterr_message)) <
	    0)
		return r;
	if (mount->access != STELLA_MOUNT_READ_ONLY && is_always_read_only(mount->view_path))
		return refuse(reterr_message,
			      "%s: %s is always read-only, expected \"ro\", got \"%s\"", access_key,
			      mount->view_path, policy_access_name(mount->access));
	return 0;
}

static int check_mounts(const StellaPolicy *policy, char **reterr_message)
{
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

	if (policy->mounts->len > LIMIT_MOUNTS)
		return refuse(reterr_message, "filesystem.mounts: has %u rows, at most %d work",
			      policy->mounts->len, LIMIT_MOUNTS);
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		const PolicyMount *mount = policy->mounts->pdata[i];
		gpointer first;
		int r = check_mount(mount, i, reterr_message);

		if (r < 0)
			return r;
		if (g_hash_table_lookup_extended(seen, mount->view_path, NULL, &first)) {
			g_autofree char *shown = quote_text(mount->view_path);

			return refuse(reterr_message,
				      "filesystem.mounts[%u].view_path: %s is the view path of "
				      "filesystem.mounts[%u] already",
				      i, shown, GPOINTER_TO_UINT(first));
		}
		g_hash_table_insert(seen, mount->view_path, GUINT_TO_POINTER(i));
	}
	return 0;
}

static bool is_user_id(const char *id, size_t length)
{
	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!g_ascii_isalnum(id[i]) && id[i] != '_' && id[i] != '-')
			return false;
	}
	return true;
}

/* The relative links between a user's tools and the system's hold only at this place. */
static int check_user_tools(const StellaPolicy *policy, char **reterr_message)
{
	const char *key = "filesystem.user_tools_dir", *dir = policy->user_tools_dir, *rest, *name;
	size_t length;

	if (dir[0] == '\0')
		return 0;
	if (policy->stella_home[0] == '\0')
		return refuse(reterr_message, "%s: needs filesystem.stella_home", key);
	if (path_is_below(dir, policy->stella_home)) {
		rest = path_below(dir, policy->stella_home);
		name = path_next(&rest, &length);
		if (name && length == strlen("users") && strncmp(name, "users", length) == 0 &&
		    (name = path_next(&rest, &length)) && is_user_id(name, length) &&
		    strcmp(rest, "/.mise-tools") == 0)
			return 0;
	}
	return refuse_value(reterr_message, key, "STELLA_HOME/users/ID/.mise-tools", dir);
}

static int check_globs(const char *key, const GPtrArray *globs, char **reterr_message)
{
	for (unsigned int i = 0; i < globs->len; i++) {
		const char *glob = globs->pdata[i], *rest = glob, *name;
		g_autofree char *row = g_strdup_printf("%s[%u]", key, i);
		size_t length;

		if (glob[0] == '\0')
			return refuse(reterr_message, "%s: is empty, expected a pattern", row);
		if (!g_utf8_validate(glob, -1, NULL))
			return refuse_value(reterr_message, row, "valid UTF-8", glob);
		if (strlen(glob) >= LIMIT_PATH_BYTES)
			return refuse(reterr_message, "%s: is longer than %d bytes", row,
				      LIMIT_PATH_BYTES - 1);
		while ((name = path_next(&rest, &length))) {
			if (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')))
				return refuse_value(reterr_message, row,
						    "a pattern without . and ..", glob);
		}
	}
	return 0;
}

static int check_filesystem(const StellaPolicy *policy, char **reterr_message)
{
	const struct {
		const char *key, *path;
	} paths[] = {
		{ "filesystem.workspace_root", policy->workspace_root },
		{ "filesystem.stella_home", policy->stella_home },
		{ "filesystem.user_tools_dir", policy->user_tools_dir },
		{ "filesystem.temp_dir_host", policy->temp_dir_host },
	};
	int r;

	if (policy->working_dir[0] == '\0')
		return refuse(reterr_message, "filesystem.working_dir: required");
	r = check_path("filesystem.working_dir", policy->working_dir, reterr_message);
	for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(paths); i++)
		r = check_optional_path(paths[i].key, paths[i].path, reterr_message);
	if (r == 0)
		r = check_mounts(policy, reterr_message);
	if (r == 0)
		r = check_user_tools(policy, reterr_message);
	if (r == 0)
		r = check_globs("filesystem.hide", policy->hide, reterr_message);
	if (r == 0)
		r = check_globs("filesystem.protect", policy->protect, reterr_message);
	return r;
}

static int check_env(const StellaPolicy *policy, char **reterr_message)
{
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

	for (unsigned int i = 0; i < policy->env->len; i++) {
		const PolicyEnv *env = policy->env->pdata[i];
		g_autofree char *shown = quote_text(env->name);

		if (env->name[0] == '\0')
			return refuse(reterr_message, "env: a name is empty");
		if (strchr(env->name, '='))
			return refuse(reterr_message, "env: the name %s has a \"=\" in it", shown);
		if (!g_utf8_validate(env->name, -1, NULL) || !g_utf8_validate(env->value, -1, NULL))
			return refuse(reterr_message, "env: %s is not valid UTF-8", shown);
		if (!g_hash_table_add(seen, env->name))
			return refuse(reterr_message, "env: %s is given twice", shown);
	}
	return 0;
}

static int check_timeout(const char *key, int64_t timeout_ms, char **reterr_message)
{
	if (timeout_ms < 0 || timeout_ms > POLICY_TIMEOUT_MS_MAX)
		return refuse(reterr_message,
			      "%s: expected an integer from 0 to %" G_GINT64_FORMAT
			      ", got %" G_GINT64_FORMAT,
			      key, POLICY_TIMEOUT_MS_MAX, timeout_ms);
	return 0;
}

static int check_limits(const StellaPolicy *policy, char **reterr_message)
{
	PolicyLimits limits = policy->limits;

	for (const PolicyLimit *row = policy_limits; row->name; row++) {
		uint64_t value = *policy_limit_field(&limits, row);

		if (value < row->min || value > row->max)
			return refuse(reterr_message,
				      "limits.%s: expected an integer from %" G_GUINT64_FORMAT
				      " to %" G_GUINT64_FORMAT ", got %" G_GUINT64_FORMAT,
				      row->name, row->min, row->max, value);
	}
	if (limits.tail_bytes > limits.output_bytes)
		return refuse(reterr_message,
			      "limits.tail_bytes: expected at most limits.output_bytes "
			      "(%" G_GUINT64_FORMAT "), got %" G_GUINT64_FORMAT,
			      limits.output_bytes, limits.tail_bytes);
	return 0;
}

int policy_validate(const StellaPolicy *policy, char **reterr_message)
{
	int r;

	if (policy->is_unreadable)
		return refuse(
			reterr_message,
			"StellaPolicyOptions: its size is none, or more is set in it than this "
			"version knows; use its init function, or a newer version");
	r = check_words(policy, reterr_message);

	if (r == 0)
		r = check_filesystem(policy, reterr_message);
	if (r == 0)
		r = check_timeout("network.timeout_ms", policy->network_timeout_ms, reterr_message);
	if (r == 0)
		r = check_env(policy, reterr_message);
	if (r == 0)
		r = check_timeout("timeout_ms", policy->timeout_ms, reterr_message);
	if (r == 0 && policy->process_uid == (uid_t)-1)
		r = refuse(reterr_message, "process.user: %u is no user id", policy->process_uid);
	if (r == 0)
		r = check_limits(policy, reterr_message);
	return r;
}

char *policy_message_key(const char *message)
{
	size_t length = strcspn(message, " ");

	if (!g_ascii_islower(message[0])) /* an option or a path */
		return NULL;
	if (message[length - 1] == ':')
		return g_strndup(message, length - 1);
	/* with the value behind it, which other subjects may have too: `policy "FILE": ...` */
	if (g_str_has_prefix(message + length, " \"") && memchr(message, '.', length))
		return g_strndup(message, length);
	return NULL;
}
