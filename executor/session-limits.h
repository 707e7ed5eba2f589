/* The limits of a session as a whole: limits.memory_bytes and limits.processes of its policy. (Those of each
 * process are rlimits, exec-payload.h.)
 *
 * Memory is limited by a cgroup. It counts what the sandbox's init and its small processes have, too (well below
 * 2 MiB and 200 KiB an exec), the page cache that commands fill, and their tmpfs. Swap is not added to it.
 *
 * Processes are counted as the kernel counts them, each thread one. The sandbox's own come on top: commands
 * have exactly that many. By a cgroup, or else by RLIMIT_NPROC in the session's user namespace (nproc.h), which
 * refuses as surely but tells nobody, so that it is never named as hit.
 *
 * Not enforceable is a limit that neither can do here; with limits.required that is an error. */
#pragma once

#include "common/policy.h"
#include "executor/error.h"
#include "executor/identity.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Bits of a set of limits. */
#define EXR_LIMIT_MEMORY    (1u << 0) /* memory_bytes */
#define EXR_LIMIT_PROCESSES (1u << 1) /* processes */

typedef struct ExrSessionLimits ExrSessionLimits;

typedef struct {
	const PolicyLimits *policy;
	const char *session_id;	    /* the name of the cgroups */
	unsigned int own_processes; /* of the sandbox itself, beside one for each exec */
	bool no_rlimit;		    /* RLIMIT_NPROC would count what is not the session's */
	const char *record; /* a file in the session's directory: what was made (cgroup.h) */
	const ExrIdentity *identity;
} ExrSessionLimitsConfig;

/* Before anything of the session runs. *ret_limits is NULL when the policy asks for none. -errno with *reterr_error
 * (limit-unenforceable) when one is required and cannot be enforced. What was made is removed with the session's
 * directory (state-dir.h), also after a failure. */
int exr_session_limits_new(const ExrSessionLimitsConfig *config, ExrSessionLimits **ret_limits,
			   ExrError *reterr_error);
/* All of these allow NULL: no limits. */
void exr_session_limits_free(ExrSessionLimits *limits);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrSessionLimits, exr_session_limits_free)

/* The cgroup that init is to be cloned into, or -1: a move of version 2 takes milliseconds. Borrowed. */
int exr_session_limits_clone_fd(const ExrSessionLimits *limits);
/* Puts init, or what becomes it and has not done anything yet, where clone_fd did not. 0 or -errno. */
int exr_session_limits_add(const ExrSessionLimits *limits, pid_t pid);
/* The same for one that was not cloned into clone_fd. */
int exr_session_limits_move(const ExrSessionLimits *limits, pid_t pid);

/* The limits of the policy that are not enforced. */
unsigned int exr_session_limits_unenforced(const ExrSessionLimits *limits);

/* The kernel's counters at some moment. */
typedef struct {
	uint64_t
		killed; /* processes of the session, for want of memory; the kernel does not tell whether the session's
			     limit or the whole host had none left */
	uint64_t refused; /* processes that were not made */
} ExrLimitCounts;

/* hold gives room for one more of the sandbox's own processes, an exec's init, and release takes it back. In any
 * thread, as what follows. */
void exr_session_limits_hold(ExrSessionLimits *limits);
void exr_session_limits_release(ExrSessionLimits *limits);
/* Processes are limited: one of ours that has not quite ended counts as well. */
bool exr_session_limits_count_processes(const ExrSessionLimits *limits);
/* RLIMIT_NPROC is in the place of a cgroup: a process of ours that is made during an exec counts as one of it. */
bool exr_session_limits_by_rlimit(const ExrSessionLimits *limits);

/* An exec starts, whose init is held: *ret_nproc is the RLIMIT_NPROC of its processes, 0 for none. */
void exr_session_limits_exec_starts(ExrSessionLimits *limits, ExrLimitCounts *ret_before,
				    uint64_t *ret_nproc);
/* The limits that were hit since then: by this exec, or by another of the session at the same time. */
unsigned int exr_session_limits_hit_since(const ExrSessionLimits *limits,
					  const ExrLimitCounts *before);

/* Those that were hit since the session began. */
unsigned int exr_session_limits_hit(const ExrSessionLimits *limits);
