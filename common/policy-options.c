/* The command line's way to a policy; see policy-options.h.
 *
 * Options are only collected while they come, in any order; policy_options_finish() decides. What they
 * make is judged by policy_validate() like a policy from a file, so that the two ways cannot differ in what
 * they allow. */
#include "common/policy-options-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "common/policy-json.h"
#include "common/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One way to take an option. The value is NULL for an option without one. */
typedef int (*TakeOption)(PolicyOptions *options, const char *name, const char *value,
			  char **reterr_message);

typedef struct {
	const char *name;
	TakeOption take;
	bool has_value;
	bool repeats;
	bool beside_policy; /* allowed together with --policy */
} Option;

static int refuse(char **reterr_message, const char *format, ...) G_GNUC_PRINTF(2, 3);

static int refuse(char **reterr_message, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*reterr_message = g_strdup_vprintf(format, args);
	va_end(args);
	return -EINVAL;
}

static void mount_option_free(gpointer data)
{
	MountOption *mount = data;

	g_free(mount->text);
	g_free(mount);
}

PolicyOptions *policy_options_new(PolicyPurpose purpose)
{
	PolicyOptions *options = g_new0(PolicyOptions, 1);

	options->purpose = purpose;
	options->given = g_hash_table_new(g_str_hash, g_str_equal);
	options->mounts = g_ptr_array_new_with_free_func(mount_option_free);
	options->limits = g_array_new(FALSE, FALSE, sizeof(LimitOption));
	options->spill = options->required = -1;
	options->runtime = POLICY_RUNTIME_DEFAULT;
	options->symlinks = POLICY_SYMLINKS_CONTAINED;
	options->cache = POLICY_CACHE_AUTO;
	return options;
}

void policy_options_free(PolicyOptions *options)
{
	if (!options)
		return;
	g_hash_table_unref(options->given);
	g_free(options->policy_file);
	g_free(options->workspace);
	g_free(options->user_dir);
	g_free(options->stella_home);
	g_free(options->backend);
	g_ptr_array_unref(options->mounts);
	g_array_unref(options->limits);
	g_free(options);
}

static int take_text(char **field, const char *name, const char *value, char **reterr_message)
{
	if (value[0] == '\0')
		return refuse(reterr_message, "%s: is empty", name);
	*field = g_strdup(value);
	return 0;
}

static int take_policy(PolicyOptions *options, const char *name, const char *value,
		       char **reterr_message)
{
	return take_text(&options->policy_file, name, value, reterr_message);
}

static int take_workspace(PolicyOptions *options, const char *name, const char *value,
			  char **reterr_message)
{
	return take_text(&options->workspace, name, value, reterr_message);
}

static int take_user_dir(PolicyOptions *options, const char *name, const char *value,
			 char **reterr_message)
{
	return take_text(&options->user_dir, name, value, reterr_message);
}

static int take_stella_home(PolicyOptions *options, const char *name, const char *value,
			    char **reterr_message)
{
	return take_text(&options->stella_home, name, value, reterr_message);
}

static int take_backend(PolicyOptions *options, const char *name, const char *value,
			char **reterr_message)
{
	return take_text(&options->backend, name, value, reterr_message);
}

static int take_mount(PolicyOptions *options, StellaMountAccess access, const char *name,
		      const char *value, char **reterr_message)
{
	MountOption *mount;

	if (value[0] == '\0' || g_str_has_prefix(value, ":/"))
		return refuse(reterr_message, "%s: expected HOST or HOST:VIEW", name);
	mount = g_new0(MountOption, 1);
	mount->access = access;
	mount->text = g_strdup(value);
	g_ptr_array_add(options->mounts, mount);
	return 0;
}

static int take_ro(PolicyOptions *options, const char *name, const char *value,
		   char **reterr_message)
{
	return take_mount(options, STELLA_MOUNT_READ_ONLY, name, value, reterr_message);
}

static int take_rw(PolicyOptions *options, const char *name, const char *value,
		   char **reterr_message)
{
	return take_mount(options, STELLA_MOUNT_READ_WRITE, name, value, reterr_message);
}

static int take_same_path(PolicyOptions *options, const char *name, const char *value,
			  char **reterr_message)
{
	(void)name;
	(void)value;
	(void)reterr_message;
	options->same_path = true;
	return 0;
}

static int take_no_network(PolicyOptions *options, const char *name, const char *value,
			   char **reterr_message)
{
	(void)name;
	(void)value;
	(void)reterr_message;
	options->no_network = true;
	return 0;
}

static int take_word(int *field, const PolicyWords *words, const char *name, const char *value,
		     char **reterr_message)
{
	int found = policy_words_find(words, value);

	if (found < 0) {
		g_autofree char *expected = policy_words_expected(words, false);
		g_autofree char *shown = quote_key(value);

		return refuse(reterr_message, "%s: expected %s, got '%s'", name, expected, shown);
	}
	*field = found;
	return 0;
}

static int take_runtime(PolicyOptions *options, const char *name, const char *value,
			char **reterr_message)
{
	return take_word(&options->runtime, &policy_runtime_words, name, value, reterr_message);
}

static int take_symlinks(PolicyOptions *options, const char *name, const char *value,
			 char **reterr_message)
{
	return take_word(&options->symlinks, &policy_symlinks_words, name, value, reterr_message);
}

static int take_cache(PolicyOptions *options, const char *name, const char *value,
		      char **reterr_message)
{
	return take_word(&options->cache, &policy_cache_words, name, value, reterr_message);
}

/* Digits, for a size with one of K, M, G behind them. False when it is none or does not fit. */
static bool parse_amount(const char *text, bool is_size, uint64_t *ret_value)
{
	static const char suffixes[] = "KMG";
	uint64_t value = 0, unit = 1;
	const char *suffix;

	if (!g_ascii_isdigit(*text))
		return false;
	for (; g_ascii_isdigit(*text); text++) {
		if (!g_uint64_checked_mul(&value, value, 10) ||
		    !g_uint64_checked_add(&value, value, (uint64_t)(*text - '0')))
			return false;
	}
	if (*text && is_size && (suffix = strchr(suffixes, g_ascii_toupper(*text)))) {
		unit = UINT64_C(1) << (10 * (suffix - suffixes + 1));
		text++;
	}
	return *text == '\0' && g_uint64_checked_mul(ret_value, value, unit);
}

static int take_switch(int *field, const char *limit, const char *value, char **reterr_message)
{
	g_autofree char *shown = quote_key(value);

	if (*field >= 0)
		return refuse(reterr_message, "--limit %s: given twice", limit);
	if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return refuse(reterr_message, "--limit %s: expected true or false, got '%s'", limit,
			      shown);
	*field = strcmp(value, "true") == 0;
	return 0;
}

static int refuse_limit_name(const char *name, char **reterr_message)
{
	g_autoptr(GString) known = g_string_new(NULL);
	g_autofree char *shown = quote_key(name);

	for (const PolicyLimit *row = policy_limits; row->name; row++)
		g_string_append_printf(known, "%s, ", row->name);
	return refuse(reterr_message, "--limit: '%s' is none of %sspill and required", shown,
		      known->str);
}

static int take_limit(PolicyOptions *options, const char *name, const char *value,
		      char **reterr_message)
{
	const char *equals = strchr(value, '=');
	g_autofree char *limit = NULL;
	g_autofree char *shown = NULL;
	LimitOption taken = { .row = policy_limits };

	if (!equals)
		return refuse(reterr_message, "%s: expected NAME=VALUE", name);
	limit = g_strndup(value, (gsize)(equals - value));
	value = equals + 1;
	if (strcmp(limit, "spill") == 0)
		return take_switch(&options->spill, limit, value, reterr_message);
	if (strcmp(limit, "required") == 0)
		return take_switch(&options->required, limit, value, reterr_message);
	while (taken.row->name && strcmp(taken.row->name, limit) != 0)
		taken.row++;
	if (!taken.row->name)
		return refuse_limit_name(limit, reterr_message);
	for (unsigned int i = 0; i < options->limits->len; i++) {
		if (g_array_index(options->limits, LimitOption, i).row == taken.row)
			return refuse(reterr_message, "--limit %s: given twice", limit);
	}
	shown = quote_key(value);
	if (!parse_amount(value, taken.row->is_size, &taken.value) ||
	    taken.value < taken.row->min || taken.value > taken.row->max)
		return refuse(reterr_message,
			      "--limit %s: expected %s from %" G_GUINT64_FORMAT
			      " to %" G_GUINT64_FORMAT ", got '%s'",
			      limit,
			      taken.row->is_size ? "a size (10485760, 512K, 10M, 1G)"
						 : "an integer",
			      taken.row->min, taken.row->max, shown);
	g_array_append_val(options->limits, taken);
	return 0;
}

static const Option known_options[] = {
	{ "--policy", take_policy, .has_value = true, .beside_policy = true },
	{ "--workspace", take_workspace, .has_value = true },
	{ "--user-dir", take_user_dir, .has_value = true },
	{ "--stella-home", take_stella_home, .has_value = true },
	{ "--ro", take_ro, .has_value = true, .repeats = true },
	{ "--rw", take_rw, .has_value = true, .repeats = true },
	{ "--same-path", take_same_path, .has_value = false },
	{ "--no-network", take_no_network, .beside_policy = true },
	{ "--runtime", take_runtime, .has_value = true },
	{ "--symlinks", take_symlinks, .has_value = true },
	{ "--cache", take_cache, .has_value = true },
	{ "--limit", take_limit, .has_value = true, .repeats = true, .beside_policy = true },
	{ "--backend", take_backend, .has_value = true, .beside_policy = true },
};

static const Option *find_option(const char *argument, size_t length)
{
	for (size_t i = 0; i < G_N_ELEMENTS(known_options); i++) {
		if (strlen(known_options[i].name) == length &&
		    strncmp(known_options[i].name, argument, length) == 0)
			return &known_options[i];
	}
	return NULL;
}

int policy_options_take(PolicyOptions *options, int argc, char **argv, int *index,
			char **reterr_message)
{
	const char *argument = argv[*index], *value = NULL;
	size_t length = strcspn(argument, "=");
	const Option *option = find_option(argument, length);
	int r;

	if (!option)
		return 0;
	if (argument[length] == '=')
		value = argument + length + 1;
	if (value && !option->has_value)
		return refuse(reterr_message, "%s: takes no value", option->name);
	if (!value && option->has_value) {
		if (*index + 1 >= argc)
			return refuse(reterr_message, "%s: needs a value", option->name);
		value = argv[++*index];
	}
	if (!g_hash_table_add(options->given, (gpointer)(uintptr_t)option->name) &&
	    !option->repeats)
		return refuse(reterr_message, "%s: given twice", option->name);
	r = option->take(options, option->name, value, reterr_message);
	return r < 0 ? r : 1;
}

/* Reads a policy file; a pipe too, for `--policy <(command)`. */
static int read_policy_file(const char *file, StellaPolicy **ret_policy, char **reterr_message)
{
	FD_AUTO fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	g_autofree char *shown = path_escape(file);
	g_autofree char *why = NULL;
	g_autofree char *text = NULL;
	struct stat st;
	size_t size;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) != 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	if (r == 0 && !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
		*reterr_message = g_strdup_printf(
			"--policy \"%s\": is neither a regular file nor a pipe", shown);
		return -EINVAL;
	}
	if (r == 0)
		r = io_read_to_end(fd, LIMIT_POLICY_BYTES, &text, &size);
	if (r == -EFBIG) {
		*reterr_message = g_strdup_printf("--policy \"%s\": is larger than %d bytes", shown,
						  LIMIT_POLICY_BYTES);
		return -E2BIG;
	}
	if (r < 0) {
		*reterr_message = g_strdup_printf("--policy \"%s\": %s", shown, errno_text(-r));
		return r;
	}
	r = policy_json_parse(text, size, ret_policy, &why);
	if (r < 0)
		*reterr_message = g_strdup_printf("policy \"%s\": %s", shown, why);
	return r;
}

/* Adds the mount of an option. HOST[:VIEW] is split at its last ":/": view paths are absolute, so that
 * a host path may have colons; one with ":/" in it needs its VIEW written out. */
static void add_mount_option(StellaPolicy *policy, const MountOption *mount, const char *cwd)
{
	const char *colon = g_strrstr(mount->text, ":/");
	g_autofree char *host = NULL;
	g_autofree char *path = NULL;

	host = colon ? g_strndup(mount->text, (gsize)(colon - mount->text)) : g_strdup(mount->text);
	path = path_clean_from(cwd, host);
	policy_add_mount(policy, path, colon ? colon + 1 : path, mount->access);
}

/* A message about a row that an option made, with the option in place of the key. */
static void name_option(const PolicyOptions *options, const StellaPolicy *policy,
			char **reterr_message)
{
	unsigned int first = policy->mounts->len - options->mounts->len;

	for (unsigned int i = 0; i < options->mounts->len; i++) {
		const MountOption *mount = options->mounts->pdata[i];
		g_autofree char *key = g_strdup_printf("filesystem.mounts[%u].", first + i);
		g_autofree char *shown = NULL;
		const char *what = strstr(*reterr_message, ": ");

		if (!what || !g_str_has_prefix(*reterr_message, key))
			continue;
		shown = quote_text(mount->text);
		what = g_strdup_printf("%s %s%s",
				       mount->access == STELLA_MOUNT_READ_ONLY ? "--ro" : "--rw",
				       shown, what);
		g_free(*reterr_message);
		*reterr_message = (char *)(uintptr_t)what;
		return;
	}
}

static int make_policy(const PolicyOptions *options, StellaPolicy *policy, char **reterr_message)
{
	char cwd[PATH_MAX];
	g_autofree char *workspace = NULL;

	if (!getcwd(cwd, sizeof cwd))
		return refuse(reterr_message, "the current directory: %s", errno_text(errno));
	if (cwd[0] != '/') /* the kernel says "(unreachable)" of one that lies outside our root */
		return refuse(reterr_message, "the current directory: not reachable from here");
	workspace = path_clean_from(cwd, options->workspace ? options->workspace : ".");
	policy_set_path(&policy->workspace_root, workspace);
	policy_set_path(&policy->working_dir, STELLA_MOUNT_WORKSPACE);
	policy_add_mount(policy, workspace, STELLA_MOUNT_WORKSPACE, STELLA_MOUNT_READ_WRITE);
	if (options->same_path && strcmp(workspace, STELLA_MOUNT_WORKSPACE) != 0) {
		policy_add_mount(policy, workspace, workspace, STELLA_MOUNT_READ_WRITE);
		policy_set_path(&policy->working_dir, workspace);
	}
	if (options->user_dir) {
		g_autofree char *path = path_clean_from(cwd, options->user_dir);

		policy_add_mount(policy, path, STELLA_MOUNT_USER_DATA, STELLA_MOUNT_READ_WRITE);
	}
	if (options->stella_home) {
		g_autofree char *path = path_clean_from(cwd, options->stella_home);

		policy_set_path(&policy->stella_home, path);
	}
	for (unsigned int i = 0; i < options->mounts->len; i++)
		add_mount_option(policy, options->mounts->pdata[i], cwd);
	policy->runtime = (PolicyRuntime)options->runtime;
	policy->symlinks = (PolicySymlinks)options->symlinks;
	policy->cache = (PolicyCache)options->cache;
	if (options->purpose == POLICY_FOR_COMMANDS) {
		policy->limits.cpu_seconds = 0;
		policy->limits.file_size_bytes = 0;
		policy->limits.open_files = 0;
		/* So that the caches and settings of tools do not land in the project. */
		policy_add_env(policy, "HOME", STELLA_MOUNT_USER_DATA);
		policy->env_override = true;
	}
	return 0;
}

static int check_beside_policy(const PolicyOptions *options, char **reterr_message)
{
	for (size_t i = 0; i < G_N_ELEMENTS(known_options); i++) {
		if (!known_options[i].beside_policy &&
		    g_hash_table_contains(options->given, known_options[i].name))
			return refuse(reterr_message, "%s: cannot be used together with --policy",
				      known_options[i].name);
	}
	return 0;
}

static void apply_limits(const PolicyOptions *options, StellaPolicy *policy)
{
	for (unsigned int i = 0; i < options->limits->len; i++) {
		const LimitOption *limit = &g_array_index(options->limits, LimitOption, i);

		*policy_limit_field(&policy->limits, limit->row) = limit->value;
	}
	if (options->spill >= 0)
		policy->limits.spill = options->spill;
	if (options->required >= 0)
		policy->limits.required = options->required;
}

static bool has_user_data(const StellaPolicy *policy)
{
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		const PolicyMount *mount = policy->mounts->pdata[i];

		if (strcmp(mount->view_path, STELLA_MOUNT_USER_DATA) == 0)
			return true;
	}
	return false;
}

int policy_options_finish(PolicyOptions *options, StellaPolicy **ret_policy, char **reterr_message)
{
	g_autoptr(StellaPolicy) policy = NULL;
	int r;

	if (options->policy_file) {
		if ((r = check_beside_policy(options, reterr_message)) < 0)
			return r;
		r = read_policy_file(options->policy_file, &policy, reterr_message);
	} else {
		policy = policy_new_defaults();
		r = make_policy(options, policy, reterr_message);
	}
	if (r < 0)
		return r;
	apply_limits(options, policy);
	if (options->no_network)
		policy->network_mode = STELLA_NETWORK_DISABLED;
	if ((r = policy_validate(policy, reterr_message)) < 0) {
		if (!options->policy_file)
			name_option(options, policy, reterr_message);
		return r;
	}
	options->user_is_temporary = options->purpose == POLICY_FOR_COMMANDS &&
				     !options->policy_file && !has_user_data(policy);
	*ret_policy = g_steal_pointer(&policy);
	return 0;
}

const char *policy_options_backend(const PolicyOptions *options)
{
	return options->backend;
}

bool policy_options_user_is_temporary(const PolicyOptions *options)
{
	return options->user_is_temporary;
}
