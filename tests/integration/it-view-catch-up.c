/* fsg_invalidate_catch_up: what the host had changed before it is seen after it, at once. The gateway runs in a
 * child of the test, that is told through a socket when to catch up. */
#include "fsgate/fuse-session.h"
#include "fsgate/invalidate.h"
#include "fsgate/task.h"
#include "lib/preflight.h"
#include "lib/view-fixture.h"
#include "view-changes.h"

#include "common/policy-json.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_MS 5000

typedef struct {
	ViewFixture *view;
	char *ws;	 /* on the host */
	char *workspace; /* in the view */
	pid_t child;
	int socket;
} Fixture;

static void complain(const char *what, const char *message)
{
	(void)fprintf(stderr, "%s: %s\n", what, message ? message : "failed");
	_exit(1);
}

static FsgView *make_view(const Fixture *f, const char *mode)
{
	g_autofree char *text = g_strdup_printf(
		"{\"version\": 1, \"filesystem\": {\"workspace_root\": \"%s\", \"working_dir\": "
		"\"/workspace\", \"cache\": \"%s\"}}",
		f->ws, mode);
	FsgViewConfig config = { .mountpoint = f->view->mountpoint };
	StellaPolicy *policy = NULL;
	ViewPlan *plan = NULL;
	FsgView *view = NULL;
	char *message = NULL;

	config.shown_uid = getuid();
	config.shown_gid = getgid();
	if (policy_json_parse(text, strlen(text), &policy, &message) < 0 ||
	    view_plan_new(policy, VIEW_FOR_HOST, &plan, &message) < 0)
		complain("plan", message);
	stella_policy_unref(policy);
	if (fsg_view_new(plan, &config, &view, &message) < 0)
		complain("view", message);
	return view;
}

/* Each request is a time in milliseconds, each answer what came of it. */
static void serve(const Fixture *f, const char *mode, int request_fd)
{
	FsgView *view = make_view(f, mode);
	FsgSession *session = NULL;
	int dir = open(f->view->mountpoint, O_PATH | O_CLOEXEC), timeout_ms = 0;
	char *message = NULL;

	if (fsg_session_mount(view, dir, false, &session, &message) < 0 ||
	    fsg_session_start(session, fsg_tasks_open()) < 0)
		complain("session", message);
	close(dir);
	do {
		int r = timeout_ms ? fsg_invalidate_catch_up(view, timeout_ms) : 0;

		if (write(request_fd, &r, sizeof r) != sizeof r)
			break;
	} while (read(request_fd, &timeout_ms, sizeof timeout_ms) == sizeof timeout_ms);
	if (!fsg_session_free(session, 5000))
		_exit(2);
	fsg_view_free(view);
	_exit(0);
}

static int receive(const Fixture *f)
{
	int r = -1;

	assert_int_equal(read(f->socket, &r, sizeof r), sizeof r);
	return r;
}

static Fixture *fixture_with(const char *mode)
{
	Fixture *f = g_new0(Fixture, 1);
	int sockets[2];

	f->view = view_fixture_new();
	f->ws = view_fixture_path(f->view, "ws");
	f->workspace = g_build_filename(f->view->mountpoint, "workspace", NULL);
	view_fixture_mkdir(f->view, "ws");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	f->socket = sockets[0];
	f->child = fork();
	assert_true(f->child >= 0);
	if (f->child == 0) {
		close(sockets[0]);
		serve(f, mode, sockets[1]);
	}
	close(sockets[1]);
	assert_int_equal(receive(f), 0);
	return f;
}

static void fixture_done(Fixture *f)
{
	int status = -1;

	close(f->socket);
	assert_int_equal(waitpid(f->child, &status, 0), f->child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	view_fixture_free(f->view);
	g_free(f->ws);
	g_free(f->workspace);
	g_free(f);
}

static int catch_up(const Fixture *f, int timeout_ms)
{
	assert_int_equal(write(f->socket, &timeout_ms, sizeof timeout_ms), sizeof timeout_ms);
	return receive(f);
}

static void after_it_each_change_is_seen(void **state)
{
	Fixture *f = fixture_with("auto");

	(void)state;
	for (size_t i = 0; i < view_changes_count; i++) {
		g_autofree char *name = g_strdup_printf("c-%zu", i);
		g_autofree char *host = g_build_filename(f->ws, name, NULL);
		g_autofree char *here = g_build_filename(f->workspace, name, NULL);
		g_autofree char *before = NULL;
		g_autofree char *after = NULL;
		g_autofree char *seen = NULL;

		view_changes_mkdir(f->ws, name);
		view_changes_make_tree(host);
		before = view_changes_look(here);
		g_free(view_changes_look(here));
		view_changes[i].make(host);
		assert_int_equal(catch_up(f, LONG_MS), 0);
		seen = view_changes_look(here);
		after = view_changes_look(host);
		if (strcmp(seen, after) != 0)
			fail_msg("%s: expected\n%s\nseen\n%s", view_changes[i].name, after, seen);
		assert_string_not_equal(before, after);
	}
	fixture_done(f);
}

/* A working directory that is taken back keeps its path. */
static void who_is_in_a_directory_stays_there(void **state)
{
	Fixture *f = fixture_with("auto");
	g_autofree char *dir = g_build_filename(f->workspace, "dir", NULL);
	g_autofree char *before = g_get_current_dir();
	char path[4096];

	(void)state;
	view_changes_mkdir(f->ws, "dir");
	assert_int_equal(chdir(dir), 0);
	view_changes_write(f->ws, "dir/f", "x", O_EXCL);
	assert_int_equal(catch_up(f, LONG_MS), 0);
	assert_non_null(getcwd(path, sizeof path));
	assert_string_equal(path, dir);
	assert_int_equal(access("f", R_OK), 0);
	assert_int_equal(chdir(before), 0);
	fixture_done(f);
}

static void where_nothing_is_believed_it_returns_at_once(void **state)
{
	static const char *const modes[] = { "strict", "exclusive" };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
		Fixture *f = fixture_with(modes[i]);

		assert_int_equal(catch_up(f, 1), 0);
		fixture_done(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_it_each_change_is_seen),
		cmocka_unit_test(who_is_in_a_directory_stays_there),
		cmocka_unit_test(where_nothing_is_believed_it_returns_at_once),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
