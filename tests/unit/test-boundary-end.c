/* boundary: whose files the end of an exec waits for, and for how long. */
#include "fsgate/boundary.h"

#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LONG_MS 20000

static void nothing_open_is_no_wait(void **state)
{
	FsgBoundary *boundary = fsg_boundary_new();
	uint64_t exec = fsg_boundary_start(boundary);

	(void)state;
	assert_true(fsg_boundary_end(boundary, exec, 0));
	fsg_boundary_free(boundary);
}

static void files_from_before_are_not_waited_for(void **state)
{
	FsgBoundary *boundary = fsg_boundary_new();
	FsgOpened before, during;
	uint64_t exec;

	(void)state;
	fsg_boundary_opened(boundary, &before);
	exec = fsg_boundary_start(boundary);
	fsg_boundary_opened(boundary, &during);
	fsg_boundary_closed(boundary, &during);
	assert_true(fsg_boundary_end(boundary, exec, 0));
	fsg_boundary_closed(boundary, &before);
	fsg_boundary_free(boundary);
}

static void what_is_not_closed_in_time_is_told(void **state)
{
	FsgBoundary *boundary = fsg_boundary_new();
	uint64_t exec = fsg_boundary_start(boundary);
	FsgOpened opened;

	(void)state;
	fsg_boundary_opened(boundary, &opened);
	assert_false(fsg_boundary_end(boundary, exec, 1));
	fsg_boundary_closed(boundary, &opened);
	fsg_boundary_free(boundary);
}

typedef struct {
	FsgBoundary *boundary;
	FsgOpened files[100];
} Closing;

/* As the kernel does it: later, one by one. */
static gpointer close_late(gpointer data)
{
	Closing *closing = data;

	for (size_t i = 0; i < G_N_ELEMENTS(closing->files); i++) {
		g_usleep(200);
		fsg_boundary_closed(closing->boundary, &closing->files[i]);
	}
	return NULL;
}

static void closing_is_waited_for(void **state)
{
	Closing closing = { .boundary = fsg_boundary_new() };
	uint64_t exec = fsg_boundary_start(closing.boundary);
	GThread *thread;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(closing.files); i++)
		fsg_boundary_opened(closing.boundary, &closing.files[i]);
	thread = g_thread_new("close", close_late, &closing);
	assert_true(fsg_boundary_end(closing.boundary, exec, LONG_MS));
	g_thread_join(thread);
	fsg_boundary_free(closing.boundary);
}

/* The other's file stays open: only a moment is waited, not the whole time. */
static void another_execs_files_hold_up_for_a_moment(void **state)
{
	FsgBoundary *boundary = fsg_boundary_new();
	uint64_t exec = fsg_boundary_start(boundary);
	uint64_t other = fsg_boundary_start(boundary);
	gint64 began = g_get_monotonic_time();
	FsgOpened opened;

	(void)state;
	fsg_boundary_opened(boundary, &opened);
	assert_false(fsg_boundary_end(boundary, exec, LONG_MS));
	assert_true(g_get_monotonic_time() - began < LONG_MS / 2 * G_TIME_SPAN_MILLISECOND);
	fsg_boundary_closed(boundary, &opened);
	assert_true(fsg_boundary_end(boundary, other, 0));
	fsg_boundary_free(boundary);
}

static void a_view_without_execs_needs_none(void **state)
{
	FsgOpened opened;

	(void)state;
	fsg_boundary_opened(NULL, &opened);
	fsg_boundary_closed(NULL, &opened);
	assert_int_equal(fsg_boundary_start(NULL), 0);
	assert_true(fsg_boundary_end(NULL, 0, 0));
	fsg_boundary_free(NULL);
}

/* On the executor's board: how many execs have begun is read there, and what is open is shown. */
static void a_board_is_used(void **state)
{
	FsgBoundary *boundary = fsg_boundary_new();
	FsgOpened before, during;
	ExecBoard board = { .execs = 4 };

	(void)state;
	assert_null(fsg_boundary_board(boundary));
	fsg_boundary_share(boundary, &board);
	assert_ptr_equal(fsg_boundary_board(boundary), &board);
	fsg_boundary_opened(boundary, &before);
	assert_int_equal(atomic_load(&board.opened), 4);
	atomic_store(&board.execs, 5);
	atomic_store(&board.running, 1);
	assert_int_equal(fsg_boundary_epoch(boundary), 5);
	fsg_boundary_opened(boundary, &during);
	assert_int_equal(atomic_load(&board.opened), 5);
	atomic_store(&board.running, 0);
	assert_false(fsg_boundary_end(boundary, 5, 0));
	fsg_boundary_closed(boundary, &during);
	assert_int_equal(atomic_load(&board.opened), 4);
	assert_true(fsg_boundary_end(boundary, 5, 0));
	/* that is the executor's to count */
	assert_int_equal(atomic_load(&board.running), 0);
	fsg_boundary_closed(boundary, &before);
	assert_int_equal(atomic_load(&board.opened), 0);
	assert_int_equal(atomic_load(&board.happened), 0);
	fsg_boundary_note(boundary);
	assert_int_equal(atomic_load(&board.happened), 1);
	fsg_boundary_free(boundary);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_open_is_no_wait),
		cmocka_unit_test(files_from_before_are_not_waited_for),
		cmocka_unit_test(what_is_not_closed_in_time_is_told),
		cmocka_unit_test(closing_is_waited_for),
		cmocka_unit_test(another_execs_files_hold_up_for_a_moment),
		cmocka_unit_test(a_view_without_execs_needs_none),
		cmocka_unit_test(a_board_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
