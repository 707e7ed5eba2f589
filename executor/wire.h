/* What the supervisor and the sandbox's init say to each other: one fixed message, and two sealed
 * memfds that travel with it, the plan of the sandbox and the payload of one exec.
 *
 * Both ends have to come from one build: init compares the plan's version with its own, and refuses another
 * one's. Offsets count from the start of the memfd; every string ends with a
 * NUL inside of it. Init trusts the supervisor, which wrote all of it; a command never sees any. */
#pragma once

#include <stdint.h>

#define WIRE_MAGIC 0x73746c31u /* "stl1" */
/* Of a version's text, with its NUL. */
#define WIRE_VERSION_SIZE 24

/* Init's end of the session's socket. */
#define WIRE_INIT_FD 3

/* Rows of a plan: mounts that the sandbox itself makes, a few dozen in practice. */
#define WIRE_MAX_ROWS 2048
/* fds that come with one message: WIRE_EXEC has the most. */
#define WIRE_MAX_FDS 4

typedef enum {
	/* supervisor to init */
	WIRE_GO =
		1, /* the id maps are written, the cgroups entered; to exec init: the view shows what the host has */
	WIRE_PLAN,    /* with the plan */
	WIRE_SERVING, /* the gateway answers: the view may be touched */
	WIRE_PREPARE, /* with exec init's end of the exec's own socket; value is WIRE_PREPARE_* */
	/* supervisor to exec init, on the exec's own socket */
	WIRE_EXEC, /* once, at any time; with the payload; unless a terminal is wanted with stdout, stderr, and stdin
		      unless it is null. WIRE_GO follows, and only then the command starts */
	WIRE_SIGNAL, /* value is the signal */
	/* init to supervisor */
	WIRE_DEVICE, /* with the mounted /dev/fuse */
	WIRE_HELD,   /* a view that was mounted outside is now held by init */
	WIRE_READY, /* the root file system stands; with init's pidfd when its parent is another's process (NATIVE) */
	WIRE_FAILED, /* stage, errnum; value is the plan's row or -1 */
	/* init to supervisor, on the exec's own socket */
	WIRE_STARTED, /* with the pidfd of the exec's init, which may have said something before */
	WIRE_NOT_STARTED, /* it could not be made: stage, errnum */
	/* exec init to supervisor, on the exec's own socket; so is WIRE_FAILED */
	WIRE_PREPARED, /* first, unless it fails: number is the inode of its pid namespace; errnum is why it does not wait
			  in the plan's waiting_dir, if it has tried that, else 0 */
	WIRE_COMMAND,  /* of a live one: with the command's pidfd */
	WIRE_TERMINAL, /* from the command's process, if one is wanted: with the terminal's master */
	WIRE_RUNNING,  /* of a live one: the program has been executed */
	WIRE_ENDED, /* value is the wait status of the command; number is 1 when no process of it is left, else 0 */
} WireType;

#define WIRE_PREPARE_TERMINAL (1 << 0)
/* It is not to wait in the view: its request is there already, or one that was to wait there could not. */
#define WIRE_PREPARE_STAY (1 << 1)

typedef struct {
	uint32_t type;	/* WireType */
	uint32_t stage; /* ExrStage */
	int32_t errnum; /* positive */
	int32_t value;
	int64_t cpu_us;
	int64_t max_rss_kib;
	uint64_t number;
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
	/* of a plan that is NATIVE */
	WIRE_ROW_SOURCE, /* what is staged at source, recursively, checked by device and inode */
	WIRE_ROW_PIN, /* the target itself, mounted on itself: it can be neither renamed nor removed */
	WIRE_ROW_MASK, /* something empty over the target */
	WIRE_ROW_FILE, /* a read-only file, of ino bytes at source */
} WireRowKind;

#define WIRE_ROW_IS_DIR (1u << 0)
/* The mount point lies in a directory that an earlier row made and no agent has seen: make it. */
#define WIRE_ROW_MAKE (1u << 1)
/* PRIVATE: no symbolic link in it is followed. */
#define WIRE_ROW_NO_FOLLOW (1u << 2)
/* SOURCE, PIN. */
#define WIRE_ROW_READ_ONLY (1u << 3)

typedef struct {
	uint32_t kind; /* WireRowKind */
	uint32_t flags;
	uint32_t target; /* below the view's root, without a leading slash */
	uint32_t source;
	uint64_t dev; /* of the source; PIN, MASK: of the target, unless both are 0 */
	uint64_t ino;
} WireRow;

#define WIRE_PLAN_CLEAR_GROUPS (1u << 0) /* setgroups is allowed and has to be done */
#define WIRE_PLAN_LOOPBACK     (1u << 1) /* the network is the session's own: bring lo up */
#define WIRE_PLAN_VIEW_AT_PATH (1u << 2) /* the view is mounted at view_path */
#define WIRE_PLAN_SCOPE	       (1u << 3) /* the network is the host's: exr_scope_enter() */
/* There is no gateway: bubblewrap has made the namespaces and staged the sources (launcher-bwrap.h), and the root is a
 * tmpfs with the rows on it. */
#define WIRE_PLAN_NATIVE (1u << 4)
/* There is no sandbox: init and its children are processes of the supervisor's user among all others. */
#define WIRE_PLAN_PLAIN (1u << 5)

typedef struct {
	uint32_t magic;
	uint32_t size;
	char version[WIRE_VERSION_SIZE]; /* here in every version, past and future */
	uint32_t flags;
	uint32_t uid; /* inside; gid is the same number */
	uint32_t session_dir;
	uint32_t view_path;
	uint32_t rows;
	uint32_t row_count;
	uint32_t seccomp_code;
	uint32_t seccomp_size;
	uint32_t
		waiting_dir; /* where commands begin unless they say otherwise, if that is a mount of the view: nobody can
				 move or remove it. 0: none */
	uint32_t unused;
	uint64_t
		tmpfs_bytes; /* the most that one of the sandbox's file systems in memory may hold; 0: as they are */
} WirePlan;

#define WIRE_MAX_LIMITS 5

#define WIRE_EXEC_STDIN_NULL (1u << 0) /* no fd for stdin comes with the request */
#define WIRE_EXEC_WAIT_ALL   (1u << 1) /* the end is that of the last process */
#define WIRE_EXEC_LIVE                                                                             \
	(1u << 2) /* WIRE_COMMAND brings the command's pidfd, and WIRE_RUNNING follows */
#define WIRE_EXEC_TERMINAL (1u << 3) /* its stdin, stdout and stderr are a terminal of its own */

typedef struct {
	uint32_t magic;
	uint32_t size;
	uint32_t argc;
	uint32_t envc;
	uint32_t vectors; /* uint64_t[argc + 1] then [envc + 1]: offsets, 0 at the end of each */
	uint32_t cwd;
	uint32_t flags; /* WIRE_EXEC_* */
	uint32_t limit_count;
	uint16_t rows; /* of the terminal */
	uint16_t columns;
	uint32_t unused;
	struct {
		uint32_t resource; /* RLIMIT_* */
		uint32_t unused;
		uint64_t soft;
		uint64_t hard;
	} limits[WIRE_MAX_LIMITS];
} WireExec;
