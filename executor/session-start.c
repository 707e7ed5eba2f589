/* Starting and stopping what a session is made of; see session.h.
 *
 * The gateway and the sandbox's init are started at the same time and meet in one fd: init mounts the
 * view in its own namespaces and hands up the /dev/fuse of it, which goes on to the gateway. Nobody touches
 * the view before the gateway serves. Only when the kernel will not mount FUSE in a user namespace, and
 * we are not root, is all of it done again the other way round: the gateway mounts with fusermount3 in
 * a directory of ours, init takes a clone of that mount, and the mount is taken off the directory. What
 * is enforced is the same.
 *
 * Every wait has a deadline. The end is the reverse of the start, and whatever does not end is killed;
 * the gateway last, for killing it makes the kernel give up every request that a process waits in. */
#include "executor/session-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"
#include "executor/hints.h"
#include "executor/launcher.h"
#include "executor/packet.h"
#include "executor/sandbox-plan.h"
#include "executor/stage.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ANSWER_MS   15000
#define INIT_END_MS 1000
#define KILL_MS	    2000

int exr_session_told(const WireMessage *failed, const char *subject, ExrError *error)
{
	const ExrStageInfo *info = exr_stage_info(failed->stage);
	g_autofree char *shown = subject ? path_escape(subject) : NULL;
	const char *code = info->code;
	int r;

	if (failed->stage == EXR_STAGE_EXEC &&
	    (failed->errnum == ENOENT || failed->errnum == ENOTDIR))
		code = "program-not-found";
	r = exr_error_set(error, code, info->name, failed->errnum, "%s%s%s%s: %s", info->sentence,
			  shown ? " \"" : "", shown ? shown : "", shown ? "\"" : "",
			  errno_text(failed->errnum));
	exr_error_set_known_hint(error);
	return r;
}

int exr_session_await_init(ExrSession *session, WireType type, int plan_fd, int *ret_fds,
			   size_t n_fds, ExrStage *ret_stage, ExrError *error)
{
	WireMessage message;
	int fds[WIRE_MAX_FDS];
	size_t fd_count = 0;
	int r = packet_receive(session->init_socket, ANSWER_MS, &message, fds, &fd_count);

	if (r < 0)
		return exr_error_set(error, "internal", "init", -r, "the sandbox's init: %s",
				     r == -EPIPE || r == -ECONNRESET ? "it ended unexpectedly"
								     : errno_text(-r));
	if (message.type == type && fd_count == n_fds) {
		for (size_t i = 0; i < n_fds; i++)
			ret_fds[i] = fds[i];
		return 0;
	}
	for (size_t i = 0; i < fd_count; i++)
		fd_close(&fds[i]);
	if (message.type == WIRE_FAILED) {
		g_autofree char *path = exr_sandbox_plan_row_path(plan_fd, message.value);

		if (ret_stage)
			*ret_stage = (ExrStage)message.stage;
		return exr_session_told(&message, path, error);
	}
	return exr_error_set(error, "internal", "init", EBADMSG,
			     "the sandbox's init: an answer that makes no sense");
}

int exr_session_build_seccomp(ExrSession *session, ExrError *error)
{
	int r = session->seccomp.code ? 0 : exr_seccomp_build(&session->seccomp);

	if (r < 0) {
		(void)exr_error_set(error, "setup-failed", "seccomp", -r,
				    "cannot compile the seccomp filter: %s", errno_text(-r));
		exr_error_set_known_hint(error);
	}
	return r;
}

static int launch(ExrSession *session, const char *view_path, int *ret_plan_fd, ExrError *error)
{
	ExrLaunch config = {
		.identity = &session->identity,
		.limits = session->limits,
		.own_network = session->policy->network_mode == STELLA_NETWORK_DISABLED,
	};
	FD_AUTO plan_fd = -1;
	int r = exr_session_build_seccomp(session, error);

	if (r < 0)
		return r;
	plan_fd = exr_sandbox_plan_new(session->plan, &session->identity, session->state, view_path,
				       &session->seccomp, error);
	if (plan_fd < 0)
		return plan_fd;
	config.plan_fd = plan_fd;
	if ((r = exr_launch_init(&config, &session->init_socket, &session->init, error)) < 0)
		return r;
	*ret_plan_fd = fd_steal(&plan_fd);
	return 0;
}

static int go_on(ExrSession *session, int plan_fd, ExrError *error)
{
	WireMessage serving = { .type = WIRE_SERVING };

	int r = packet_send(session->init_socket, &serving, NULL, 0);

	/* An init that has ended has said why. */
	if (r < 0 && r != -EPIPE)
		return exr_error_set(error, "internal", "init", -r,
				     "the sandbox's init cannot be told to go on: %s",
				     errno_text(-r));
	return exr_session_await_init(session, WIRE_READY, plan_fd, NULL, 0, NULL, error);
}

/* Why not is told when it is needed. */
void exr_session_start_ahead(ExrSession *session)
{
	if (session->backend == &exr_backend_fsgate)
		(void)exr_gateway_new(&session->gateway, &session->ahead_error);
}

/* The gateway, with ids of the view's user namespace. */
static int start_gateway(ExrSession *session, uid_t uid, gid_t gid, ExrError *error)
{
	int r;

	if (session->ahead_error.code) {
		*error = session->ahead_error;
		session->ahead_error = (ExrError){ 0 };
		return -error->errnum;
	}
	if (!session->gateway && (r = exr_gateway_new(&session->gateway, error)) < 0)
		return r;
	return exr_gateway_configure(session->gateway, session->policy, uid, gid,
				     exr_state_dir_root(session->state), session->one_exec, error);
}

/* *ret_refused: the kernel does not mount FUSE in this user namespace. */
static int start_with_device(ExrSession *session, bool *ret_refused, ExrError *error)
{
	ExrStage stage = EXR_STAGE_NONE;
	FD_AUTO plan_fd = -1;
	FD_AUTO device = -1, tasks = -1;
	int fds[2], r;

	if ((r = start_gateway(session, session->identity.inside, session->identity.inside,
			       error)) < 0 ||
	    (r = launch(session, NULL, &plan_fd, error)) < 0)
		return r;
	r = exr_session_await_init(session, WIRE_DEVICE, plan_fd, fds, 2, &stage, error);
	if (r < 0) {
		*ret_refused = stage == EXR_STAGE_FUSE_MOUNT &&
			       (r == -EPERM || r == -EACCES || r == -EINVAL || r == -ENODEV);
		return r;
	}
	device = fds[0];
	tasks = fds[1];
	if ((r = exr_gateway_attach(session->gateway, device, tasks, NULL, error)) < 0)
		return r;
	/* The gateway's copy is now the only one: when it dies, the kernel aborts the connection. */
	fd_close(&device);
	return go_on(session, plan_fd, error);
}

static int start_with_fusermount(ExrSession *session, ExrError *error)
{
	g_autofree char *path = exr_state_dir_join(session->state, "view");
	g_autofree char *program = exr_find_fusermount();
	FD_AUTO plan_fd = -1;
	int r;

	if (!program) {
		(void)exr_error_set(error, "host-unsupported", "fusermount3", ENOENT,
				    "cannot mount the view in a user namespace, and there is no "
				    "fusermount3");
		exr_error_set_known_hint(error);
		return -ENOENT;
	}
	if (mkdir(path, 0700) != 0) {
		r = errno;
		return exr_error_set(error, "state-dir-failed", "state-dir", r, "\"%s\": %s", path,
				     errno_text(r));
	}
	/* The mount belongs to the first user namespace: it shows ids as the host has them. */
	if ((r = start_gateway(session, session->identity.outside_uid,
			       session->identity.outside_gid, error)) < 0)
		return r;
	if ((r = exr_gateway_attach(session->gateway, -1, -1, path, error)) < 0) {
		if (strstr(error->message, "fusermount3"))
			exr_error_set_hint(error, "%s", exr_hint("fusermount3", EPERM));
		return r;
	}
	if ((r = launch(session, path, &plan_fd, error)) < 0 ||
	    (r = exr_session_await_init(session, WIRE_HELD, plan_fd, NULL, 0, NULL, error)) < 0)
		return r;
	if ((r = exr_state_dir_detach(path)) < 0)
		return exr_error_set(error, "rootfs-failed", "detach-view", -r,
				     "cannot take the view off \"%s\": %s", path, errno_text(-r));
	return go_on(session, plan_fd, error);
}

void exr_session_stop(ExrSession *session)
{
	if (session->init_socket >= 0)
		(void)shutdown(session->init_socket, SHUT_RDWR);
	if (exr_process_wait(&session->init, INIT_END_MS) < 0) {
		exr_process_kill(&session->init);
		if (exr_process_wait(&session->init, KILL_MS) < 0 && session->gateway)
			exr_gateway_kill(session->gateway);
		(void)exr_process_end(&session->init, KILL_MS, 0);
	}
	/* It ends with its child. */
	(void)exr_process_end(&session->monitor, INIT_END_MS, KILL_MS);
	if (session->gateway)
		exr_gateway_end(session->gateway);
}

int exr_session_start(ExrSession *session, ExrError *error)
{
	ExrError first = { 0 };
	bool refused = false;
	int r = start_with_device(session, &refused, &first);

	if (r < 0 && refused && geteuid() != 0) {
		exr_session_stop(session);
		fd_close(&session->init_socket);
		g_clear_pointer(&session->gateway, exr_gateway_unref);
		exr_error_clear(&first);
		return start_with_fusermount(session, error);
	}
	/* The caller's is empty, or holds an earlier cause. */
	if (r < 0 && !error->code)
		*error = first;
	else
		exr_error_clear(&first);
	return r;
}
