/* A session from start to end; see session.h.
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
#include "common/mise.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"
#include "executor/launcher.h"
#include "executor/packet.h"
#include "executor/sandbox-plan.h"
#include "executor/scope.h"
#include "executor/stage.h"

#include <string.h>
#include <sys/stat.h>

#define ANSWER_MS   15000
#define INIT_END_MS 1000
#define KILL_MS	    2000

static void hint_for(const WireMessage *failed, ExrError *error)
{
	if (failed->stage == EXR_STAGE_FUSE_DEVICE && failed->errnum == ENOENT)
		exr_error_set_hint(error,
				   "load FUSE (modprobe fuse), or give the container its device "
				   "(--device /dev/fuse)");
	else if (failed->stage == EXR_STAGE_FUSE_DEVICE && failed->errnum != EACCES &&
		 failed->errnum != EPERM)
		exr_error_set_hint(error, "it is not the device of FUSE, character device 10:229");
	else if (failed->stage == EXR_STAGE_FUSE_DEVICE)
		exr_error_set_hint(error, "this user may not open /dev/fuse: chmod 0666 /dev/fuse, "
					  "which is its mode on ordinary systems");
	else if (failed->stage == EXR_STAGE_FUSE_MOUNT)
		exr_error_set_hint(error,
				   "the kernel needs FUSE with user namespaces (Linux 4.18), "
				   "or fusermount3 has to be installed");
	else if (failed->stage == EXR_STAGE_MOUNT_PROC && failed->errnum == EPERM)
		exr_error_set_hint(error,
				   "the host's /proc is partly hidden, as in a container: run it "
				   "with --security-opt systempaths=unconfined");
	else if (failed->stage == EXR_STAGE_MOUNT_POINT)
		exr_error_set_hint(error, "inside a directory that the host's programs come from a "
					  "mount can only cover what exists there");
}

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
	hint_for(failed, error);
	return r;
}

/* The next message of init, which has to be of that type and to bring n_fds fds. For a failure of init
 * *ret_stage (may be NULL) is its stage. */
static int await_init(ExrSession *session, WireType type, int plan_fd, int *ret_fds, size_t n_fds,
		      ExrStage *ret_stage, ExrError *error)
{
	WireMessage message;
	int fds[WIRE_MAX_FDS];
	size_t fd_count = 0;
	int r = packet_receive(session->init_socket, ANSWER_MS, &message, fds, &fd_count);

	if (r < 0)
		return exr_error_set(error, "internal", "init", -r, "the sandbox's init: %s",
				     r == -EPIPE ? "it ended unexpectedly" : errno_text(-r));
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

/* Compiled while the gateway starts: both take some milliseconds. */
static int build_seccomp(ExrSession *session, ExrError *error)
{
	int r = session->seccomp.code ? 0 : exr_seccomp_build(&session->seccomp);

	if (r < 0)
		return exr_error_set(error, "setup-failed", "seccomp", -r,
				     "cannot compile the seccomp filter: %s", errno_text(-r));
	return 0;
}

static int launch(ExrSession *session, const char *view_path, int *ret_plan_fd, ExrError *error)
{
	ExrLaunch config = {
		.identity = &session->identity,
		.own_network = session->policy->network_mode == STELLA_NETWORK_DISABLED,
	};
	FD_AUTO plan_fd = -1;
	int r = build_seccomp(session, error);

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

	/* When it cannot be sent, init has ended and its message says why. */
	(void)packet_send(session->init_socket, &serving, NULL, 0);
	return await_init(session, WIRE_READY, plan_fd, NULL, 0, NULL, error);
}

/* *ret_refused: the kernel does not mount FUSE in this user namespace. */
static int start_with_device(ExrSession *session, bool *ret_refused, ExrError *error)
{
	ExrStage stage = EXR_STAGE_NONE;
	FD_AUTO plan_fd = -1;
	FD_AUTO device = -1, tasks = -1;
	int fds[2], r;

	if ((r = exr_gateway_new(session->policy, session->identity.inside,
				 session->identity.inside, exr_state_dir_root(session->state),
				 &session->gateway, error)) < 0 ||
	    (r = launch(session, NULL, &plan_fd, error)) < 0)
		return r;
	r = await_init(session, WIRE_DEVICE, plan_fd, fds, 2, &stage, error);
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
	FD_AUTO plan_fd = -1;
	int r;

	if (mkdir(path, 0700) != 0) {
		r = errno;
		return exr_error_set(error, "state-dir-failed", "state-dir", r, "\"%s\": %s", path,
				     errno_text(r));
	}
	/* The mount belongs to the first user namespace: it shows ids as the host has them. */
	if ((r = exr_gateway_new(session->policy, session->identity.outside_uid,
				 session->identity.outside_gid, exr_state_dir_root(session->state),
				 &session->gateway, error)) < 0 ||
	    (r = exr_gateway_attach(session->gateway, -1, -1, path, error)) < 0 ||
	    (r = launch(session, path, &plan_fd, error)) < 0 ||
	    (r = await_init(session, WIRE_HELD, plan_fd, NULL, 0, NULL, error)) < 0)
		return r;
	if ((r = exr_state_dir_detach(path)) < 0)
		return exr_error_set(error, "rootfs-failed", "detach-view", -r,
				     "cannot take the view off \"%s\": %s", path, errno_text(-r));
	return go_on(session, plan_fd, error);
}

/* Ends what was started; the session can be started anew. */
static void stop(ExrSession *session)
{
	fd_close(&session->init_socket);
	if (exr_process_wait(&session->init, INIT_END_MS) < 0) {
		exr_process_kill(&session->init);
		if (exr_process_wait(&session->init, KILL_MS) < 0 && session->gateway)
			exr_gateway_kill(session->gateway);
		(void)exr_process_end(&session->init, KILL_MS, 0);
	}
	exr_gateway_free(g_steal_pointer(&session->gateway));
}

static int start(ExrSession *session, ExrError *error)
{
	ExrError first = { 0 };
	bool refused = false;
	int r = start_with_device(session, &refused, &first);

	if (r < 0 && refused && geteuid() != 0) {
		stop(session);
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

/* A directory of the session, through the gateway. */
static void add_own_mount(ExrSession *session, const char *name, const char *view_path)
{
	g_autofree char *path = exr_state_dir_join(session->state, name);

	policy_add_mount(session->policy, path, view_path, STELLA_MOUNT_READ_WRITE);
}

/* A temporary directory is bound natively, which is faster; but a command may rename the directories on
 * the way to a mount in it, and so put something else in the mount's place. With a mount below, the gateway
 * serves it, which pins them. */
static void serve_temp_with_mounts(ExrSession *session, const char *name, const char *view_path)
{
	const GPtrArray *mounts = session->policy->mounts;
	bool below = false;

	if (strcmp(view_path, "/tmp") == 0 && session->policy->temp_dir_host[0])
		return; /* served by the gateway anyway */
	for (unsigned int i = 0; i < mounts->len; i++) {
		const PolicyMount *mount = mounts->pdata[i];

		if (strcmp(mount->view_path, view_path) == 0)
			return;
		below |= path_is_below(mount->view_path, view_path);
	}
	if (below)
		add_own_mount(session, name, view_path);
}

/* The session's own mounts, and what this build cannot do yet. */
static int prepare_policy(ExrSession *session, const ExrSessionConfig *config, ExrError *error)
{
	g_autofree char *missing = policy_find_unimplemented(config->policy);
	g_autofree char *message = NULL;
	int r;

	if (missing) {
		r = exr_error_set(error, "policy-unsupported", "policy", ENOTSUP,
				  "%s: not implemented yet", missing);
		error->key = g_strdup(missing);
		return r;
	}
	if ((r = exr_state_dir_new(&session->identity, config->temporary_user, &session->state,
				   error)) < 0)
		return r;
	session->policy = policy_copy(config->policy);
	if (config->temporary_user)
		add_own_mount(session, "user", STELLA_MOUNT_USER_DATA);
	serve_temp_with_mounts(session, "tmp", "/tmp");
	serve_temp_with_mounts(session, "var-tmp", "/var/tmp");
	/* A home that cannot be written keeps the shims that it has: told, and no reason not to run. */
	if ((r = ensure_mise_shims(session->policy->stella_home, session->policy->user_tools_dir)) <
	    0)
		g_info("the tool trees of \"%s\" could not be prepared: %s",
		       session->policy->stella_home, errno_text(-r));
	if ((r = policy_validate(session->policy, &message)) < 0 ||
	    (r = view_plan_new(session->policy, VIEW_FOR_SANDBOX, &session->plan, &message)) < 0)
		return exr_error_set(error, "policy-invalid", "policy", -r, "%s", message);
	return 0;
}

int exr_session_new(const ExrSessionConfig *config, ExrSession **ret_session,
		    ExrError *reterr_error)
{
	g_autoptr(ExrSession) session = g_new0(ExrSession, 1);
	int r;

	session->init_socket = session->init.pidfd = -1;
	session->identity = exr_identity_choose(config->policy->process_uid);
	if ((r = prepare_policy(session, config, reterr_error)) < 0)
		return r;
	if ((r = start(session, reterr_error)) < 0)
		return r;
	*ret_session = g_steal_pointer(&session);
	return 0;
}

void exr_session_free(ExrSession *session)
{
	if (!session)
		return;
	stop(session);
	exr_state_dir_free(session->state);
	exr_seccomp_clear(&session->seccomp);
	view_plan_free(session->plan);
	stella_policy_unref(session->policy);
	g_free(session);
}

const char *exr_session_id(const ExrSession *session)
{
	return exr_state_dir_id(session->state);
}

const ViewPlan *exr_session_plan(const ExrSession *session)
{
	return session->plan;
}

const char *const *exr_session_unenforced(const ExrSession *session)
{
	static const char *const nothing[] = { NULL };
	static const char *const sockets[] = { "network.abstract_sockets", NULL };

	if (session->policy->network_mode == STELLA_NETWORK_DISABLED || exr_scope_available())
		return nothing;
	return sockets;
}

bool exr_session_alive(const ExrSession *session)
{
	return !session->dead && session->init.pidfd >= 0 &&
	       exr_wait_readable(session->init.pidfd, 0) == -ETIMEDOUT &&
	       exr_gateway_alive(session->gateway);
}
