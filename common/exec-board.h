/* What the executor and the gateway of a session tell each other without asking: numbers in one page of memory that
 * both have mapped. Two questions an exec, each with two processors to be woken, are a tenth of what a short command
 * costs; nearly always the answers are "there is nothing to catch up with" and "nothing was refused or changed", and
 * these can be read here. Whoever reads anything else asks (common/control.h).
 *
 * The page is the executor's; it sends the memfd before the device. Nobody else has it: no process of a sandbox can be
 * given one of the executor's fds. Each number is written by one side only, as said beside it, and read by both at any
 * time; all accesses are sequentially consistent, since the order of several of them is what an answer rests on. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef struct {
	/* --- the executor's; the gateway's own where it has been given no page --- */
	_Atomic uint64_t execs;	  /* that have begun: the number of the last one */
	_Atomic uint64_t running; /* of these */
	/* --- the gateway's --- */
	_Atomic uint64_t knows; /* 1: whose denials and changes are (it has the session's procfs) */
	_Atomic int64_t
		believed_us; /* monotonic: by then what the kernel believes for a short time has ended */
	_Atomic uint64_t
		taking_back; /* 1: what is noted no more as believed may not be taken back yet */
	_Atomic uint64_t
		at_events; /* 1: events that are no longer in the host's queue may not be dealt with yet */
	_Atomic uint64_t happened; /* denials, changes, and files opened that may become changes */
	_Atomic uint64_t
		opened; /* of the files that are open, the exec that had begun last when one was opened */
} ExecBoard;

/* A page of zeros, to be unmapped, and its memfd (the caller owns it), whose size nobody can change. 0 or -errno. */
int exec_board_new(ExecBoard **ret_board, int *ret_fd);
/* The same page in another process; fd is borrowed. -EINVAL when it is not one. */
int exec_board_map(int fd, ExecBoard **ret_board);
void exec_board_unmap(ExecBoard *board); /* NULL is allowed */
