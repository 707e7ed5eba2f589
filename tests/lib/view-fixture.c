/* A mounted view for tests; see view-fixture.h. */
#include "lib/view-fixture.h"

#include "common/io-util.h"
#include "common/program-path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

ViewFixture *view_fixture_new(void)
{
	ViewFixture *fixture = g_new0(ViewFixture, 1);

	umask(022);
	if (geteuid() == 0) {
		assert_int_equal(unshare(CLONE_NEWNS), 0);
		assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	}
	fixture->dir = g_dir_make_tmp("stella-view-XXXXXX", NULL);
	assert_non_null(fixture->dir);
	fixture->mountpoint = view_fixture_path(fixture, "mnt");
	view_fixture_mkdir(fixture, "mnt");
	return fixture;
}

char *view_fixture_path(const ViewFixture *fixture, const char *name)
{
	return g_build_filename(fixture->dir, name, NULL);
}

void view_fixture_mkdir(const ViewFixture *fixture, const char *name)
{
	g_autofree char *path = view_fixture_path(fixture, name);

	assert_int_equal(mkdir(path, 0755), 0);
}

void view_fixture_write(const ViewFixture *fixture, const char *name, const char *text)
{
	g_autofree char *path = view_fixture_path(fixture, name);

	assert_true(g_file_set_contents(path, text, -1, NULL));
}

static G_GNUC_NORETURN void run_gateway(const ViewFixture *fixture, const char *const *arguments,
					int out)
{
	g_autoptr(GPtrArray) argv = g_ptr_array_new();
	g_autofree char *program = program_path("stella-fsgate");

	/* However the test ends, so that none is left by one that failed. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	g_ptr_array_add(argv, program);
	g_ptr_array_add(argv, g_strdup("mount"));
	g_ptr_array_add(argv, g_strdup("-f"));
	for (; *arguments; arguments++)
		g_ptr_array_add(argv, g_strdup(*arguments));
	g_ptr_array_add(argv, fixture->mountpoint);
	g_ptr_array_add(argv, NULL);
	dup2(out, STDOUT_FILENO);
	/* A test that fails leaves nothing behind. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	execv(program, (char **)argv->pdata);
	_exit(127);
}

void view_fixture_mount(ViewFixture *fixture, const char *const *arguments)
{
	char text[8192] = "";
	size_t size = 0;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fixture->gateway = fork();
	assert_true(fixture->gateway >= 0);
	if (fixture->gateway == 0)
		run_gateway(fixture, arguments, fds[1]);
	close(fds[1]);
	/* It prints its plan once it serves, and nothing when it does not. */
	while (size < sizeof text - 1 && !strstr(text, "writable: ")) {
		ssize_t got = read(fds[0], text + size, sizeof text - 1 - size);

		if (got <= 0)
			break;
		size += (size_t)got;
		text[size] = '\0';
	}
	close(fds[0]);
	if (!strstr(text, "writable: "))
		fail_msg("the gateway did not start");
}

static void kill_late(int sig)
{
	(void)sig; /* only interrupts waitpid */
}

void view_fixture_unmount(ViewFixture *fixture)
{
	struct sigaction action = { .sa_handler = kill_late };
	int status = -1;

	kill(fixture->gateway, SIGTERM);
	sigaction(SIGALRM, &action, NULL);
	alarm(10);
	if (waitpid(fixture->gateway, &status, 0) < 0) {
		kill(fixture->gateway, SIGKILL);
		waitpid(fixture->gateway, NULL, 0);
		fail_msg("the gateway did not end");
	}
	alarm(0);
	fixture->gateway = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void view_fixture_free(ViewFixture *fixture)
{
	if (fixture->gateway)
		view_fixture_unmount(fixture);
	assert_int_equal(io_remove_tree(AT_FDCWD, fixture->dir), 0);
	g_free(fixture->dir);
	g_free(fixture->mountpoint);
	g_free(fixture);
}

static void add_content(GString *text, const char *path, const struct stat *st)
{
	g_autofree char *content = NULL;
	char link[4096], names[4096];
	gsize size;
	ssize_t length;

	if (S_ISLNK(st->st_mode) && (length = readlink(path, link, sizeof link)) > 0)
		g_string_append_len(text, link, length);
	if (S_ISREG(st->st_mode) && g_file_get_contents(path, &content, &size, NULL)) {
		g_autofree char *sum =
			g_compute_checksum_for_data(G_CHECKSUM_SHA256, (guchar *)content, size);
		g_string_append(text, sum);
	}
	length = llistxattr(path, names, sizeof names);
	for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
		char value[256];
		ssize_t got = lgetxattr(path, names + at, value, sizeof value);

		g_string_append_printf(text, " %s=", names + at);
		g_string_append_len(text, value, got > 0 ? got : 0);
	}
}

static int compare_names(gconstpointer a, gconstpointer b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_tree(GString *text, const char *path)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	assert_int_equal(lstat(path, &st), 0);
	g_string_append_printf(text, "%s %o %u:%u %llu %lld %lld.%09ld %lld.%09ld ", path,
			       st.st_mode, st.st_uid, st.st_gid, (unsigned long long)st.st_nlink,
			       (long long)st.st_size, (long long)st.st_mtim.tv_sec,
			       st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec,
			       st.st_ctim.tv_nsec);
	add_content(text, path, &st);
	g_string_append_c(text, '\n');
	if (!S_ISDIR(st.st_mode))
		return;
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			g_ptr_array_add(names, g_strdup(entry->d_name));
	closedir(dir);
	g_ptr_array_sort(names, compare_names);
	for (guint i = 0; i < names->len; i++) {
		g_autofree char *child = g_build_filename(path, g_ptr_array_index(names, i), NULL);

		add_tree(text, child);
	}
}

char *tree_snapshot(const char *path)
{
	GString *text = g_string_new(NULL);

	add_tree(text, path);
	return g_string_free(text, FALSE);
}
