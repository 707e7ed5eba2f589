/* files: an agent exchanges directories and files for links to the outside, as fast as it can, while the functions work on
 * them. Whatever they answer, nothing outside is changed, read or listed; and of what is read-only nothing changes. */
#include "files-fixture.h"

#include "common/api-path-resolver.h"
#include "common/files.h"

#include <stdio.h>

/* How long each race goes on; and at the most, until both sides have been seen. */
#define RACE_MS	     300
#define RACE_MS_MOST 5000

typedef struct {
	int dirfd; /* root/ws */
	const char *one, *two;
	int stop; /* atomic */
	guint swaps;
} Agent;

static gpointer swap(gpointer data)
{
	Agent *agent = data;

	while (!g_atomic_int_get(&agent->stop)) {
		if (renameat2(agent->dirfd, agent->one, agent->dirfd, agent->two,
			      RENAME_EXCHANGE) == 0)
			agent->swaps++;
		else /* one of them was removed */
			g_thread_yield();
	}
	return NULL;
}

/* What may fail in any way, but must not lead out: true if it worked. */
static bool tries(bool worked, GError *error)
{
	if (!worked)
		assert_int_equal(error->domain, STELLA_ERROR);
	g_clear_error(&error);
	return worked;
}

static bool try_read(const char *path)
{
	GError *error = NULL;
	g_autoptr(GBytes) bytes = stella_files_read(files, path, 0, 0, NULL, &error);

	if (bytes && g_bytes_get_size(bytes) == 6)
		assert_memory_not_equal(g_bytes_get_data(bytes, NULL), "secret", 6);
	return tries(bytes != NULL, error);
}

static bool try_list(const char *path)
{
	GError *error = NULL;
	g_autoptr(GPtrArray) entries = stella_files_list(files, path, NULL, &error);

	for (guint i = 0; entries && i < entries->len; i++)
		assert_string_not_equal(((StellaDirEntry *)entries->pdata[i])->name, "outside");
	return tries(entries != NULL, error);
}

#define TRY(call)                                                                                  \
	do {                                                                                       \
		GError *error = NULL;                                                              \
		bool worked = (call);                                                              \
		worked_count += tries(worked, error);                                              \
		refused_count += !worked;                                                          \
	} while (0)

static guint worked_count, refused_count;

static void work_below_directory(int round)
{
	char made[32];

	g_snprintf(made, sizeof made, "swapped/m%d", round);
	worked_count += try_read("swapped/f");
	worked_count += try_list("swapped");
	TRY(writes("swapped/f", "mine", 0, &error));
	TRY(writes("swapped/p/q", "mine", STELLA_FILES_PARENTS, &error));
	TRY(stella_files_append(files, "swapped/f", "+", 1, 0, NULL, &error));
	TRY(stella_files_edit(files, "swapped/f", "m", "n", 0, NULL, NULL, &error));
	TRY(stella_files_mkdir(files, made, 0, NULL, &error));
	TRY(stella_files_rename(files, made, "swapped/renamed", STELLA_FILES_REPLACE, NULL,
				&error));
	TRY(stella_files_copy(files, "swapped", "/user/copy", STELLA_FILES_RECURSIVE, NULL,
			      &error));
	TRY(stella_files_copy(files, "/user/notes", "swapped/notes", STELLA_FILES_REPLACE, NULL,
			      &error));
	TRY(stella_files_remove(files, "swapped/p", STELLA_FILES_RECURSIVE, NULL, &error));
	TRY(stella_files_remove(files, "swapped/sub", STELLA_FILES_RECURSIVE, NULL, &error));
	TRY(stella_files_remove(files, "/user/copy", STELLA_FILES_RECURSIVE, NULL, &error));
}

static void work_on_file(int round)
{
	(void)round;
	worked_count += try_read("swapped");
	TRY(writes("swapped", "mine", 0, &error));
	TRY(stella_files_append(files, "swapped", "+", 1, 0, NULL, &error));
	TRY(stella_files_edit(files, "swapped", "m", "n", 0, NULL, NULL, &error));
	TRY(stella_files_copy(files, "/user/notes", "swapped", STELLA_FILES_REPLACE, NULL, &error));
	TRY(stella_files_copy(files, "swapped", "/user/copy", STELLA_FILES_REPLACE, NULL, &error));
	worked_count += try_read("/user/copy");
}

static bool goes_on(gint64 begin, bool until_both)
{
	gint64 ms = (g_get_monotonic_time() - begin) / 1000;
	bool both = worked_count > 0 && refused_count > 0;

	return ms < RACE_MS || (until_both && !both && ms < RACE_MS_MOST);
}

/* Lets an agent swap ws/swapped with ws/other while work is done. */
static void race(void (*work)(int round), bool both_happen)
{
	Agent agent = {
		.dirfd = open(host("ws"), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.one = "swapped",
		.two = "other",
	};
	gint64 begin = g_get_monotonic_time();
	GThread *thread = g_thread_new("agent", swap, &agent);

	worked_count = refused_count = 0;
	for (int round = 0; goes_on(begin, both_happen); round++)
		work(round);
	g_atomic_int_set(&agent.stop, 1);
	g_thread_join(thread);
	fd_close(&agent.dirfd);
	assert_true(agent.swaps > 0);
	if (both_happen)
		assert_true(worked_count > 0 && refused_count > 0);
}

static void directories_become_links_to_the_outside(void **state)
{
	g_autofree char *before = NULL, *after = NULL;

	(void)state;
	put_file("secret/outside", "secret");
	assert_int_equal(g_mkdir_with_parents(host("secret/p/q"), 0755), 0);
	before = tree_snapshot(host("secret"));
	assert_int_equal(rename(host("ws/dir"), host("ws/swapped")), 0);
	put_link(host("secret"), "ws/other");
	race(work_below_directory, true);
	after = tree_snapshot(host("secret"));
	assert_string_equal(before, after);
}

static void files_become_links_to_the_outside(void **state)
{
	g_autofree char *before = tree_snapshot(host("secret")), *after = NULL;

	(void)state;
	put_file("ws/swapped", "mine");
	put_link(host("secret/f"), "ws/other");
	race(work_on_file, false);
	after = tree_snapshot(host("secret"));
	assert_string_equal(before, after);
}

/* A link that is followed by the host, relative to the directory on the host, would reach the read-only mount from
 * below a writable name. */
static void directories_become_links_to_what_is_read_only(void **state)
{
	g_autofree char *before = NULL, *after = NULL;

	(void)state;
	put_file("ro/f", "f");
	put_file("ro/outside", "x");
	before = tree_snapshot(host("ro"));
	assert_int_equal(rename(host("ws/dir"), host("ws/swapped")), 0);
	put_link("../ro", "ws/other");
	race(work_below_directory, true);
	after = tree_snapshot(host("ro"));
	assert_string_equal(before, after);
}

/* A directory of its own, never what a link leads to; -1 when there is none. */
static int open_own(int dirfd, const char *name)
{
	return openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* What there is may be half removed, and a link in the place of a directory. */
static void build(int dirfd)
{
	FD_AUTO own = -1;

	(void)mkdirat(dirfd, "swapped", 0755);
	own = open_own(dirfd, "swapped");
	for (int i = 0; own >= 0 && i < 8; i++) {
		char name[8];

		g_snprintf(name, sizeof name, "%d", i);
		(void)mkdirat(own, name, 0755);
	}
	if (symlinkat(host("secret"), dirfd, "other") != 0)
		assert_int_equal(errno, EEXIST);
}

static void assert_nothing_was_stolen(const char *name)
{
	FD_AUTO copy = open_own(AT_FDCWD, host("user/copy"));
	FD_AUTO own = copy >= 0 ? open_own(copy, name) : -1;

	assert_true(own < 0 || faccessat(own, "f", F_OK, AT_SYMLINK_NOFOLLOW) != 0);
}

/* While a tree is removed its directories move about, and in their place comes what leads out. */
static void trees_change_while_they_are_removed_and_copied(void **state)
{
	g_autofree char *before = tree_snapshot(host("secret")), *after = NULL;
	Agent agent = { .one = "swapped", .two = "other" };
	gint64 begin = g_get_monotonic_time();
	GThread *thread;

	(void)state;
	assert_int_equal(g_mkdir(host("ws/tree"), 0755), 0);
	agent.dirfd = open(host("ws/tree"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	thread = g_thread_new("agent", swap, &agent);
	while (goes_on(begin, false)) {
		build(agent.dirfd);
		TRY(stella_files_copy(files, "tree", "/user/copy", STELLA_FILES_RECURSIVE, NULL,
				      &error));
		assert_nothing_was_stolen("swapped");
		assert_nothing_was_stolen("other");
		TRY(stella_files_remove(files, "/user/copy", STELLA_FILES_RECURSIVE, NULL, &error));
		TRY(stella_files_remove(files, "tree/swapped", STELLA_FILES_RECURSIVE, NULL,
					&error));
		TRY(stella_files_remove(files, "tree/other", STELLA_FILES_RECURSIVE, NULL, &error));
	}
	g_atomic_int_set(&agent.stop, 1);
	g_thread_join(thread);
	fd_close(&agent.dirfd);
	assert_true(agent.swaps > 0);
	after = tree_snapshot(host("secret"));
	assert_string_equal(before, after);
}

/* --- the same at each step, one after the other: where a function asks whether it was cancelled, names change --- */

typedef struct {
	int left; /* steps until it happens */
	const char *one, *two;
} Trap;

static bool spring(void *data)
{
	Trap *trap = data;

	/* Or it has been removed by now. */
	if (trap->left-- == 0 &&
	    renameat2(AT_FDCWD, host(trap->one), AT_FDCWD, host(trap->two), RENAME_EXCHANGE) != 0)
		assert_int_equal(errno, ENOENT);
	return false;
}

static void step_write(FilesCall *call)
{
	(void)files_write(call, "/workspace/top/dir/f", "mine", 4, 0);
}

static void step_write_new(FilesCall *call)
{
	(void)files_write(call, "/workspace/top/dir/p/q", "mine", 4, FILES_PARENTS);
}

static void step_append(FilesCall *call)
{
	(void)files_append(call, "/workspace/top/dir/f", "mine", 4, FILES_PARENTS);
}

static void step_edit(FilesCall *call)
{
	g_autofree char *view_path = NULL;
	size_t count;

	(void)files_edit(call, "/workspace/top/dir/f", "f", "mine", FILES_ALL, &count, &view_path);
}

static void step_mkdir(FilesCall *call)
{
	(void)files_mkdir(call, "/workspace/top/dir/x/y", FILES_PARENTS);
}

static void step_rename(FilesCall *call)
{
	(void)files_rename(call, "/workspace/top/dir/f", "/workspace/top/dir/sub/f", FILES_REPLACE);
}

static void step_copy(FilesCall *call)
{
	(void)files_copy(call, "/user/notes", "/workspace/top/dir/f", FILES_REPLACE);
}

static void step_copy_tree(FilesCall *call)
{
	(void)files_copy(call, "/workspace/top", "/user/copy", FILES_RECURSIVE);
}

static void step_copy_tree_in(FilesCall *call)
{
	(void)files_copy(call, "/workspace/from", "/workspace/top/dir/copy", FILES_RECURSIVE);
}

static void step_remove_tree(FilesCall *call)
{
	(void)files_remove(call, "/workspace/top", FILES_RECURSIVE);
}

static void step_read(FilesCall *call)
{
	g_autoptr(GBytes) bytes = NULL;

	if (files_read(call, "/workspace/top/dir/f", 0, 0, &bytes) == 0)
		assert_int_not_equal(g_bytes_get_size(bytes), strlen("secret"));
}

static void step_list(FilesCall *call)
{
	g_autoptr(GPtrArray) entries = NULL;

	if (files_list(call, "/workspace/top/dir", &entries) < 0)
		return;
	for (guint i = 0; i < entries->len; i++)
		assert_string_not_equal(((FilesEntry *)entries->pdata[i])->name, "outside");
}

static void (*const step_functions[])(FilesCall *) = {
	step_write, step_write_new, step_append,       step_edit,	 step_mkdir, step_rename,
	step_copy,  step_copy_tree, step_copy_tree_in, step_remove_tree, step_read,  step_list,
};

/* The secret anywhere in a tree of our own. */
static bool has_secret(const char *path)
{
	GDir *dir = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
	const char *name;
	bool found = false;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *child = path_join(path, name), *text = NULL;

		if (g_file_test(child, G_FILE_TEST_IS_SYMLINK))
			continue;
		found |= has_secret(child);
		found |= g_file_get_contents(child, &text, NULL, NULL) &&
			 strcmp(text, "secret") == 0;
	}
	if (dir)
		g_dir_close(dir);
	return found;
}

static void rebuild(const char *one)
{
	assert_int_equal(io_remove_tree(AT_FDCWD, host("ws/top")), 0);
	assert_int_equal(io_remove_tree(AT_FDCWD, host("user/copy")), 0);
	assert_int_equal(io_remove_tree(AT_FDCWD, host("ws/other")), 0);
	assert_int_equal(g_mkdir_with_parents(host("ws/top/dir/sub/deep"), 0755), 0);
	put_file("ws/top/dir/f", "f");
	put_file("ws/top/dir/sub/f", "f");
	put_link(strcmp(one, "ws/top/dir/f") == 0 ? host("secret/f") : host("secret"), "ws/other");
}

/* How often it happened: once for each step. */
static int swap_at_each_step(void (*function)(FilesCall *), const char *one)
{
	int steps = 0;

	for (bool happened = true; happened; steps++) {
		Trap trap = { .left = steps, .one = one, .two = "ws/other" };
		PathProblem problem = { .reason = -1 };
		FilesCall call = {
			.resolver = api_path_resolver_inner(stella_files_get_resolver(files)),
			.is_canceled = spring,
			.data = &trap,
			.problem = &problem,
		};

		rebuild(one);
		function(&call);
		path_problem_clear(&problem);
		happened = trap.left < 0;
		assert_false(has_secret(host("ws")));
		assert_false(has_secret(host("user")));
	}
	return steps - 1;
}

static void names_change_at_each_step(void **state)
{
	static const char *const swapped[] = { "ws/top", "ws/top/dir", "ws/top/dir/sub",
					       "ws/top/dir/f" };
	g_autofree char *before = NULL, *after = NULL;

	(void)state;
	put_file("secret/outside", "secret");
	assert_int_equal(g_mkdir_with_parents(host("secret/dir/sub"), 0755), 0);
	put_file("secret/dir/f", "secret");
	put_file("secret/sub/f", "secret");
	assert_int_equal(g_mkdir_with_parents(host("ws/from/a/b"), 0755), 0);
	put_file("ws/from/a/b/f", "f");
	before = tree_snapshot(host("secret"));
	for (size_t i = 0; i < G_N_ELEMENTS(step_functions); i++)
		for (size_t k = 0; k < G_N_ELEMENTS(swapped); k++)
			assert_true(swap_at_each_step(step_functions[i], swapped[k]) > 0);
	after = tree_snapshot(host("secret"));
	assert_string_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE(directories_become_links_to_the_outside),
		TREE(files_become_links_to_the_outside),
		TREE(directories_become_links_to_what_is_read_only),
		TREE(names_change_at_each_step),
		TREE(trees_change_while_they_are_removed_and_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
