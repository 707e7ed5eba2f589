/* files: listing, removing and copying directories; cancelling each function at each of its steps. */
#include "files-fixture.h"

#include "common/api-path-resolver.h"
#include "common/files.h"

#include <sys/resource.h>

static char *listing_of(const char *path)
{
	g_autoptr(GPtrArray) entries = NULL;
	g_autoptr(GString) text = g_string_new(NULL);

	WORKS(entries = stella_files_list(files, path, NULL, &error));
	for (guint i = 0; i < entries->len; i++) {
		const StellaDirEntry *entry = entries->pdata[i];

		assert_int_equal(entry->is_dir, entry->type == STELLA_FILE_DIRECTORY);
		g_string_append_printf(text, "%s%s:%d", i ? " " : "", entry->name,
				       (int)entry->type);
		if (entry->type == STELLA_FILE_REGULAR)
			g_string_append_printf(text, ":%u", (guint)entry->size);
	}
	return g_strdup(text->str);
}

static void assert_lists(const char *path, const char *expected)
{
	g_autofree char *found = listing_of(path);

	assert_string_equal(found, expected);
}

static void lists_merge_the_host_and_the_view(void **state)
{
	(void)state;
	put_link("nowhere", "ws/link");
	put_file("ws/B", "");
	assert_int_equal(mkfifo(host("ws/fifo"), 0600), 0);
	assert_lists("/", "inner:1 note:0:4 opt:1 page:0:4 user:1 workspace:1");
	assert_lists("/opt", "stella:1");
	assert_lists("/opt/stella", "rw:1 sub:1 x:0:1");
	assert_lists("/workspace", "B:0:0 dir:1 fifo:3 file:0:4 inner:1 lead:1 link:2");
	assert_lists("lead", "nested:1");
	assert_lists("lead/nested/", "n:0:1 sub:1");
	assert_lists("dir/sub", "");
	/* Laid over what the host has; shown once. */
	assert_int_equal(g_mkdir_with_parents(host("ws/lead/nested/covered"), 0755), 0);
	put_file("ws/lead/own", "own");
	assert_lists("lead", "nested:1 own:0:3");
	assert_lists("lead/nested", "n:0:1 sub:1");
	FAILS(stella_files_list(files, "file", NULL, &error), STELLA_ERROR_IO);
	FAILS(stella_files_list(files, "link", NULL, &error), STELLA_ERROR_NOT_FOUND);
	FAILS(stella_files_list(files, "absent", NULL, &error), STELLA_ERROR_NOT_FOUND);
}

/* Empty files in a directory, as many names of one. */
static void fill(const char *dir, int count)
{
	FD_AUTO fd = open(host(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int made = openat(fd, "0", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(made >= 0);
	fd_close(&made);
	for (int i = 1; i < count; i++) {
		char name[16];

		g_snprintf(name, sizeof name, "%d", i);
		if (linkat(fd, "0", fd, name, 0) == 0)
			continue;
		assert_int_equal(errno, EMLINK);
		assert_int_equal(unlinkat(fd, "0", 0), 0);
		made = openat(fd, "0", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		assert_true(made >= 0);
		fd_close(&made);
		i--;
	}
}

static void lists_are_bounded(void **state)
{
	g_autoptr(GPtrArray) entries = NULL;
	FD_AUTO fd = -1;

	(void)state;
	fill("ws/dir/sub", STELLA_FILES_MAX_ENTRIES);
	WORKS(entries = stella_files_list(files, "dir/sub", NULL, &error));
	assert_int_equal(entries->len, STELLA_FILES_MAX_ENTRIES);
	fd = open(host("ws/dir/sub/more"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	FAILS(stella_files_list(files, "dir/sub", NULL, &error), STELLA_ERROR_TOO_LARGE);
}

/* Makes depth directories, one in the other, deeper than any path can name; a file in the last. */
static void dig(const char *dir, int depth)
{
	int fd = open(host(dir), O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "level-that-is-deep", 0755), 0);
		next = openat(fd, "level-that-is-deep", O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		fd_close(&fd);
		fd = next;
	}
	assert_int_equal(symlinkat("/", fd, "bottom"), 0);
	fd_close(&fd);
}

static void remove_goes_as_deep_as_it_must(void **state)
{
	struct rlimit old, low;

	(void)state;
	dig("ws/dir", 600);
	put_link(host("secret"), "ws/dir/sub/out");
	put_link("..", "ws/dir/sub/up");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){ .rlim_cur = 128, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	WORKS(stella_files_remove(files, "dir", STELLA_FILES_RECURSIVE, NULL, &error));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_false(exists("ws/dir"));
	assert_host("secret/f", "secret");
	assert_host("ws/file", "file");
}

static void remove_names_what_stayed(void **state)
{
	g_autoptr(GError) refusal = NULL;

	(void)state;
	put_file("ws/dir/sub/stuck", "x");
	assert_int_equal(chmod(host("ws/dir/sub"), 0555), 0);
	assert_false(stella_files_remove(files, "dir", STELLA_FILES_RECURSIVE, NULL, &refusal));
	check_error(refusal, STELLA_ERROR_IO, "remove");
	assert_non_null(strstr(refusal->message, "\"/workspace/dir/sub/stuck\""));
	assert_string_equal(stella_error_get_path(refusal), "/workspace/dir/sub/stuck");
	assert_host("ws/dir/sub/stuck", "x");
	assert_int_equal(chmod(host("ws/dir/sub"), 0755), 0);
	WORKS(stella_files_remove(files, "dir", STELLA_FILES_RECURSIVE, NULL, &error));
}

/* A tree that leads to a mount: its own directory, or one above it, on the host. */
static void remove_spares_all_of_what_leads_to_a_mount(void **state)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	StellaPathResolverConfig config;
	StellaMount mounts[] = {
		{ host("ws"), "/workspace", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ host("ws/tree/a/b"), "/skills", STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 },
	};
	g_autofree char *before = NULL, *after = NULL;

	(void)state;
	assert_int_equal(g_mkdir_with_parents(host("ws/tree/a/b"), 0755), 0);
	assert_int_equal(g_mkdir_with_parents(host("ws/tree/c/d"), 0755), 0);
	put_file("ws/tree/a/b/skill", "skill");
	put_file("ws/tree/1", "1");
	stella_path_resolver_config_init(&config);
	config.working_dir = "/workspace";
	config.mounts = mounts;
	config.n_mounts = G_N_ELEMENTS(mounts);
	WORKS(resolver = stella_path_resolver_new(&config, &error));
	stella_files_unref(files);
	files = stella_files_new(resolver);
	before = tree_snapshot(root);
	FAILS(stella_files_remove(files, "tree", STELLA_FILES_RECURSIVE, NULL, &error),
	      STELLA_ERROR_REFUSED);
	FAILS(stella_files_remove(files, "tree/a", STELLA_FILES_RECURSIVE, NULL, &error),
	      STELLA_ERROR_REFUSED);
	FAILS(stella_files_rename(files, "tree", "x", 0, NULL, &error), STELLA_ERROR_REFUSED);
	after = tree_snapshot(root);
	assert_string_equal(before, after);
	WORKS(stella_files_remove(files, "tree/c", STELLA_FILES_RECURSIVE, NULL, &error));
	WORKS(stella_files_copy(files, "tree", "copy", STELLA_FILES_RECURSIVE, NULL, &error));
	assert_host("ws/copy/a/b/skill", "skill");
	WORKS(stella_files_remove(files, "copy", STELLA_FILES_RECURSIVE, NULL, &error));
}

static bool copies(const char *from, const char *to, StellaFilesFlags flags, GError **error)
{
	return stella_files_copy(files, from, to, flags | STELLA_FILES_RECURSIVE, NULL, error);
}

static void copy_takes_a_tree_with_its_modes_and_links(void **state)
{
	char text[64] = "";

	(void)state;
	put_link("../../f", "ws/dir/sub/link");
	put_link("/etc/passwd", "ws/dir/out");
	put_file("ws/dir/sub/exec", "#!");
	assert_int_equal(chmod(host("ws/dir/sub/exec"), 0755), 0);
	assert_int_equal(mkdir(host("ws/dir/closed"), 0750), 0);
	put_file("ws/dir/closed/in", "in");
	assert_int_equal(chmod(host("ws/dir/closed"), 0550), 0);
	WORKS(copies("dir", "/user/copy", 0, &error));
	assert_host("user/copy/f", "f");
	assert_host("user/copy/closed/in", "in");
	assert_int_equal(mode_of("user/copy/closed") & 07777, 0550);
	assert_int_equal(mode_of("user/copy") & 07777, 0755);
	assert_int_equal(mode_of("user/copy/sub/exec") & 07777, 0755);
	assert_int_equal(readlink(host("user/copy/sub/link"), text, sizeof text), 7);
	assert_string_equal(text, "../../f");
	assert_true(S_ISLNK(mode_of("user/copy/out")));
	FAILS(copies("dir", "/user/copy", 0, &error), STELLA_ERROR_EXISTS);
	FAILS(copies("dir", "/user/copy", STELLA_FILES_REPLACE, &error), STELLA_ERROR_IO);
	FAILS(copies("dir", "file", STELLA_FILES_REPLACE, &error), STELLA_ERROR_IO);
	assert_host("ws/file", "file");
	assert_int_equal(mkdir(host("user/empty"), 0700), 0);
	WORKS(copies("dir", "/user/empty", STELLA_FILES_REPLACE, &error));
	assert_host("user/empty/f", "f");
	FAILS(copies("dir", "/inner/copy", 0, &error), STELLA_ERROR_READ_ONLY);
}

static void copy_takes_what_the_view_shows(void **state)
{
	(void)state;
	assert_int_equal(g_mkdir_with_parents(host("ws/lead/nested"), 0755), 0);
	put_file("ws/lead/nested/covered", "covered");
	WORKS(copies("/workspace", "/user/all", 0, &error));
	assert_host("user/all/file", "file");
	assert_host("user/all/inner/f", "inner");
	assert_host("user/all/lead/nested/n", "n");
	assert_false(exists("user/all/lead/nested/covered"));
	WORKS(copies("/opt", "/workspace/opt", 0, &error));
	assert_host("ws/opt/stella/rw/w", "w");
	assert_int_equal(mode_of("ws/opt") & 07777,
			 0755); /* 0555 is what the view says of its own */
}

static void copy_into_itself_is_refused(void **state)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	StellaPathResolverConfig config;
	StellaMount mounts[] = {
		{ host("ws"), "/workspace", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ host("ws"), "/again", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ host("ws/dir/sub"), "/deeper", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
	};

	(void)state;
	FAILS(copies("dir", "dir/sub/copy", 0, &error), STELLA_ERROR_INVALID_ARGUMENT);
	assert_false(exists("ws/dir/sub/copy"));
	WORKS(copies("dir/sub", "dir/sub2", 0, &error));
	/* By other names of it. */
	stella_path_resolver_config_init(&config);
	config.working_dir = "/workspace";
	config.mounts = mounts;
	config.n_mounts = G_N_ELEMENTS(mounts);
	WORKS(resolver = stella_path_resolver_new(&config, &error));
	stella_files_unref(files);
	files = stella_files_new(resolver);
	FAILS(copies("dir", "/again/dir/copy", 0, &error), STELLA_ERROR_INVALID_ARGUMENT);
	FAILS(copies("dir", "/deeper/copy", 0, &error), STELLA_ERROR_INVALID_ARGUMENT);
	assert_false(exists("ws/dir/copy"));
	assert_false(exists("ws/dir/sub/copy"));
}

static void copy_names_what_it_cannot(void **state)
{
	g_autoptr(GError) refusal = NULL;

	(void)state;
	assert_int_equal(mkfifo(host("ws/dir/sub/fifo"), 0600), 0);
	assert_false(copies("dir", "copy", 0, &refusal));
	check_error(refusal, STELLA_ERROR_IO, "copy");
	assert_int_equal(stella_error_get_errno(refusal), ENXIO);
	assert_non_null(strstr(refusal->message, "\"/workspace/dir/sub/fifo\""));
	assert_int_equal(unlink(host("ws/dir/sub/fifo")), 0);
	WORKS(stella_files_remove(files, "copy", STELLA_FILES_RECURSIVE, NULL, &error));
	WORKS(copies("dir", "copy", 0, &error));
}

static void copy_of_what_no_path_can_name_fails(void **state)
{
	(void)state;
	dig("ws/dir", 600);
	FAILS(copies("dir", "copy", 0, &error), STELLA_ERROR_INVALID_ARGUMENT);
	WORKS(stella_files_remove(files, "copy", STELLA_FILES_RECURSIVE, NULL, &error));
	WORKS(stella_files_remove(files, "dir", STELLA_FILES_RECURSIVE, NULL, &error));
}

/* --- cancelling at each step --- */

typedef struct {
	int left; /* steps until it is cancelled */
} Fuse;

static bool burn(void *data)
{
	Fuse *fuse = data;

	return fuse->left-- <= 0;
}

typedef struct {
	const char *name;
	int (*run)(FilesCall *call);
	bool leaves_parts; /* cancelled, it may have done a part of it */
} Cancelable;

static char *big; /* a text of several steps */

static int do_write(FilesCall *call)
{
	return files_write(call, "/workspace/p/q/big", big, strlen(big), FILES_PARENTS);
}

static int do_replace(FilesCall *call)
{
	return files_write(call, "/workspace/file", big, strlen(big), 0);
}

static int do_append(FilesCall *call)
{
	return files_append(call, "/workspace/file", "+", 1, 0);
}

static int do_edit(FilesCall *call)
{
	g_autofree char *view_path = NULL;
	size_t count;

	return files_edit(call, "/workspace/file", "file", "edited", 0, &count, &view_path);
}

static int do_read(FilesCall *call)
{
	g_autoptr(GBytes) bytes = NULL;

	return files_read(call, "/workspace/large", 0, 0, &bytes);
}

static int do_list(FilesCall *call)
{
	g_autoptr(GPtrArray) entries = NULL;

	return files_list(call, "/workspace", &entries);
}

static int do_mkdir(FilesCall *call)
{
	return files_mkdir(call, "/workspace/made", 0);
}

static int do_rename(FilesCall *call)
{
	return files_rename(call, "/workspace/file", "/workspace/renamed", 0);
}

static int do_copy(FilesCall *call)
{
	return files_copy(call, "/workspace/large", "/user/large", 0);
}

static int do_copy_tree(FilesCall *call)
{
	return files_copy(call, "/workspace/dir", "/user/dir", FILES_RECURSIVE);
}

static int do_remove(FilesCall *call)
{
	return files_remove(call, "/workspace/file", 0);
}

static int do_remove_tree(FilesCall *call)
{
	return files_remove(call, "/workspace/dir", FILES_RECURSIVE);
}

static const Cancelable cancelables[] = {
	{ "write", do_write, true }, /* the directories on the way */
	{ "replace", do_replace, false },
	{ "append", do_append, false },
	{ "edit", do_edit, false },
	{ "read", do_read, false },
	{ "list", do_list, false },
	{ "mkdir", do_mkdir, false },
	{ "rename", do_rename, false },
	{ "copy", do_copy, false },
	{ "copy-tree", do_copy_tree, true },
	{ "remove", do_remove, false },
	{ "remove-tree", do_remove_tree, true },
};

static gint compare_texts(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names, kinds, modes, sizes and identities; not the times of directories, in which a file of ours was for a moment. */
static void look_at(const char *path, GString *text)
{
	GDir *dir = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	const char *name;
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	g_string_append_printf(text, "%s %o %ju %ju\n", path, st.st_mode, (uintmax_t)st.st_ino,
			       S_ISREG(st.st_mode) ? (uintmax_t)st.st_size : 0);
	while (dir && (name = g_dir_read_name(dir)))
		g_ptr_array_add(names, path_join(path, name));
	if (dir)
		g_dir_close(dir);
	g_ptr_array_sort(names, compare_texts);
	for (guint i = 0; i < names->len; i++)
		look_at(names->pdata[i], text);
}

static char *look(void)
{
	GString *text = g_string_new(NULL);

	look_at(root, text);
	return g_string_free(text, FALSE);
}

static int run_with_fuse(const Cancelable *cancelable, int steps, PathProblem *problem)
{
	Fuse fuse = { .left = steps };
	FilesCall call = {
		.resolver = api_path_resolver_inner(stella_files_get_resolver(files)),
		.is_canceled = burn,
		.data = &fuse,
		.problem = problem,
	};

	*problem = (PathProblem){ .reason = -1 };
	return cancelable->run(&call);
}

static void cancelled_at_any_step_nothing_of_ours_stays(void **state)
{
	(void)state;
	big = g_strnfill(9 * 1024 * 1024, 'b');
	put_file("ws/large", "");
	assert_int_equal(truncate(host("ws/large"), 3 * 1024 * 1024), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(cancelables); i++) {
		int steps = 0, r = -ECANCELED;

		if (!exists("ws/file"))
			put_file("ws/file", "file");
		for (; r == -ECANCELED; steps++) {
			g_autofree char *before = look(), *after = NULL;
			PathProblem problem;

			r = run_with_fuse(&cancelables[i], steps, &problem);
			if (r == 0)
				break;
			if (r != -ECANCELED && !cancelables[i].leaves_parts)
				fail_msg("%s: %s", cancelables[i].name, problem.message);
			path_problem_clear(&problem);
			assert_int_equal(count_temps(root), 0);
			after = look();
			if (!cancelables[i].leaves_parts && strcmp(before, after) != 0)
				fail_msg("%s has changed something", cancelables[i].name);
			/* A copy does not go on from what was left. */
			if (exists("user/dir"))
				assert_int_equal(io_remove_tree(AT_FDCWD, host("user/dir")), 0);
		}
		assert_int_equal(r, 0);
		assert_true(steps > 0); /* it has asked at least once */
	}
	g_free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE(lists_merge_the_host_and_the_view),
		TREE(lists_are_bounded),
		TREE(remove_goes_as_deep_as_it_must),
		TREE(remove_names_what_stayed),
		TREE(remove_spares_all_of_what_leads_to_a_mount),
		TREE(copy_takes_a_tree_with_its_modes_and_links),
		TREE(copy_takes_what_the_view_shows),
		TREE(copy_into_itself_is_refused),
		TREE(copy_names_what_it_cannot),
		TREE(copy_of_what_no_path_can_name_fails),
		TREE(cancelled_at_any_step_nothing_of_ours_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
