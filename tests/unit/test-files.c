/* files: what each function does, and its flags, limits and errors. What a boundary refuses is test-files-refusals', trees
 * are test-files-tree's. */
#include "files-fixture.h"

#include "lib/preflight.h"

#include <sys/xattr.h>

static void stat_says_what_is_there(void **state)
{
	g_autoptr(StellaFileInfo) file = NULL, dir = NULL, link = NULL, followed = NULL;
	g_autoptr(StellaFileInfo) own = NULL, inner = NULL, top = NULL, note = NULL;
	struct stat st;

	(void)state;
	put_link("dir/f", "ws/link");
	assert_int_equal(chmod(host("ws/file"), 0640), 0);
	assert_int_equal(stat(host("ws/file"), &st), 0);
	WORKS(file = stella_files_stat(files, "dir/../file", 0, NULL, &error));
	assert_string_equal(file->path, "/workspace/file");
	assert_string_equal(file->mount, "/workspace");
	assert_int_equal(file->type, STELLA_FILE_REGULAR);
	assert_int_equal(file->size, 4);
	assert_int_equal(file->mode, 0640);
	assert_true(file->mtime_ns == st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec);
	assert_true(file->writable && !file->is_dir);
	WORKS(dir = stella_files_stat(files, "/workspace/dir/", 0, NULL, &error));
	assert_true(dir->is_dir && dir->type == STELLA_FILE_DIRECTORY);
	WORKS(link = stella_files_stat(files, "link", STELLA_FILES_NOFOLLOW, NULL, &error));
	assert_int_equal(link->type, STELLA_FILE_SYMLINK);
	assert_string_equal(link->path, "/workspace/link");
	assert_int_equal(link->size, strlen("dir/f"));
	WORKS(followed = stella_files_stat(files, "link", 0, NULL, &error));
	assert_string_equal(followed->path, "/workspace/dir/f");
	WORKS(own = stella_files_stat(files, "/opt", 0, NULL, &error));
	assert_true(own->is_dir && !own->writable && !own->mount);
	assert_int_equal(own->mode, 0555);
	WORKS(inner = stella_files_stat(files, "inner/f", 0, NULL, &error));
	assert_false(inner->writable);
	WORKS(top = stella_files_stat(files, "/", 0, NULL, &error));
	assert_string_equal(top->path, "/");
	WORKS(note = stella_files_stat(files, "/note", 0, NULL, &error));
	assert_string_equal(note->mount, "/note");
	assert_false(note->writable);
	FAILS(stella_files_stat(files, "absent", 0, NULL, &error), STELLA_ERROR_NOT_FOUND);
	FAILS(stella_files_stat(files, "file/", 0, NULL, &error), STELLA_ERROR_IO);
	FAILS(stella_files_stat(files, "", 0, NULL, &error), STELLA_ERROR_INVALID_ARGUMENT);
}

static char *range_of(const char *path, guint64 offset, gsize limit)
{
	g_autoptr(GBytes) bytes = NULL;

	WORKS(bytes = stella_files_read(files, path, offset, limit, NULL, &error));
	return g_strndup(g_bytes_get_size(bytes) ? g_bytes_get_data(bytes, NULL) : "",
			 g_bytes_get_size(bytes));
}

static void read_gives_ranges(void **state)
{
	static const struct {
		guint64 offset;
		gsize limit;
		const char *text;
	} cases[] = {
		{ 0, 0, "0123456789" },	 { 0, 4, "0123" },	  { 3, 4, "3456" },
		{ 8, 4, "89" },		 { 10, 4, "" },		  { 11, 0, "" },
		{ 9, 0, "9" },		 { G_MAXUINT64, 1, "" },  { G_MAXINT64, 0, "" },
		{ 0, 10, "0123456789" }, { 0, 11, "0123456789" },
	};

	(void)state;
	put_file("ws/digits", "0123456789");
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *text = range_of("digits", cases[i].offset, cases[i].limit);

		assert_string_equal(text, cases[i].text);
	}
	assert_reads("/note", "note");
	assert_reads("/workspace/inner/f", "inner");
	FAILS(reads("dir", &error), STELLA_ERROR_IO);
	FAILS(reads("absent", &error), STELLA_ERROR_NOT_FOUND);
	assert_int_equal(mkfifo(host("ws/fifo"), 0600), 0);
	FAILS(reads("fifo", &error), STELLA_ERROR_IO);
}

static void read_is_bounded(void **state)
{
	g_autoptr(GBytes) part = NULL, whole = NULL;
	const off_t most = (off_t)STELLA_FILES_MAX_BYTES;

	(void)state;
	put_file("ws/large", "");
	assert_int_equal(truncate(host("ws/large"), most + 1), 0);
	FAILS(reads("large", &error), STELLA_ERROR_TOO_LARGE);
	FAILS(stella_files_read(files, "large", 0, (gsize)most + 1, NULL, &error),
	      STELLA_ERROR_TOO_LARGE);
	FAILS(stella_files_read(files, "file", 0, (gsize)most + 1, NULL, &error),
	      STELLA_ERROR_TOO_LARGE);
	WORKS(part = stella_files_read(files, "large", 1, (gsize)most, NULL, &error));
	assert_int_equal(g_bytes_get_size(part), most);
	assert_int_equal(truncate(host("ws/large"), most), 0);
	WORKS(whole = stella_files_read(files, "large", 0, 0, NULL, &error));
	assert_int_equal(g_bytes_get_size(whole), most);
}

static void write_replaces_and_keeps_the_mode(void **state)
{
	struct stat old, new;
	FD_AUTO fd = -1;
	char byte;

	(void)state;
	assert_int_equal(chmod(host("ws/file"), 04750), 0);
	assert_int_equal(link(host("ws/file"), host("ws/other-name")), 0);
	assert_int_equal(stat(host("ws/file"), &old), 0);
	assert_true((fd = open(host("ws/file"), O_RDONLY | O_CLOEXEC)) >= 0);
	WORKS(writes("file", "new", 0, &error));
	assert_host("ws/file", "new");
	assert_int_equal(mode_of("ws/file") & 07777, 0750);
	assert_int_equal(stat(host("ws/file"), &new), 0);
	assert_true(old.st_ino != new.st_ino);
	/* Who has it open, and other names, keep the old content. */
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'f');
	assert_host("ws/other-name", "file");
	WORKS(writes("/workspace/made", "", 0, &error));
	assert_host("ws/made", "");
	assert_int_equal(mode_of("ws/made") & 07777, 0644);
	WORKS(stella_files_write(files, "bytes", "a\0b", 3, 0, NULL, &error));
	assert_int_equal(stat(host("ws/bytes"), &new), 0);
	assert_int_equal(new.st_size, 3);
}

static void the_umask_has_no_say(void **state)
{
	mode_t old = umask(0077);

	(void)state;
	WORKS(writes("a/b/made", "x", STELLA_FILES_PARENTS, &error));
	WORKS(stella_files_append(files, "appended", "x", 1, 0, NULL, &error));
	umask(old);
	assert_int_equal(mode_of("ws/a/b/made") & 07777, 0644);
	assert_int_equal(mode_of("ws/appended") & 07777, 0644);
	assert_int_equal(mode_of("ws/a") & 07777, 0755);
	assert_int_equal(mode_of("ws/a/b") & 07777, 0755);
}

static void write_follows_links_to_the_file(void **state)
{
	(void)state;
	put_link("dir/f", "ws/link");
	put_link("/user/notes", "ws/to-user");
	put_link("dir/new", "ws/dangling");
	WORKS(writes("link", "1", 0, &error));
	assert_host("ws/dir/f", "1");
	assert_true(S_ISLNK(mode_of("ws/link")));
	WORKS(writes("to-user", "2", 0, &error));
	assert_host("user/notes", "2");
	WORKS(writes("dangling", "3", 0, &error));
	assert_host("ws/dir/new", "3");
	assert_true(S_ISLNK(mode_of("ws/dangling")));
	FAILS(writes("link", "4", STELLA_FILES_EXCLUSIVE, &error), STELLA_ERROR_EXISTS);
	assert_host("ws/dir/f", "1");
}

static void flags_of_write(void **state)
{
	(void)state;
	FAILS(writes("file", "x", STELLA_FILES_EXCLUSIVE, &error), STELLA_ERROR_EXISTS);
	assert_host("ws/file", "file");
	WORKS(writes("new", "x", STELLA_FILES_EXCLUSIVE, &error));
	FAILS(writes("no/such/dir", "x", 0, &error), STELLA_ERROR_NOT_FOUND);
	assert_false(exists("ws/no"));
	WORKS(writes("no/such/dir", "x", STELLA_FILES_PARENTS, &error));
	assert_host("ws/no/such/dir", "x");
	FAILS(writes("file/below", "x", STELLA_FILES_PARENTS, &error), STELLA_ERROR_IO);
	FAILS(writes("dir", "x", 0, &error), STELLA_ERROR_IO);
	FAILS(writes("slash/", "x", 0, &error), STELLA_ERROR_IO);
	/* A link that leads nowhere is not a directory that is missing. */
	put_link("nowhere", "ws/dangling");
	FAILS(writes("dangling/x", "x", STELLA_FILES_PARENTS, &error), STELLA_ERROR_EXISTS);
	assert_false(exists("ws/nowhere"));
}

static void write_is_bounded(void **state)
{
	g_autofree char *data = g_malloc0(STELLA_FILES_MAX_BYTES + 1);
	struct stat st;

	(void)state;
	FAILS(stella_files_write(files, "big", data, STELLA_FILES_MAX_BYTES + 1, 0, NULL, &error),
	      STELLA_ERROR_TOO_LARGE);
	FAILS(stella_files_append(files, "file", data, STELLA_FILES_MAX_BYTES + 1, 0, NULL, &error),
	      STELLA_ERROR_TOO_LARGE);
	assert_false(exists("ws/big"));
	assert_host("ws/file", "file");
	WORKS(stella_files_write(files, "big", data, STELLA_FILES_MAX_BYTES, 0, NULL, &error));
	assert_int_equal(stat(host("ws/big"), &st), 0);
	assert_int_equal(st.st_size, STELLA_FILES_MAX_BYTES);
}

static void append_adds_at_the_end(void **state)
{
	(void)state;
	WORKS(stella_files_append(files, "file", "+1", 2, 0, NULL, &error));
	WORKS(stella_files_append(files, "file", "+2", 2, 0, NULL, &error));
	assert_host("ws/file", "file+1+2");
	WORKS(stella_files_append(files, "p/q/log", "x", 1, STELLA_FILES_PARENTS, NULL, &error));
	assert_host("ws/p/q/log", "x");
	FAILS(stella_files_append(files, "r/log", "x", 1, 0, NULL, &error), STELLA_ERROR_NOT_FOUND);
	FAILS(stella_files_append(files, "dir", "x", 1, 0, NULL, &error), STELLA_ERROR_IO);
	assert_int_equal(mkfifo(host("ws/fifo"), 0600), 0);
	FAILS(stella_files_append(files, "fifo", "x", 1, 0, NULL, &error), STELLA_ERROR_IO);
	/* A single file is written where it is; it cannot be replaced. */
	WORKS(stella_files_append(files, "/page", "+", 1, 0, NULL, &error));
	assert_host("page", "page+");
}

/* The place that an error names, whichever way led there. */
static void edit_fails_at(const char *path, const char *old_text, StellaFilesFlags flags,
			  StellaError code, const char *view_path)
{
	g_autoptr(GError) failure = NULL;

	assert_false(stella_files_edit(files, path, old_text, "new", flags, NULL, NULL, &failure));
	check_error(failure, code, path);
	assert_string_equal(stella_error_get_path(failure), view_path);
	assert_false(stella_files_edit(files, path, old_text, "new", flags, NULL, NULL, NULL));
}

static void an_edit_that_does_not_match_names_the_file(void **state)
{
	(void)state;
	put_file("ws/text", "one two two");
	put_link("/workspace/text", "ws/link");
	edit_fails_at("text", "absent", 0, STELLA_ERROR_NO_MATCH, "/workspace/text");
	edit_fails_at("dir/../link", "absent", STELLA_FILES_ALL, STELLA_ERROR_NO_MATCH,
		      "/workspace/text");
	edit_fails_at("link", "two", 0, STELLA_ERROR_SEVERAL_MATCHES, "/workspace/text");
	assert_host("ws/text", "one two two");
	WORKS(stella_files_edit(files, "link", "two", "2", STELLA_FILES_ALL, NULL, NULL, &error));
	assert_host("ws/text", "one 2 2");
}

static void a_read_that_fails_names_the_place(void **state)
{
	g_autoptr(GError) of_dir = NULL;
	g_autoptr(GError) of_large = NULL;

	(void)state;
	put_link("/workspace/dir", "ws/link");
	assert_false(reads("link/.", &of_dir));
	check_error(of_dir, STELLA_ERROR_IO, "a directory");
	assert_int_equal(stella_error_get_errno(of_dir), EISDIR);
	assert_string_equal(of_dir->message,
			    "cannot read \"link/.\": \"/workspace/dir\": Is a directory");
	assert_string_equal(stella_error_get_path(of_dir), "/workspace/dir");
	assert_string_equal(stella_error_get_mount(of_dir), "/workspace");
	put_file("ws/large", "");
	assert_int_equal(truncate(host("ws/large"), (off_t)STELLA_FILES_MAX_BYTES + 1), 0);
	assert_false(reads("large", &of_large));
	check_error(of_large, STELLA_ERROR_TOO_LARGE, "large");
	assert_string_equal(stella_error_get_path(of_large), "/workspace/large");
	assert_reads("link/f", "f");
}

static void an_empty_text_is_not_replaced(void **state)
{
	g_autoptr(GError) failure = NULL;

	(void)state;
	assert_false(stella_files_edit(files, "file", "", "new", 0, NULL, NULL, &failure));
	check_error(failure, STELLA_ERROR_INVALID_ARGUMENT, "empty");
	assert_int_equal(stella_error_get_errno(failure), EINVAL);
	assert_string_equal(failure->message,
			    "cannot edit \"file\": the text to be replaced is empty");
	assert_host("ws/file", "file");
	WORKS(stella_files_edit(files, "file", "file", "", 0, NULL, NULL, &error));
	assert_host("ws/file", "");
}

static bool edits(const char *old_text, const char *new_text, StellaFilesFlags flags, guint *count,
		  GError **error)
{
	return stella_files_edit(files, "text", old_text, new_text, flags, count, NULL, error);
}

static void edit_wants_exactly_one_match(void **state)
{
	guint count = 99;

	(void)state;
	put_file("ws/text", "one two two three");
	assert_int_equal(chmod(host("ws/text"), 0600), 0);
	WORKS(edits("one", "1", 0, &count, &error));
	assert_int_equal(count, 1);
	assert_host("ws/text", "1 two two three");
	assert_int_equal(mode_of("ws/text") & 07777, 0600);
	count = 99;
	FAILS(edits("two", "2", 0, &count, &error), STELLA_ERROR_SEVERAL_MATCHES);
	FAILS(edits("four", "4", 0, &count, &error), STELLA_ERROR_NO_MATCH);
	FAILS(edits("four", "4", STELLA_FILES_ALL, &count, &error), STELLA_ERROR_NO_MATCH);
	FAILS(edits("", "4", 0, &count, &error), STELLA_ERROR_INVALID_ARGUMENT);
	assert_int_equal(count, 99);
	assert_host("ws/text", "1 two two three");
	WORKS(edits("two", "", STELLA_FILES_ALL, &count, &error));
	assert_int_equal(count, 2);
	assert_host("ws/text", "1   three");
	put_file("ws/text", "aaaa");
	WORKS(edits("aa", "b", STELLA_FILES_ALL, NULL, &error)); /* matches do not overlap */
	assert_host("ws/text", "bb");
	put_file("ws/text", "");
	FAILS(edits("x", "y", 0, NULL, &error), STELLA_ERROR_NO_MATCH);
	FAILS(stella_files_edit(files, "absent", "x", "y", 0, NULL, NULL, &error),
	      STELLA_ERROR_NOT_FOUND);
	FAILS(stella_files_edit(files, "dir", "x", "y", 0, NULL, NULL, &error), STELLA_ERROR_IO);
}

static void edit_works_on_bytes(void **state)
{
	static const char before[] = "a\0b\xff\xfe\0mark\0end", after[] = "a\0b\xff\xfe\0M\0end";
	g_autofree char *found = NULL;
	gsize size;

	(void)state;
	assert_true(g_file_set_contents(host("ws/text"), before, sizeof before, NULL));
	WORKS(edits("mark", "M", 0, NULL, &error));
	assert_true(g_file_get_contents(host("ws/text"), &found, &size, NULL));
	assert_int_equal(size, sizeof after);
	assert_memory_equal(found, after, sizeof after);
}

static void edit_is_bounded(void **state)
{
	g_autofree char *longer = g_strnfill(1024 * 1024, 'x');
	struct stat st;

	(void)state;
	put_file("ws/text", "mark");
	assert_int_equal(truncate(host("ws/text"), (off_t)STELLA_FILES_MAX_BYTES + 1), 0);
	FAILS(edits("mark", "m", 0, NULL, &error), STELLA_ERROR_TOO_LARGE);
	assert_int_equal(truncate(host("ws/text"), (off_t)STELLA_FILES_MAX_BYTES - 1024), 0);
	FAILS(edits("mark", longer, 0, NULL, &error), STELLA_ERROR_TOO_LARGE);
	assert_int_equal(stat(host("ws/text"), &st), 0);
	assert_int_equal(st.st_size, STELLA_FILES_MAX_BYTES - 1024);
	WORKS(edits("mark", "marks", 0, NULL, &error));
}

static void mkdir_makes_directories(void **state)
{
	(void)state;
	WORKS(stella_files_mkdir(files, "new", 0, NULL, &error));
	assert_true(S_ISDIR(mode_of("ws/new")));
	assert_int_equal(mode_of("ws/new") & 07777, 0755);
	WORKS(stella_files_mkdir(files, "new/", 0, NULL, &error));
	WORKS(stella_files_mkdir(files, "slash/", 0, NULL, &error));
	WORKS(stella_files_mkdir(files, "/workspace", 0, NULL, &error));
	WORKS(stella_files_mkdir(files, "/opt", 0, NULL, &error)); /* is there */
	FAILS(stella_files_mkdir(files, "new", STELLA_FILES_EXCLUSIVE, NULL, &error),
	      STELLA_ERROR_EXISTS);
	FAILS(stella_files_mkdir(files, "file", 0, NULL, &error), STELLA_ERROR_EXISTS);
	FAILS(stella_files_mkdir(files, "x/y/z", 0, NULL, &error), STELLA_ERROR_NOT_FOUND);
	WORKS(stella_files_mkdir(files, "x/y/z", STELLA_FILES_PARENTS, NULL, &error));
	assert_true(S_ISDIR(mode_of("ws/x/y/z")));
	put_link("dir", "ws/to-dir");
	put_link("nowhere", "ws/dangling");
	WORKS(stella_files_mkdir(files, "to-dir", 0, NULL, &error));
	WORKS(stella_files_mkdir(files, "to-dir/made", 0, NULL, &error));
	assert_true(S_ISDIR(mode_of("ws/dir/made")));
	FAILS(stella_files_mkdir(files, "dangling", 0, NULL, &error), STELLA_ERROR_EXISTS);
	assert_false(exists("ws/nowhere"));
}

static void remove_takes_one_name(void **state)
{
	(void)state;
	put_link("dir", "ws/link");
	assert_int_equal(mkfifo(host("ws/fifo"), 0600), 0);
	WORKS(stella_files_remove(files, "file", 0, NULL, &error));
	assert_false(exists("ws/file"));
	FAILS(stella_files_remove(files, "link/", 0, NULL, &error), STELLA_ERROR_IO);
	WORKS(stella_files_remove(files, "link", STELLA_FILES_RECURSIVE, NULL, &error));
	assert_false(exists("ws/link"));
	assert_host("ws/dir/f", "f");
	WORKS(stella_files_remove(files, "fifo", 0, NULL, &error));
	WORKS(stella_files_remove(files, "dir/sub/", 0, NULL, &error));
	assert_false(exists("ws/dir/sub"));
	FAILS(stella_files_remove(files, "dir", 0, NULL, &error), STELLA_ERROR_IO);
	assert_host("ws/dir/f", "f");
	FAILS(stella_files_remove(files, "absent", 0, NULL, &error), STELLA_ERROR_NOT_FOUND);
	FAILS(stella_files_remove(files, "dir/.", STELLA_FILES_RECURSIVE, NULL, &error),
	      STELLA_ERROR_INVALID_ARGUMENT);
	FAILS(stella_files_remove(files, "dir/..", STELLA_FILES_RECURSIVE, NULL, &error),
	      STELLA_ERROR_INVALID_ARGUMENT);
}

static bool renames(const char *from, const char *to, StellaFilesFlags flags, GError **error)
{
	return stella_files_rename(files, from, to, flags, NULL, error);
}

static void rename_replaces_only_when_asked(void **state)
{
	(void)state;
	put_link("nowhere", "ws/link");
	WORKS(renames("file", "moved", 0, &error));
	assert_host("ws/moved", "file");
	FAILS(renames("moved", "dir/f", 0, &error), STELLA_ERROR_EXISTS);
	FAILS(renames("moved", "link", 0, &error), STELLA_ERROR_EXISTS);
	assert_host("ws/dir/f", "f");
	WORKS(renames("moved", "dir/f", STELLA_FILES_REPLACE, &error));
	assert_host("ws/dir/f", "file");
	assert_false(exists("ws/moved"));
	WORKS(renames("link", "dir/link", 0, &error)); /* itself */
	assert_true(S_ISLNK(mode_of("ws/dir/link")));
	FAILS(renames("absent", "x", 0, &error), STELLA_ERROR_NOT_FOUND);
	FAILS(renames("dir", "dir/sub/x", 0, &error), STELLA_ERROR_INVALID_ARGUMENT);
	FAILS(renames("dir/f", "no/such/x", 0, &error), STELLA_ERROR_NOT_FOUND);
	WORKS(renames("dir/f", "no/such/x", STELLA_FILES_PARENTS, &error));
	assert_host("ws/no/such/x", "file");
	FAILS(renames("no/such/x", "slash/", 0, &error), STELLA_ERROR_IO);
	WORKS(renames("dir/", "other/", 0, &error));
	assert_true(S_ISDIR(mode_of("ws/other/sub")));
	FAILS(renames("no", "other", STELLA_FILES_REPLACE, &error), STELLA_ERROR_IO);
	FAILS(renames("no/such/x", "other", STELLA_FILES_REPLACE, &error), STELLA_ERROR_IO);
	assert_host("ws/no/such/x", "file");
}

static bool copies(const char *from, const char *to, StellaFilesFlags flags, GError **error)
{
	return stella_files_copy(files, from, to, flags, NULL, error);
}

static void copy_goes_between_any_two_mounts(void **state)
{
	(void)state;
	assert_int_equal(chmod(host("ro/x"), 0751), 0);
	put_link("dir/f", "ws/link");
	WORKS(copies("/opt/stella/x", "/user/x", 0, &error));
	assert_host("user/x", "x");
	assert_int_equal(mode_of("user/x") & 07777, 0751);
	WORKS(copies("link", "content", 0, &error));
	assert_host("ws/content", "f");
	WORKS(copies("link", "as-link", STELLA_FILES_RECURSIVE, &error));
	assert_true(S_ISLNK(mode_of("ws/as-link")));
	FAILS(copies("file", "dir/f", 0, &error), STELLA_ERROR_EXISTS);
	FAILS(copies("file", "link", 0, &error), STELLA_ERROR_EXISTS);
	assert_host("ws/dir/f", "f");
	WORKS(copies("file", "link", STELLA_FILES_REPLACE,
		     &error)); /* the link, not what it leads to */
	assert_true(S_ISREG(mode_of("ws/link")));
	assert_host("ws/dir/f", "f");
	WORKS(copies("file", "dir/f", STELLA_FILES_REPLACE, &error));
	assert_host("ws/dir/f", "file");
	WORKS(copies("file", "n/e/w", STELLA_FILES_PARENTS, &error));
	assert_host("ws/n/e/w", "file");
	WORKS(copies("/note", "note", 0, &error));
	assert_host("ws/note", "note");
}

static void copy_says_what_it_cannot(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(host("ws/fifo"), 0600), 0);
	FAILS(copies("absent", "x", 0, &error), STELLA_ERROR_NOT_FOUND);
	FAILS(copies("dir", "x", 0, &error), STELLA_ERROR_IO);
	FAILS(copies("fifo", "x", 0, &error), STELLA_ERROR_IO);
	FAILS(copies("file", "no/such/x", 0, &error), STELLA_ERROR_NOT_FOUND);
	FAILS(copies("file", "dir", STELLA_FILES_REPLACE, &error), STELLA_ERROR_IO);
	FAILS(copies("file", "slash/", 0, &error), STELLA_ERROR_IO);
	FAILS(copies("file", "file", STELLA_FILES_REPLACE, &error), STELLA_ERROR_INVALID_ARGUMENT);
	FAILS(copies("file", "file", 0, &error), STELLA_ERROR_EXISTS);
	assert_false(exists("ws/x"));
	assert_host("ws/file", "file");
}

static void copy_keeps_holes(void **state)
{
	const off_t size = (off_t)1 << 36; /* more than any disk here */
	FD_AUTO from = -1;
	FD_AUTO to = -1;
	struct stat st;
	char text[5] = "";

	(void)state;
	from = open(host("ws/sparse"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(from >= 0);
	assert_int_equal(ftruncate(from, size), 0);
	assert_int_equal(pwrite(from, "data", 4, size / 2), 4);
	WORKS(copies("sparse", "copy", 0, &error));
	to = open(host("ws/copy"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(st.st_blocks < 1024);
	assert_int_equal(pread(to, text, 4, size / 2), 4);
	assert_string_equal(text, "data");
}

static void set_old_access(const char *name)
{
	const struct timespec times[] = { { .tv_sec = 1 }, { .tv_sec = 2 } };

	assert_int_equal(utimensat(AT_FDCWD, host(name), times, 0), 0);
}

static bool has_old_access(const char *name)
{
	struct stat st;

	assert_int_equal(stat(host(name), &st), 0);
	return st.st_atim.tv_sec == 1;
}

static void what_is_read_only_keeps_its_time_of_access(void **state)
{
	g_autoptr(GPtrArray) entries = NULL;

	(void)state;
	put_file("ro/sub/f", "f");
	set_old_access("ro/x");
	set_old_access("ro/sub");
	set_old_access("ro/sub/f");
	WORKS(copies("/opt/stella/x", "x", 0, &error));
	WORKS(entries = stella_files_list(files, "/opt/stella/sub", NULL, &error));
	WORKS(copies("/opt/stella/sub", "sub", STELLA_FILES_RECURSIVE, &error));
	assert_true(has_old_access("ro/x"));
	assert_true(has_old_access("ro/sub"));
	assert_true(has_old_access("ro/sub/f"));
}

/* The owner and others as in a mode; one user's and the mask. */
static bool put_acl(const char *name, const char *kind, unsigned char group, unsigned char others)
{
	const unsigned char acl[] = {
		2,    0, 0,	 0,			    /* version */
		1,    0, 6,	 0, 0xff, 0xff, 0xff, 0xff, /* the owner */
		2,    0, 6,	 0, 0x39, 0x30, 0,    0,    /* user 12345 */
		4,    0, group,	 0, 0xff, 0xff, 0xff, 0xff, /* the group */
		0x10, 0, 6,	 0, 0xff, 0xff, 0xff, 0xff, /* the mask */
		0x20, 0, others, 0, 0xff, 0xff, 0xff, 0xff, /* others */
	};

	if (setxattr(host(name), kind, acl, sizeof acl, 0) == 0)
		return true;
	assert_int_equal(errno, EOPNOTSUPP);
	return false;
}

static gssize acl_of(const char *name, char acl[static 256])
{
	return getxattr(host(name), "system.posix_acl_access", acl, 256);
}

static void write_keeps_an_acl_and_takes_none_from_the_directory(void **state)
{
	char before[256], after[256];
	gssize size;

	(void)state;
	if (!put_acl("ws/file", "system.posix_acl_access", 0, 0))
		PREFLIGHT_SKIP("POSIX ACLs");
	size = acl_of("ws/file", before);
	WORKS(writes("file", "new", 0, &error));
	assert_int_equal(acl_of("ws/file", after), size);
	assert_memory_equal(after, before, (size_t)size);
	put_file("ws/dir/plain", "x");
	assert_int_equal(chmod(host("ws/dir/plain"), 0640), 0);
	assert_true(put_acl("ws/dir", "system.posix_acl_default", 6, 0));
	WORKS(writes("dir/plain", "new", 0, &error));
	assert_int_equal(acl_of("ws/dir/plain", after), -1);
	assert_int_equal(mode_of("ws/dir/plain") & 07777, 0640);
}

static void a_default_acl_says_who_may_use_what_is_made(void **state)
{
	(void)state;
	if (!put_acl("ws/dir", "system.posix_acl_default", 0, 0))
		PREFLIGHT_SKIP("POSIX ACLs");
	WORKS(writes("dir/new", "new", 0, &error));
	assert_int_equal(mode_of("ws/dir/new") & 0007, 0);
	WORKS(stella_files_mkdir(files, "dir/made", 0, NULL, &error));
	assert_int_equal(mode_of("ws/dir/made") & 0007, 0);
}

static void no_other_group_gets_what_a_group_had(void **state)
{
	static const struct {
		mode_t before, after;
	} cases[] = { { 0660, 0600 }, { 0664, 0644 }, { 0640, 0600 }, { 0644, 0644 } };

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		assert_int_equal(chown(host("ws/file"), (uid_t)-1, 12346), 0);
		assert_int_equal(chmod(host("ws/file"), cases[i].before), 0);
		WORKS(writes("file", "new", 0, &error));
		assert_int_equal(mode_of("ws/file") & 07777, cases[i].after);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE(stat_says_what_is_there),
		TREE(read_gives_ranges),
		TREE(read_is_bounded),
		TREE(write_replaces_and_keeps_the_mode),
		TREE(the_umask_has_no_say),
		TREE(write_follows_links_to_the_file),
		TREE(flags_of_write),
		TREE(write_is_bounded),
		TREE(append_adds_at_the_end),
		TREE(edit_wants_exactly_one_match),
		TREE(edit_works_on_bytes),
		TREE(an_edit_that_does_not_match_names_the_file),
		TREE(a_read_that_fails_names_the_place),
		TREE(an_empty_text_is_not_replaced),
		TREE(edit_is_bounded),
		TREE(mkdir_makes_directories),
		TREE(remove_takes_one_name),
		TREE(rename_replaces_only_when_asked),
		TREE(copy_goes_between_any_two_mounts),
		TREE(copy_says_what_it_cannot),
		TREE(copy_keeps_holes),
		TREE(what_is_read_only_keeps_its_time_of_access),
		TREE(write_keeps_an_acl_and_takes_none_from_the_directory),
		TREE(a_default_acl_says_who_may_use_what_is_made),
		TREE(no_other_group_gets_what_a_group_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
