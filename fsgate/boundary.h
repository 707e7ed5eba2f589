/* Where an exec begins and ends, as the gateway sees it.
 *
 * At its start: what the host changed before is seen by it (fsg_invalidate_catch_up). At its end: the kernel tells
 * only later that a file was closed, so its result waits, bounded, until the files that were opened since its
 * start have been closed here too. Which exec opened a file is not known; execs that run at the same time
 * therefore only wait until nothing is closed any more for a moment.
 *
 * Any thread at once; the lock is a leaf. */
#pragma once

#include "common/exec-board.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct FsgBoundary FsgBoundary;

/* One open file, a member of its handle. */
typedef struct FsgOpened FsgOpened;
struct FsgOpened {
	FsgOpened *prev, *next; /* in the order of opening */
	uint64_t epoch;
};

FsgBoundary *fsg_boundary_new(void);
/* From now on the executor says itself how many execs have begun, on its board (borrowed), where it also reads what has
 * happened. Before any other thread exists. */
void fsg_boundary_share(FsgBoundary *boundary, ExecBoard *board);
/* The board of a session's view, or NULL: without a boundary, or nobody else reads it. */
ExecBoard *fsg_boundary_board(FsgBoundary *boundary);
void fsg_boundary_free(
	FsgBoundary *boundary); /* NULL is allowed, here and below; no file may be open */

/* A file was opened; it was closed. */
void fsg_boundary_opened(FsgBoundary *boundary, FsgOpened *opened);
void fsg_boundary_closed(FsgBoundary *boundary, FsgOpened *opened);

/* An exec begins, of an executor without a board: its number, to be given back at its end. */
uint64_t fsg_boundary_start(FsgBoundary *boundary);

/* Something was refused or changed, or may be by who has a file open: before it is answered. */
void fsg_boundary_note(FsgBoundary *boundary);

/* How many execs have begun. */
uint64_t fsg_boundary_epoch(FsgBoundary *boundary);

/* It has ended. Waits at most timeout_ms; false: files that it may have opened are not closed yet. */
bool fsg_boundary_end(FsgBoundary *boundary, uint64_t exec, int timeout_ms);
