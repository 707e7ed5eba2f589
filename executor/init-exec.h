/* What init-exec.c and init-watch.c share: for them only. */
#pragma once

#include "executor/init.h"

#include <sys/types.h>

/* The init of one exec, in its own words. */
typedef struct {
	const WirePlan *plan;
	const WireExec *request; /* NULL until it has come */
	int control_fd;
	int proc_fd;   /* the root of this exec's proc */
	int status_fd; /* where its command says why it could not become the program */
	int signal_fd;
	uint64_t namespace; /* inode of its pid namespace */
	pid_t command;
	bool told_running;
	bool command_ended; /* only waiting for what it has left */
	int status;	    /* then: how */
} ExecInit;

static inline bool exec_init_is_plain(const ExecInit *exec)
{
	return exec->plan->flags & WIRE_PLAN_PLAIN;
}

/* Ends it, and with it all of its command, without a word. */
_Noreturn void exec_init_leave(const ExecInit *exec);
_Noreturn void exec_init_fail(const ExecInit *exec, unsigned int stage, int errnum);

/* Takes what signals have come: only that init died is of interest, to one that is plain, and ends us. */
void exec_init_take_signals(const ExecInit *exec);

/* The command's process exists: passes signals on to it, and tells how it ended. */
_Noreturn void exec_init_watch(ExecInit *exec);
