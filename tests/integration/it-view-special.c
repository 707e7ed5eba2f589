/* Special files: FIFOs and sockets work within a view, those of the host lead nowhere, device nodes are neither made nor
 * opened; and none of them holds a thread of the gateway. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void device_nodes_are_not_made(void **state)
{
	static const struct {
		mode_t type;
		unsigned int major, minor;
	} nodes[] = { { S_IFCHR, 1, 1 }, { S_IFCHR, 1, 3 }, { S_IFCHR, 5, 0 },
		      { S_IFBLK, 8, 0 }, { S_IFBLK, 7, 0 }, { S_IFCHR, 0, 0 } };
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside);
	g_autofree char *before = tree_snapshot(ws->host);
	g_autofree char *after = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++)
		assert_int_equal(result_of(mknodat(dir, "node", nodes[i].type | 0666,
						   makedev(nodes[i].major, nodes[i].minor))),
				 EPERM);
	after = tree_snapshot(ws->host);
	assert_string_equal(before, after);
	assert_int_equal(mknodat(dir, "fifo", S_IFIFO | 0644, 0), 0);
	close(dir);
}

static void device_nodes_of_the_host_do_not_open(void **state)
{
	static const int flags[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDONLY | O_NONBLOCK,
				     O_WRONLY | O_TRUNC };
	const Workspace *ws = *state;
	int host = open_dir(ws->host), dir = open_dir(ws->inside), opath;
	struct stat st;

	assert_int_equal(mknodat(host, "char", S_IFCHR | 0666, makedev(1, 5)), 0);
	assert_int_equal(mknodat(host, "block", S_IFBLK | 0666, makedev(7, 0)), 0);
	static const char *const names[] = { "char", "block" };
	for (size_t n = 0; n < 2; n++) {
		for (size_t i = 0; i < G_N_ELEMENTS(flags); i++)
			assert_int_equal(result_of(openat(dir, names[n], flags[i])), EACCES);
		opath = openat(dir, names[n], O_PATH | O_CLOEXEC);
		assert_true(opath >= 0);
		char proc[32];
		snprintf(proc, sizeof proc, "/proc/self/fd/%d", opath);
		assert_int_equal(result_of(open(proc, O_RDWR)), EACCES);
		assert_int_equal(fstat(opath, &st), 0);
		close(opath);
		assert_int_equal(unlinkat(dir, names[n], 0), 0);
	}
	close(dir);
	close(host);
}

static int open_and_wait(const Workspace *ws)
{
	int fd = workspace_open(ws, "fifo", O_RDONLY);

	return fd < 0 ? errno : 0;
}

/* As many as the gateway has threads, and more. */
static void waiting_openers_of_a_fifo_hold_nobody_up(void **state)
{
	enum { OPENERS = 32 };
	const Workspace *ws = *state;
	g_autofree char *host = workspace_host(ws, "fifo");
	pid_t openers[OPENERS];
	long long start;
	int fd, status;

	assert_int_equal(mkfifo(host, 0644), 0);
	for (int i = 0; i < OPENERS; i++) {
		openers[i] = fork_helper();
		if (openers[i] == 0)
			_exit(open_and_wait(ws));
	}
	start = now_ms();
	for (int i = 0; i < 50; i++) {
		g_autofree char *name = g_strdup_printf("f%d", i);

		fd = workspace_open(ws, name, O_WRONLY | O_CREAT);
		assert_true(fd >= 0);
		close(fd);
	}
	assert_in_range(now_ms() - start, 0, 2000);
	/* Half of them are killed; a writer frees the others. */
	for (int i = 0; i < OPENERS / 2; i++) {
		kill(openers[i], SIGKILL);
		status = wait_for_child(openers[i], 5000);
		assert_true(status != -1 && WIFSIGNALED(status));
	}
	fd = workspace_open(ws, "fifo", O_WRONLY);
	assert_true(fd >= 0);
	for (int i = OPENERS / 2; i < OPENERS; i++)
		assert_int_equal(wait_for_child(openers[i], 5000), 0);
	close(fd);
}

/* --- sockets --- */

static int listen_at(int dir, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static int connect_at(int dir, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir, name);
	r = result_of(connect(fd, (struct sockaddr *)&address, sizeof address));
	close(fd);
	return r;
}

static void sockets_connect_on_one_side_only(void **state)
{
	const Workspace *ws = *state;
	int host = open_dir(ws->host), dir = open_dir(ws->inside);
	int on_host = listen_at(host, "host.sock"), in_view = listen_at(dir, "view.sock");

	assert_int_equal(connect_at(host, "host.sock"), 0);
	assert_int_equal(connect_at(dir, "view.sock"), 0);
	close(accept(on_host, NULL, NULL));
	close(accept(in_view, NULL, NULL));
	assert_int_equal(connect_at(dir, "host.sock"), ECONNREFUSED);
	assert_int_equal(connect_at(host, "view.sock"), ECONNREFUSED);
	assert_int_equal(result_of(accept(on_host, NULL, NULL)), EAGAIN);
	assert_int_equal(result_of(accept(in_view, NULL, NULL)), EAGAIN);
	/* Nor is it opened as a file. */
	assert_int_equal(result_of(openat(dir, "host.sock", O_RDWR)), ENXIO);
	close(on_host);
	close(in_view);
	close(host);
	close(dir);
}

/* --- inotify --- */

static uint32_t wait_for_events(int watcher, uint32_t wanted)
{
	union {
		struct inotify_event event;
		char bytes[4096];
	} buffer;
	uint32_t seen = 0;

	while ((seen & wanted) != wanted) {
		struct pollfd pollfd = { .fd = watcher, .events = POLLIN };
		ssize_t n;

		if (poll(&pollfd, 1, 2000) <= 0)
			break;
		n = read(watcher, &buffer, sizeof buffer);
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event =
				(const struct inotify_event *)(const void *)(buffer.bytes + at);

			seen |= event->mask;
			at += (ssize_t)(sizeof *event + event->len);
		}
	}
	return seen;
}

static void watchers_see_what_is_done_in_the_view_on_both_sides(void **state)
{
	const uint32_t wanted =
		IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE;
	const Workspace *ws = *state;
	g_autofree char *a = workspace_inside(ws, "a");
	g_autofree char *b = workspace_inside(ws, "b");
	int inside = inotify_init1(IN_CLOEXEC), host = inotify_init1(IN_CLOEXEC);
	int fd;

	assert_true(inotify_add_watch(inside, ws->inside, wanted) >= 0);
	assert_true(inotify_add_watch(host, ws->host, wanted) >= 0);
	fd = workspace_open(ws, "a", O_WRONLY | O_CREAT);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_int_equal(rename(a, b), 0);
	assert_int_equal(unlink(b), 0);
	assert_int_equal(wait_for_events(inside, wanted) & wanted, wanted);
	assert_int_equal(wait_for_events(host, wanted) & wanted, wanted);
	close(host);
	/* A watcher does not keep the view from being unmounted. */
	view_fixture_unmount(ws->view);
	close(inside);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(device_nodes_are_not_made),
		TEST(device_nodes_of_the_host_do_not_open),
		TEST(waiting_openers_of_a_fifo_hold_nobody_up),
		TEST(sockets_connect_on_one_side_only),
		TEST(watchers_see_what_is_done_in_the_view_on_both_sides),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
