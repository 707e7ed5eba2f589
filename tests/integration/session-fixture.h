/* A real session for tests: a workspace and a state directory of its own below a temporary directory,
 * and one call that runs a command and collects what became of it. */
#pragma once

#include "executor/session.h"

#include <glib.h>

typedef struct {
	char *dir;		 /* temporary; everything else lies below it */
	char *workspace;	 /* writable */
	char *state;		 /* STELLA_STATE_DIR points here */
	const char *working_dir; /* of the policy; NULL: /workspace */
	ExrSession *session;
} Fixture;

/* Directories only. Fails the test when something does not work, as all of these do. */
Fixture *fixture_new(void);
void fixture_free(Fixture *fixture);

/* A policy of the workspace at /workspace, with more keys ("" or `"limits": {...}, `). */
StellaPolicy *fixture_policy(const Fixture *fixture, const char *more);
/* Starts fixture->session. */
void fixture_start(Fixture *fixture, const char *more);
void fixture_stop(Fixture *fixture);

/* For cmocka: with a session that has started, and the end of it all. */
int fixture_set_up(void **state);
int fixture_tear_down(void **state);

typedef struct {
	const char *const *argv;
	const char *cwd;   /* NULL: /workspace */
	const char *input; /* NULL: stdin is null */
	/* Called once, at the first output of the command. */
	void (*at_output)(ExrExec *exec);
} Run;

typedef struct {
	ExrEnd end;
	int result; /* of exr_exec_finish */
	char *out;
	char *err;
} Ran;

/* Runs to the end; a command that takes longer than 20 s fails the test. */
Ran fixture_run(Fixture *fixture, const Run *run);
/* The same for sh -c script. */
Ran fixture_sh(Fixture *fixture, const char *script);
/* And its output, of one that has to exit with 0. */
void fixture_expect(Fixture *fixture, const char *script, const char *output);
/* Two that do nothing: from then on a session keeps what it does between commands. */
void fixture_warm_up(Fixture *fixture);
void ran_clear(Ran *ran);
#define RAN_AUTO __attribute__((cleanup(ran_clear))) Ran

/* Processes on the host that have marker among their arguments, zombies not counted. */
int count_processes(const char *marker);
/* Entries of a directory. */
int count_entries(const char *path);
/* Lines of /proc/self/mountinfo. */
int count_mounts(void);
/* Children of this process: 0 when there are none. */
int count_children(void);
/* The pid of our child whose program has that name, or 0. */
pid_t find_child(const char *name);
