/* The path resolver at the edge: its settings, its answers as a host agent gets them, and each code beside what is allowed.
 * What the inside decides is test-path-resolver's. */
#include "files-fixture.h"

#include "common/api-path-resolver.h"

static StellaPathResolver *over_mounts(void)
{
	return stella_files_get_resolver(files);
}

static StellaPathResolver *made(const StellaPathResolverConfig *config)
{
	StellaPathResolver *resolver = NULL;

	WORKS(resolver = stella_path_resolver_new(config, &error));
	return resolver;
}

static void refuses_config(const StellaPathResolverConfig *config, StellaError code,
			   const char *key)
{
	g_autoptr(GError) error = NULL;

	assert_null(stella_path_resolver_new(config, &error));
	assert_non_null(error);
	if (!g_error_matches(error, STELLA_ERROR, (int)code))
		fail_msg("%s: %s", stella_error_code_name((StellaError)error->code),
			 error->message);
	assert_null(strpbrk(error->message, "\n"));
	if (g_strcmp0(stella_error_get_key(error), key) != 0)
		fail_msg("key %s: %s", stella_error_get_key(error), error->message);
}

static void answers(StellaPathResolver *resolver, const char *path, const char *view_path,
		    const char *host_name)
{
	g_autoptr(StellaResolvedPath) resolved = NULL;

	WORKS(resolved = stella_path_resolver_resolve(resolver, path, &error));
	assert_string_equal(resolved->view_path, view_path);
	assert_string_equal(resolved->host_path, host(host_name));
	assert_true(g_str_has_prefix(resolved->view_path, resolved->mount.view_path));
	assert_true(g_str_has_prefix(resolved->host_path, resolved->mount.host_path));
}

static void a_workspace_alone_is_at_its_own_path(void **state)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	StellaPathResolverConfig config;
	StellaMount mount;

	(void)state;
	stella_path_resolver_config_init(&config);
	config.working_dir = host("ws");
	resolver = made(&config);
	assert_int_equal(stella_path_resolver_get_n_mounts(resolver), 1);
	assert_true(stella_path_resolver_get_mount(resolver, 0, &mount));
	assert_string_equal(mount.view_path, host("ws"));
	assert_int_equal(mount.access, STELLA_MOUNT_READ_WRITE);
	assert_false(stella_path_resolver_get_mount(resolver, 1, &mount));
	answers(resolver, "file", host("ws/file"), "ws/file");
	answers(resolver, host("ws/dir/../file"), host("ws/file"), "ws/file");
	/* Where paths are the host's own, that is what an error is about. */
	g_autoptr(GError) error = NULL;
	assert_null(stella_path_resolver_resolve(resolver, host("secret/f"), &error));
	assert_true(g_error_matches(error, STELLA_ERROR, STELLA_ERROR_OUTSIDE_MOUNTS));
}

static void a_temporary_directory_is_made_and_shown(void **state)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	StellaPathResolverConfig config;

	(void)state;
	stella_path_resolver_config_init(&config);
	config.working_dir = host("ws");
	config.temp_dir_host = host("tmp");
	resolver = made(&config);
	assert_int_equal(mode_of("tmp") & 07777, 0700);
	answers(resolver, "/tmp/x", "/tmp/x", "tmp/x");
	assert_int_equal(stella_path_resolver_get_n_mounts(resolver), 2);
}

static void what_cannot_be_is_refused(void **state)
{
	StellaPathResolverConfig config;
	StellaMount mounts[] = {
		{ host("ws"), "/workspace", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ host("user"), "/user", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
	};

	(void)state;
	stella_path_resolver_config_init(&config);
	refuses_config(&config, STELLA_ERROR_POLICY_INVALID, "filesystem.working_dir");
	config.working_dir = "/workspace";
	config.workspace_root = host("ws");
	config.mounts = mounts;
	config.n_mounts = G_N_ELEMENTS(mounts);
	stella_path_resolver_unref(made(&config));
	mounts[1].view_path = "/workspace";
	refuses_config(&config, STELLA_ERROR_POLICY_INVALID, "filesystem.mounts[1].view_path");
	mounts[1].view_path = "/proc/x";
	refuses_config(&config, STELLA_ERROR_POLICY_INVALID, "filesystem.mounts[1].view_path");
	mounts[1].view_path = "relative";
	refuses_config(&config, STELLA_ERROR_POLICY_INVALID, "filesystem.mounts[1].view_path");
	mounts[1].view_path = "/user";
	mounts[1].host_path = host("absent");
	refuses_config(&config, STELLA_ERROR_NOT_FOUND, "filesystem.mounts[1].host_path");
	mounts[1].optional = TRUE;
	stella_path_resolver_unref(made(&config));
	mounts[1].optional = FALSE;
	mounts[1].host_path = host("ws/file/below");
	refuses_config(&config, STELLA_ERROR_IO, "filesystem.mounts[1].host_path");
	mounts[1].host_path = host("user");
	config.working_dir = "/elsewhere";
	refuses_config(&config, STELLA_ERROR_POLICY_INVALID, "filesystem.working_dir");
	assert_false(exists("absent"));
}

/* A caller that was compiled with a header of before, when the last fields were not there. */
static void an_older_config_is_taken(void **state)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	StellaPathResolverConfig config;

	(void)state;
	stella_path_resolver_config_init(&config);
	config.working_dir = host("ws");
	config.size = G_STRUCT_OFFSET(StellaPathResolverConfig, temp_dir_host);
	config.temp_dir_host = (const char *)1;
	resolver = made(&config);
	answers(resolver, "file", host("ws/file"), "ws/file");
}

static void the_table_is_given_row_by_row(void **state)
{
	static const char *const view_paths[] = {
		"/inner", "/note", "/opt/stella", "/opt/stella/rw",
		"/page",  "/user", "/workspace",  "/workspace/lead/nested",
	};
	StellaMount mount;

	(void)state;
	assert_int_equal(stella_path_resolver_get_n_mounts(over_mounts()),
			 G_N_ELEMENTS(view_paths));
	for (gsize i = 0; i < G_N_ELEMENTS(view_paths); i++) {
		assert_true(stella_path_resolver_get_mount(over_mounts(), i, &mount));
		assert_string_equal(mount.view_path, view_paths[i]);
	}
	assert_false(stella_path_resolver_get_mount(over_mounts(), G_MAXSIZE, &mount));
}

static void names_go_both_ways(void **state)
{
	g_autofree char *to_host =
		stella_path_resolver_to_host_path(over_mounts(), "/workspace/absent/x");
	g_autofree char *to_view =
		stella_path_resolver_to_view_path(over_mounts(), host("ws/inner/f"));

	(void)state;
	assert_string_equal(to_host, host("ws/absent/x"));
	assert_string_equal(to_view, "/inner/f");
	assert_null(stella_path_resolver_to_host_path(over_mounts(), "/elsewhere"));
	assert_null(stella_path_resolver_to_view_path(over_mounts(), host("secret")));
}

static bool resolves(const char *path, bool for_write, GError **error)
{
	g_autoptr(StellaResolvedPath) resolved =
		for_write ? stella_path_resolver_resolve_write(over_mounts(), path, error)
			  : stella_path_resolver_resolve(over_mounts(), path, error);

	return resolved != NULL;
}

static void each_refusal_has_its_code(void **state)
{
	(void)state;
	put_link("dir", "ws/link");
	WORKS(resolves("file", true, &error));
	WORKS(resolves("/inner/f", false, &error));
	FAILS(resolves("/inner/f", true, &error), STELLA_ERROR_READ_ONLY);
	FAILS(resolves("/workspace/inner/f", true, &error), STELLA_ERROR_READ_ONLY);
	FAILS(resolves("/opt", true, &error), STELLA_ERROR_OUTSIDE_MOUNTS);
	FAILS(resolves("link/f", false, &error), STELLA_ERROR_SYMLINK);
	FAILS(resolves("link", false, &error), STELLA_ERROR_SYMLINK);
	WORKS(resolves("dir/f", false, &error));
	FAILS(resolves("/elsewhere", false, &error), STELLA_ERROR_OUTSIDE_MOUNTS);
	FAILS(resolves("file/below", false, &error), STELLA_ERROR_IO);
}

static void a_denial_says_where_and_why(void **state)
{
	g_autoptr(GError) error = NULL;

	(void)state;
	assert_null(stella_path_resolver_resolve_write(over_mounts(), "/inner/f", &error));
	assert_int_equal(stella_error_get_errno(error), EROFS);
	assert_string_equal(stella_error_get_path(error), "/inner/f");
	assert_string_equal(stella_error_get_mount(error), "/inner");
	assert_string_equal(stella_error_get_reason(error), "read-only-mount");
}

static void no_path_breaks_it(void **state)
{
	g_autofree char *longest = g_strnfill(4095, 'x'), *too_long = g_strnfill(4096, 'x');
	g_autofree char *name = g_strnfill(255, 'n'), *long_name = g_strnfill(256, 'n');

	(void)state;
	for (size_t i = 3; i < 4095; i += 4)
		longest[i] = too_long[i] = '/';
	FAILS(resolves("", false, &error), STELLA_ERROR_INVALID_ARGUMENT);
	FAILS(resolves(too_long, false, &error), STELLA_ERROR_INVALID_ARGUMENT);
	FAILS(resolves(long_name, false, &error), STELLA_ERROR_INVALID_ARGUMENT);
	WORKS(resolves(name, true, &error));
	assert_int_equal(symlink("absent", host("ws/\xff\n")), 0);
	FAILS(resolves("\xff\n", false, &error), STELLA_ERROR_SYMLINK); /* one line, all the same */
	WORKS(resolves("\xfe\nname", true, &error));
}

static int opens(const char *path, int flags, GError **error)
{
	return stella_path_resolver_open(over_mounts(), path, flags, 0644, error);
}

static void open_gives_descriptors(void **state)
{
	FD_AUTO fd = -1;
	FD_AUTO made_fd = -1;
	FD_AUTO by_host = -1;

	(void)state;
	put_link("/etc", "ws/out");
	WORKS((fd = opens("dir/f", O_RDONLY, &error)) >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	WORKS((made_fd = opens("made", O_WRONLY | O_CREAT | O_EXCL, &error)) >= 0);
	assert_true(exists("ws/made"));
	/* A host path inside a mount means what it means to the string form. */
	WORKS((by_host = opens(host("ws/dir/f"), O_RDONLY, &error)) >= 0);
	FAILS(opens("/workspace/out/passwd", O_RDONLY, &error) >= 0, STELLA_ERROR_SYMLINK);
	FAILS(opens("/inner/f", O_WRONLY, &error) >= 0, STELLA_ERROR_READ_ONLY);
	FAILS(opens("made", O_WRONLY | O_CREAT | O_EXCL, &error) >= 0, STELLA_ERROR_EXISTS);
	FAILS(opens("absent", O_RDONLY, &error) >= 0, STELLA_ERROR_NOT_FOUND);
	FAILS(opens("dir/f", O_TMPFILE | O_RDWR, &error) >= 0, STELLA_ERROR_INVALID_ARGUMENT);
	assert_host("ws/inner/f", "inner");
}

static void a_policy_has_the_view_of_its_commands(void **state)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	g_autoptr(StellaPolicy) policy = NULL;
	StellaPolicyOptions options;
	FD_AUTO fd = -1;

	(void)state;
	stella_policy_options_init(&options);
	options.working_dir = "/workspace";
	options.workspace_root = host("ws");
	policy = stella_policy_new(&options);
	WORKS(resolver = stella_path_resolver_new_for_policy(policy, &error));
	answers(resolver, "file", "/workspace/file", "ws/file");
	/* The directories of programs, as for a session that is not told otherwise. */
	WORKS((fd = stella_path_resolver_open(resolver, "/usr/bin/env", O_RDONLY, 0, &error)) >= 0);
	FAILS(stella_path_resolver_open(resolver, "/usr/bin/env", O_WRONLY, 0, &error) >= 0,
	      STELLA_ERROR_READ_ONLY);
}

/* A home directory as the workspace holds the private files of all sessions. */
static void the_state_directory_is_shown_by_no_door(void **state)
{
	const StellaMount mount = {
		host("ws"), "/workspace", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0
	};
	g_autoptr(StellaPathResolver) resolver = NULL;
	StellaPathResolverConfig config;
	FD_AUTO fd = -1;

	(void)state;
	g_setenv("STELLA_STATE_DIR", host("ws/dir"), TRUE);
	stella_path_resolver_config_init(&config);
	config.working_dir = "/workspace";
	config.mounts = &mount;
	config.n_mounts = 1;
	resolver = made(&config);
	g_unsetenv("STELLA_STATE_DIR");
	FAILS(stella_path_resolver_open(resolver, "dir/f", O_RDONLY, 0, &error) >= 0,
	      STELLA_ERROR_NOT_FOUND);
	FAILS(stella_path_resolver_open(resolver, "dir/new", O_WRONLY | O_CREAT, 0600, &error) >= 0,
	      STELLA_ERROR_READ_ONLY);
	assert_null(stella_path_resolver_resolve(resolver, "dir/f", NULL));
	WORKS((fd = stella_path_resolver_open(resolver, "file", O_RDONLY, 0, &error)) >= 0);
	assert_host("ws/dir/f", "f");
}

static void references_keep_it(void **state)
{
	g_autoptr(StellaPathResolver) kept = stella_path_resolver_ref(over_mounts());
	GValue value = G_VALUE_INIT;

	(void)state;
	g_clear_pointer(&files, stella_files_unref);
	g_value_init(&value, STELLA_TYPE_PATH_RESOLVER);
	g_value_set_boxed(&value, kept);
	answers(g_value_get_boxed(&value), "file", "/workspace/file", "ws/file");
	g_value_unset(&value);
	stella_path_resolver_unref(NULL);
	stella_resolved_path_free(NULL);
}

static void no_object_is_a_programming_error(void **state)
{
	GError *error = NULL;

	(void)state;
	g_test_expect_message(NULL, G_LOG_LEVEL_CRITICAL, "*resolver != NULL*");
	assert_null(stella_path_resolver_resolve(NULL, "x", &error));
	g_test_assert_expected_messages();
	g_test_expect_message(NULL, G_LOG_LEVEL_CRITICAL, "*path != NULL*");
	assert_int_equal(stella_path_resolver_open(over_mounts(), NULL, 0, 0, &error), -1);
	g_test_assert_expected_messages();
	assert_null(error);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TREE(a_workspace_alone_is_at_its_own_path),
		TREE(a_temporary_directory_is_made_and_shown),
		TREE(what_cannot_be_is_refused),
		TREE(an_older_config_is_taken),
		TREE(the_table_is_given_row_by_row),
		TREE(names_go_both_ways),
		TREE(each_refusal_has_its_code),
		TREE(a_denial_says_where_and_why),
		TREE(no_path_breaks_it),
		TREE(open_gives_descriptors),
		TREE(a_policy_has_the_view_of_its_commands),
		TREE(the_state_directory_is_shown_by_no_door),
		TREE(references_keep_it),
		TREE(no_object_is_a_programming_error),
	};

	g_test_init(&argc, &argv, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
