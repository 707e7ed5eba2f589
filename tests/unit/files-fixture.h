/* What the tests of the file functions share: the host side of the path resolver's tests, with StellaFiles over it.
 *
 *   root/ws            /workspace           rw
 *   root/ws/inner      /inner               ro    so that it is met inside the writable one too
 *   root/user          /user                rw
 *   root/ro            /opt/stella          ro
 *   root/ro/rw         /opt/stella/rw       rw
 *   root/nested        /workspace/lead/nested  ro    the host's ws has no `lead`
 *   root/note          /note                ro    a single file
 *   root/page          /page                rw    a single file
 *   root/secret                             outside */
#pragma once

#include "stella/files.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/path-util.h"
#include "lib/view-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *root; /* of the running test */
static StellaFiles *files;
static int fds_before;

/* A path in the host side; GLib keeps it. */
static inline const char *host(const char *name)
{
	g_autofree char *path = path_join(root, name);

	return g_intern_string(path);
}

static inline void put_file(const char *name, const char *text)
{
	assert_true(g_file_set_contents(host(name), text, -1, NULL));
	assert_int_equal(chmod(host(name), 0644), 0);
}

static inline void put_link(const char *text, const char *name)
{
	assert_int_equal(symlink(text, host(name)), 0);
}

static inline void assert_host(const char *name, const char *text)
{
	g_autofree char *found = NULL;

	if (!g_file_get_contents(host(name), &found, NULL, NULL))
		fail_msg("%s is not there", name);
	assert_string_equal(found, text);
}

static inline bool exists(const char *name)
{
	struct stat st;

	return lstat(host(name), &st) == 0;
}

static inline mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(host(name), &st), 0);
	return st.st_mode;
}

/* Names of ours that were left behind, anywhere on the host side. */
static inline int count_temps(const char *path)
{
	GDir *dir = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
	const char *name;
	int count = 0;

	while (dir && (name = g_dir_read_name(dir))) {
		g_autofree char *child = path_join(path, name);

		count += g_str_has_prefix(name, ".stella-");
		count += count_temps(child);
	}
	if (dir)
		g_dir_close(dir);
	return count;
}

static inline int count_fds(void)
{
	GDir *dir = g_dir_open("/proc/self/fd", 0, NULL);
	int count = 0;

	while (g_dir_read_name(dir))
		count++;
	g_dir_close(dir);
	return count;
}

static inline void make_host_side(void)
{
	static const char *const directories[] = {
		"ws/dir/sub", "ws/inner/deep", "user",	     "ro/sub",
		"ro/rw",      "nested/sub",    "secret/sub",
	};

	root = g_dir_make_tmp("test-files-XXXXXX", NULL);
	assert_non_null(root);
	for (size_t i = 0; i < G_N_ELEMENTS(directories); i++)
		assert_int_equal(g_mkdir_with_parents(host(directories[i]), 0755), 0);
	put_file("ws/file", "file");
	put_file("ws/dir/f", "f");
	put_file("ws/inner/f", "inner");
	put_file("user/notes", "notes");
	put_file("ro/x", "x");
	put_file("ro/rw/w", "w");
	put_file("nested/n", "n");
	put_file("note", "note");
	put_file("page", "page");
	put_file("secret/f", "secret");
}

static inline const StellaMount *mounts_of_root(gsize *ret_count)
{
	static StellaMount mounts[8];
	const StellaMount made[] = {
		{ host("ws"), "/workspace", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ host("ws/inner"), "/inner", STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 },
		{ host("user"), "/user", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ host("ro"), "/opt/stella", STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 },
		{ host("ro/rw"), "/opt/stella/rw", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
		{ host("nested"), "/workspace/lead/nested", STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 },
		{ host("note"), "/note", STELLA_MOUNT_READ_ONLY, FALSE, 0, 0 },
		{ host("page"), "/page", STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
	};

	memcpy(mounts, made, sizeof made);
	*ret_count = G_N_ELEMENTS(made);
	return mounts;
}

static inline StellaFiles *files_over(StellaSymlinks symlinks)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	g_autoptr(GError) error = NULL;
	StellaPathResolverConfig config;

	stella_path_resolver_config_init(&config);
	config.working_dir = "/workspace";
	config.workspace_root = host("ws");
	config.mounts = mounts_of_root(&config.n_mounts);
	config.symlinks = symlinks;
	resolver = stella_path_resolver_new(&config, &error);
	if (!resolver)
		fail_msg("%s", error->message);
	return stella_files_new(resolver);
}

static inline int set_up(void **state)
{
	(void)state;
	fds_before = count_fds();
	make_host_side();
	files = files_over(STELLA_SYMLINKS_CONTAINED);
	return 0;
}

static inline int tear_down(void **state)
{
	int r;

	(void)state;
	g_clear_pointer(&files, stella_files_unref);
	if (count_temps(root) != 0) {
		print_error("something of ours was left behind\n");
		return -1;
	}
	r = io_remove_tree(AT_FDCWD, root);
	g_clear_pointer(&root, g_free);
	if (count_fds() != fds_before) {
		print_error("%d fds were left open\n", count_fds() - fds_before);
		return -1;
	}
	return r;
}

#define TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* A call that works; `error` is for its last argument. */
#define WORKS(call)                                                                                \
	do {                                                                                       \
		GError *error = NULL;                                                              \
		if (!(call))                                                                       \
			fail_msg("%s", error ? error->message : #call);                            \
	} while (0)

/* A call that fails with a code, one line of a message, and no host path in it. */
#define FAILS(call, expected)                                                                      \
	do {                                                                                       \
		GError *error = NULL;                                                              \
		if (call)                                                                          \
			fail_msg("worked: %s", #call);                                             \
		check_error(error, expected, #call);                                               \
		g_error_free(error);                                                               \
	} while (0)

static inline void check_error(const GError *error, StellaError expected, const char *what)
{
	if (!error || error->domain != STELLA_ERROR || error->code != (int)expected)
		fail_msg("%s: %s, not %s: %s", what,
			 error ? stella_error_code_name((StellaError)error->code) : "no error",
			 stella_error_code_name(expected), error ? error->message : "");
	/* The text of a link is the agent's own to read. */
	if (strpbrk(error->message, "\n\r\t") ||
	    (strstr(error->message, root) && !strstr(error->message, " is a link to ")))
		fail_msg("%s: a message that should not be: %s", what, error->message);
}

/* The whole file through the functions, or a failed test. */
static inline void assert_reads(const char *path, const char *text)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GBytes) bytes = stella_files_read(files, path, 0, 0, NULL, &error);

	if (!bytes)
		fail_msg("%s", error->message);
	assert_int_equal(g_bytes_get_size(bytes), strlen(text));
	assert_memory_equal(g_bytes_get_data(bytes, NULL), text, strlen(text));
}

static inline bool writes(const char *path, const char *text, StellaFilesFlags flags,
			  GError **error)
{
	return stella_files_write(files, path, text, strlen(text), flags, NULL, error);
}

static inline bool reads(const char *path, GError **error)
{
	g_autoptr(GBytes) bytes = stella_files_read(files, path, 0, 0, NULL, error);

	return bytes != NULL;
}
