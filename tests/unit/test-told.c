/* told: what is noted can be taken back, and what has no room is said to have none. */
#include "fsgate/told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void recent_items_come_in_order(void **state)
{
	FsgTold *told = fsg_told_new(4, 4);
	g_autoptr(GPtrArray) items = NULL;
	g_autoptr(GPtrArray) none = NULL;
	const FsgToldItem *first, *second;

	(void)state;
	assert_true(fsg_told_add_recent(told, 1, "a", 2, true));
	assert_true(fsg_told_add_recent(told, 0, "", 3, false));
	items = fsg_told_take_recent(told);
	assert_int_equal(items->len, 2);
	first = g_ptr_array_index(items, 0);
	second = g_ptr_array_index(items, 1);
	assert_int_equal(first->dir, 1);
	assert_string_equal(first->name, "a");
	assert_int_equal(first->object, 2);
	assert_true(first->is_dir);
	assert_string_equal(second->name, "");
	assert_int_equal(second->object, 3);
	assert_true(first->until_us <= second->until_us);
	assert_true(first->until_us > g_get_monotonic_time());
	none = fsg_told_take_recent(told);
	assert_int_equal(none->len, 0);
	fsg_told_free(told);
}

static void what_has_no_room_is_not_believed(void **state)
{
	FsgTold *told = fsg_told_new(2, 2);

	(void)state;
	assert_true(fsg_told_add_recent(told, 1, "a", 0, false));
	assert_true(fsg_told_add_recent(told, 1, "a", 0, false));
	assert_false(fsg_told_add_recent(told, 1, "a", 0, false));
	/* What was moved is believed already. */
	fsg_told_add_moved(told, 1, "b");
	g_autoptr(GPtrArray) items = fsg_told_take_recent(told);
	assert_int_equal(items->len, 3);
	assert_true(fsg_told_add_recent(told, 1, "a", 0, false));
	assert_true(fsg_told_add_lasting(told, 1, "a"));
	assert_true(fsg_told_add_lasting(told, 1, "b"));
	assert_false(fsg_told_add_lasting(told, 1, "c"));
	/* Known already: takes no room. */
	assert_true(fsg_told_add_lasting(told, 1, "a"));
	g_ptr_array_unref(fsg_told_take_lasting(told));
	assert_true(fsg_told_add_lasting(told, 1, "c"));
	fsg_told_free(told);
}

static void a_lasting_name_is_kept_once_for_each_directory(void **state)
{
	FsgTold *told = fsg_told_new(1, 100);
	g_autoptr(GPtrArray) items = NULL;

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_true(fsg_told_add_lasting(told, 1, "a"));
		assert_true(fsg_told_add_lasting(told, 2, "a"));
		assert_true(fsg_told_add_lasting(told, 2, "b"));
	}
	items = fsg_told_take_lasting(told);
	assert_int_equal(items->len, 3);
	fsg_told_free(told);
}

static void links_are_taken_once(void **state)
{
	FsgTold *told = fsg_told_new(4, 4);

	(void)state;
	assert_true(fsg_told_is_clear(told));
	for (int round = 0; round < 2; round++) {
		g_autoptr(GArray) links = NULL;
		g_autoptr(GArray) none = NULL;
		uint64_t sum = 0;

		fsg_told_add_link(told, UINT64_MAX);
		fsg_told_add_link(told, 7);
		fsg_told_add_link(told, UINT64_MAX);
		assert_false(fsg_told_is_clear(told));
		links = fsg_told_take_links(told);
		assert_int_equal(links->len, 2);
		for (guint i = 0; i < links->len; i++)
			sum += g_array_index(links, uint64_t, i);
		assert_int_equal(sum, 6);
		none = fsg_told_take_links(told);
		assert_int_equal(none->len, 0);
		assert_true(fsg_told_is_clear(told));
	}
	assert_true(fsg_told_add_recent(told, 1, "a", 2, false));
	assert_false(fsg_told_is_clear(told));
	fsg_told_free(told);
}

static void how_long_something_is_believed_is_shown(void **state)
{
	FsgTold *told = fsg_told_new(2, 2);
	_Atomic int64_t believed_us = 0;
	int64_t first;

	(void)state;
	fsg_told_show(told, &believed_us);
	assert_true(fsg_told_add_recent(told, 1, "a", 0, false));
	first = atomic_load(&believed_us);
	assert_true(first > g_get_monotonic_time() + 900000);
	fsg_told_add_moved(told, 1, "b");
	assert_true(atomic_load(&believed_us) >= first);
	first = atomic_load(&believed_us);
	/* what has no room, or lasts, changes nothing */
	assert_false(fsg_told_add_recent(told, 1, "c", 0, false));
	assert_true(fsg_told_add_lasting(told, 1, "c"));
	assert_int_equal(atomic_load(&believed_us), first);
	g_ptr_array_unref(fsg_told_take_recent(told));
	assert_int_equal(atomic_load(&believed_us), 0);
	fsg_told_free(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recent_items_come_in_order),
		cmocka_unit_test(what_has_no_room_is_not_believed),
		cmocka_unit_test(a_lasting_name_is_kept_once_for_each_directory),
		cmocka_unit_test(links_are_taken_once),
		cmocka_unit_test(how_long_something_is_believed_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
