/* The third door: a command of a session, whose root is the view. The command is doors-probe. */
#include "integration/doors.h"

#include "common/io-util.h"
#include "executor/session.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

struct SandboxDoor {
	ExrSession *session;
	ExrExec *probe;
};

static void start_probe(SandboxDoor *door, const char *cwd)
{
	static const char *const argv[] = { "/doors-probe", NULL };
	static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	const ExrRequest request = { .argv = argv, .env = env, .cwd = cwd };
	ExrError error = { 0 };

	if (exr_exec_start(door->session, &request, &door->probe, &error) < 0)
		fail_msg("%s (%s): %s", error.code, error.stage, error.message);
}

SandboxDoor *sandbox_door_new(const Ground *ground)
{
	SandboxDoor *door = g_new0(SandboxDoor, 1);
	g_autoptr(StellaPolicy) policy = ground_policy(ground, POLICY_RUNTIME_DEFAULT);
	g_autofree char *state = view_fixture_path(ground->view, "state");
	const ExrSessionConfig config = { .policy = policy };
	ExrError error = { 0 };

	g_setenv("STELLA_STATE_DIR", state, TRUE);
	if (exr_session_new(&config, &door->session, &error) < 0)
		fail_msg("%s (%s): %s", error.code, error.stage, error.message);
	start_probe(door, exr_session_plan(door->session)->working_dir);
	return door;
}

void sandbox_door_free(SandboxDoor *door)
{
	ExrEnd end = { 0 };

	exr_exec_close_stdin(door->probe);
	assert_int_equal(exr_exec_finish(door->probe, &end), 0);
	assert_false(end.start_failed);
	assert_int_equal(end.signal, 0);
	assert_int_equal(end.exit_code, 0);
	exr_end_clear(&end);
	exr_session_free(door->session);
	g_free(door);
}

static void give(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		ssize_t done;

		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		done = write(fd, at, size);
		if (done < 0 && errno == EAGAIN)
			continue;
		assert_true(done > 0);
		at += done;
		size -= (size_t)done;
	}
}

static void take(int fd, void *data, size_t size)
{
	char *at = data;

	while (size > 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t done;

		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		done = read(fd, at, size);
		if (done < 0 && errno == EAGAIN)
			continue;
		assert_true(done > 0);
		at += done;
		size -= (size_t)done;
	}
}

void sandbox_door_try(void *door, const Vector *vector, DoorAnswer *ret_answer)
{
	const SandboxDoor *own = door;
	const DoorRequest request = { vector->flags, (uint32_t)strlen(vector->path) };

	give(exr_exec_stdin_fd(own->probe), &request, sizeof request);
	give(exr_exec_stdin_fd(own->probe), vector->path, request.length);
	take(exr_exec_stdout_fd(own->probe), ret_answer, sizeof *ret_answer);
}
