/* Names: what rename, link and unlink do to them, with the host file system beside it as the measure; which bytes and
 * lengths they may have; where ".." leads; and that a name is never another object's. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void write_at(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void read_at(int dir, const char *name, char got[64])
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, got, 63);
	assert_true(n >= 0);
	got[n] = '\0';
	close(fd);
}

/* --- rename --- */

static const struct {
	const char *from, *to;
	unsigned int flags;
	int expected; /* and on the host, too */
} renames[] = {
	{ "file", "new", 0, 0 },
	{ "file", "other", 0, 0 },
	{ "file", "file", 0, 0 },
	{ "file", "hard", 0, 0 }, /* two names of one file: nothing happens */
	{ "file", "empty", 0, EISDIR },
	{ "empty", "file", 0, ENOTDIR },
	{ "full", "empty", 0, 0 },
	{ "empty", "full", 0, ENOTEMPTY },
	{ "full", "full/sub/below", 0, EINVAL },
	{ "full/sub", "full", 0, ENOTEMPTY },
	{ "link", "file", 0, 0 }, /* the link itself */
	{ "file", "link", 0, 0 },
	{ "absent", "new", 0, ENOENT },
	{ "file", "absent/new", 0, ENOENT },
	{ "file", "other/new", 0, ENOTDIR },
	{ "file/", "new", 0, ENOTDIR },
	{ "file", "new/", 0, ENOTDIR },
	{ "empty", "new/", 0, 0 },
	{ "full/.", "new", 0, EBUSY },
	{ "full/..", "new", 0, EBUSY },
	{ "file", "new", RENAME_NOREPLACE, 0 },
	{ "file", "other", RENAME_NOREPLACE, EEXIST },
	{ "file", "file", RENAME_NOREPLACE, EEXIST },
	{ "full", "empty", RENAME_NOREPLACE, EEXIST },
	{ "file", "link", RENAME_NOREPLACE, EEXIST },
	{ "file", "other", RENAME_EXCHANGE, 0 },
	{ "file", "full", RENAME_EXCHANGE, 0 },
	{ "link", "full", RENAME_EXCHANGE, 0 },
	{ "full/sub", "empty", RENAME_EXCHANGE, 0 },
	{ "full", "full/sub", RENAME_EXCHANGE, EINVAL },
	{ "file", "absent", RENAME_EXCHANGE, ENOENT },
	{ "absent", "file", RENAME_EXCHANGE, ENOENT },
	{ "file", "other", RENAME_EXCHANGE | RENAME_NOREPLACE, EINVAL },
	{ "file", "new", 1u << 3, EINVAL },
	{ "file", "new", 1u << 31, EINVAL },
};

static void fill_tree(int dir)
{
	write_at(dir, "file", "content of file");
	write_at(dir, "other", "content of other");
	assert_int_equal(linkat(dir, "file", dir, "hard", 0), 0);
	assert_int_equal(symlinkat("file", dir, "link"), 0);
	assert_int_equal(mkdirat(dir, "empty", 0755), 0);
	assert_int_equal(mkdirat(dir, "full", 0755), 0);
	assert_int_equal(mkdirat(dir, "full/sub", 0755), 0);
	write_at(dir, "full/f", "content below full");
}

static int compare_names(gconstpointer a, gconstpointer b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names, types, link counts, texts and contents; no times, no numbers. */
static void describe(GString *text, int parent, const char *name, const char *path)
{
	int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	DIR *stream = fdopendir(dir);
	struct dirent *entry;

	assert_non_null(stream);
	while ((entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			g_ptr_array_add(names, g_strdup(entry->d_name));
	g_ptr_array_sort(names, compare_names);
	for (guint i = 0; i < names->len; i++) {
		const char *child = g_ptr_array_index(names, i);
		g_autofree char *child_path = g_build_filename(path, child, NULL);
		char content[64] = "";
		struct stat st;

		assert_int_equal(fstatat(dirfd(stream), child, &st, AT_SYMLINK_NOFOLLOW), 0);
		if (S_ISLNK(st.st_mode))
			assert_true(readlinkat(dirfd(stream), child, content, 63) > 0);
		if (S_ISREG(st.st_mode))
			read_at(dirfd(stream), child, content);
		g_string_append_printf(text, "%s %o %lu %s\n", child_path, st.st_mode,
				       S_ISDIR(st.st_mode) ? 0ul : (unsigned long)st.st_nlink,
				       content);
		if (S_ISDIR(st.st_mode))
			describe(text, dirfd(stream), child, child_path);
	}
	closedir(stream);
}

static char *describe_tree(const char *path)
{
	GString *text = g_string_new(NULL);

	describe(text, AT_FDCWD, path, "");
	return g_string_free(text, FALSE);
}

/* Does it in both places, compares errors, and then both trees, that of the view from both sides. */
static void rename_does_what_it_does_on_the_host(void **state)
{
	const Workspace *ws = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(renames); i++) {
		g_autofree char *name = g_strdup_printf("%zu", i);
		g_autofree char *inside = workspace_inside(ws, name);
		g_autofree char *host = workspace_host(ws, name);
		g_autofree char *native = g_build_filename(ws->native, name, NULL);
		int dirs[2], results[2];

		assert_int_equal(mkdir(inside, 0755), 0);
		assert_int_equal(mkdir(native, 0755), 0);
		dirs[0] = open_dir(inside);
		dirs[1] = open_dir(native);
		for (size_t k = 0; k < 2; k++) {
			fill_tree(dirs[k]);
			results[k] = result_of(renameat2(dirs[k], renames[i].from, dirs[k],
							 renames[i].to, renames[i].flags));
		}
		if (results[0] != renames[i].expected || results[1] != renames[i].expected)
			print_message("%s -> %s %x: %d, on the host %d\n", renames[i].from,
				      renames[i].to, renames[i].flags, results[0], results[1]);
		assert_int_equal(results[0], renames[i].expected);
		assert_int_equal(results[1], renames[i].expected);
		g_autofree char *got = describe_tree(inside);
		g_autofree char *on_host = describe_tree(host);
		g_autofree char *expected = describe_tree(native);
		assert_string_equal(got, expected);
		assert_string_equal(on_host, expected);
		close(dirs[0]);
		close(dirs[1]);
	}
}

/* It would leave a device node behind. */
static void whiteouts_are_refused(void **state)
{
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside);
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;

	fill_tree(dir);
	before = tree_snapshot(ws->host);
	assert_int_equal(renameat2(dir, "file", dir, "new", RENAME_WHITEOUT), -1);
	assert_int_equal(errno, EINVAL);
	after = tree_snapshot(ws->host);
	assert_string_equal(before, after);
	assert_int_equal(renameat2(dir, "file", dir, "new", 0), 0);
	close(dir);
}

/* The host makes the name after the view has found it missing: the host decides, not what is remembered. */
static void the_host_decides_whether_a_name_is_taken(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *host = workspace_host(ws, "taken");
	int dir = open_dir(ws->inside);
	char got[64];

	write_at(dir, "file", "mine");
	assert_int_equal(faccessat(dir, "taken", F_OK, 0), -1);
	assert_true(g_file_set_contents(host, "the host's", -1, NULL));
	assert_int_equal(renameat2(dir, "file", dir, "taken", RENAME_NOREPLACE), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(openat(dir, "taken", O_WRONLY | O_CREAT | O_EXCL, 0644), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(mkdirat(dir, "taken", 0755), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(linkat(dir, "file", dir, "taken", 0), -1);
	assert_int_equal(errno, EEXIST);
	workspace_assert_host(ws, "taken", "the host's", 10);
	read_at(dir, "file", got);
	assert_string_equal(got, "mine");
	close(dir);
}

static void what_was_moved_is_found_at_once_in_its_new_place(void **state)
{
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside);

	for (int i = 0; i < 300; i++) {
		struct stat st;
		int below;

		assert_int_equal(mkdirat(dir, "t", 0755), 0);
		assert_int_equal(mkdirat(dir, "m", 0755), 0);
		write_at(dir, "m/f", "in m");
		assert_int_equal(fstatat(dir, "m", &st, 0), 0);
		assert_int_equal(renameat(dir, "m", dir, "t/m"), 0);
		assert_int_equal(fstatat(dir, "t/m/f", &st, 0), 0);
		assert_int_equal(fstatat(dir, "m", &st, 0), -1);
		below = openat(dir, "t/m", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(below >= 0);
		assert_int_equal(unlinkat(below, "f", 0), 0);
		close(below);
		assert_int_equal(unlinkat(dir, "t/m", AT_REMOVEDIR), 0);
		assert_int_equal(unlinkat(dir, "t", AT_REMOVEDIR), 0);
	}
	close(dir);
}

/* "..", of a directory that someone is in while it is moved. */
static void parent_of_a_moved_directory_is_the_new_one(void **state)
{
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside), inner;
	struct stat before, after, parent, expected;
	char got[64];

	assert_int_equal(mkdirat(dir, "a", 0755), 0);
	assert_int_equal(mkdirat(dir, "a/b", 0755), 0);
	assert_int_equal(mkdirat(dir, "t", 0755), 0);
	write_at(dir, "t/f", "in t");
	inner = openat(dir, "a/b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fstat(inner, &before), 0);
	assert_int_equal(renameat(dir, "a/b", dir, "t/b"), 0);
	assert_int_equal(fstat(inner, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(fstatat(inner, "..", &parent, 0), 0);
	assert_int_equal(fstatat(dir, "t", &expected, 0), 0);
	assert_int_equal(parent.st_ino, expected.st_ino);
	read_at(inner, "../f", got);
	assert_string_equal(got, "in t");
	close(inner);
	close(dir);
}

/* --- which object a name is --- */

#define FILLERS 600 /* more than the gateway keeps fds of, with the limit that main() sets */
#define ROUNDS	30

/* Whether the host's file system gives the number of a removed file to the next one. */
static bool numbers_come_again(const Workspace *ws)
{
	int dir = open_dir(ws->native), again = 0;
	struct stat st;

	for (int i = 0; i < ROUNDS; i++) {
		ino_t old;

		write_at(dir, "old", "x");
		assert_int_equal(fstatat(dir, "old", &st, 0), 0);
		old = st.st_ino;
		assert_int_equal(unlinkat(dir, "old", 0), 0);
		write_at(dir, "new", "x");
		assert_int_equal(fstatat(dir, "new", &st, 0), 0);
		again += st.st_ino == old;
		assert_int_equal(unlinkat(dir, "new", 0), 0);
	}
	close(dir);
	return again > ROUNDS / 2;
}

/* So many others that the gateway closes its fd of what was looked up before. */
static void look_up_others(int dir)
{
	for (int i = 0; i < FILLERS; i++) {
		g_autofree char *name = g_strdup_printf("filler%d", i);

		(void)!faccessat(dir, name, R_OK, 0);
	}
}

static void assert_not_successor(int held)
{
	char path[32], got[64] = "";
	int fd;

	snprintf(path, sizeof path, "/proc/self/fd/%d", held);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		assert_int_equal(errno, ESTALE);
		return;
	}
	assert_true(read(fd, got, sizeof got - 1) >= 0);
	assert_string_equal(got, "the old one");
	close(fd);
}

static void a_held_object_is_never_its_successor(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *host = workspace_host(ws, "name");
	int dir = open_dir(ws->inside), reused = 0;

	for (int i = 0; i < FILLERS; i++) {
		g_autofree char *name = g_strdup_printf("filler%d", i);

		write_at(dir, name, "x");
	}
	for (int i = 0; i < ROUNDS; i++) {
		struct stat old, new;
		int held;

		write_at(dir, "name", "the old one");
		held = openat(dir, "name", O_PATH | O_CLOEXEC);
		assert_int_equal(fstat(held, &old), 0);
		assert_not_successor(held);
		look_up_others(dir);
		assert_int_equal(unlink(host), 0); /* the gateway is not told */
		assert_true(g_file_set_contents(host, "the new one", -1, NULL));
		assert_int_equal(stat(host, &new), 0);
		reused += old.st_ino == new.st_ino;
		assert_not_successor(held);
		close(held);
		(void)!unlinkat(dir, "name", 0);
		(void)!unlinkat(dir, "name", 0); /* once as it was, once as it is */
	}
	print_message("%d of %d numbers came again at once\n", reused, ROUNDS);
	assert_true(reused > 0 || !numbers_come_again(ws));
	close(dir);
}

/* --- bytes, lengths, depth --- */

static bool is_listed(int dir, const char *name)
{
	DIR *stream = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	int found = 0;

	assert_non_null(stream);
	while ((entry = readdir(stream)))
		found += strcmp(entry->d_name, name) == 0;
	closedir(stream);
	assert_in_range(found, 0, 1);
	return found == 1;
}

static void check_name(const Workspace *ws, int dir, const char *name)
{
	g_autofree char *host = workspace_host(ws, name);

	write_at(dir, name, "x");
	assert_int_equal(access(host, F_OK), 0); /* the very same bytes */
	assert_true(is_listed(dir, name));
	assert_int_equal(renameat(dir, name, dir, "in between"), 0);
	assert_false(is_listed(dir, name));
	assert_int_equal(renameat(dir, "in between", dir, name), 0);
	assert_int_equal(unlinkat(dir, name, 0), 0);
	assert_int_equal(access(host, F_OK), -1);
}

static void names_may_have_any_bytes(void **state)
{
	static const char *const odd[] = {
		"-rf",
		"...",
		".. ",
		" .",
		"%2e%2e",
		"..\\..\\x",
		"a\nb",
		"\x1b[31m",
		"\xc3\x28",
		"\xff\xfe",
		"caf\xc3\xa9",
		"cafe\xcc\x81",
		"\xe2\x88\x95.etc",
		"a:b",
		"*?[",
		"$(id)",
	};
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside);

	for (int byte = 1; byte < 256; byte++) {
		char name[] = { 'n', (char)byte, 'x', '\0' };

		if (byte != '/')
			check_name(ws, dir, name);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(odd); i++)
		check_name(ws, dir, odd[i]);
	/* Two spellings of one letter are two names, and so are two cases of it. */
	write_at(dir, "caf\xc3\xa9", "one");
	assert_int_equal(faccessat(dir, "cafe\xcc\x81", F_OK, 0), -1);
	assert_int_equal(faccessat(dir, "CAF\xc3\xa9", F_OK, 0), -1);
	close(dir);
}

static void names_may_have_255_bytes_and_no_more(void **state)
{
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside);
	char name[257];

	memset(name, 'n', sizeof name);
	name[255] = '\0';
	check_name(ws, dir, name);
	name[255] = 'n';
	name[256] = '\0';
	write_at(dir, "f", "x");
	assert_int_equal(openat(dir, name, O_WRONLY | O_CREAT, 0644), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	assert_int_equal(result_of(mkdirat(dir, name, 0755)), ENAMETOOLONG);
	assert_int_equal(result_of(mknodat(dir, name, S_IFIFO | 0644, 0)), ENAMETOOLONG);
	assert_int_equal(result_of(symlinkat("x", dir, name)), ENAMETOOLONG);
	assert_int_equal(result_of(linkat(dir, "f", dir, name, 0)), ENAMETOOLONG);
	assert_int_equal(result_of(renameat(dir, "f", dir, name)), ENAMETOOLONG);
	assert_int_equal(result_of(unlinkat(dir, name, 0)), ENAMETOOLONG);
	assert_int_equal(result_of(unlinkat(dir, name, AT_REMOVEDIR)), ENAMETOOLONG);
	assert_int_equal(result_of(faccessat(dir, name, F_OK, 0)), ENAMETOOLONG);
	close(dir);
}

/* Beyond PATH_MAX there is no path, only steps. */
static void deep_directories_are_usable_and_removable(void **state)
{
	enum { DEPTH = 300, LENGTH = 200 };
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside), levels = 0;
	char name[LENGTH + 1], text[64], cwd[8192];

	memset(name, 'd', LENGTH);
	name[LENGTH] = '\0';
	for (; levels < DEPTH; levels++) {
		int next;

		assert_int_equal(mkdirat(dir, name, 0755), 0);
		next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(dir);
		dir = next;
	}
	write_at(dir, "f", "deep down");
	assert_int_equal(renameat(dir, "f", dir, "g"), 0);
	read_at(dir, "g", text);
	assert_string_equal(text, "deep down");
	assert_int_equal(symlinkat("/etc/passwd", dir, "leaves"), 0);
	assert_int_equal(openat(dir, "leaves", O_RDONLY), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(symlinkat("g", dir, "stays"), 0);
	read_at(dir, "stays", text);
	assert_string_equal(text, "deep down");
	assert_int_equal(fchdir(dir), 0);
	assert_null(getcwd(cwd, sizeof cwd)); /* longer than that */
	assert_true(errno == ERANGE || errno == ENAMETOOLONG);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(unlinkat(dir, "g", 0), 0);
	assert_int_equal(unlinkat(dir, "leaves", 0), 0);
	assert_int_equal(unlinkat(dir, "stays", 0), 0);
	for (; levels > 0; levels--) {
		int up = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(up >= 0);
		assert_int_equal(unlinkat(up, name, AT_REMOVEDIR), 0);
		close(dir);
		dir = up;
	}
	close(dir);
}

static void chains_of_links_end_at_forty(void **state)
{
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside);
	char text[64];

	write_at(dir, "0", "the end");
	for (int i = 1; i <= 41; i++) {
		g_autofree char *to = g_strdup_printf("%d", i - 1);
		g_autofree char *name = g_strdup_printf("%d", i);

		assert_int_equal(symlinkat(to, dir, name), 0);
	}
	read_at(dir, "40", text);
	assert_string_equal(text, "the end");
	assert_int_equal(openat(dir, "41", O_RDONLY), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(symlinkat("b", dir, "a"), 0);
	assert_int_equal(symlinkat("a", dir, "b"), 0);
	assert_int_equal(openat(dir, "a", O_RDONLY), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(symlinkat("nowhere", dir, "dangling"), 0);
	assert_int_equal(openat(dir, "dangling", O_RDONLY), -1);
	assert_int_equal(errno, ENOENT);
	close(dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(rename_does_what_it_does_on_the_host),
		TEST(whiteouts_are_refused),
		TEST(the_host_decides_whether_a_name_is_taken),
		TEST(what_was_moved_is_found_at_once_in_its_new_place),
		TEST(parent_of_a_moved_directory_is_the_new_one),
		TEST(a_held_object_is_never_its_successor),
		TEST(names_may_have_any_bytes),
		TEST(names_may_have_255_bytes_and_no_more),
		TEST(deep_directories_are_usable_and_removable),
		TEST(chains_of_links_end_at_forty),
	};
	/* The least that a gateway has to work with. */
	const struct rlimit few = { 1024, 1024 };
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	setrlimit(RLIMIT_NOFILE, &few);
	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
