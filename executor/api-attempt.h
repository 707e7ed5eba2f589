/* One try to make a new session in the place of a dead one, as its maker and those who wait for it share it. For api-inner.c
 * only, whose lock covers what changes here. */
#pragma once

#include "stella/resilient-session.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct {
	int refs;		   /* atomic */
	pthread_t maker;	   /* the thread that the creator is called in */
	GCancellable *cancellable; /* what the creator is given: of its caller, and of who closes */
	bool done;
	bool abandoned; /* it failed, and its caller had cancelled: that is nobody else's error */
	StellaSession *made; /* when it did not fail */
	GError *error;	     /* when it did */
} ApiAttempt;

ApiAttempt *api_attempt_new(void);
ApiAttempt *api_attempt_ref(ApiAttempt *attempt);
void api_attempt_unref(ApiAttempt *attempt); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ApiAttempt, api_attempt_unref)

/* Calls the creator, which may block; no lock is held. What it gives, or NULL with *ret_error, which is never left unset. */
StellaSession *api_attempt_make(ApiAttempt *attempt, StellaSessionCreator creator,
				gpointer user_data, GCancellable *cancellable, GError **ret_error);
