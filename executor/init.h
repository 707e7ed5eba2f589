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
#include <sys/resource.h>
#include <sys/types.h>

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
	int files_fd;	   /* NATIVE: a tmpfs that holds what FILE and MASK rows are made of */
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

/* The directory that a target lies in, each missing one made when make is set. *ret_name is the last component.
 * Follows no link. The fd or -errno. */
int init_rootfs_open_parent(int view_fd, const char *target, bool make, const char **ret_name);
/* A directory or an empty file there, unless there is something already. 0 or -errno. */
int init_rootfs_make_point(int dir, const char *name, bool is_dir);
/* A detached copy of what is at path, with what is mounted below. The fd or -errno. */
int init_rootfs_clone(const char *path, unsigned int flags, uint64_t attr);

/* NATIVE: the root that the rows are mounted on, and a place for files of ours. */
int init_native_begin(InitRootfs *rootfs, InitFailure *failure);
/* A SOURCE row's copy. The fd or -errno. */
int init_native_collect(const WirePlan *plan, const WireRow *row);
/* A PIN, MASK or FILE row, its mount point being name in dir. 0 or -errno. */
int init_native_mount(InitRootfs *rootfs, uint32_t i, int dir, const char *name);

typedef struct {
	pid_t pid, parent, group;
	bool lives; /* one of its threads does; the first may have ended */
} InitStat;

typedef void InitVisit(const InitStat *stat, void *data);

/* Each process of a procfs, by their numbers. 0 or -errno. */
int init_stat_each(int proc_fd, InitVisit *visit, void *data);

/* PLAIN. From now on orphans of our children are our children. 0 or -errno. */
int init_plain_begin(void);
/* How many processes below us live; -1 when it cannot be known. */
int init_plain_count(void);
/* Kills everything below us, and waits until it is gone; or only what is no exec init (their_orphans). */
void init_plain_kill(bool their_orphans);

/* The host's device nodes, each checked to be the right one. */
int init_dev_collect(InitRootfs *rootfs);
/* A minimal /dev at target below the view, with its own devpts and shm. */
int init_dev_mount(InitRootfs *rootfs, const char *target);

/* A devpts of its own, detached: its fd or -errno. */
int init_devpts_new(void);

typedef struct {
	int devpts_fd; /* its devpts, detached; -1: there is no terminal, or it is on the host's */
	int master_fd;
	int slave_fd;
} InitTerminal;

/* A terminal on a devpts of its own, or (plain) on that of the host, of the size that the request says. 0 or -errno. */
int init_terminal_open(const WireExec *request, bool plain, InitTerminal *ret_terminal);
/* In the command's process, a session leader: makes it the controlling terminal. 0 or -errno. */
int init_terminal_take(const InitTerminal *terminal);
/* Then: sends the master to the supervisor, and puts the devpts on /dev/pts. 0 or -errno. */
int init_terminal_hand_up(const InitTerminal *terminal, int control_fd);

/* A tmpfs of ours, detached: its fd or -errno. Of that size, or what the plan has for the most; mode as the mount
 * option has it. */
int init_tmpfs(const WirePlan *plan, uint64_t bytes, const char *mode, unsigned int attr);
/* Serves one WIRE_PREPARE: clones an exec's init, which does not return. 0 with *ret_pidfd, or -errno. */
int init_exec_start(const WirePlan *plan, int control_fd, int flags, int *ret_pidfd);
/* A child was reaped, which may have been one. */
void init_exec_ended(pid_t pid);

/* The soft limit of open files that init was started with. */
extern rlim_t init_open_files;

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
	int stdio[3];
	uint64_t mask_mount; /* id of the mount that a command must not be in */
	InitTerminal terminal;
	int control_fd; /* where its master goes */
	int status_fd;
	int home_fd; /* where exec init stood before it went to wait in the plan's waiting_dir; -1: it has not */
	bool is_there;	  /* of the command's own: that is where it is to begin */
	bool is_filtered; /* exr_child_filter() was done by whom it was made by */
} ChildSetup;

_Noreturn void exr_child_setup(const ChildSetup *child);

/* What cannot be taken back and is inherited: no new privileges, and the filters. Only the plan is looked at. 0 or
 * -errno with *ret_stage. */
int exr_child_filter(ChildSetup *child, ExrStage *ret_stage);

/* Empties the capability sets and checks that nothing can fill them again. 0 or -errno. Also for
 * processes of ours that are done with mounting. */
int exr_child_drop_caps(void);

/* What init and all that it makes have, for good: no capability by being user 0, none by a change of
 * ids, none by being raised. */
#define EXR_SECUREBITS                                                                             \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |   \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)
