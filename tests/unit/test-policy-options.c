/* policy-options: each option's effect, what is refused, and how a file is read. */
#include "common/policy-json.h"
#include "common/policy-options.h"

#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_ARGUMENTS 8

typedef const char *Arguments[MAX_ARGUMENTS + 1];

/* Takes every argument and makes the policy; what a program does. */
static int run(PolicyPurpose purpose, const Arguments arguments, PolicyOptions **ret_options,
	       StellaPolicy **ret_policy, char **reterr_message)
{
	PolicyOptions *options = policy_options_new(purpose);
	g_auto(GStrv) argv = g_strdupv((char **)(uintptr_t)arguments);
	int argc = (int)g_strv_length(argv), r = 0;

	*ret_options = options;
	for (int i = 0; i < argc && r >= 0; i++) {
		r = policy_options_take(options, argc, argv, &i, reterr_message);
		if (r == 0)
			fail_msg("%s is not taken", argv[i]);
	}
	return r < 0 ? r : policy_options_finish(options, ret_policy, reterr_message);
}

static StellaPolicy *make(PolicyPurpose purpose, const Arguments arguments)
{
	g_autoptr(PolicyOptions) options = NULL;
	StellaPolicy *policy = NULL;
	g_autofree char *message = NULL;

	if (run(purpose, arguments, &options, &policy, &message) != 0)
		fail_msg("%s", message);
	return policy;
}

static const PolicyMount *mount_at(const StellaPolicy *policy, const char *view_path)
{
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		const PolicyMount *mount = policy->mounts->pdata[i];

		if (strcmp(mount->view_path, view_path) == 0)
			return mount;
	}
	return NULL;
}

static void assert_mount(const StellaPolicy *policy, const char *view_path, const char *host_path,
			 StellaMountAccess access)
{
	const PolicyMount *mount = mount_at(policy, view_path);

	if (!mount) {
		fail_msg("nothing at %s", view_path);
		abort(); /* for compilers that do not know that fail_msg() ends the test */
	}
	assert_string_equal(mount->host_path, host_path);
	assert_int_equal(mount->access, access);
	assert_false(mount->optional);
}

static void without_options_the_current_directory_is_the_workspace(void **state)
{
	static const Arguments none = { NULL };
	g_autoptr(StellaPolicy) commands = make(POLICY_FOR_COMMANDS, none);
	g_autoptr(StellaPolicy) looking = make(POLICY_FOR_LOOKING, none);
	g_autofree char *cwd = getcwd(NULL, 0);
	const PolicyEnv *home;

	(void)state;
	assert_int_equal(commands->mounts->len, 1);
	assert_mount(commands, "/workspace", cwd, STELLA_MOUNT_READ_WRITE);
	assert_string_equal(commands->workspace_root, cwd);
	assert_string_equal(commands->working_dir, "/workspace");
	assert_int_equal(commands->runtime, POLICY_RUNTIME_DEFAULT);
	assert_int_equal(commands->network_mode, STELLA_NETWORK_ALLOW_ALL);
	assert_int_equal(commands->limits.cpu_seconds, 0);
	assert_int_equal(commands->limits.file_size_bytes, 0);
	assert_int_equal(commands->limits.open_files, 0);
	assert_int_equal(commands->limits.output_bytes, 10 * 1024 * 1024);
	assert_int_equal(commands->env->len, 1);
	home = commands->env->pdata[0];
	assert_string_equal(home->name, "HOME");
	assert_string_equal(home->value, "/user");
	assert_true(commands->env_override);
	assert_int_equal(looking->env->len, 0);
	assert_int_equal(looking->limits.cpu_seconds, 300);
	assert_mount(looking, "/workspace", cwd, STELLA_MOUNT_READ_WRITE);
}

static void every_option_has_its_effect(void **state)
{
	static const Arguments paths = { "--workspace",	  "/srv//ws/./", "--user-dir=/srv/u",
					 "--stella-home", "/srv/home",	 "--no-network" };
	static const Arguments modes = { "--runtime=none", "--symlinks", "deny", "--cache",
					 "strict",	   "--backend",	 "bwrap" };
	g_autoptr(StellaPolicy) policy = make(POLICY_FOR_COMMANDS, paths);
	g_autoptr(PolicyOptions) options = NULL;
	g_autoptr(StellaPolicy) second = NULL;
	g_autofree char *message = NULL;

	(void)state;
	assert_mount(policy, "/workspace", "/srv/ws", STELLA_MOUNT_READ_WRITE);
	assert_mount(policy, "/user", "/srv/u", STELLA_MOUNT_READ_WRITE);
	assert_string_equal(policy->stella_home, "/srv/home");
	assert_int_equal(policy->network_mode, STELLA_NETWORK_DISABLED);
	assert_int_equal(run(POLICY_FOR_COMMANDS, modes, &options, &second, &message), 0);
	assert_int_equal(second->runtime, POLICY_RUNTIME_NONE);
	assert_int_equal(second->symlinks, POLICY_SYMLINKS_DENY);
	assert_int_equal(second->cache, POLICY_CACHE_STRICT);
	assert_string_equal(policy_options_backend(options), "bwrap");
}

static void host_and_view_are_split_at_the_last_colon_before_a_slash(void **state)
{
	static const struct {
		const char *text, *host, *view;
	} cases[] = {
		{ "/srv/a", "/srv/a", "/srv/a" },	{ "/srv//a/../b/", "/srv/b", "/srv/b" },
		{ "/srv/a:/v", "/srv/a", "/v" },	{ "/srv/a:/v/../w/", "/srv/a", "/w" },
		{ "/srv/a:b", "/srv/a:b", "/srv/a:b" }, { "/srv/a:b:/v", "/srv/a:b", "/v" },
		{ "/srv/a:/b:/v", "/srv/a:/b", "/v" },	{ "/srv/a:", "/srv/a:", "/srv/a:" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const Arguments ro = { "--ro", cases[i].text };
		const Arguments rw = { "--rw", cases[i].text };
		g_autoptr(StellaPolicy) first = make(POLICY_FOR_COMMANDS, ro);
		g_autoptr(StellaPolicy) second = make(POLICY_FOR_COMMANDS, rw);

		assert_mount(first, cases[i].view, cases[i].host, STELLA_MOUNT_READ_ONLY);
		assert_mount(second, cases[i].view, cases[i].host, STELLA_MOUNT_READ_WRITE);
	}
}

static void relative_paths_start_at_the_current_directory(void **state)
{
	static const Arguments arguments = {
		"--workspace", "ws/..//w", "--ro", "a:/a", "--rw", "b"
	};
	g_autoptr(StellaPolicy) policy = make(POLICY_FOR_COMMANDS, arguments);
	g_autofree char *cwd = getcwd(NULL, 0);
	g_autofree char *workspace = g_build_filename(cwd, "w", NULL);
	g_autofree char *a = g_build_filename(cwd, "a", NULL);
	g_autofree char *b = g_build_filename(cwd, "b", NULL);

	(void)state;
	assert_mount(policy, "/workspace", workspace, STELLA_MOUNT_READ_WRITE);
	assert_mount(policy, "/a", a, STELLA_MOUNT_READ_ONLY);
	assert_mount(policy, b, b, STELLA_MOUNT_READ_WRITE);
}

static void same_path_mounts_the_workspace_twice(void **state)
{
	static const Arguments elsewhere = { "--workspace=/srv/ws", "--same-path" };
	static const Arguments at_home = { "--workspace=/workspace", "--same-path" };
	g_autoptr(StellaPolicy) twice = make(POLICY_FOR_COMMANDS, elsewhere);
	g_autoptr(StellaPolicy) once = make(POLICY_FOR_COMMANDS, at_home);

	(void)state;
	assert_int_equal(twice->mounts->len, 2);
	assert_mount(twice, "/workspace", "/srv/ws", STELLA_MOUNT_READ_WRITE);
	assert_mount(twice, "/srv/ws", "/srv/ws", STELLA_MOUNT_READ_WRITE);
	assert_string_equal(twice->working_dir, "/srv/ws");
	assert_int_equal(once->mounts->len, 1);
	assert_string_equal(once->working_dir, "/workspace");
}

static void limits_are_set_by_name(void **state)
{
	static const Arguments first = { "--limit", "output_bytes=1K", "--limit=file_size_bytes=2m",
					 "--limit", "open_files=64",   "--limit=required=true" };
	static const Arguments second = { "--limit=memory_bytes=3G", "--limit=cpu_seconds=0",
					  "--limit=spill=true", "--limit=tail_bytes=7",
					  "--limit=processes=9" };
	g_autoptr(StellaPolicy) one = make(POLICY_FOR_COMMANDS, first);
	g_autoptr(StellaPolicy) two = make(POLICY_FOR_LOOKING, second);

	(void)state;
	assert_int_equal(one->limits.output_bytes, 1024);
	assert_int_equal(one->limits.file_size_bytes, 2 * 1024 * 1024);
	assert_int_equal(one->limits.open_files, 64);
	assert_true(one->limits.required);
	assert_false(one->limits.spill);
	assert_true(two->limits.memory_bytes == UINT64_C(3) << 30);
	assert_int_equal(two->limits.cpu_seconds, 0);
	assert_true(two->limits.spill);
	assert_int_equal(two->limits.tail_bytes, 7);
	assert_int_equal(two->limits.processes, 9);
}

static void user_data_is_temporary_when_nothing_else_is_there(void **state)
{
	static const struct {
		PolicyPurpose purpose;
		Arguments arguments;
		bool temporary;
	} cases[] = {
		{ POLICY_FOR_COMMANDS, { NULL }, true },
		{ POLICY_FOR_COMMANDS, { "--user-dir=/u" }, false },
		{ POLICY_FOR_COMMANDS, { "--rw=/u:/user/" }, false },
		{ POLICY_FOR_COMMANDS, { "--rw=/u:/user2" }, true },
		{ POLICY_FOR_LOOKING, { NULL }, false },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(PolicyOptions) options = NULL;
		g_autoptr(StellaPolicy) policy = NULL;
		g_autofree char *message = NULL;

		assert_int_equal(
			run(cases[i].purpose, cases[i].arguments, &options, &policy, &message), 0);
		assert_int_equal(policy_options_user_is_temporary(options), cases[i].temporary);
	}
}

static void wrong_options_are_refused_and_their_twins_are_not(void **state)
{
	static const struct {
		Arguments bad;
		const char *message;
		Arguments good;
	} cases[] = {
		{ { "--runtime=x" },
		  "--runtime: expected none or host, got 'x'",
		  { "--runtime=host" } },
		{ { "--symlinks", "" },
		  "--symlinks: expected contained or deny, got ''",
		  { "--symlinks", "deny" } },
		{ { "--cache", "a\nb" },
		  "--cache: expected auto, strict or exclusive, got 'a\\x0ab'",
		  { "--cache", "auto" } },
		{ { "--workspace" }, "--workspace: needs a value", { "--workspace", "/w" } },
		{ { "--workspace=" }, "--workspace: is empty", { "--workspace=/w" } },
		{ { "--no-network=1" }, "--no-network: takes no value", { "--no-network" } },
		{ { "--workspace=/a", "--workspace=/b" },
		  "--workspace: given twice",
		  { "--workspace=/a", "--ro=/b", "--ro=/c" } },
		{ { "--ro=" }, "--ro: expected HOST or HOST:VIEW", { "--ro=x" } },
		{ { "--ro=:/x" }, "--ro: expected HOST or HOST:VIEW", { "--ro=.:/x" } },
		{ { "--rw", "/a:/proc/x" },
		  "--rw \"/a:/proc/x\": \"/proc/x\" lies in /proc, which the view keeps for itself",
		  { "--rw", "/a:/x/proc" } },
		{ { "--ro", "/" },
		  "--ro \"/\": \"/\" is the view itself, name a place below it",
		  { "--ro", "/:/host" } },
		{ { "--ro", "/a", "--ro", "/b:/a" },
		  "--ro \"/b:/a\": \"/a\" is the view path of filesystem.mounts[1] already",
		  { "--ro", "/a", "--ro", "/a:/b" } },
		{ { "--rw", "/a:/opt/stella/db-skills" },
		  "--rw \"/a:/opt/stella/db-skills\": /opt/stella/db-skills is always read-only, "
		  "expected \"ro\", got \"rw\"",
		  { "--ro", "/a:/opt/stella/db-skills" } },
		{ { "--ro", "/srv/\xff" },
		  "--ro \"/srv/\\xff\": expected valid UTF-8, got \"/srv/\\xff\"",
		  { "--ro", "/srv/\xc3\xbf" } },
		{ { "--limit", "open_files" },
		  "--limit: expected NAME=VALUE",
		  { "--limit", "open_files=1" } },
		{ { "--limit", "cpu=1" },
		  "--limit: 'cpu' is none of output_bytes, tail_bytes, file_size_bytes, "
		  "open_files, "
		  "cpu_seconds, memory_bytes, processes, spill and required",
		  { "--limit", "cpu_seconds=1" } },
		{ { "--limit", "open_files=1K" },
		  "--limit open_files: expected an integer from 0 to 1073741824, got '1K'",
		  { "--limit", "open_files=1024" } },
		{ { "--limit", "output_bytes=0" },
		  "--limit output_bytes: expected a size (10485760, 512K, 10M, 1G) from 1 to "
		  "1073741824, got '0'",
		  { "--limit", "output_bytes=1g" } },
		{ { "--limit", "memory_bytes=18446744073709551616" },
		  "--limit memory_bytes: expected a size (10485760, 512K, 10M, 1G) from 0 to "
		  "9223372036854775807, got '18446744073709551616'",
		  { "--limit", "memory_bytes=9223372036854775807" } },
		{ { "--limit", "memory_bytes=18014398509481984K" },
		  "--limit memory_bytes: expected a size (10485760, 512K, 10M, 1G) from 0 to "
		  "9223372036854775807, got '18014398509481984K'",
		  { "--limit", "memory_bytes=9007199254740991K" } },
		{ { "--limit", "memory_bytes=-1" },
		  "--limit memory_bytes: expected a size (10485760, 512K, 10M, 1G) from 0 to "
		  "9223372036854775807, got '-1'",
		  { "--limit", "memory_bytes=1" } },
		{ { "--limit", "processes=1", "--limit", "processes=2" },
		  "--limit processes: given twice",
		  { "--limit", "processes=1", "--limit", "open_files=2" } },
		{ { "--limit", "spill=1" },
		  "--limit spill: expected true or false, got '1'",
		  { "--limit", "spill=false" } },
		{ { "--limit", "tail_bytes=2", "--limit", "output_bytes=1" },
		  "limits.tail_bytes: expected at most limits.output_bytes (1), got 2",
		  { "--limit", "tail_bytes=2", "--limit", "output_bytes=2" } },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(PolicyOptions) options = NULL;
		g_autofree char *message = NULL;
		StellaPolicy *policy = NULL;

		if (run(POLICY_FOR_COMMANDS, cases[i].bad, &options, &policy, &message) == 0)
			fail_msg("accepted, row %zu (%s)", i, cases[i].message);
		assert_null(policy);
		assert_string_equal(message, cases[i].message);
		stella_policy_unref(make(POLICY_FOR_COMMANDS, cases[i].good));
	}
}

static void other_arguments_are_left_alone(void **state)
{
	static const char *const others[] = { "run",	      "--", "--json", "--work",
					      "--workspaces", "-r", "",	      "--ro:x" };
	g_autoptr(PolicyOptions) options = policy_options_new(POLICY_FOR_COMMANDS);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
		g_autofree char *argument = g_strdup(others[i]);
		g_autofree char *message = NULL;
		char *argv[] = { argument, NULL };
		int index = 0;

		assert_int_equal(policy_options_take(options, 1, argv, &index, &message), 0);
		assert_int_equal(index, 0);
		assert_null(message);
	}
	assert_null(policy_options_backend(options));
}

static const char policy_text[] =
	"{\"version\":1,\"filesystem\":{\"working_dir\":\"/workspace\",\"mounts\":["
	"{\"host_path\":\"/srv\",\"view_path\":\"/workspace\",\"access\":\"rw\"}]},"
	"\"limits\":{\"cpu_seconds\":7}}";

/* A directory with files to read; *state is its path. */
static int make_dir(void **state)
{
	char *dir = g_dir_make_tmp("test-policy-options-XXXXXX", NULL);
	g_autofree char *good = g_build_filename(dir, "good.json", NULL);
	g_autofree char *bad = g_build_filename(dir, "bad.json", NULL);
	g_autofree char *fifo = g_build_filename(dir, "fifo", NULL);

	*state = dir;
	return g_file_set_contents(good, policy_text, -1, NULL) &&
			       g_file_set_contents(bad, "{\"version\":1,\"x\":2}", -1, NULL) &&
			       mkfifo(fifo, 0600) == 0
		       ? 0
		       : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "good.json", "bad.json", "fifo" };
	g_autofree char *dir = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_autofree char *path = g_build_filename(dir, names[i], NULL);

		unlink(path);
	}
	return rmdir(dir);
}

static void a_policy_file_is_read_and_narrowed(void **state)
{
	g_autofree char *file = g_build_filename(*state, "good.json", NULL);
	const Arguments plain = { "--policy", file };
	const Arguments narrowed = { "--no-network", "--limit=cpu_seconds=3", "--policy", file,
				     "--backend=none" };
	g_autoptr(StellaPolicy) first = make(POLICY_FOR_COMMANDS, plain);
	g_autoptr(StellaPolicy) second = make(POLICY_FOR_COMMANDS, narrowed);

	assert_mount(first, "/workspace", "/srv", STELLA_MOUNT_READ_WRITE);
	assert_int_equal(first->mounts->len, 1);
	assert_int_equal(first->limits.cpu_seconds, 7);
	assert_int_equal(first->limits.open_files, 1024);
	assert_int_equal(first->env->len, 0);
	assert_int_equal(first->network_mode, STELLA_NETWORK_ALLOW_ALL);
	assert_int_equal(second->limits.cpu_seconds, 3);
	assert_int_equal(second->network_mode, STELLA_NETWORK_DISABLED);
}

/* What a shell does for `--policy <(command)`. */
static void a_policy_is_read_from_a_pipe(void **state)
{
	int pipe_fds[2];
	g_autofree char *file = NULL;

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(write(pipe_fds[1], policy_text, strlen(policy_text)), strlen(policy_text));
	close(pipe_fds[1]);
	file = g_strdup_printf("/proc/self/fd/%d", pipe_fds[0]);
	{
		const Arguments arguments = { "--policy", file };
		g_autoptr(StellaPolicy) policy = make(POLICY_FOR_COMMANDS, arguments);

		assert_int_equal(policy->limits.cpu_seconds, 7);
	}
	close(pipe_fds[0]);
}

static void assert_file_refused(const char *file, int r, const char *expected)
{
	const Arguments arguments = { "--policy", file };
	g_autoptr(PolicyOptions) options = NULL;
	g_autofree char *message = NULL;
	StellaPolicy *policy = NULL;

	assert_int_equal(run(POLICY_FOR_COMMANDS, arguments, &options, &policy, &message), r);
	assert_null(policy);
	assert_string_equal(message, expected);
}

static void a_file_that_is_no_policy_is_named(void **state)
{
	g_autofree char *bad = g_build_filename(*state, "bad.json", NULL);
	g_autofree char *absent = g_build_filename(*state, "absent", NULL);
	g_autofree char *bad_message = g_strdup_printf("policy \"%s\": x: unknown key", bad);
	g_autofree char *absent_message =
		g_strdup_printf("--policy \"%s\": No such file or directory", absent);
	g_autofree char *dir_message =
		g_strdup_printf("--policy \"%s\": Is a directory", (char *)*state);

	assert_file_refused(bad, -EINVAL, bad_message);
	assert_file_refused(absent, -ENOENT, absent_message);
	assert_file_refused(*state, -EISDIR, dir_message);
	assert_file_refused("/dev/zero", -EINVAL,
			    "--policy \"/dev/zero\": is neither a regular file nor a pipe");
}

static void policy_excludes_options_that_describe_the_view(void **state)
{
	static const struct {
		const char *argument, *name;
	} cases[] = {
		{ "--workspace=/w", "--workspace" },
		{ "--user-dir=/u", "--user-dir" },
		{ "--stella-home=/s", "--stella-home" },
		{ "--ro=/a", "--ro" },
		{ "--rw=/a", "--rw" },
		{ "--same-path", "--same-path" },
		{ "--runtime=host", "--runtime" },
		{ "--symlinks=contained", "--symlinks" },
		{ "--cache=auto", "--cache" },
	};
	g_autofree char *file = g_build_filename(*state, "good.json", NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const Arguments arguments = { cases[i].argument, "--policy", file };
		g_autofree char *expected =
			g_strdup_printf("%s: cannot be used together with --policy", cases[i].name);
		g_autoptr(PolicyOptions) options = NULL;
		g_autofree char *message = NULL;
		StellaPolicy *policy = NULL;

		assert_int_equal(run(POLICY_FOR_COMMANDS, arguments, &options, &policy, &message),
				 -EINVAL);
		assert_string_equal(message, expected);
	}
}

/* The rows of the policy are in an order of their own: each leads back to its option. */
static void a_message_names_the_option_that_was_given(void **state)
{
	static const Arguments arguments = { "--workspace", "/w",   "--same-path",
					     "--user-dir",  "/u",   "--rw",
					     "/r:/data",    "--ro", "/o" };
	static const struct {
		const char *view_path, *expected;
	} cases[] = {
		{ "/workspace", "--workspace \"x\": why" },
		{ "/w", "--workspace \"x\": why" },
		{ "/user", "--user-dir \"x\": why" },
		{ "/data", "--rw \"x\": why" },
		{ "/o", "--ro \"x\": why" },
	};
	static const char *const others[] = {
		"filesystem.mounts[99].host_path \"x\": why",
		"filesystem.mounts[0].view_path \"x\": why",
		"something else",
	};
	g_autoptr(PolicyOptions) options = NULL;
	g_autoptr(StellaPolicy) policy = NULL;
	g_autofree char *message = NULL;

	(void)state;
	assert_int_equal(run(POLICY_FOR_LOOKING, arguments, &options, &policy, &message), 0);
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		const PolicyMount *mount = policy->mounts->pdata[i];
		g_autofree char *key =
			g_strdup_printf("filesystem.mounts[%u].host_path \"x\": why", i);
		g_autofree char *explained = policy_options_explain(options, key);
		size_t k = 0;

		while (strcmp(cases[k].view_path, mount->view_path) != 0)
			assert_true(++k < G_N_ELEMENTS(cases));
		assert_string_equal(explained, cases[k].expected);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
		g_autofree char *same = policy_options_explain(options, others[i]);

		assert_string_equal(same, others[i]);
	}
}

/* Whole it is a host path that is not there; what is before the colon is. */
static void a_view_path_that_is_none_is_told(void **state)
{
	static const struct {
		const char *argument, *expected;
	} cases[] = {
		{ "--rw=%s:relative",
		  "--rw \"x\": why; in HOST:VIEW the VIEW has to be an absolute "
		  "path, not \"relative\"" },
		{ "--ro=%s:a/b", "--ro \"x\": why; in HOST:VIEW the VIEW has to be an absolute "
				 "path, not \"a/b\"" },
		{ "--ro=%s:", "--ro \"x\": why; in HOST:VIEW the VIEW is missing" },
		{ "--ro=%s", "--ro \"x\": why" },
		{ "--ro=%s:/view", "--ro \"x\": why" },
		{ "--ro=%s/absent:relative", "--ro \"x\": why" },
		{ "--ro=%s/there:is", "--ro \"x\": why" },
	};
	g_autofree char *dir = g_dir_make_tmp("test-policy-options-XXXXXX", NULL);
	g_autofree char *there = g_build_filename(dir, "there", NULL);
	g_autofree char *with_colon = g_build_filename(dir, "there:is", NULL);

	(void)state;
	assert_int_equal(g_mkdir(there, 0755), 0);
	assert_int_equal(g_mkdir(with_colon, 0755), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_auto(GStrv) around = g_strsplit(cases[i].argument, "%s", 2);
		g_autofree char *argument = g_strjoinv(dir, around);
		const Arguments arguments = { argument };
		g_autoptr(PolicyOptions) options = NULL;
		g_autoptr(StellaPolicy) policy = NULL;
		g_autofree char *message = NULL;
		g_autofree char *explained = NULL;

		assert_int_equal(run(POLICY_FOR_LOOKING, arguments, &options, &policy, &message),
				 0);
		explained = policy_options_explain(options,
						   "filesystem.mounts[1].host_path \"x\": why");
		assert_string_equal(explained, cases[i].expected);
	}
	assert_int_equal(g_rmdir(there), 0);
	assert_int_equal(g_rmdir(with_colon), 0);
	assert_int_equal(g_rmdir(dir), 0);
}

static void the_help_names_every_option_in_short_lines(void **state)
{
	static const char *const names[] = {
		"--policy FILE",  "--workspace DIR", "--user-dir DIR", "--stella-home DIR",
		"--ro HOST",	  "--rw HOST",	     "--same-path",    "--no-network",
		"--runtime MODE", "--symlinks MODE", "--cache MODE",   "--limit NAME=VALUE",
		"--backend NAME",
	};
	g_auto(GStrv) lines = g_strsplit(policy_options_help(), "\n", -1);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		if (!strstr(policy_options_help(), names[i]))
			fail_msg("%s is missing", names[i]);
	}
	for (char **line = lines; *line; line++)
		assert_in_range(strlen(*line), 0, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_options_the_current_directory_is_the_workspace),
		cmocka_unit_test(every_option_has_its_effect),
		cmocka_unit_test(a_view_path_that_is_none_is_told),
		cmocka_unit_test(host_and_view_are_split_at_the_last_colon_before_a_slash),
		cmocka_unit_test(relative_paths_start_at_the_current_directory),
		cmocka_unit_test(same_path_mounts_the_workspace_twice),
		cmocka_unit_test(limits_are_set_by_name),
		cmocka_unit_test(user_data_is_temporary_when_nothing_else_is_there),
		cmocka_unit_test(wrong_options_are_refused_and_their_twins_are_not),
		cmocka_unit_test(other_arguments_are_left_alone),
		cmocka_unit_test_setup_teardown(a_policy_file_is_read_and_narrowed, make_dir,
						remove_dir),
		cmocka_unit_test(a_policy_is_read_from_a_pipe),
		cmocka_unit_test_setup_teardown(a_file_that_is_no_policy_is_named, make_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(policy_excludes_options_that_describe_the_view,
						make_dir, remove_dir),
		cmocka_unit_test(a_message_names_the_option_that_was_given),
		cmocka_unit_test(the_help_names_every_option_in_short_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
