/* result-file: whole or not at all, never through a link. */
#include "executor/result-file.h"

#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/stella-test-result-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	return g_mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return io_remove_tree(AT_FDCWD, dir);
}

static char *in_dir(const char *name)
{
	return g_build_filename(dir, name, NULL);
}

static void put(const char *path, const char *text)
{
	assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void assert_content(const char *path, const char *text)
{
	g_autofree char *content = NULL;

	assert_true(g_file_get_contents(path, &content, NULL, NULL));
	assert_string_equal(content, text);
}

static guint entries(void)
{
	g_autoptr(GDir) open_dir = g_dir_open(dir, 0, NULL);
	guint n = 0;

	while (g_dir_read_name(open_dir))
		n++;
	return n;
}

static ExrResultFile *open_ok(const char *path)
{
	ExrResultFile *file = NULL;
	char *message = NULL;

	assert_int_equal(exr_result_file_open(path, &file, &message), 0);
	assert_null(message);
	return file;
}

static void assert_refused(const char *path, int result, const char *why)
{
	g_autofree char *message = NULL, *expected = g_strdup_printf("\"%s\": %s", path, why);
	ExrResultFile *file = NULL;

	assert_int_equal(exr_result_file_open(path, &file, &message), result);
	assert_null(file);
	assert_string_equal(message, expected);
}

static void a_new_file_appears_whole(void **state)
{
	g_autofree char *path = in_dir("r");
	ExrResultFile *file = open_ok(path);
	struct stat st;

	assert_int_equal(entries(), 0);
	assert_int_equal(exr_result_file_write(file, "{}\n", 3), 0);
	exr_result_file_free(file);
	assert_content(path, "{}\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666 & ~umask(022));
	assert_int_equal(entries(), 1);
	(void)state;
}

static void an_old_file_stays_until_it_is_replaced(void **state)
{
	g_autofree char *path = in_dir("r");
	ExrResultFile *file;

	put(path, "old");
	file = open_ok(path);
	assert_content(path, "old");
	exr_result_file_free(file);
	assert_content(path, "old");
	assert_int_equal(entries(), 1);
	file = open_ok(path);
	assert_int_equal(exr_result_file_write(file, "new", 3), 0);
	exr_result_file_free(file);
	assert_content(path, "new");
	assert_int_equal(entries(), 1);
	(void)state;
}

/* Refused when it lies there already; replaced, not followed, when it is put there meanwhile. */
static void a_link_is_never_followed(void **state)
{
	g_autofree char *path = in_dir("r"), *target = in_dir("target"), *none = in_dir("none");
	ExrResultFile *file;

	put(target, "precious");
	assert_int_equal(symlink(target, path), 0);
	assert_refused(path, -ELOOP, "is a symbolic link; name the file itself");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(none, path), 0);
	assert_refused(path, -ELOOP, "is a symbolic link; name the file itself");
	assert_int_equal(unlink(path), 0);

	file = open_ok(path);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(exr_result_file_write(file, "new", 3), 0);
	exr_result_file_free(file);
	assert_content(target, "precious");
	assert_content(path, "new");
	assert_int_equal(access(none, F_OK), -1);
	(void)state;
}

static void pipes_and_devices_are_written_to(void **state)
{
	g_autofree char *fifo = in_dir("fifo"), *by_fd = NULL;
	char got[8] = { 0 };
	ExrResultFile *file;
	struct stat st;
	int reader, ends[2];

	assert_int_equal(mkfifo(fifo, 0600), 0);
	reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	file = open_ok(fifo);
	assert_int_equal(exr_result_file_write(file, "a", 1), 0);
	exr_result_file_free(file);
	assert_int_equal(read(reader, got, sizeof(got)), 1);
	assert_int_equal(close(reader), 0);

	file = open_ok("/dev/null");
	assert_int_equal(exr_result_file_write(file, "a", 1), 0);
	exr_result_file_free(file);
	assert_int_equal(lstat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	by_fd = g_strdup_printf("/dev/fd/%d", ends[1]);
	file = open_ok(by_fd);
	assert_int_equal(exr_result_file_write(file, "bc", 2), 0);
	exr_result_file_free(file);
	assert_int_equal(read(ends[0], got, sizeof(got)), 2);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);

	file = open_ok("/dev/full");
	assert_int_equal(exr_result_file_write(file, "a", 1), -ENOSPC);
	exr_result_file_free(file);
	(void)state;
}

static void places_that_cannot_be_are_refused(void **state)
{
	g_autofree char *below_file = in_dir("file/r"), *file = in_dir("file");
	g_autofree char *in_missing = in_dir("missing/r"), *slash = in_dir("x/");

	put(file, "");
	assert_refused(below_file, -ENOTDIR, "Not a directory");
	assert_refused(in_missing, -ENOENT, "No such file or directory");
	assert_refused(dir, -EISDIR, "Is a directory");
	assert_refused(slash, -EISDIR, "Is a directory");
	(void)state;
}

/* procfs has neither unnamed files nor any way to make one; sysfs neither. A tmpfs and ext4 have. */
static void a_directory_that_takes_no_files_is_refused(void **state)
{
	g_autofree char *message = NULL;
	ExrResultFile *file = NULL;

	assert_true(exr_result_file_open("/proc/result", &file, &message) < 0);
	assert_null(file);
	assert_true(g_str_has_prefix(message, "\"/proc/result\": "));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_new_file_appears_whole, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(an_old_file_stays_until_it_is_replaced, make_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(a_link_is_never_followed, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(pipes_and_devices_are_written_to, make_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(places_that_cannot_be_are_refused, make_dir,
						remove_dir),
		cmocka_unit_test(a_directory_that_takes_no_files_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
