/* One row a stage; see stage.h. The names and codes are published (README.md): they never change
 * their meaning. */
#include "executor/stage.h"

#include <glib.h>

static const ExrStageInfo stages[_EXR_STAGE_N] = {
	[EXR_STAGE_NONE] = { "init", "internal", "the sandbox ended unexpectedly" },
	[EXR_STAGE_VERSION] = { "init-version", "host-unsupported",
				"stella-sandbox-init is of another version than stella-exec" },
	[EXR_STAGE_CGROUP_NAMESPACE] = { "cgroup-namespace", "namespace-failed",
					 "cannot make the sandbox's cgroup namespace" },
	[EXR_STAGE_KEEP_CAPS] = { "keep-caps", "namespace-failed",
				  "cannot keep capabilities in the new user namespace" },
	[EXR_STAGE_START_INIT] = { "start-init", "internal", "cannot start stella-sandbox-init" },
	[EXR_STAGE_PLAN] = { "plan", "internal", "the sandbox's init got no plan" },
	[EXR_STAGE_PRIVATE_MOUNTS] = { "private-mounts", "rootfs-failed",
				       "cannot make the sandbox's mounts private" },
	[EXR_STAGE_SOURCE] = { "bind-source", "rootfs-failed", "cannot take the host's" },
	[EXR_STAGE_FUSE_DEVICE] = { "fuse-device", "host-unsupported", "cannot open /dev/fuse" },
	[EXR_STAGE_FUSE_MOUNT] = { "fuse-mount", "host-unsupported",
				   "cannot mount the view in a user namespace" },
	[EXR_STAGE_HOLD_VIEW] = { "hold-view", "rootfs-failed",
				  "cannot take the view that fusermount3 mounted" },
	[EXR_STAGE_SESSION_IDS] = { "session-ids", "namespace-failed",
				    "cannot change to the sandbox's user" },
	[EXR_STAGE_ATTACH_VIEW] = { "attach-view", "rootfs-failed", "cannot attach the view" },
	[EXR_STAGE_MOUNT_POINT] = { "mount-point", "rootfs-failed",
				    "there is no place in the sandbox for" },
	[EXR_STAGE_BIND] = { "bind", "rootfs-failed", "cannot mount in the sandbox" },
	[EXR_STAGE_MOUNT_PROC] = { "mount-proc", "rootfs-failed",
				   "cannot mount the session's /proc" },
	[EXR_STAGE_MOUNT_DEV] = { "mount-dev", "rootfs-failed", "cannot make the sandbox's /dev" },
	[EXR_STAGE_MOUNT_RUN] = { "mount-run", "rootfs-failed", "cannot make the sandbox's /run" },
	[EXR_STAGE_PIVOT] = { "pivot-root", "rootfs-failed", "cannot make the view the root" },
	[EXR_STAGE_HOSTNAME] = { "hostname", "namespace-failed",
				 "cannot set the sandbox's host name" },
	[EXR_STAGE_LOOPBACK] = { "loopback", "namespace-failed",
				 "cannot bring up the sandbox's loopback" },
	[EXR_STAGE_CLOSE_FDS] = { "close-fds", "rootfs-failed", "cannot leave the old root" },
	[EXR_STAGE_EXEC_INIT] = { "exec-init", "setup-failed",
				  "cannot make the namespaces of the command" },
	[EXR_STAGE_PAYLOAD] = { "payload", "internal", "the command's request is damaged" },
	[EXR_STAGE_EXEC_PROC] = { "exec-proc", "setup-failed", "cannot mount the command's /proc" },
	[EXR_STAGE_TERMINAL] = { "terminal", "setup-failed", "cannot make the command's terminal" },
	[EXR_STAGE_FORK] = { "fork", "setup-failed", "cannot make the command's process" },
	[EXR_STAGE_STDIO] = { "stdio", "setup-failed",
			      "cannot set the command's stdin and outputs" },
	[EXR_STAGE_NEW_SESSION] = { "new-session", "setup-failed",
				    "cannot make a session for the command" },
	[EXR_STAGE_CWD] = { "cwd", "cwd-invalid", "cannot enter the working directory" },
	[EXR_STAGE_SIGNALS] = { "signals", "setup-failed", "cannot reset signals" },
	[EXR_STAGE_LIMITS] = { "limits", "setup-failed", "cannot set the command's limits" },
	[EXR_STAGE_IDS] = { "ids", "setup-failed", "cannot take the command's ids" },
	[EXR_STAGE_DROP_CAPS] = { "drop-caps", "setup-failed", "cannot drop capabilities" },
	[EXR_STAGE_NO_NEW_PRIVS] = { "no-new-privs", "setup-failed", "cannot set no_new_privs" },
	[EXR_STAGE_SCOPE] = { "scope", "setup-failed",
			      "cannot shut off the host's abstract sockets" },
	[EXR_STAGE_SECCOMP] = { "seccomp", "setup-failed", "cannot load the seccomp filter" },
	[EXR_STAGE_EXEC] = { "exec", "program-not-executable", "cannot execute" },
	[EXR_STAGE_INTERPRETER] = { "exec-interpreter", "program-not-executable",
				    "the view has no interpreter or loader for" },
};

const ExrStageInfo *exr_stage_info(unsigned int stage)
{
	return &stages[stage < G_N_ELEMENTS(stages) ? stage : EXR_STAGE_NONE];
}
