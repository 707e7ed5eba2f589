/* Open files in a view: what a program holds behaves as on a local file system, and what the host takes out of the
 * mount is out of it. */
#include "lib/preflight.h"
#include "lib/view-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
	ViewFixture *view;
	char *ws;	 /* on the host */
	char *workspace; /* in the view */
} Fixture;

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);

	f->view = view_fixture_new();
	f->ws = view_fixture_path(f->view, "ws");
	f->workspace = g_build_filename(f->view->mountpoint, "workspace", NULL);
	view_fixture_mkdir(f->view, "ws");
	view_fixture_mkdir(f->view, "out");
	view_fixture_mount(f->view, (const char *const[]){ "--workspace", f->ws, NULL });
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	view_fixture_free(f->view);
	g_free(f->ws);
	g_free(f->workspace);
	g_free(f);
	return 0;
}

static int open_in_view(const Fixture *f, const char *name, int flags)
{
	g_autofree char *path = g_build_filename(f->workspace, name, NULL);

	return open(path, flags | O_CLOEXEC, 0644);
}

static void assert_host_content(const Fixture *f, const char *name, const char *expected)
{
	g_autofree char *path = g_build_filename(f->ws, name, NULL);
	g_autofree char *text = NULL;

	assert_true(g_file_get_contents(path, &text, NULL, NULL));
	assert_string_equal(text, expected);
}

static void appending_follows_the_flag_of_the_moment(void **state)
{
	const Fixture *f = *state;
	int fd = open_in_view(f, "a", O_RDWR | O_CREAT | O_APPEND);
	g_autofree char *host = g_build_filename(f->ws, "a", NULL);
	FILE *beside;

	assert_int_equal(write(fd, "0123", 4), 4);
	/* The host appends beside us: nothing is overwritten. */
	beside = fopen(host, "a");
	assert_int_equal(fputs("host", beside), 1);
	fclose(beside);
	assert_int_equal(write(fd, "4567", 4), 4);
	assert_host_content(f, "a", "0123host4567");
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(pwrite(fd, "AB", 2, 0), 2);
	assert_host_content(f, "a", "AB23host4567");
	assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
	assert_int_equal(write(fd, "!", 1), 1);
	assert_host_content(f, "a", "AB23host4567!");
	close(fd);
}

static void mapped_writes_arrive_through_an_appending_handle(void **state)
{
	const Fixture *f = *state;
	int fd = open_in_view(f, "m", O_RDWR | O_CREAT | O_APPEND);
	char *map;

	assert_int_equal(write(fd, "0123456789", 10), 10);
	assert_int_equal(fchmod(fd, 0400), 0); /* what is open stays open */
	map = mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memcpy(map, "ZZ", 2);
	assert_int_equal(msync(map, 10, MS_SYNC), 0);
	assert_host_content(f, "m", "ZZ23456789");
	munmap(map, 10);
	close(fd);
}

static void an_unlinked_open_file_works_on(void **state)
{
	const Fixture *f = *state;
	g_autofree char *path = g_build_filename(f->workspace, "u", NULL);
	int fd = open_in_view(f, "u", O_RDWR | O_CREAT);
	char text[8] = "";
	struct stat st;

	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(fd, "there", 5), 5);
	assert_int_equal(pread(fd, text, 5, 0), 5);
	assert_string_equal(text, "there");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(ftruncate(fd, 2), 0);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(fsetxattr(fd, "user.x", "1", 1, 0), 0);
	close(fd);
}

/* A program that changes a file through one of its names while the others go. */
static void a_name_less_is_no_obstacle_to_who_has_it_open(void **state)
{
	const Fixture *f = *state;
	g_autofree char *a = g_build_filename(f->workspace, "a", NULL);
	g_autofree char *b = g_build_filename(f->workspace, "b", NULL);
	struct stat st;
	int fd = open_in_view(f, "a", O_RDWR | O_CREAT);

	assert_int_equal(link(a, b), 0);
	assert_int_equal(stat(a, &st), 0); /* "a" is where it was seen last */
	assert_int_equal(unlink(a), 0);
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_int_equal(stat(b, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_nlink, 1);
	close(fd);
}

static void open_by_fd(int opath, int flags, int *ret_fd)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", opath);
	*ret_fd = open(path, flags | O_CLOEXEC);
}

/* The program holds an O_PATH fd; the host moves the file, or the directory that it is in, elsewhere. */
static void a_file_that_the_host_took_out_cannot_be_opened(void **state)
{
	static const struct {
		const char *name, *moved, *to;
	} cases[] = {
		{ "f", "f", "f" },
		{ "d/g", "d", "d" },
	};
	const Fixture *f = *state;
	g_autofree char *sub = g_build_filename(f->ws, "d", NULL);

	assert_int_equal(mkdir(sub, 0755), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *host = g_build_filename(f->ws, cases[i].name, NULL);
		g_autofree char *from = g_build_filename(f->ws, cases[i].moved, NULL);
		g_autofree char *to = g_build_filename(f->view->dir, "out", cases[i].to, NULL);
		g_autofree char *back = g_build_filename(f->workspace, "back", NULL);
		g_autofree char *out = view_fixture_path(f->view, "out");
		g_autofree char *before = NULL;
		g_autofree char *after = NULL;
		char proc[32];
		int opath, fd;

		assert_true(g_file_set_contents(host, "inside", -1, NULL));
		opath = open_in_view(f, cases[i].name, O_PATH);
		assert_true(opath >= 0);
		open_by_fd(opath, O_RDWR, &fd); /* as long as it is inside, it works */
		assert_true(fd >= 0);
		close(fd);

		assert_int_equal(rename(from, to), 0);
		before = tree_snapshot(out);
		snprintf(proc, sizeof proc, "/proc/self/fd/%d", opath);
		/* The kernel tells of the end of the open file above when it likes, and who has one may have another. */
		for (int tries = 0; tries < 400; tries++) {
			open_by_fd(opath, O_RDONLY, &fd);
			if (fd < 0)
				break;
			close(fd);
			g_usleep(5000);
		}
		assert_int_equal(fd, -1);
		assert_int_equal(errno, ESTALE);
		open_by_fd(opath, O_RDWR | O_TRUNC, &fd);
		assert_int_equal(fd, -1);
		assert_int_equal(chmod(proc, 0666), -1);
		assert_int_equal(truncate(proc, 0), -1);
		assert_int_equal(setxattr(proc, "user.x", "1", 1, 0), -1);
		assert_int_equal(utimensat(AT_FDCWD, proc, NULL, 0), -1);
		assert_int_equal(linkat(AT_FDCWD, proc, AT_FDCWD, back, AT_SYMLINK_FOLLOW), -1);
		after = tree_snapshot(out);
		assert_string_equal(before, after);
		close(opath);
	}
}

static const char *fd_path(int fd, char path[static 32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return path;
}

/* What the gateway says of it, not what the kernel remembers. */
static int look(int fd, struct statx *ret_stx)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, ret_stx);
}

/* The name that the gateway saw it by leads to it no more. Who only has a look at it is told so; who has it open uses
 * it, whatever the host has done with the name. */
static void who_has_a_file_open_uses_it_wherever_the_host_put_it(void **state)
{
	static const char *const to[] = { NULL, "ws/elsewhere", "out/elsewhere" };
	const Fixture *f = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(to); i++) {
		const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 2 } };
		g_autofree char *name = g_strdup_printf("f%zu", i);
		g_autofree char *host = g_build_filename(f->ws, name, NULL);
		g_autofree char *place = to[i] ? view_fixture_path(f->view, to[i]) : NULL;
		char path[32];
		struct statx stx;
		struct stat st;
		int opath, fd;

		assert_true(g_file_set_contents(host, "inside", -1, NULL));
		fd = open_in_view(f, name, O_RDWR);
		assert_true(fd >= 0);
		assert_int_equal(place ? rename(host, place) : unlink(host), 0);
		assert_int_equal(look(fd, &stx), 0);
		assert_int_equal(stx.stx_nlink, place ? 1 : 0);
		assert_int_equal(fchmod(fd, 0604), 0);
		assert_int_equal(futimens(fd, times), 0);
		assert_int_equal(pwrite(fd, "I", 1, 0), 1);
		assert_int_equal(look(fd, &stx), 0);
		assert_int_equal(stx.stx_mode & 07777, 0604);
		assert_int_equal(stx.stx_atime.tv_sec, 1);

		/* Without an open file it would be a way to what is outside. */
		opath = open(fd_path(fd, path), O_PATH | O_CLOEXEC);
		close(fd);
		assert_true(opath >= 0);
		for (int tries = 0; place && look(opath, &stx) == 0; tries++) {
			assert_true(tries < 500);
			usleep(10000); /* closing is told to the gateway later */
		}
		if (place)
			assert_int_equal(chmod(fd_path(opath, path), 0600), -1);
		close(opath);
		if (place)
			assert_int_equal(stat(place, &st), 0);
		assert_int_equal(place ? st.st_mode & 07777 : 0604, 0604);
	}
}

static void creating_over_what_the_host_just_made_truncates_it(void **state)
{
	const Fixture *f = *state;
	g_autofree char *host = g_build_filename(f->ws, "new", NULL);
	struct stat st;
	int fd = open_in_view(f, "new", O_RDONLY); /* the kernel remembers that there is none */

	assert_int_equal(fd, -1);
	assert_true(g_file_set_contents(host, "made by the host", -1, NULL));
	fd = open_in_view(f, "new", O_RDWR | O_CREAT | O_TRUNC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	close(fd);
}

/* A FIFO takes the name; opening it must not catch a thread of the gateway. */
static void a_fifo_in_the_place_of_a_file_holds_nobody_up(void **state)
{
	const Fixture *f = *state;
	g_autofree char *file = g_build_filename(f->ws, "x", NULL);
	int opath, fd;

	assert_true(g_file_set_contents(file, "file", -1, NULL));
	opath = open_in_view(f, "x", O_PATH);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0644), 0);
	for (int i = 0; i < 40; i++) {
		open_by_fd(opath, O_RDONLY, &fd);
		if (fd >= 0)
			close(fd); /* the unlinked file, if its fd was still there */
	}
	fd = open_in_view(f, "other", O_WRONLY | O_CREAT);
	assert_true(fd >= 0);
	close(fd);
	close(opath);
}

/* A host process holds leases that it does not give up: openers of those files wait or are told EAGAIN, and all
 * other files answer. */
static void leases_of_a_host_process_do_not_stop_the_rest(void **state)
{
	enum { FILES = 24 };
	const Fixture *f = *state;
	int leased[FILES], fd, answered = 0;
	pid_t openers[FILES];

	signal(SIGIO, SIG_IGN);
	for (int i = 0; i < FILES; i++) {
		g_autofree char *name = g_strdup_printf("l%d", i);
		g_autofree char *host = g_build_filename(f->ws, name, NULL);

		leased[i] = open(host, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		assert_int_equal(fcntl(leased[i], F_SETLEASE, F_WRLCK), 0);
		openers[i] = fork();
		if (openers[i] == 0) {
			fd = open_in_view(f, name, O_RDONLY);
			_exit(fd < 0 && errno == EAGAIN);
		}
	}
	alarm(20); /* ends the test if the view does not answer */
	for (int i = 0; i < 100; i++) {
		g_autofree char *name = g_strdup_printf("free%d", i);

		fd = open_in_view(f, name, O_WRONLY | O_CREAT);
		assert_true(fd >= 0);
		answered++;
		close(fd);
	}
	alarm(0);
	assert_int_equal(answered, 100);
	for (int i = 0; i < FILES; i++) {
		fcntl(leased[i], F_SETLEASE, F_UNLCK);
		close(leased[i]);
	}
	for (int i = 0; i < FILES; i++)
		assert_int_equal(waitpid(openers[i], NULL, 0), openers[i]);
	fd = open_in_view(f, "l0", O_RDONLY); /* without the lease */
	assert_true(fd >= 0);
	close(fd);
}

static void looking_at_a_link_is_no_access_to_it(void **state)
{
	const Fixture *f = *state;
	const struct timespec times[2] = { { 1960000000, 0 }, { 1000000000, 0 } };
	g_autofree char *link = g_build_filename(f->workspace, "l", NULL);
	g_autofree char *host = g_build_filename(f->ws, "l", NULL);
	struct stat st;

	assert_int_equal(symlink("dst", link), 0);
	assert_int_equal(utimensat(AT_FDCWD, link, times, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_int_equal(lstat(host, &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 1960000000);
}

static void a_text_that_was_given_out_is_taken_back(void **state)
{
	const Fixture *f = *state;
	g_autofree char *link = g_build_filename(f->workspace, "l", NULL);
	g_autofree char *copy = g_build_filename(f->workspace, "copy", NULL);
	g_autofree char *file = g_build_filename(f->workspace, "file", NULL);
	char text[4096] = "", again[4096] = "";
	int fd = open_in_view(f, "file", O_WRONLY | O_CREAT);

	close(fd);
	assert_int_equal(symlink("/workspace/file", link), 0);
	assert_true(readlink(link, text, sizeof text - 1) > 0);
	assert_string_equal(text, file);
	assert_int_equal(symlink(text, copy), 0); /* as cp -a does */
	assert_true(readlink(copy, again, sizeof again - 1) > 0);
	assert_string_equal(again, file);
	assert_int_equal(access(copy, R_OK), 0);
}

/* A link far down: its walk goes through every directory above it. */
static void deep_links_need_few_fds(void **state)
{
	enum { DEPTH = 1500 };
	const Fixture *f = *state;
	int dir = open(f->workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[4096];

	for (int i = 0; i < DEPTH; i++) {
		int next;

		assert_int_equal(mkdirat(dir, "d", 0755), 0);
		next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(dir);
		dir = next;
	}
	assert_int_equal(symlinkat("../d/x", dir, "l"), 0);
	assert_int_equal(symlinkat("../../../../../../../../../../../../../../../../etc/passwd",
				   dir, "stays"),
			 0);
	assert_true(readlinkat(dir, "l", text, sizeof text) > 0);
	/* Goes up sixteen levels only: to a name that does not exist there. */
	assert_true(readlinkat(dir, "stays", text, sizeof text) > 0);
	close(dir);
}

/* Makes and removes a file all the time. */
static _Noreturn void churn(const char *file)
{
	for (;;) {
		int fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

		if (fd >= 0)
			close(fd);
		unlink(file);
	}
}

/* Whoever was killed in the middle of a request and has been waited for does nothing more. */
static void a_killed_process_has_done_all_that_it_does(void **state)
{
	const Fixture *f = *state;
	g_autofree char *dir = g_build_filename(f->workspace, "dir", NULL);
	g_autofree char *file = g_build_filename(dir, "f", NULL);

	for (int i = 0; i < 400; i++) {
		pid_t pid;

		assert_int_equal(mkdir(dir, 0755), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			churn(file);
		g_usleep((gulong)(1000 + i % 7 * 300));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		(void)unlink(file);
		assert_int_equal(rmdir(dir), 0);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(appending_follows_the_flag_of_the_moment),
		TEST(mapped_writes_arrive_through_an_appending_handle),
		TEST(an_unlinked_open_file_works_on),
		TEST(a_name_less_is_no_obstacle_to_who_has_it_open),
		TEST(a_file_that_the_host_took_out_cannot_be_opened),
		TEST(who_has_a_file_open_uses_it_wherever_the_host_put_it),
		TEST(creating_over_what_the_host_just_made_truncates_it),
		TEST(a_fifo_in_the_place_of_a_file_holds_nobody_up),
		TEST(leases_of_a_host_process_do_not_stop_the_rest),
		TEST(looking_at_a_link_is_no_access_to_it),
		TEST(a_text_that_was_given_out_is_taken_back),
		TEST(deep_links_need_few_fds),
		TEST(a_killed_process_has_done_all_that_it_does),
	};
	/* The least that a gateway has to work with. */
	const struct rlimit few = { 1024, 1024 };
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	setrlimit(RLIMIT_NOFILE, &few);
	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
