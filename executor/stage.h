/* The steps that init, exec init and the command's process can fail at, by number, and what the
 * supervisor makes of each: the stage's published name, the error code, the sentence. */
#pragma once

typedef enum {
	EXR_STAGE_NONE,
	EXR_STAGE_VERSION, /* keeps its number: it is told to supervisors of other versions */
	/* making the session */
	EXR_STAGE_CGROUP_NAMESPACE,
	EXR_STAGE_KEEP_CAPS,
	EXR_STAGE_START_INIT,
	EXR_STAGE_PLAN,
	EXR_STAGE_PRIVATE_MOUNTS,
	EXR_STAGE_SOURCE,
	EXR_STAGE_FUSE_DEVICE,
	EXR_STAGE_FUSE_MOUNT,
	EXR_STAGE_HOLD_VIEW,
	EXR_STAGE_SESSION_IDS,
	EXR_STAGE_ATTACH_VIEW,
	EXR_STAGE_MOUNT_POINT,
	EXR_STAGE_BIND,
	EXR_STAGE_MOUNT_PROC,
	EXR_STAGE_MOUNT_DEV,
	EXR_STAGE_MOUNT_RUN,
	EXR_STAGE_PIVOT,
	EXR_STAGE_HOSTNAME,
	EXR_STAGE_LOOPBACK,
	EXR_STAGE_CLOSE_FDS,
	/* starting one command */
	EXR_STAGE_EXEC_INIT,
	EXR_STAGE_PAYLOAD,
	EXR_STAGE_EXEC_PROC,
	EXR_STAGE_TERMINAL,
	EXR_STAGE_FORK,
	EXR_STAGE_STDIO,
	EXR_STAGE_NEW_SESSION,
	EXR_STAGE_CWD,
	EXR_STAGE_SIGNALS,
	EXR_STAGE_LIMITS,
	EXR_STAGE_IDS,
	EXR_STAGE_DROP_CAPS,
	EXR_STAGE_NO_NEW_PRIVS,
	EXR_STAGE_SCOPE,
	EXR_STAGE_SECCOMP,
	EXR_STAGE_EXEC,
	EXR_STAGE_INTERPRETER,
	_EXR_STAGE_N,
} ExrStage;

typedef struct {
	const char *name;     /* "mount-proc" */
	const char *code;     /* "rootfs-failed" */
	const char *sentence; /* "cannot mount the session's /proc" */
} ExrStageInfo;

/* Never NULL; a number that is no stage gives the row of EXR_STAGE_NONE. Static storage. */
const ExrStageInfo *exr_stage_info(unsigned int stage);
