/* What the supervisor and the sandbox's init say to each other: one fixed message, and two sealed
 * memfds that travel with it, the plan of the sandbox and the payload of one exec.
 *
 * Both ends come from one build (init is found beside the library, never through PATH), so there is
 * no version but the magic number. Offsets count from the start of the memfd; every string ends with a
 * NUL inside of it. Init trusts the supervisor, which wrote all of it; a command never sees any. */
#pragma once

#include "executor/seccomp-filter.h"

#include <stdint.h>

#define WIRE_MAGIC 0x73746c31u /* "stl1" */

/* Init's end of the session's socket. */
#define WIRE_INIT_FD 3

/* Rows of a plan: mounts that the sandbox itself makes, a few dozen in practice. */
#define WIRE_MAX_ROWS 2048
/* fds that come with one message: WIRE_EXEC has the most. */
#define WIRE_MAX_FDS 5

typedef enum {
	/* supervisor to init */
	WIRE_GO = 1,  /* the id maps are written */
	WIRE_PLAN,    /* with the plan */
	WIRE_SERVING, /* the gateway answers: the view may be touched */
	WIRE_EXEC, /* with payload, control socket, stdout, stderr, and stdin unless it is null */
	/* supervisor to exec init, on the exec's own socket */
	WIRE_SIGNAL, /* value is the signal */
	/* init to supervisor */
	WIRE_DEVICE,  /* with the mounted /dev/fuse */
	WIRE_HELD,    /* a view that was mounted outside is now held by init */
	WIRE_READY,   /* the root file system stands */
	WIRE_STARTED, /* with the pidfd of the exec's init */
	WIRE_FAILED,  /* stage, errnum; value is the plan's row or -1 */
	/* exec init to supervisor, on the exec's own socket; so is WIRE_FAILED */
	WIRE_ENDED, /* value is the wait status of the command */
} WireType;

typedef struct {
	uint32_t type;	/* WireType */
	uint32_t stage; /* ExrStage */
	int32_t errnum; /* positive */
	int32_t value;
	int64_t cpu_us;
	int64_t max_rss_kib;
	int32_t left_over;
	uint32_t magic;
} WireMessage;

typedef enum {
	WIRE_ROW_HOST = 1, /* a host directory or file, recursively, read-only */
	WIRE_ROW_PRIVATE,  /* a directory of the session, checked by device and inode */
	WIRE_ROW_VIEW,	   /* a part of the view that another row would cover */
	WIRE_ROW_LINK,	   /* a symlink, source is its text */
	WIRE_ROW_PROC,
	WIRE_ROW_DEV,
	WIRE_ROW_RUN, /* a small tmpfs */
} WireRowKind;

#define WIRE_ROW_IS_DIR (1u << 0)
/* The mount point lies in a directory that an earlier row made and no agent has seen: make it. */
#define WIRE_ROW_MAKE (1u << 1)
/* PRIVATE: no symbolic link in it is followed. */
#define WIRE_ROW_NO_FOLLOW (1u << 2)

typedef struct {
	uint32_t kind; /* WireRowKind */
	uint32_t flags;
	uint32_t target; /* below the view's root, without a leading slash */
	uint32_t source;
	uint64_t dev;
	uint64_t ino;
} WireRow;

#define WIRE_PLAN_CLEAR_GROUPS (1u << 0) /* setgroups is allowed and has to be done */
#define WIRE_PLAN_LOOPBACK     (1u << 1) /* the network is the session's own: bring lo up */
#define WIRE_PLAN_VIEW_AT_PATH (1u << 2) /* the view is mounted at view_path */
#define WIRE_PLAN_SCOPE	       (1u << 3) /* the network is the host's: exr_scope_enter() */

typedef struct {
	uint32_t magic;
	uint32_t size;
	uint32_t flags;
	uint32_t uid; /* inside; gid is the same number */
	uint32_t session_dir;
	uint32_t view_path;
	uint32_t rows;
	uint32_t row_count;
	uint32_t seccomp_code;
	uint32_t seccomp_size;
} WirePlan;

#define WIRE_MAX_LIMITS 4

typedef struct {
	uint32_t magic;
	uint32_t size;
	uint32_t argc;
	uint32_t envc;
	uint32_t vectors; /* uint64_t[argc + 1] then [envc + 1]: offsets, 0 at the end of each */
	uint32_t cwd;
	uint32_t stdin_null;
	uint32_t limit_count;
	struct {
		uint32_t resource; /* RLIMIT_* */
		uint32_t unused;
		uint64_t soft;
		uint64_t hard;
	} limits[WIRE_MAX_LIMITS];
} WireExec;
