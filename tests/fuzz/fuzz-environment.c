/* Fuzz target: bytes as the environments that meet in a command's: the host's, the policy's, what was refreshed, the
 * request's own. What comes out has to be an environment: names that are unique and sorted, PATH and TMPDIR of the view,
 * nothing of the host that the deny list names and nobody else gave.
 *
 * The input is NUL-separated entries. The first byte of each says whose it is: H, P, F (refreshed), S (set), U (unset); the
 * first entry's first byte besides is 'i' for inherit_env, 'o' for env_override, 'b' for both. */
#include "common/env-filter.h"
#include "common/environment.h"
#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
	bool inherits;
	bool overrides;
	GPtrArray *host, *policy, *refresh, *set, *unset; /* char *, NULL at the end */
} Input;

/* The directories of the plan; the process's, and removed with it. */
static char *top;

static void remove_top(void)
{
	(void)io_remove_tree(AT_FDCWD, top);
	g_free(top);
}

static void make_top(void)
{
	g_autofree char *workspace = NULL;

	if (top)
		return;
	top = g_dir_make_tmp("fuzz-environment-XXXXXX", NULL);
	g_assert_nonnull(top);
	workspace = g_build_filename(top, "ws", NULL);
	g_assert_cmpint(g_mkdir_with_parents(workspace, 0700), ==, 0);
	atexit(remove_top);
}

static void add(Input *input, const char *entry)
{
	GPtrArray *const lists[] = { input->host, input->policy, input->refresh, input->set,
				     input->unset };
	const char *which = entry[0] ? strchr("HPFSU", entry[0]) : NULL;

	if (which)
		g_ptr_array_add(lists[which - "HPFSU"], g_strdup(entry + 1));
}

static void read_input(const uint8_t *data, size_t size, Input *input)
{
	g_autofree char *text = g_strndup((const char *)data, size);
	GPtrArray **const lists[] = { &input->host, &input->policy, &input->refresh, &input->set,
				      &input->unset };
	/* not g_strndup's end: entries go on behind a NUL */
	const char *at = (const char *)data, *end = at + size;

	for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
		*lists[i] = g_ptr_array_new_with_free_func(g_free);
	input->inherits = text[0] == 'i' || text[0] == 'b';
	input->overrides = text[0] == 'o' || text[0] == 'b';
	if (at < end && strchr("iob", *at))
		at++;
	while (at < end) {
		size_t length = strnlen(at, (size_t)(end - at));
		g_autofree char *entry = g_strndup(at, length);

		add(input, entry);
		at += length + 1;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
		g_ptr_array_add(*lists[i], NULL);
}

static void clear_input(Input *input)
{
	g_ptr_array_unref(input->host);
	g_ptr_array_unref(input->policy);
	g_ptr_array_unref(input->refresh);
	g_ptr_array_unref(input->set);
	g_ptr_array_unref(input->unset);
}

static ViewPlan *make_plan(const Input *input)
{
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	g_autofree char *workspace = g_build_filename(top, "ws", NULL);
	g_autofree char *message = NULL;
	ViewPlan *plan = NULL;

	policy_set_path(&policy->working_dir, workspace);
	policy_set_path(&policy->workspace_root, workspace);
	policy->inherit_env = input->inherits;
	policy->env_override = input->overrides;
	for (guint i = 0; i + 1 < input->policy->len; i++) {
		g_auto(GStrv) halves = g_strsplit(input->policy->pdata[i], "=", 2);

		if (halves[0] && halves[1])
			policy_add_env(policy, halves[0], halves[1]);
	}
	if (policy_validate(policy, &message) < 0)
		return NULL;
	g_assert_cmpint(view_plan_new(policy, VIEW_FOR_SANDBOX, &plan, &message), ==, 0);
	return plan;
}

static bool gives(const GPtrArray *list, const char *name)
{
	size_t length = strlen(name);

	for (guint i = 0; i + 1 < list->len; i++) {
		const char *entry = list->pdata[i];

		if (strncmp(entry, name, length) == 0 && entry[length] == '=')
			return true;
	}
	return false;
}

/* What only the host has is there by inheriting, and then not on the list; or it is one of those that all commands get, of which
 * none is on the list. */
static void check_origin(const Input *input, const char *name)
{
	static const char *const own[] = { "HOME", "PATH",   "SHELL", "USER", "LOGNAME",
					   "PWD",  "TMPDIR", "LANG",  NULL };

	if (g_strv_contains(own, name) || g_str_has_prefix(name, "XDG_") ||
	    gives(input->policy, name) || gives(input->refresh, name) || gives(input->set, name))
		return;
	g_assert_true(gives(input->host, name));
	g_assert_false(env_filter_denied(name, NULL));
}

static void check_environment(const Input *input, char **env)
{
	g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	bool is_set = false;

	for (char **entry = env; *entry; entry++) {
		const char *equals = strchr(*entry, '=');

		g_assert_nonnull(equals);
		g_assert_true(equals > *entry);
		g_autofree char *name = g_strndup(*entry, (gsize)(equals - *entry));

		g_assert_true(entry == env || strcmp(entry[-1], *entry) < 0);
		check_origin(input, name);
		is_set = is_set || strcmp(name, "PATH") == 0;
		g_assert_true(g_hash_table_add(seen, g_steal_pointer(&name)));
	}
	for (guint i = 0; i + 1 < input->unset->len; i++)
		is_set = is_set || strcmp(input->unset->pdata[i], "PATH") == 0;
	g_assert_true(is_set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input input;
	g_autoptr(ViewPlan) plan = NULL;
	g_auto(GStrv) env = NULL;
	g_autofree char *message = NULL;

	make_top();
	read_input(data, size, &input);
	plan = make_plan(&input);
	if (plan) {
		const EnvironmentOptions options = {
			.plan = plan,
			.host = (const char *const *)input.host->pdata,
			.refresh = (const char *const *)input.refresh->pdata,
			.request_unset = (const char *const *)input.unset->pdata,
			.request_set = (const char *const *)input.set->pdata,
		};
		int r = environment_new(&options, &env, &message);

		if (r < 0)
			g_assert_true((r == -EINVAL || r == -E2BIG) && message &&
				      !strchr(message, '\n'));
		else
			check_environment(&input, env);
	}
	clear_input(&input);
	return 0;
}
