/* See boundary.h. Open files stand in a list in the order of their opening: the last one alone says whether any
 * since an exec's start is left. */
#include "fsgate/boundary.h"

#include "common/cond-util.h"

#include <glib.h>

/* Among execs that run at the same time: for so long nothing was closed. */
#define QUIET_US 2000

struct FsgBoundary {
	pthread_mutex_t lock;
	pthread_cond_t closed;
	FsgOpened list;	      /* .prev: opened last */
	unsigned int waiting; /* nobody is woken for nothing */
	ExecBoard own;
	ExecBoard *board; /* own, or the executor's; constant once threads run */
};

FsgBoundary *fsg_boundary_new(void)
{
	FsgBoundary *boundary = g_new0(FsgBoundary, 1);

	pthread_mutex_init(&boundary->lock, NULL);
	cond_init(&boundary->closed);
	boundary->list.prev = boundary->list.next = &boundary->list;
	boundary->board = &boundary->own;
	return boundary;
}

void fsg_boundary_share(FsgBoundary *boundary, ExecBoard *board)
{
	boundary->board = board;
}

ExecBoard *fsg_boundary_board(FsgBoundary *boundary)
{
	return boundary && boundary->board != &boundary->own ? boundary->board : NULL;
}

void fsg_boundary_free(FsgBoundary *boundary)
{
	if (!boundary)
		return;
	pthread_mutex_destroy(&boundary->lock);
	pthread_cond_destroy(&boundary->closed);
	g_free(boundary);
}

/* Under the lock. */
static void show_opened(FsgBoundary *boundary)
{
	const FsgOpened *last = boundary->list.prev;

	atomic_store(&boundary->board->opened, last != &boundary->list ? last->epoch : 0);
}

void fsg_boundary_opened(FsgBoundary *boundary, FsgOpened *opened)
{
	if (!boundary)
		return;
	pthread_mutex_lock(&boundary->lock);
	opened->epoch = atomic_load(&boundary->board->execs);
	opened->prev = boundary->list.prev;
	opened->next = &boundary->list;
	opened->prev->next = opened->next->prev = opened;
	show_opened(boundary);
	pthread_mutex_unlock(&boundary->lock);
}

void fsg_boundary_closed(FsgBoundary *boundary, FsgOpened *opened)
{
	if (!boundary)
		return;
	pthread_mutex_lock(&boundary->lock);
	opened->prev->next = opened->next;
	opened->next->prev = opened->prev;
	show_opened(boundary);
	if (boundary->waiting > 0)
		pthread_cond_broadcast(&boundary->closed);
	pthread_mutex_unlock(&boundary->lock);
}

uint64_t fsg_boundary_start(FsgBoundary *boundary)
{
	if (!boundary)
		return 0;
	atomic_fetch_add(&boundary->board->running, 1);
	return atomic_fetch_add(&boundary->board->execs, 1) + 1;
}

uint64_t fsg_boundary_epoch(FsgBoundary *boundary)
{
	return boundary ? atomic_load(&boundary->board->execs) : 0;
}

void fsg_boundary_note(FsgBoundary *boundary)
{
	if (boundary)
		atomic_fetch_add(&boundary->board->happened, 1);
}

/* Under the lock: a file that was opened since that exec's start is open. */
static bool has_open(const FsgBoundary *boundary, uint64_t exec)
{
	const FsgOpened *last = boundary->list.prev;

	return last != &boundary->list && last->epoch >= exec;
}

bool fsg_boundary_end(FsgBoundary *boundary, uint64_t exec, int timeout_ms)
{
	gint64 deadline_us = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
	bool done, in_time = true;

	if (!boundary)
		return true;
	/* An executor with a board has said it there. */
	if (boundary->board == &boundary->own && atomic_load(&boundary->own.running) > 0)
		atomic_fetch_sub(&boundary->own.running, 1);
	pthread_mutex_lock(&boundary->lock);
	boundary->waiting++;
	while (has_open(boundary, exec) && in_time) {
		gint64 until_us = deadline_us;

		if (atomic_load(&boundary->board->running) > 0)
			until_us = MIN(until_us, g_get_monotonic_time() + QUIET_US);
		in_time = cond_wait_until(&boundary->closed, &boundary->lock, until_us);
	}
	boundary->waiting--;
	done = !has_open(boundary, exec);
	pthread_mutex_unlock(&boundary->lock);
	return done;
}
