/* A resilient session over fake ones, with a creator that does as the test says; and calls of it in threads of their own. */
#pragma once

#include "fake-session.h"

#include "stella/resilient-session.h"

typedef struct {
	FakeSession *first;
	StellaSession *session; /* the resilient one over it */
	/* What the creator does; set while it is not at work. */
	Gate *gate; /* it comes here, or NULL; owned by the test */
	atomic_bool ignores_cancel;
	atomic_bool fails;	  /* `no sandbox N`, START_FAILED, N being the number of its call */
	atomic_bool says_nothing; /* fails without an error */
	atomic_bool makes_dead;
	atomic_bool asks_itself; /* it uses the resilient session before it makes one */
	GError *own_answer;	 /* what it was answered then */
	/* What it has done. */
	atomic_int calls;
	atomic_int at_once; /* calls at this moment */
	atomic_bool overlapped;
	atomic_int destroyed;
	pthread_mutex_t lock;
	GPtrArray *made; /* FakeSession, named madeN; under the lock */
} Resilient;

/* For cmocka: *state is a Resilient. */
int resilient_set_up(void **state);
int resilient_tear_down(void **state);
StellaSession *resilient_creator(GCancellable *cancellable, gpointer user_data, GError **error);

/* The one that was made last; borrowed. */
FakeSession *resilient_last_made(Resilient *resilient);

/* One command in a thread. Nothing is asserted there. */
typedef struct {
	pthread_t thread;
	StellaSession *session;
	GCancellable *cancellable; /* or NULL */
	char *out;		   /* of the result; NULL: there was none */
	StellaEnded ended;
	GError *error;
} Call;

Call *call_start(StellaSession *session, GCancellable *cancellable);
/* Waits for its end. */
void call_join(Call *call);
void call_free(Call *call);
/* Both, of a call whose result has this text, or that has failed with this code. */
void call_end_with(Call *take_call, const char *out);
void call_end_failed(Call *take_call, StellaError code);
void call_end_canceled(Call *take_call);

/* A command in this thread, whose result has this text. */
void expect_exec(StellaSession *session, const char *out);
/* One that fails. */
void expect_no_exec(StellaSession *session, StellaError code);

bool is_readable(int fd);
