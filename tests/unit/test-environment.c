/* environment: six layers, in order, and nothing of the host beside them. */
#include "common/environment.h"
#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define STANDARD                                                                                   \
	"/run/current-system/sw/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A home with tools, a workspace and a user's data, all of this test. */
static char *top, *home, *tools, *workspace, *data;

static char *make_dir(const char *below)
{
	char *path = g_build_filename(top, below, NULL);

	assert_int_equal(g_mkdir_with_parents(path, 0700), 0);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	top = g_dir_make_tmp("test-environment-XXXXXX", NULL);
	if (!top)
		return -1;
	home = make_dir("home");
	tools = make_dir("home/users/u1/.mise-tools");
	workspace = make_dir("ws");
	data = make_dir("data");
	g_free(make_dir("home/bin"));
	g_free(make_dir("home/.mise-tools/shims"));
	return 0;
}

static int tear_down(void **state)
{
	int r = io_remove_tree(AT_FDCWD, top);

	(void)state;
	g_free(top);
	g_free(home);
	g_free(tools);
	g_free(workspace);
	g_free(data);
	return r;
}

/* A policy of the workspace and nothing else. */
static StellaPolicy *small_policy(void)
{
	StellaPolicy *policy = policy_new_defaults();

	policy->runtime = POLICY_RUNTIME_NONE;
	policy_set_path(&policy->working_dir, "/workspace");
	policy_set_path(&policy->workspace_root, workspace);
	return policy;
}

static StellaPolicy *full_policy(void)
{
	StellaPolicy *policy = small_policy();

	policy_add_mount(policy, data, "/user", STELLA_MOUNT_READ_WRITE);
	policy_set_path(&policy->stella_home, home);
	policy_set_path(&policy->user_tools_dir, tools);
	return policy;
}

static ViewPlan *take_plan(StellaPolicy *take_policy)
{
	g_autoptr(StellaPolicy) policy = take_policy;
	g_autofree char *message = NULL;
	ViewPlan *plan = NULL;

	if (view_plan_new(policy, VIEW_FOR_SANDBOX, &plan, &message) < 0)
		fail_msg("%s", message);
	return plan;
}

static char **make(const EnvironmentOptions *options)
{
	g_autofree char *message = NULL;
	char **env = NULL;

	if (environment_new(options, &env, &message) < 0)
		fail_msg("%s", message);
	return env;
}

/* The value of name; NULL when it is absent. */
static const char *get(char **env, const char *name)
{
	return g_environ_getenv(env, name);
}

static void assert_env(char **env, const char *name, const char *expected)
{
	const char *value = get(env, name);

	if (g_strcmp0(value, expected) != 0)
		fail_msg("%s is \"%s\", expected \"%s\"", name, value ? value : "(none)",
			 expected ? expected : "(none)");
}

static void assert_whole_env(char **env, const char *const *expected)
{
	g_autofree char *made = g_strjoinv("\n", env);
	g_autofree char *wanted = g_strjoinv("\n", (char **)(uintptr_t)expected);

	assert_string_equal(made, wanted);
}

static const char *shell(void)
{
	return access("/bin/bash", X_OK) == 0 ? "SHELL=/bin/bash" : "SHELL=/bin/sh";
}

static void without_inheriting_exactly_the_known_variables_are_there(void **state)
{
	g_autoptr(ViewPlan) plan = take_plan(small_policy());
	EnvironmentOptions options = {
		.plan = plan,
		.host = LIST("LD_PRELOAD=/x.so", "GLIBC_TUNABLES=x", "BASH_ENV=/x", "ENV=/x",
			     "BASH_FUNC_ls%%=() { :; }", "PS4=x", "IFS=x", "SHELLOPTS=x",
			     "NODE_OPTIONS=x", "PYTHONPATH=/x", "PERL5OPT=x", "RUBYOPT=x",
			     "GIT_DIR=/x", "SSH_AUTH_SOCK=/x", "SUDO_ASKPASS=/x", "DOCKER_HOST=x",
			     "DBUS_SESSION_BUS_ADDRESS=x", "AWS_PROFILE=x", "GITHUB_TOKEN=x",
			     "STELLA_VAULT_KEY=x", "KUBECONFIG=/x", "MISE_DATA_DIR=/x",
			     "MISE_TRUSTED_CONFIG_PATHS=/x", "HOME=/root", "USER=someone",
			     "PWD=/root", "OLDPWD=/x", "FOO=bar", "PATH=/root/bin:/usr/games:.:",
			     "XDG_RUNTIME_DIR=/run/user/0", "TERM=xterm", "https_proxy=http://p:1"),
	};
	g_auto(GStrv) env = make(&options);

	(void)state;
	assert_whole_env(env,
			 LIST("HOME=/workspace", "LANG=C.UTF-8", "LOGNAME=agent",
			      "PATH=/usr/games:" STANDARD, "PWD=/workspace", shell(), "TERM=xterm",
			      "TMPDIR=/tmp", "USER=agent", "XDG_CACHE_HOME=/workspace/.cache",
			      "XDG_CONFIG_HOME=/workspace/.config",
			      "XDG_DATA_HOME=/workspace/.local/share",
			      "XDG_STATE_HOME=/workspace/.local/state", "https_proxy=http://p:1"));
}

static void inheriting_takes_what_no_rule_denies(void **state)
{
	StellaPolicy *policy = small_policy();
	g_autoptr(ViewPlan) plan = NULL;
	EnvironmentOptions options = {
		.host = LIST("FOO=bar", "FOO=second", "LD_PRELOAD=/x.so", "MY_TOKEN=x", "NO_EQUALS",
			     "=empty", "EXTRA=x", "HOME=/root", "PATH=/root/bin",
			     "EMPTY=", "XDG_RUNTIME_DIR=/run/user/0", "STELLA_HOME=/srv/home"),
		.denied = LIST("EXT*"),
	};
	g_auto(GStrv) env = NULL;

	(void)state;
	policy->inherit_env = true;
	plan = take_plan(policy);
	options.plan = plan;
	env = make(&options);
	assert_env(env, "FOO", "bar");
	assert_env(env, "EMPTY", "");
	assert_env(env, "LD_PRELOAD", NULL);
	assert_env(env, "MY_TOKEN", NULL);
	assert_env(env, "EXTRA", NULL);
	assert_env(env, "XDG_RUNTIME_DIR", NULL);
	assert_env(env, "STELLA_HOME", NULL);
	assert_env(env, "HOME", "/workspace");
	assert_env(env, "PATH", STANDARD);
}

static void a_later_layer_wins(void **state)
{
	StellaPolicy *policy = small_policy();
	g_autoptr(ViewPlan) plan = NULL;
	EnvironmentOptions options = {
		.host = LIST("A=host", "TERM=host", "B=host", "TZ=host", "GONE=host"),
		.refresh = LIST("C=refresh", "D=refresh", "USER=refresh", "C=refresh-again"),
		.request_unset = LIST("GONE", "E", "D", "NEVER"),
		.request_set = LIST("D=request", "PWD=request", "F=a=b=c", "G="),
	};
	g_auto(GStrv) env = NULL;

	(void)state;
	policy->inherit_env = true;
	policy_add_env(policy, "B", "policy");
	policy_add_env(policy, "TZ", "policy");
	policy_add_env(policy, "C", "policy");
	policy_add_env(policy, "D", "policy");
	policy_add_env(policy, "E", "policy");
	policy_add_env(policy, "USER", "policy");
	policy_add_env(policy, "MY_TOKEN", "declared");
	plan = take_plan(policy);
	options.plan = plan;
	env = make(&options);
	assert_env(env, "A", "host");
	assert_env(env, "TERM", "host");
	assert_env(env, "B", "policy");
	assert_env(env, "TZ", "policy");
	assert_env(env, "C", "refresh-again");
	assert_env(env, "D", "request");
	assert_env(env, "E", NULL);
	assert_env(env, "GONE", NULL);
	assert_env(env, "USER", "refresh");
	assert_env(env, "LOGNAME", "agent");
	assert_env(env, "PWD", "request");
	assert_env(env, "F", "a=b=c");
	assert_env(env, "G", "");
	assert_env(env, "MY_TOKEN", "declared"); /* the deny list is for inherited ones */
	for (char **entry = env; entry[0] && entry[1]; entry++)
		assert_true(strcmp(entry[0], entry[1]) < 0);
}

static void the_views_own_variables_follow_its_mounts(void **state)
{
	g_autoptr(ViewPlan) plan = take_plan(full_policy());
	EnvironmentOptions options = {
		.plan = plan,
		.host = LIST("PATH=/usr/bin:/home/me/bin", "LC_CTYPE=de_DE.UTF-8"),
		.cwd = "/workspace/src",
	};
	g_auto(GStrv) env = make(&options);

	(void)state;
	assert_env(env, "PATH",
		   "/opt/stella/users/u1/.mise-tools/shims:/opt/stella/.mise-tools/shims:"
		   "/opt/stella/bin:/usr/bin:/run/current-system/sw/bin:/usr/local/sbin:"
		   "/usr/local/bin:/usr/sbin:/sbin:/bin");
	assert_env(env, "STELLA_HOME", "/opt/stella");
	assert_env(env, "STELLA_USER_DIR", "/user");
	assert_env(env, "XDG_CACHE_HOME", "/user/.cache");
	assert_env(env, "XDG_CONFIG_HOME", "/workspace/.config");
	assert_env(env, "PWD", "/workspace/src");
	assert_env(env, "LANG", NULL); /* the host has a locale */
	assert_env(env, "LC_CTYPE", "de_DE.UTF-8");
	for (char **entry = env; *entry; entry++)
		assert_null(strstr(*entry, top)); /* no host path gets in */
}

static void a_caller_may_choose_the_home(void **state)
{
	g_autoptr(ViewPlan) plan = take_plan(full_policy());
	EnvironmentOptions options = { .plan = plan, .home = "/user" };
	g_auto(GStrv) env = make(&options);

	(void)state;
	assert_env(env, "HOME", "/user");
	assert_env(env, "XDG_CONFIG_HOME", "/user/.config");
	assert_env(env, "XDG_DATA_HOME", "/user/.local/share");
	assert_env(env, "PWD", "/workspace");
}

static void names_follow_the_user(void **state)
{
	static const struct {
		uid_t uid;
		const char *name;
	} cases[] = { { 1000, "agent" }, { 0, "root" }, { 4711, "agent" } };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		StellaPolicy *policy = small_policy();
		g_autoptr(ViewPlan) plan = NULL;
		EnvironmentOptions options = { 0 };
		g_auto(GStrv) env = NULL;

		policy->process_uid = cases[i].uid;
		plan = take_plan(policy);
		options.plan = plan;
		env = make(&options);
		assert_env(env, "USER", cases[i].name);
		assert_env(env, "LOGNAME", cases[i].name);
	}
}

static void the_policys_own_values_stay_only_with_env_override(void **state)
{
	(void)state;
	for (int override = 0; override < 2; override++) {
		StellaPolicy *policy = full_policy();
		g_autoptr(ViewPlan) plan = NULL;
		EnvironmentOptions options = { .host = LIST("PATH=/usr/bin") };
		g_auto(GStrv) env = NULL;

		policy->env_override = override;
		policy_add_env(policy, "HOME", "/user/h");
		policy_add_env(policy, "PATH", "/workspace/bin:/bin");
		policy_add_env(policy, "SHELL", "/bin/zsh");
		policy_add_env(policy, "XDG_RUNTIME_DIR", "/tmp/run");
		policy_add_env(policy, "LANG", "fr_FR.UTF-8");
		plan = take_plan(policy);
		options.plan = plan;
		env = make(&options);
		assert_env(env, "HOME", override ? "/user/h" : "/workspace");
		assert_env(env, "XDG_CONFIG_HOME",
			   override ? "/user/h/.config" : "/workspace/.config");
		if (override) {
			assert_env(env, "PATH", "/workspace/bin:/bin");
			assert_env(env, "SHELL", "/bin/zsh");
			assert_env(env, "XDG_RUNTIME_DIR", "/tmp/run");
		} else {
			assert_true(g_str_has_prefix(get(env, "PATH"), "/opt/stella/"));
			assert_string_not_equal(get(env, "SHELL"), "/bin/zsh");
			assert_env(env, "XDG_RUNTIME_DIR", NULL);
		}
		assert_env(env, "USER", "agent"); /* what the policy does not set is as ever */
		assert_env(env, "LANG", "fr_FR.UTF-8"); /* there is a locale: no other is put in */
	}
}

static void mise_values_of_every_layer_become_view_paths(void **state)
{
	StellaPolicy *policy = full_policy();
	g_autoptr(ViewPlan) plan = NULL;
	g_autofree char *system_dir = g_build_filename(home, ".mise-tools", NULL);
	g_autofree char *refresh = g_strconcat("MISE_CACHE_DIR=", tools, "/cache", NULL);
	g_autofree char *request = g_strconcat("MISE_STATE_DIR=", data, "/state/", NULL);
	g_autofree char *trusted = g_strconcat(workspace, ":/workspace::", data,
					       "/x:/etc:relative:", workspace, "/", NULL);
	g_autofree char *elsewhere = g_strconcat("NOT_MISE_DIR=", data, NULL);
	EnvironmentOptions options = {
		.refresh = LIST(refresh, "MISE_YES=1"),
		.request_set = LIST(request, elsewhere, "MISE_CONFIG_DIR=/nowhere/of/a/mount"),
	};
	g_auto(GStrv) env = NULL;

	(void)state;
	policy_add_env(policy, "MISE_DATA_DIR", tools);
	policy_add_env(policy, "MISE_SYSTEM_DIR", system_dir);
	policy_add_env(policy, "MISE_TRUSTED_CONFIG_PATHS", trusted);
	policy_add_env(policy, "MISE_SHELL", "bash");
	policy_add_env(policy, "MISE_EMPTY", "");
	plan = take_plan(policy);
	options.plan = plan;
	env = make(&options);
	assert_env(env, "MISE_DATA_DIR", "/opt/stella/users/u1/.mise-tools");
	assert_env(env, "MISE_SYSTEM_DIR", "/opt/stella/.mise-tools");
	assert_env(env, "MISE_CACHE_DIR", "/opt/stella/users/u1/.mise-tools/cache");
	assert_env(env, "MISE_STATE_DIR", "/user/state");
	assert_env(env, "MISE_TRUSTED_CONFIG_PATHS", "/workspace:/user/x:/etc:relative");
	assert_env(env, "MISE_SHELL", "bash");
	assert_env(env, "MISE_EMPTY", "");
	assert_env(env, "MISE_YES", "1");
	assert_env(env, "MISE_CONFIG_DIR", "/nowhere/of/a/mount");
	assert_env(env, "NOT_MISE_DIR", data);
}

static void the_users_shims_come_from_the_data_dir_first(void **state)
{
	g_autofree char *own = g_build_filename(data, ".mise-tools", NULL);
	g_autofree char *system_dir = g_build_filename(home, ".mise-tools", NULL);
	const struct {
		const char *data_dir;
		bool has_tools_dir;
		const char *first;
	} cases[] = {
		{ own, true, "/user/.mise-tools/shims" },
		{ own, false, "/user/.mise-tools/shims" },
		{ "/user/own", true, "/user/own/shims" }, /* already a view path */
		{ NULL, true, "/opt/stella/users/u1/.mise-tools/shims" },
		{ system_dir, true, "/opt/stella/users/u1/.mise-tools/shims" },
		{ NULL, false, "/opt/stella/.mise-tools/shims" }, /* the system's come first then */
		{ "/home/me/.local/share/mise", true, "/opt/stella/.mise-tools/shims" },
		{ "relative", true, "/opt/stella/.mise-tools/shims" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		StellaPolicy *policy = full_policy();
		g_autoptr(ViewPlan) plan = NULL;
		EnvironmentOptions options = { 0 };
		g_auto(GStrv) env = NULL;
		g_auto(GStrv) path = NULL;

		if (!cases[i].has_tools_dir)
			policy_set_path(&policy->user_tools_dir, "");
		if (cases[i].data_dir)
			policy_add_env(policy, "MISE_DATA_DIR", cases[i].data_dir);
		plan = take_plan(policy);
		options.plan = plan;
		env = make(&options);
		path = g_strsplit(get(env, "PATH"), ":", -1);
		assert_string_equal(path[0], cases[i].first);
		for (char **entry = path; *entry; entry++)
			assert_int_equal((*entry)[0], '/');
	}
}

static void names_that_cannot_be_are_refused_by_name(void **state)
{
	static const struct {
		const char *entry, *message;
	} cases[] = {
		{ "NO_EQUALS", "\"NO_EQUALS\" has no '='" },
		{ "=value", "empty name" },
		{ "", "\"\" has no '='" },
		{ "new\nline", "new\\x0aline" },
	};
	g_autoptr(ViewPlan) plan = take_plan(small_policy());

	(void)state;
	for (size_t i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
		const char *const *list = LIST("GOOD=1", cases[i / 2].entry);
		EnvironmentOptions options = { .plan = plan };
		g_autofree char *message = NULL;
		char **env = NULL;

		if (i % 2)
			options.refresh = list;
		else
			options.request_set = list;
		assert_int_equal(environment_new(&options, &env, &message), -EINVAL);
		assert_null(env);
		assert_non_null(strstr(message, cases[i / 2].message));
		assert_null(strchr(message, '\n'));
		assert_non_null(strstr(message, i % 2 ? "refreshed" : "request"));
	}
	for (int i = 0; i < 2; i++) {
		EnvironmentOptions options = { .plan = plan,
					       .request_unset = LIST(i ? "A=B" : "") };
		g_autofree char *message = NULL;
		char **env = NULL;

		assert_int_equal(environment_new(&options, &env, &message), -EINVAL);
		assert_non_null(strstr(message, i ? "A=B" : "empty name"));
	}
}

static void odd_bytes_pass_unchanged(void **state)
{
	g_autoptr(ViewPlan) plan = take_plan(small_policy());
	EnvironmentOptions options = {
		.plan = plan,
		.request_set =
			LIST("A\nB=x", "BYTES=\xff\x01\n\"'$(id)", "BASH_FUNC_f%%=() { :; }"),
	};
	g_auto(GStrv) env = make(&options);

	(void)state;
	assert_env(env, "A\nB", "x");
	assert_env(env, "B", NULL);
	assert_env(env, "BYTES", "\xff\x01\n\"'$(id)");
	assert_env(env, "BASH_FUNC_f%%", "() { :; }");
}

static void a_variable_beyond_the_kernels_limit_is_refused_by_name(void **state)
{
	size_t most = (size_t)sysconf(_SC_PAGESIZE) * 32;
	g_autofree char *fits = g_strnfill(most - strlen("BIG=") - 1, 'x');
	g_autoptr(ViewPlan) plan = take_plan(small_policy());

	(void)state;
	for (int more = 0; more < 2; more++) {
		g_autofree char *entry = g_strconcat("BIG=", fits, more ? "x" : "", NULL);
		EnvironmentOptions options = { .plan = plan, .request_set = LIST(entry) };
		g_autofree char *message = NULL;
		g_auto(GStrv) env = NULL;

		assert_int_equal(environment_new(&options, &env, &message), more ? -E2BIG : 0);
		if (more) {
			assert_non_null(strstr(message, "\"BIG\""));
			assert_null(strstr(message, "xxx")); /* the value is not told */
		} else {
			assert_env(env, "BIG", fits);
		}
	}
}

#define PLAN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAN_TEST(without_inheriting_exactly_the_known_variables_are_there),
		PLAN_TEST(inheriting_takes_what_no_rule_denies),
		PLAN_TEST(a_later_layer_wins),
		PLAN_TEST(the_views_own_variables_follow_its_mounts),
		PLAN_TEST(a_caller_may_choose_the_home),
		PLAN_TEST(names_follow_the_user),
		PLAN_TEST(the_policys_own_values_stay_only_with_env_override),
		PLAN_TEST(mise_values_of_every_layer_become_view_paths),
		PLAN_TEST(the_users_shims_come_from_the_data_dir_first),
		PLAN_TEST(names_that_cannot_be_are_refused_by_name),
		PLAN_TEST(odd_bytes_pass_unchanged),
		PLAN_TEST(a_variable_beyond_the_kernels_limit_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
