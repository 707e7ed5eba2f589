/* A session as a host implements one, for tests of what uses sessions: it runs nothing, says what it was given, and lives
 * and dies as the test wants. And gates, at which threads are held until the test has seen them there. */
#pragma once

#include "stella/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int waiting; /* have come, whether they have gone on or not */
	bool open;
} Gate;

Gate *gate_new(void);
void gate_free(Gate *gate);
/* Comes to the gate, and goes on when it is open, or cancellable (may be NULL) is cancelled. */
void gate_pass(Gate *gate, GCancellable *cancellable);
/* Waits until count threads have come. Ends the test when they do not within some seconds. */
void gate_await(Gate *gate, int count);
void gate_open(Gate *gate);

#define FAKE_TYPE_SESSION (fake_session_get_type())
G_DECLARE_FINAL_TYPE(FakeSession, fake_session, FAKE, SESSION, GObject)

struct _FakeSession {
	GObject parent;
	char *id;
	StellaPolicy *policy;
	int done_fd; /* an eventfd */
	atomic_bool dead;
	atomic_int execs;   /* that have begun */
	atomic_int closes;  /* calls of close */
	Gate *alive_gate;   /* borrowed: is_alive of a dead one comes here; or NULL */
	Gate *exec_gate;    /* borrowed: a command comes here; or NULL */
	bool dies_at_exec;  /* a command finds it dead, and is not run */
	bool refuses_execs; /* a command is told that it is closed, although it lives */
};

/* Its id is "sandbox-NAME", its policy has NAME=policy and SHARED=policy. */
FakeSession *fake_session_new(const char *name);
void fake_session_die(FakeSession *fake);

/* What a command of it has as stdout: its id, then the request's env entries, then "-NAME" for each that it takes away,
 * one a line. A process gives an error with the same text: no fake process is needed to see what came. */
