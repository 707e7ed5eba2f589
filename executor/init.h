/* The parts of stella-sandbox-init, PID 1 of a session's namespaces, and of the small processes that it
 * makes for each exec. For these files only.
 *
 * This is a program of its own so that nothing of the host agent's memory is in it, and so that no
 * library of it can be led to load a file from the untrusted root: it uses system calls, and of libc
 * only what allocates nothing. It is never dumpable, so that no command can trace it or look into it. */
#pragma once

#include "common/fd-util.h"
#include "common/syscall-wrap.h"
#include "executor/packet.h"
#include "executor/stage.h"
#include "executor/wire.h"

#include <linux/securebits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which step failed; travels in WIRE_FAILED. */
typedef struct {
	ExrStage stage;
	int row; /* of the plan, or -1 */
} InitFailure;

/* Notes where, and passes r on. */
static inline int init_fail(InitFailure *failure, ExrStage stage, int row, int r)
{
	failure->stage = stage;
	failure->row = row;
	return r;
}

static inline const char *wire_text(const void *base, uint32_t offset)
{
	return (const char *)base + offset;
}

static inline const WireRow *wire_rows(const WirePlan *plan)
{
	return (const WireRow *)(const void *)wire_text(plan, plan->rows);
}

/* Maps a sealed memfd and checks its frame (magic and size come first in both kinds). -errno. */
int init_map(int fd, bool private_copy, size_t frame_size, void **ret_data);

/* The root file system while it is being put together. */
typedef struct {
	const WirePlan *plan;
	int session_fd; /* the session's directory on the host: where the view is attached first */
	int view_fd;	/* the root of the view's mount */
	int mask_fd;	/* the tmpfs below /proc that holds what masks are made of */
	int row_fds[WIRE_MAX_ROWS];
	int device_fds[6]; /* as init-dev.c lists them */
} InitRootfs;

/* Opens what has to be opened with the supervisor's identity: everything of the host. */
int init_rootfs_collect(InitRootfs *rootfs, InitFailure *failure);
/* Makes the FUSE mount, detached. *ret_device_fd is its /dev/fuse. */
int init_rootfs_mount_view(InitRootfs *rootfs, int *ret_device_fd, InitFailure *failure);

/* A new procfs of this namespace of pids, not attached anywhere. The fd or -errno. */
int init_rootfs_new_proc(void);
/* Takes the view that is mounted at the plan's path. */
int init_rootfs_hold_view(InitRootfs *rootfs, InitFailure *failure);
/* The view answers: attaches it, mounts all rows on it and makes it the root. */
int init_rootfs_build(InitRootfs *rootfs, InitFailure *failure);

/* The host's device nodes, each checked to be the right one. */
int init_dev_collect(InitRootfs *rootfs);
/* A minimal /dev at target below the view, with its own devpts and shm. */
int init_dev_mount(InitRootfs *rootfs, const char *target);

/* A tmpfs of ours, detached: its fd or -errno. size and mode as the mount options have them. */
int init_tmpfs(const WirePlan *plan, const char *size, const char *mode, unsigned int attr);
/* Serves one WIRE_EXEC: clones the exec's init, which does not return. Takes the fds. 0 with *ret_pidfd,
 * or -errno. */
int init_exec_start(const WirePlan *plan, int *take_fds, size_t fd_count, int *ret_pidfd);

/* What the command's process does from its first instruction to execve. Never returns; a failing
 * step is written to status_fd, which is close-on-exec. */
typedef struct {
	uint32_t stage;
	int32_t errnum;
} ChildFailure;

typedef struct {
	const WirePlan *plan;
	const WireExec *request;
	char *const *argv;
	char *const *env;
	int stdio[3]; /* stdio[0] is -1 for /dev/null */
	int status_fd;
} ChildSetup;

_Noreturn void exr_child_setup(const ChildSetup *child);

/* Empties the capability sets and checks that nothing can fill them again. 0 or -errno. Also for
 * processes of ours that are done with mounting. */
int exr_child_drop_caps(void);

/* What init and all that it makes have, for good: no capability by being user 0, none by a change of
 * ids, none by being raised. */
#define EXR_SECUREBITS                                                                             \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |   \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)
