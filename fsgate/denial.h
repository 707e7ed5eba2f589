/* What was refused and why: a bounded record, read by `stella-fsgate status` and by the executor.
 *
 * Bounded whatever an agent does: LIMIT_DENIALS rows, each with texts of at most LIMIT_DENIAL_PATH_BYTES. Equal
 * refusals (operation, path, reason, errno) share a row and are counted. When there is no room the row that was
 * touched least recently goes, of the exec that has most; the totals, also by reason, never lose anything. So a flood
 * of one exec's pushes out what is its own, or nobody's any more.
 *
 * Any thread at once; the lock is a leaf. Nothing here is reached while nothing is refused. */
#pragma once

#include "common/denial-reason.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct FsgDenials FsgDenials;

/* One row. In fsg_denials_add() the texts are borrowed and count, seq and cut are not read. */
typedef struct {
	const char *op; /* the operation's name; static storage */
	char *path;	/* view path as far as is known, "" when nothing is */
	char *mount;	/* view path of its mount, or NULL: part of no mount */
	char *target;	/* the link's text (symlink-escape), or NULL */
	DenialReason reason;
	int errnum; /* positive; 0: recorded, but not refused (a link's text in a sandbox) */
	pid_t pid;  /* who asked last, as whoever mounted the view numbers processes; 0: unknown */
	uint64_t pid_namespace; /* of who asked (client.h), 0: not known; rows are of one */
	uint64_t
		epoch; /* execs that had begun; rows are of one, so that none counts what was before an exec */
	gint64 time_us; /* of the last one, since the epoch */
	uint64_t count;
	uint64_t seq; /* of the last one: grows with every denial */
	bool cut;     /* a text was longer than what is kept */
} FsgDenial;

FsgDenials *fsg_denials_new(void);
void fsg_denials_free(FsgDenials *denials); /* NULL is allowed */

/* Records one. */
void fsg_denials_add(FsgDenials *denials, const FsgDenial *denial);

typedef struct {
	GPtrArray *rows;  /* FsgDenial, in the order of their seq; owned */
	uint64_t last;	  /* of the newest: what to ask from next time */
	uint64_t total;	  /* all denials ever */
	uint64_t dropped; /* of those: no longer in any row */
	uint64_t by_reason[_DENIAL_N];
} FsgDenialList;

/* A copy of the rows whose seq is above `since` (0: all), to be cleared. */
void fsg_denials_list(FsgDenials *denials, uint64_t since, FsgDenialList *ret_list);
void fsg_denial_list_clear(FsgDenialList *list);

/* Of the exec in that pid namespace, which has ended, those since the nth exec began (from 1): equal ones in one row,
 * in the order of the last of each; ret_list has no more than rows and dropped. They stay in the record as nobody's, and
 * the next namespace that gets the number begins anew. */
void fsg_denials_take(FsgDenials *denials, uint64_t pid_namespace, uint64_t exec,
		      FsgDenialList *ret_list);
