/* The policy as a value: made with every default, copied, counted, and the words of its format.
 *
 * What a policy means is judged in policy-validate.c; how it is read and written, in policy-json*.c. */
#include "common/policy.h"

#include "common/limits.h"
#include "common/path-util.h"

#include <string.h>

/* uid and gid of "agent" inside a sandbox. */
#define UID_AGENT 1000

static const char *const access_words[] = { "ro", "rw", "cow" };
static const char *const network_words[] = { "allow_all", "disabled" };
static const char *const runtime_words[] = { NULL, "none", "host" };
static const char *const symlinks_words[] = { "contained", "deny" };
static const char *const cache_words[] = { "auto", "strict", "exclusive" };
static const char *const ownership_words[] = { "owner", "host" };

#define WORDS(array, n_told)                                                                       \
	{                                                                                          \
		.words = (array), .count = G_N_ELEMENTS(array), .told = (n_told)                   \
	}

const PolicyWords policy_access_words = WORDS(access_words, 2); /* "cow" is not told yet */
const PolicyWords policy_network_words = WORDS(network_words, 2);
const PolicyWords policy_runtime_words = WORDS(runtime_words, 3);
const PolicyWords policy_symlinks_words = WORDS(symlinks_words, 2);
const PolicyWords policy_cache_words = WORDS(cache_words, 3);
const PolicyWords policy_ownership_words = WORDS(ownership_words, 2);

#define LIMIT(field, low, high, size)                                                              \
	{                                                                                          \
#field, offsetof(PolicyLimits, field), (low), (high), (size)                       \
	}

const PolicyLimit policy_limits[] = {
	LIMIT(output_bytes, LIMIT_OUTPUT_BYTES_MIN, LIMIT_OUTPUT_BYTES_MAX, true),
	LIMIT(tail_bytes, 0, LIMIT_OUTPUT_BYTES_MAX, true),
	LIMIT(file_size_bytes, 0, INT64_MAX, true),
	LIMIT(open_files, 0, 1u << 30, false), /* the kernel's own bound of fs.nr_open */
	LIMIT(cpu_seconds, 0, INT32_MAX, false),
	LIMIT(memory_bytes, 0, INT64_MAX, true),
	LIMIT(processes, 0, 1u << 22, false), /* the kernel's own bound of pid_max */
	{ .name = NULL },
};

uint64_t *policy_limit_field(PolicyLimits *limits, const PolicyLimit *row)
{
	return (uint64_t *)(void *)((char *)limits + row->offset);
}

int policy_words_find(const PolicyWords *words, const char *word)
{
	for (int i = 0; i < words->count; i++) {
		if (words->words[i] && strcmp(words->words[i], word) == 0)
			return i;
	}
	return -1;
}

char *policy_words_expected(const PolicyWords *words, bool quoted)
{
	GString *text = g_string_new(NULL);

	for (int i = 0; i < words->told; i++) {
		if (!words->words[i])
			continue;
		if (text->len > 0)
			g_string_append(text, i == words->told - 1 ? " or " : ", ");
		g_string_append_printf(text, quoted ? "\"%s\"" : "%s", words->words[i]);
	}
	return g_string_free(text, FALSE);
}

static const char *word_of(const PolicyWords *words, int value)
{
	/* A host agent's struct may hold anything until it has been judged. */
	return value >= 0 && value < words->count ? words->words[value] : "invalid";
}

const char *policy_access_name(StellaMountAccess access)
{
	return word_of(&policy_access_words, (int)access);
}

const char *policy_network_name(StellaNetworkMode mode)
{
	return word_of(&policy_network_words, (int)mode);
}

const char *policy_runtime_name(PolicyRuntime runtime)
{
	return word_of(&policy_runtime_words, (int)runtime);
}

const char *policy_symlinks_name(PolicySymlinks symlinks)
{
	return word_of(&policy_symlinks_words, (int)symlinks);
}

const char *policy_cache_name(PolicyCache cache)
{
	return word_of(&policy_cache_words, (int)cache);
}

const char *policy_ownership_name(PolicyOwnership ownership)
{
	return word_of(&policy_ownership_words, (int)ownership);
}

bool policy_find_user(const char *name, uid_t *ret_uid)
{
	if (strcmp(name, "agent") == 0)
		*ret_uid = UID_AGENT;
	else if (strcmp(name, "root") == 0)
		*ret_uid = 0;
	else
		return false;
	return true;
}

const char *policy_user_name(uid_t uid)
{
	return uid == UID_AGENT ? "agent" : uid == 0 ? "root" : NULL;
}

static void mount_free(gpointer data)
{
	PolicyMount *mount = data;

	g_free(mount->host_path);
	g_free(mount->view_path);
	g_free(mount);
}

static void env_free(gpointer data)
{
	PolicyEnv *env = data;

	g_free(env->name);
	g_free(env->value);
	g_free(env);
}

StellaPolicy *policy_new_defaults(void)
{
	StellaPolicy *policy = g_new0(StellaPolicy, 1);

	policy->refs = 1;
	policy->workspace_root = g_strdup("");
	policy->working_dir = g_strdup("");
	policy->stella_home = g_strdup("");
	policy->user_tools_dir = g_strdup("");
	policy->temp_dir_host = g_strdup("");
	policy->mounts = g_ptr_array_new_with_free_func(mount_free);
	policy->hide = g_ptr_array_new_with_free_func(g_free);
	policy->protect = g_ptr_array_new_with_free_func(g_free);
	policy->env = g_ptr_array_new_with_free_func(env_free);
	policy->process_uid = UID_AGENT;
	policy->limits.output_bytes = LIMIT_OUTPUT_BYTES_DEFAULT;
	policy->limits.file_size_bytes = 512ull * 1024 * 1024;
	policy->limits.open_files = 1024;
	policy->limits.cpu_seconds = 300;
	return policy;
}

/* The counter is the one field of a policy that changes after it was given out. */
StellaPolicy *stella_policy_ref(const StellaPolicy *policy)
{
	StellaPolicy *counted = (StellaPolicy *)(uintptr_t)policy;

	g_atomic_int_inc(&counted->refs);
	return counted;
}

void stella_policy_unref(StellaPolicy *policy)
{
	if (!policy || !g_atomic_int_dec_and_test(&policy->refs))
		return;
	g_free(policy->workspace_root);
	g_free(policy->working_dir);
	g_free(policy->stella_home);
	g_free(policy->user_tools_dir);
	g_free(policy->temp_dir_host);
	g_ptr_array_unref(policy->mounts);
	g_ptr_array_unref(policy->hide);
	g_ptr_array_unref(policy->protect);
	g_ptr_array_unref(policy->env);
	g_free(policy);
}

void policy_set_path(char **field, const char *path)
{
	char *clean = path_clean(path);

	g_free(*field);
	*field = clean ? clean : g_strdup(path);
}

PolicyMount *policy_add_mount(StellaPolicy *policy, const char *host_path, const char *view_path,
			      StellaMountAccess access)
{
	PolicyMount *mount = g_new0(PolicyMount, 1);

	policy_set_path(&mount->host_path, host_path);
	policy_set_path(&mount->view_path, view_path);
	mount->access = access;
	g_ptr_array_add(policy->mounts, mount);
	return mount;
}

void policy_add_env(StellaPolicy *policy, const char *name, const char *value)
{
	PolicyEnv *env = g_new0(PolicyEnv, 1);

	env->name = g_strdup(name);
	env->value = g_strdup(value);
	g_ptr_array_add(policy->env, env);
}

static gpointer copy_text(gconstpointer text, gpointer data)
{
	(void)data;
	return g_strdup(text);
}

static gpointer copy_mount(gconstpointer data, gpointer user_data)
{
	const PolicyMount *mount = data;
	PolicyMount *copy = g_memdup2(mount, sizeof *mount);

	(void)user_data;
	copy->host_path = g_strdup(mount->host_path);
	copy->view_path = g_strdup(mount->view_path);
	return copy;
}

static gpointer copy_env(gconstpointer data, gpointer user_data)
{
	const PolicyEnv *env = data;
	PolicyEnv *copy = g_new0(PolicyEnv, 1);

	(void)user_data;
	copy->name = g_strdup(env->name);
	copy->value = g_strdup(env->value);
	return copy;
}

StellaPolicy *policy_copy(const StellaPolicy *policy)
{
	StellaPolicy *copy = g_new(StellaPolicy, 1);
	const size_t values = offsetof(StellaPolicy, is_unreadable);

	/* Not the count, which other threads may be changing. */
	copy->refs = 1;
	memcpy((char *)copy + values, (const char *)policy + values, sizeof *copy - values);
	copy->workspace_root = g_strdup(policy->workspace_root);
	copy->working_dir = g_strdup(policy->working_dir);
	copy->stella_home = g_strdup(policy->stella_home);
	copy->user_tools_dir = g_strdup(policy->user_tools_dir);
	copy->temp_dir_host = g_strdup(policy->temp_dir_host);
	copy->mounts = g_ptr_array_copy(policy->mounts, copy_mount, NULL);
	copy->hide = g_ptr_array_copy(policy->hide, copy_text, NULL);
	copy->protect = g_ptr_array_copy(policy->protect, copy_text, NULL);
	copy->env = g_ptr_array_copy(policy->env, copy_env, NULL);
	return copy;
}
