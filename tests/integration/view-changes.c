/* Changes of a tree, and what is seen of it; see view-changes.h. */
#include "view-changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

void view_changes_write(const char *root, const char *name, const char *text, int flags)
{
	g_autofree char *path = g_build_filename(root, name, NULL);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

void view_changes_mkdir(const char *root, const char *name)
{
	g_autofree char *path = g_build_filename(root, name, NULL);

	assert_int_equal(mkdir(path, 0755), 0);
}

static void move(const char *root, const char *from, const char *to)
{
	g_autofree char *a = g_build_filename(root, from, NULL);
	g_autofree char *b = g_build_filename(root, to, NULL);

	assert_int_equal(rename(a, b), 0);
}

static void remove_name(const char *root, const char *name)
{
	g_autofree char *path = g_build_filename(root, name, NULL);

	assert_int_equal(remove(path), 0);
}

static void make_link(const char *root, const char *text, const char *name)
{
	g_autofree char *path = g_build_filename(root, name, NULL);

	assert_int_equal(symlink(text, path), 0);
}

static void add_name(const char *root, const char *old, const char *new)
{
	g_autofree char *a = g_build_filename(root, old, NULL);
	g_autofree char *b = g_build_filename(root, new, NULL);

	assert_int_equal(link(a, b), 0);
}

static void change_mode(const char *root, const char *name, mode_t mode)
{
	g_autofree char *path = g_build_filename(root, name, NULL);

	assert_int_equal(chmod(path, mode), 0);
}

void view_changes_make_tree(const char *root)
{
	view_changes_write(root, "f", "12345", 0);
	view_changes_mkdir(root, "d");
	view_changes_write(root, "d/x", "x", 0);
	view_changes_mkdir(root, "e");
	make_link(root, "f", "l");
	view_changes_write(root, "k1", "two names", 0);
	add_name(root, "k1", "k2");
}

static void add_content(GString *text, const char *path, const struct stat *st)
{
	char content[256];
	ssize_t got = 0;
	int fd = -1;

	if (S_ISREG(st->st_mode) && (fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0)
		got = read(fd, content, sizeof content);
	if (S_ISLNK(st->st_mode))
		got = readlink(path, content, sizeof content);
	g_string_append_printf(text, " %lld*%llu ", (long long)st->st_size,
			       (unsigned long long)st->st_nlink);
	g_string_append_len(text, content, MAX(got, 0));
	if (fd >= 0)
		close(fd);
}

static void add_object(GString *text, const char *root, const char *name)
{
	g_autofree char *path = g_build_filename(root, name, NULL);
	struct stat st;

	if (lstat(path, &st) != 0) {
		g_string_append_printf(text, "%s: %s\n", name, g_strerror(errno));
		return;
	}
	g_string_append_printf(text, "%s: %o", name, st.st_mode);
	if (!S_ISDIR(st.st_mode))
		add_content(text, path, &st);
	g_string_append_c(text, '\n');
}

static int compare_names(gconstpointer a, gconstpointer b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_listing(GString *text, const char *root, const char *name)
{
	g_autofree char *path = g_build_filename(root, name, NULL);
	g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
	DIR *dir = opendir(path);
	struct dirent *d;

	if (!dir)
		return;
	while ((d = readdir(dir)))
		g_ptr_array_add(list, g_strdup(d->d_name));
	closedir(dir);
	g_ptr_array_sort(list, compare_names);
	g_ptr_array_add(list, NULL);
	g_autofree char *joined = g_strjoinv(" ", (char **)list->pdata);
	g_string_append_printf(text, "%s/: %s\n", name, joined);
}

char *view_changes_look(const char *root)
{
	static const char *const objects[] = { "f", "new", "d", "d/x", "d/y", "old", "old/x",
					       "e", "e/d", "l", "h",   "k1",  "k2",  "f/x" };
	static const char *const listings[] = { "", "d", "e", "old" };
	GString *text = g_string_new(NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(objects); i++)
		add_object(text, root, objects[i]);
	for (size_t i = 0; i < G_N_ELEMENTS(listings); i++)
		add_listing(text, root, listings[i]);
	return g_string_free(text, FALSE);
}

/* --- the changes --- */

static void create(const char *root)
{
	view_changes_write(root, "new", "new", O_EXCL);
}

static void delete (const char *root)
{
	remove_name(root, "f");
}

static void rename_file(const char *root)
{
	move(root, "f", "new");
}

static void replace_by_rename(const char *root)
{
	view_changes_write(root, "tmp", "54321", O_EXCL);
	move(root, "tmp", "f");
}

static void replace_hard_linked(const char *root)
{
	view_changes_write(root, "tmp", "another", O_EXCL);
	move(root, "tmp", "k1");
}

static void change_mode_of_file(const char *root)
{
	change_mode(root, "f", 0600);
}

static void change_mode_of_dir(const char *root)
{
	change_mode(root, "d", 0700);
}

static void truncate_file(const char *root)
{
	g_autofree char *path = g_build_filename(root, "f", NULL);

	assert_int_equal(truncate(path, 1), 0);
}

static void append(const char *root)
{
	view_changes_write(root, "f", "678", O_APPEND);
}

static void rewrite_same_size(const char *root)
{
	view_changes_write(root, "f", "abcde", 0);
}

static void retarget_link(const char *root)
{
	make_link(root, "d/x", "tmp");
	move(root, "tmp", "l");
}

static void link_to_file(const char *root)
{
	remove_name(root, "l");
	view_changes_write(root, "l", "a file now", O_EXCL);
}

static void file_to_dir(const char *root)
{
	remove_name(root, "f");
	view_changes_mkdir(root, "f");
	view_changes_write(root, "f/x", "below", O_EXCL);
}

static void replace_dir(const char *root)
{
	move(root, "d", "old");
	view_changes_mkdir(root, "d");
	view_changes_write(root, "d/y", "y", O_EXCL);
}

static void move_dir(const char *root)
{
	move(root, "d", "e/d");
}

static void remove_dir(const char *root)
{
	remove_name(root, "d/x");
	remove_name(root, "d");
}

static void add_hard_link(const char *root)
{
	add_name(root, "f", "h");
}

static void remove_hard_link(const char *root)
{
	remove_name(root, "k2");
}

static void write_by_other_name(const char *root)
{
	view_changes_write(root, "k2", " and more", O_APPEND);
}

static void write_mapped(const char *root)
{
	g_autofree char *path = g_build_filename(root, "f", NULL);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *map = mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	memcpy(map, "VWXYZ", 5);
	assert_int_equal(msync(map, 5, MS_SYNC), 0);
	munmap(map, 5);
	close(fd);
}

const ViewChange view_changes[] = {
	{ "create", create },
	{ "delete", delete },
	{ "rename", rename_file },
	{ "replace by rename", replace_by_rename },
	{ "replace one of two names", replace_hard_linked },
	{ "chmod", change_mode_of_file },
	{ "chmod of a directory", change_mode_of_dir },
	{ "truncate", truncate_file },
	{ "append", append },
	{ "rewrite with the same size", rewrite_same_size },
	{ "retarget a link", retarget_link },
	{ "a file in the place of a link", link_to_file },
	{ "a directory in the place of a file", file_to_dir },
	{ "replace a directory", replace_dir },
	{ "move a directory", move_dir },
	{ "remove a directory", remove_dir },
	{ "a second name", add_hard_link },
	{ "one name less", remove_hard_link },
	{ "write by another name", write_by_other_name },
	{ "write through a mapping", write_mapped },
};

const size_t view_changes_count = G_N_ELEMENTS(view_changes);
