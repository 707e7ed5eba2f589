/* One writable mount and what is beside it; see workspace-fixture.h. */
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int set_up(void **state, bool tmpfs)
{
	Workspace *ws = g_new0(Workspace, 1);

	ws->view = view_fixture_new();
	ws->host = view_fixture_path(ws->view, "ws");
	ws->native = view_fixture_path(ws->view, "native");
	ws->inside = g_build_filename(ws->view->mountpoint, "workspace", NULL);
	view_fixture_mkdir(ws->view, "ws");
	view_fixture_mkdir(ws->view, "native");
	ws->tmpfs = tmpfs;
	if (tmpfs)
		assert_int_equal(mount("none", ws->host, "tmpfs", 0, "mode=755"), 0);
	view_fixture_mount(ws->view, (const char *const[]){ "--workspace", ws->host, NULL });
	*state = ws;
	return 0;
}

int workspace_set_up(void **state)
{
	return set_up(state, false);
}

int workspace_set_up_tmpfs(void **state)
{
	return set_up(state, true);
}

int workspace_tear_down(void **state)
{
	Workspace *ws = *state;

	if (ws->view->gateway)
		view_fixture_unmount(ws->view);
	if (ws->tmpfs)
		assert_int_equal(umount(ws->host), 0);
	view_fixture_free(ws->view);
	g_free(ws->host);
	g_free(ws->native);
	g_free(ws->inside);
	g_free(ws);
	return 0;
}

char *workspace_inside(const Workspace *ws, const char *name)
{
	return g_build_filename(ws->inside, name, NULL);
}

char *workspace_host(const Workspace *ws, const char *name)
{
	return g_build_filename(ws->host, name, NULL);
}

int workspace_open(const Workspace *ws, const char *name, int flags)
{
	g_autofree char *path = workspace_inside(ws, name);

	return open(path, flags | O_CLOEXEC, 0644);
}

void workspace_assert_host(const Workspace *ws, const char *name, const void *data, size_t size)
{
	g_autofree char *path = workspace_host(ws, name);
	g_autofree char *content = NULL;
	gsize got;

	assert_true(g_file_get_contents(path, &content, &got, NULL));
	assert_int_equal(got, size);
	assert_memory_equal(content, data, size);
}

int result_of(long result)
{
	return result < 0 ? errno : 0;
}

long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

bool wait_until(bool (*check)(void *data), void *data, int timeout_ms)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	long long end = now_ms() + timeout_ms;

	while (!check(data)) {
		if (now_ms() > end)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

pid_t fork_helper(void)
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(126);
	}
	return pid;
}

typedef struct {
	pid_t pid;
	int status;
} Child;

static bool has_ended(void *data)
{
	Child *child = data;

	return waitpid(child->pid, &child->status, WNOHANG) == child->pid;
}

int wait_for_child(pid_t pid, int timeout_ms)
{
	Child child = { .pid = pid };

	return wait_until(has_ended, &child, timeout_ms) ? child.status : -1;
}
