/* files: what the boundary refuses, each operation at each place that may not be changed, with the same operation allowed in
 * another place, and a look at the host side, which must be as before. */
#include "files-fixture.h"

/* Every function that changes something, as one that is given a directory. Each needs `f` and `sub` in it. */
typedef struct {
	const char *name;
	bool (*run)(const char *dir, GError **error);
} Operation;

static const char *in(const char *dir, const char *name)
{
	g_autofree char *path = path_join(dir, name);

	return g_intern_string(path);
}

static bool op_write(const char *dir, GError **error)
{
	return writes(in(dir, "f"), "changed", 0, error);
}

static bool op_write_new(const char *dir, GError **error)
{
	return writes(in(dir, "new"), "changed", 0, error);
}

static bool op_write_parents(const char *dir, GError **error)
{
	return writes(in(dir, "p/q/new"), "changed", STELLA_FILES_PARENTS, error);
}

static bool op_append(const char *dir, GError **error)
{
	return stella_files_append(files, in(dir, "f"), "+", 1, 0, NULL, error);
}

static bool op_append_new(const char *dir, GError **error)
{
	return stella_files_append(files, in(dir, "log"), "+", 1, 0, NULL, error);
}

static bool op_edit(const char *dir, GError **error)
{
	return stella_files_edit(files, in(dir, "f"), "n", "N", STELLA_FILES_ALL, NULL, NULL,
				 error);
}

static bool op_mkdir(const char *dir, GError **error)
{
	return stella_files_mkdir(files, in(dir, "made"), 0, NULL, error);
}

static bool op_remove(const char *dir, GError **error)
{
	return stella_files_remove(files, in(dir, "gone"), 0, NULL, error);
}

static bool op_remove_tree(const char *dir, GError **error)
{
	return stella_files_remove(files, in(dir, "sub"), STELLA_FILES_RECURSIVE, NULL, error);
}

static bool op_rename_from(const char *dir, GError **error)
{
	return stella_files_rename(files, in(dir, "f"), in(dir, "renamed"), 0, NULL, error);
}

static bool op_copy_to(const char *dir, GError **error)
{
	return stella_files_copy(files, "/user/notes", in(dir, "copied"), 0, NULL, error);
}

static bool op_copy_over(const char *dir, GError **error)
{
	return stella_files_copy(files, "/user/notes", in(dir, "renamed"), STELLA_FILES_REPLACE,
				 NULL, error);
}

static bool op_copy_tree_to(const char *dir, GError **error)
{
	return stella_files_copy(files, "/user", in(dir, "tree"), STELLA_FILES_RECURSIVE, NULL,
				 error);
}

/* In an order in which all of them work one after another. */
static const Operation operations[] = {
	{ "write", op_write },
	{ "write-new", op_write_new },
	{ "write-parents", op_write_parents },
	{ "append", op_append },
	{ "append-new", op_append_new },
	{ "edit", op_edit },
	{ "mkdir", op_mkdir },
	{ "remove", op_remove },
	{ "remove-tree", op_remove_tree },
	{ "rename", op_rename_from },
	{ "copy", op_copy_to },
	{ "copy-over", op_copy_over },
	{ "copy-tree", op_copy_tree_to },
};

/* A directory in which each of them would work but for the boundary. */
static void prepare(const char *dir)
{
	g_autofree char *sub = path_join(dir, "sub/deeper"), *file = path_join(dir, "f");
	g_autofree char *gone = path_join(dir, "gone"), *inner = path_join(dir, "sub/x");

	assert_int_equal(g_mkdir_with_parents(host(sub), 0755), 0);
	put_file(file, "content");
	put_file(gone, "content");
	put_file(inner, "content");
}

static void all_work_in(const char *dir)
{
	for (size_t i = 0; i < G_N_ELEMENTS(operations); i++) {
		g_autoptr(GError) error = NULL;

		if (!operations[i].run(dir, &error))
			fail_msg("%s in %s: %s", operations[i].name, dir, error->message);
	}
}

/* Each is refused with that code, and leaves the whole host side as it is. */
static void none_works_in(const char *dir, StellaError code)
{
	for (size_t i = 0; i < G_N_ELEMENTS(operations); i++) {
		g_autofree char *before = tree_snapshot(root), *after = NULL;
		g_autofree char *what = g_strdup_printf("%s in %s", operations[i].name, dir);
		g_autoptr(GError) error = NULL;

		if (operations[i].run(dir, &error))
			fail_msg("%s worked", what);
		check_error(error, code, what);
		after = tree_snapshot(root);
		if (strcmp(before, after) != 0)
			fail_msg("%s has changed something", what);
	}
}

static void read_only_mounts_stay_as_they_are(void **state)
{
	(void)state;
	prepare("ws/dir");
	prepare("ws/inner");
	prepare("ro");
	prepare("ro/rw");
	prepare("nested");
	none_works_in("/inner", STELLA_ERROR_READ_ONLY);
	none_works_in("/workspace/inner", STELLA_ERROR_READ_ONLY); /* by its other name */
	none_works_in("/opt/stella", STELLA_ERROR_READ_ONLY);
	none_works_in("/workspace/lead/nested", STELLA_ERROR_READ_ONLY);
	all_work_in("/workspace/dir");
	all_work_in("/opt/stella/rw");
}

static void links_are_no_way_round(void **state)
{
	(void)state;
	prepare("ws/dir");
	prepare("ws/inner");
	prepare("secret");
	put_link(host("secret"), "ws/out");
	put_link("../secret", "ws/out-relative");
	put_link("../../../../../../../..", "ws/up");
	put_link("/inner", "ws/to-ro");
	put_link("inner", "ws/to-alias");
	put_link("loop", "ws/loop");
	put_link("/workspace/dir", "ws/inside");
	none_works_in("/workspace/out", STELLA_ERROR_SYMLINK);
	none_works_in("/workspace/out-relative", STELLA_ERROR_SYMLINK);
	none_works_in("/workspace/loop", STELLA_ERROR_SYMLINK);
	none_works_in("/workspace/to-ro", STELLA_ERROR_READ_ONLY);
	none_works_in("/workspace/to-alias", STELLA_ERROR_READ_ONLY);
	FAILS(reads("out/f", &error), STELLA_ERROR_SYMLINK);
	FAILS(reads("up/etc/passwd", &error), STELLA_ERROR_OUTSIDE_MOUNTS);
	FAILS(stella_files_list(files, "out", NULL, &error), STELLA_ERROR_SYMLINK);
	FAILS(stella_files_stat(files, "out", 0, NULL, &error), STELLA_ERROR_SYMLINK);
	FAILS(stella_files_copy(files, "out/f", "stolen", 0, NULL, &error), STELLA_ERROR_SYMLINK);
	FAILS(stella_files_copy(files, "out", "stolen", 0, NULL, &error), STELLA_ERROR_SYMLINK);
	FAILS(writes("out", "x", 0, &error), STELLA_ERROR_SYMLINK);
	assert_false(exists("ws/stolen"));
	all_work_in("/workspace/inside");
	/* The links themselves can be renamed and removed. */
	WORKS(stella_files_rename(files, "out", "dir/out", 0, NULL, &error));
	WORKS(stella_files_remove(files, "dir/out", STELLA_FILES_RECURSIVE, NULL, &error));
	assert_host("secret/f", "content");
}

static void a_policy_of_no_links_follows_none(void **state)
{
	(void)state;
	prepare("ws/dir");
	put_link("dir", "ws/inside");
	put_link("dir/f", "ws/file-link");
	stella_files_unref(files);
	files = files_over(STELLA_SYMLINKS_DENY);
	none_works_in("/workspace/inside", STELLA_ERROR_SYMLINK);
	FAILS(reads("file-link", &error), STELLA_ERROR_SYMLINK);
	FAILS(writes("file-link", "x", 0, &error), STELLA_ERROR_SYMLINK);
	assert_host("ws/dir/f", "content");
	all_work_in("/workspace/dir");
}

static void nothing_is_outside_of_all_mounts(void **state)
{
	g_autofree char *by_host = NULL;

	(void)state;
	prepare("ws/dir");
	prepare("secret");
	none_works_in("/elsewhere", STELLA_ERROR_OUTSIDE_MOUNTS);
	FAILS(reads("/etc/passwd", &error), STELLA_ERROR_OUTSIDE_MOUNTS);
	FAILS(stella_files_stat(files, "/elsewhere", 0, NULL, &error), STELLA_ERROR_OUTSIDE_MOUNTS);
	/* Host paths are the host's, also those of a mount. */
	by_host = path_join(host("ws"), "file");
	assert_null(stella_files_read(files, by_host, 0, 0, NULL, NULL));
	assert_false(stella_files_write(files, by_host, "x", 1, STELLA_FILES_PARENTS, NULL, NULL));
	assert_host("ws/file", "file");
	all_work_in("/workspace/dir");
}

static void the_views_own_directories_hold_nothing_new(void **state)
{
	(void)state;
	FAILS(writes("/opt/x", "x", 0, &error), STELLA_ERROR_READ_ONLY);
	FAILS(writes("/x", "x", 0, &error), STELLA_ERROR_READ_ONLY);
	FAILS(writes("/workspace/lead/x", "x", 0, &error), STELLA_ERROR_READ_ONLY);
	FAILS(stella_files_mkdir(files, "/opt/x", 0, NULL, &error), STELLA_ERROR_READ_ONLY);
	FAILS(stella_files_rename(files, "file", "/opt/x", 0, NULL, &error),
	      STELLA_ERROR_READ_ONLY);
	FAILS(stella_files_copy(files, "file", "/opt/x", 0, NULL, &error), STELLA_ERROR_READ_ONLY);
	assert_false(exists("ws/lead"));
	assert_host("ws/file", "file");
}

/* Each way to take a name away. */
static void cannot_be_moved(const char *path)
{
	g_autofree char *before = tree_snapshot(root), *after = NULL;

	FAILS(stella_files_remove(files, path, 0, NULL, &error), STELLA_ERROR_REFUSED);
	FAILS(stella_files_remove(files, path, STELLA_FILES_RECURSIVE, NULL, &error),
	      STELLA_ERROR_REFUSED);
	FAILS(stella_files_rename(files, path, "/workspace/elsewhere", 0, NULL, &error),
	      STELLA_ERROR_REFUSED);
	FAILS(stella_files_rename(files, "/workspace/dir", path, STELLA_FILES_REPLACE, NULL,
				  &error),
	      STELLA_ERROR_REFUSED);
	after = tree_snapshot(root);
	assert_string_equal(before, after);
}

static void mounts_and_what_leads_to_them_cannot_be_moved(void **state)
{
	(void)state;
	cannot_be_moved("/workspace");
	cannot_be_moved("/workspace/inner");
	cannot_be_moved("/inner");
	cannot_be_moved("/opt");
	cannot_be_moved("/opt/stella/rw");
	cannot_be_moved("/workspace/lead");
	cannot_be_moved("/workspace/lead/nested");
	cannot_be_moved("/");
	cannot_be_moved("/note");
	/* A directory of the host's that has the name of one that leads to a mount. */
	assert_int_equal(g_mkdir(host("ws/lead"), 0755), 0);
	put_file("ws/lead/own", "own");
	cannot_be_moved("/workspace/lead");
	WORKS(stella_files_remove(files, "/workspace/lead/own", 0, NULL, &error));
	WORKS(stella_files_rename(files, "dir", "elsewhere", 0, NULL, &error));
	WORKS(stella_files_remove(files, "elsewhere", STELLA_FILES_RECURSIVE, NULL, &error));
	/* A single file that is mounted can be written to, and not replaced. */
	FAILS(writes("/page", "x", 0, &error), STELLA_ERROR_REFUSED);
	FAILS(stella_files_copy(files, "file", "/page", STELLA_FILES_REPLACE, NULL, &error),
	      STELLA_ERROR_REFUSED);
	assert_host("page", "page");
	WORKS(stella_files_append(files, "/page", "+", 1, 0, NULL, &error));
}

static void between_mounts_is_copied_and_not_renamed(void **state)
{
	g_autoptr(GError) refusal = NULL;

	(void)state;
	assert_false(stella_files_rename(files, "file", "/user/file", 0, NULL, &refusal));
	check_error(refusal, STELLA_ERROR_REFUSED, "rename");
	assert_int_equal(stella_error_get_errno(refusal), EXDEV);
	assert_string_equal(stella_error_get_reason(refusal), "cross-mount");
	assert_host("ws/file", "file");
	assert_false(exists("user/file"));
	WORKS(stella_files_copy(files, "file", "/user/file", 0, NULL, &error));
	assert_host("user/file", "file");
	WORKS(stella_files_rename(files, "/user/file", "/user/renamed", 0, NULL, &error));
}

/* What is found in a directory by stella_files_list(). */
static bool lists(StellaFiles *over, const char *path, const char *name)
{
	g_autoptr(GPtrArray) entries = NULL;
	bool found = false;

	WORKS(entries = stella_files_list(over, path, NULL, &error));
	for (guint i = 0; i < entries->len; i++)
		found |= strcmp(((StellaDirEntry *)entries->pdata[i])->name, name) == 0;
	return found;
}

static void hidden_names_are_not_there(void **state)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	g_autoptr(StellaPolicy) policy = NULL;
	g_autoptr(StellaFiles) over = NULL;
	g_autoptr(GBytes) passwd = NULL;
	StellaPolicyOptions options;

	(void)state;
	stella_policy_options_init(&options);
	options.working_dir = "/workspace";
	options.workspace_root = host("ws");
	policy = stella_policy_new(&options);
	WORKS(resolver = stella_path_resolver_new_for_policy(policy, &error));
	over = stella_files_new(resolver);
	assert_true(g_file_test("/etc/shadow", G_FILE_TEST_EXISTS));
	FAILS(stella_files_read(over, "/etc/shadow", 0, 0, NULL, &error), STELLA_ERROR_REFUSED);
	FAILS(stella_files_stat(over, "/etc/shadow", 0, NULL, &error), STELLA_ERROR_REFUSED);
	FAILS(stella_files_copy(over, "/etc/shadow", "stolen", 0, NULL, &error),
	      STELLA_ERROR_REFUSED);
	FAILS(stella_files_copy(over, "/etc/shadow", "stolen", STELLA_FILES_RECURSIVE, NULL,
				&error),
	      STELLA_ERROR_REFUSED);
	assert_false(exists("ws/stolen"));
	assert_false(lists(over, "/etc", "shadow"));
	assert_true(lists(over, "/etc", "passwd"));
	WORKS(passwd = stella_files_read(over, "/etc/passwd", 0, 0, NULL, &error));
	FAILS(stella_files_write(over, "/etc/passwd", "x", 1, 0, NULL, &error),
	      STELLA_ERROR_READ_ONLY);
}

/* A host's own writer of the log: the last denial. */
static char *denied;

static GLogWriterOutput keep_denial(GLogLevelFlags level, const GLogField *fields, gsize count,
				    gpointer data)
{
	g_autoptr(GString) text = g_string_new(NULL);
	bool is_denial = false;

	(void)level;
	(void)data;
	for (gsize i = 0; i < count; i++) {
		const char *value = fields[i].value;

		if (strcmp(fields[i].key, "STELLA_EVENT") == 0)
			is_denial = strcmp(value, "sandbox.policy_denied") == 0;
		else if (g_str_has_prefix(fields[i].key, "STELLA_"))
			g_string_append_printf(text, "%s%s", text->len ? " " : "", value);
	}
	if (is_denial) {
		g_free(denied);
		denied = g_strdup(text->str);
	}
	return G_LOG_WRITER_HANDLED;
}

static void denials_are_logged(void **state)
{
	(void)state;
	FAILS(stella_files_mkdir(files, "/inner/made", 0, NULL, &error), STELLA_ERROR_READ_ONLY);
	assert_string_equal(denied, "mkdir /inner/made read-only-mount");
	FAILS(stella_files_rename(files, "file", "/user/x", 0, NULL, &error), STELLA_ERROR_REFUSED);
	assert_string_equal(denied, "rename /user/x cross-mount");
	g_clear_pointer(&denied, g_free);
	FAILS(reads("absent", &error), STELLA_ERROR_NOT_FOUND);
	WORKS(stella_files_mkdir(files, "made", 0, NULL, &error));
	assert_null(denied);
}

/* root lends its power to nobody. */
static void the_owner_of_the_mount_acts(void **state)
{
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(host("ws/dir"), 1234, 4321), 0);
	assert_int_equal(chown(host("ws"), 1234, 4321), 0);
	stella_files_unref(files);
	assert_int_equal(chmod(root, 0755), 0);
	files = files_over(STELLA_SYMLINKS_CONTAINED);
	put_file("ws/dir/roots", "roots");
	assert_int_equal(chmod(host("ws/dir/roots"), 0600), 0);
	FAILS(reads("dir/roots", &error), STELLA_ERROR_IO);
	FAILS(writes("dir/roots", "x", 0, &error), STELLA_ERROR_IO);
	FAILS(writes("dir/f", "x", 0, &error), STELLA_ERROR_IO); /* 0644, root's */
	assert_host("ws/dir/roots", "roots");
	assert_host("ws/dir/f", "f");
	FAILS(writes("dir/sub/x", "x", 0, &error), STELLA_ERROR_IO);
	assert_false(exists("ws/dir/sub/x"));
	WORKS(writes("dir/new", "x", 0, &error));
	assert_int_equal(stat(host("ws/dir/new"), &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 4321);
	WORKS(stella_files_mkdir(files, "dir/made", 0, NULL, &error));
	assert_int_equal(stat(host("ws/dir/made"), &st), 0);
	assert_int_equal(st.st_uid, 1234);
	WORKS(stella_files_copy(files, "/user/notes", "dir/copied", 0, NULL, &error));
	assert_int_equal(stat(host("ws/dir/copied"), &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(geteuid(), 0);
	assert_int_equal(chown(host("ws/dir/f"), 0, 0), 0); /* we have our power back */
}

static void what_the_host_forbids_is_a_denial(void **state)
{
	g_autoptr(GError) refusal = NULL;

	(void)state;
	assert_int_equal(chmod(host("ws/file"), 0444), 0);
	assert_false(writes("file", "x", 0, &refusal));
	check_error(refusal, STELLA_ERROR_IO, "write");
	assert_int_equal(stella_error_get_errno(refusal), EACCES);
	assert_string_equal(stella_error_get_reason(refusal), "host-permission");
	assert_string_equal(stella_error_get_path(refusal), "/workspace/file");
	assert_string_equal(stella_error_get_mount(refusal), "/workspace");
	assert_string_equal(refusal->message, "cannot write \"file\": Permission denied");
	assert_host("ws/file", "file");
	assert_int_equal(chmod(host("ws/file"), 0644), 0);
	WORKS(writes("file", "x", 0, &error));
}

static void names_are_bytes_and_messages_lines(void **state)
{
	static const char *const names[] = {
		"new\nline", "\xff\xfe", "\x1b[31m", " ", "-rf", "a\\b"
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		WORKS(writes(names[i], "x", STELLA_FILES_EXCLUSIVE, &error));
		FAILS(writes(names[i], "x", STELLA_FILES_EXCLUSIVE, &error), STELLA_ERROR_EXISTS);
		assert_true(lists(files, "/workspace", names[i]));
		assert_reads(names[i], "x");
		FAILS(stella_files_rename(files, names[i], "/user/x", 0, NULL, &error),
		      STELLA_ERROR_REFUSED);
		WORKS(stella_files_remove(files, names[i], 0, NULL, &error));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE(read_only_mounts_stay_as_they_are),
		TREE(links_are_no_way_round),
		TREE(a_policy_of_no_links_follows_none),
		TREE(nothing_is_outside_of_all_mounts),
		TREE(the_views_own_directories_hold_nothing_new),
		TREE(mounts_and_what_leads_to_them_cannot_be_moved),
		TREE(between_mounts_is_copied_and_not_renamed),
		TREE(hidden_names_are_not_there),
		TREE(denials_are_logged),
		TREE(the_owner_of_the_mount_acts),
		TREE(what_the_host_forbids_is_a_denial),
		TREE(names_are_bytes_and_messages_lines),
	};

	int failed;

	g_log_set_writer_func(keep_denial, NULL, NULL);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	g_free(denied);
	return failed;
}
