/* What session.c, session-start.c and exec.c share: for them only. */
#pragma once

#include "common/cond-util.h"
#include "common/view-plan.h"
#include "executor/backend.h"
#include "executor/gateway.h"
#include "executor/identity.h"
#include "executor/seccomp-filter.h"
#include "executor/session-limits.h"
#include "executor/session.h"
#include "executor/spawn.h"
#include "executor/spill.h"
#include "executor/stage.h"
#include "executor/state-dir.h"
#include "executor/wire.h"

#include <stdatomic.h>

/* Owns all of it. What has no lock named is made before the session is given out and not changed until its last
 * reference goes. */
struct ExrSession {
	int refs; /* atomic */
	const ExrBackend *backend;
	char *id;
	StellaPolicy *policy; /* effective: with the session's own mounts */
	ViewPlan *plan;
	char **host_env;
	char *home;	    /* or NULL */
	bool one_exec;	    /* it ends with its first command */
	bool created;	    /* the log was told of it */
	ExrStateDir *state; /* gone once it has ended */
	ExrSpillDir spill_dir;
	ExrIdentity identity;
	ExrSessionLimits *limits; /* or NULL */
	char **unenforced;
	ExrSeccomp seccomp;
	ExrError ahead_error; /* why there is no gateway, until that is told */
	ExrGateway *gateway;  /* of fsgate only, as seccomp is of all that isolate; else NULL */
	int done_fd;	      /* an epoll: readable once the session is no more alive */
	int closed_fd;	      /* an eventfd in it */
	atomic_bool closed;   /* exr_session_close() was called */
	atomic_bool dead;     /* something of it does not answer, or could not be made to die */
	atomic_uint last_exec;

	pthread_mutex_t
		lock; /* one question to init at a time; the spare; its process; the end. Not held while anything else is */
	ExrProcess init;
	ExrProcess monitor; /* of bwrap: its own process outside, whose child init is; else none */
	int init_socket; /* its end of file tells init to die; shut down, and closed only with the session */
	int spare;	   /* its socket (prepared.h), or -1 */
	atomic_bool stays; /* no spare waits in the view any more: one could not, or not soon */
	bool ended;	   /* everything has been stopped */

	pthread_mutex_t env_lock;
	char **refresh; /* NAME=value, or NULL */
};

/* exr_session_new(), but that nobody is told when it fails. */
int exr_session_start_new(const ExrSessionConfig *config, ExrSession **ret_session,
			  ExrError *reterr_error);

/* Starts what takes long to be ready and does not have to know what for, if it can be. */
void exr_session_start_ahead(ExrSession *session);
/* Starts gateway and init and waits until commands can be run. -errno with *error, and whatever was started is for
 * exr_session_stop(). */
int exr_session_start(ExrSession *session, ExrError *error);
/* Steps that backends share. build_seccomp does nothing the second time. await_init: the next message of init, which
 * has to be of that type and to bring n_fds fds, which are the caller's then; *ret_stage (may be NULL) is the stage of a
 * failure of init. */
int exr_session_build_seccomp(ExrSession *session, ExrError *error);
int exr_session_await_init(ExrSession *session, WireType type, int plan_fd, int *ret_fds,
			   size_t n_fds, ExrStage *ret_stage, ExrError *error);

/* Ends what was started, within some seconds; nothing may use the session any more but to look whether it lives. */
void exr_session_stop(ExrSession *session);

/* From now on it is not alive: it does not answer, or something of it does not die. */
void exr_session_set_dead(ExrSession *session);

/* What exr_session_refresh_env() has made so far, or NULL; the caller frees. */
char **exr_session_refreshed(ExrSession *session);

/* Fills an error from a WIRE_FAILED; subject (may be NULL) is what the step was about. -errno. */
int exr_session_told(const WireMessage *failed, const char *subject, ExrError *error);
