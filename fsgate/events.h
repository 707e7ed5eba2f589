/* Denials and changes as they happen, for whoever listens: the newest LIMIT_EVENTS of them, numbered.
 *
 * A listener says from which number on it wants to know, and is told how many of those are gone already: a slow one
 * loses, and nobody waits for it. Unlike in an exec's result nothing is folded or counted together.
 *
 * Any thread at once; the lock is a leaf. Nothing here is reached while nothing is refused or changed. */
#pragma once

#include "fsgate/denial.h"
#include "fsgate/fold.h"

typedef struct FsgEvents FsgEvents;

typedef struct {
	bool is_denial;
	FsgDenial
		denial; /* its count is 0; of a change only path, pid, pid_namespace, time_us, seq and cut are set */
	FsgChangeKind change;
	char *from; /* of RENAMED; else NULL */
} FsgEvent;

FsgEvents *fsg_events_new(void);
void fsg_events_free(FsgEvents *events); /* NULL is allowed */

/* Copies of the texts are kept, of LIMIT_DENIAL_PATH_BYTES at the most; time and number are given here. */
void fsg_events_add_denial(FsgEvents *events, const FsgDenial *denial);
void fsg_events_add_change(FsgEvents *events, FsgChangeKind change, const char *path,
			   const char *from, pid_t pid, uint64_t pid_namespace);

typedef struct {
	GPtrArray *rows; /* FsgEvent, in order; owned */
	uint64_t last;	 /* what to ask from next time */
	uint64_t lost;	 /* events after `since` that are gone */
} FsgEventList;

/* Those after `since` (0: all that are kept), as many as fit most_bytes of text, to be cleared. With `wait`, if there is none, the
 * next one makes fsg_events_wake_fd() readable. */
void fsg_events_list(FsgEvents *events, uint64_t since, size_t most_bytes, bool wait,
		     FsgEventList *ret_list);
void fsg_event_list_clear(FsgEventList *list);

/* An eventfd, which the one who waits on it reads; -1: there is none. Borrowed. */
int fsg_events_wake_fd(const FsgEvents *events);
