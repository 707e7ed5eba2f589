/* events: what a listener gets, what a slow one loses, and who is woken. */
#include "fsgate/events.h"

#include "common/limits.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#define ALL_BYTES (1024 * 1024)

static void change(FsgEvents *events, const char *path)
{
	fsg_events_add_change(events, FSG_CHANGE_CREATED, path, NULL, 7, 0);
}

static const FsgEvent *row_of(const FsgEventList *list, guint i)
{
	assert_true(i < list->rows->len);
	return g_ptr_array_index(list->rows, i);
}

static void all_is_kept_of_both_kinds(void **state)
{
	static char path[] = "/ro/f", mount[] = "/ro";
	const FsgDenial denial = {
		.op = "open",
		.path = path,
		.mount = mount,
		.reason = DENIAL_READ_ONLY_MOUNT,
		.errnum = 30,
		.pid = 8,
		.pid_namespace = 9,
	};
	FsgEvents *events = fsg_events_new();
	FsgEventList list;

	(void)state;
	fsg_events_add_denial(events, &denial);
	fsg_events_add_change(events, FSG_CHANGE_RENAMED, "/b", "/a", 7, 11);
	fsg_events_list(events, 0, ALL_BYTES, false, &list);
	assert_int_equal(list.rows->len, 2);
	assert_true(row_of(&list, 0)->is_denial);
	assert_string_equal(row_of(&list, 0)->denial.op, "open");
	assert_string_equal(row_of(&list, 0)->denial.path, "/ro/f");
	assert_string_equal(row_of(&list, 0)->denial.mount, "/ro");
	assert_int_equal(row_of(&list, 0)->denial.pid_namespace, 9);
	assert_int_equal(row_of(&list, 0)->denial.seq, 1);
	assert_true(row_of(&list, 0)->denial.time_us > 0);
	assert_false(row_of(&list, 1)->is_denial);
	assert_int_equal(row_of(&list, 1)->change, FSG_CHANGE_RENAMED);
	assert_string_equal(row_of(&list, 1)->denial.path, "/b");
	assert_string_equal(row_of(&list, 1)->from, "/a");
	assert_int_equal(row_of(&list, 1)->denial.pid, 7);
	assert_int_equal(list.last, 2);
	assert_int_equal(list.lost, 0);
	fsg_event_list_clear(&list);
	fsg_events_list(events, 1, ALL_BYTES, false, &list);
	assert_int_equal(list.rows->len, 1);
	fsg_event_list_clear(&list);
	fsg_events_free(events);
}

static void a_slow_listener_loses_and_is_told(void **state)
{
	FsgEvents *events = fsg_events_new();
	FsgEventList list;

	(void)state;
	for (int i = 1; i <= 3 * LIMIT_EVENTS; i++) {
		char path[32];

		(void)snprintf(path, sizeof path, "/f%d", i);
		change(events, path);
	}
	fsg_events_list(events, 10, ALL_BYTES, false, &list);
	assert_int_equal(list.rows->len, LIMIT_EVENTS);
	assert_int_equal(list.lost, 2 * LIMIT_EVENTS - 10);
	assert_int_equal(row_of(&list, 0)->denial.seq, 2 * LIMIT_EVENTS + 1);
	assert_string_equal(row_of(&list, 0)->denial.path, "/f2049");
	assert_int_equal(list.last, 3 * LIMIT_EVENTS);
	fsg_event_list_clear(&list);
	/* one that keeps up does not */
	change(events, "/last");
	fsg_events_list(events, 3 * LIMIT_EVENTS, ALL_BYTES, false, &list);
	assert_int_equal(list.rows->len, 1);
	assert_int_equal(list.lost, 0);
	fsg_event_list_clear(&list);
	/* a number of another view's */
	fsg_events_list(events, UINT64_MAX, ALL_BYTES, false, &list);
	assert_int_equal(list.rows->len, LIMIT_EVENTS);
	fsg_event_list_clear(&list);
	fsg_events_free(events);
}

static void long_ones_come_in_several_answers(void **state)
{
	FsgEvents *events = fsg_events_new();
	g_autofree char *path = g_strnfill(100000, 'p');
	uint64_t since = 0;
	FsgEventList list;
	guint count = 0, answers = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		change(events, path);
	do {
		fsg_events_list(events, since, 2 * LIMIT_DENIAL_PATH_BYTES + 256, false, &list);
		for (guint i = 0; i < list.rows->len; i++) {
			assert_true(row_of(&list, i)->denial.cut);
			assert_int_equal(strlen(row_of(&list, i)->denial.path),
					 LIMIT_DENIAL_PATH_BYTES - 1);
		}
		count += list.rows->len;
		since = list.last;
		fsg_event_list_clear(&list);
	} while (++answers < 10);
	assert_int_equal(count, 20);
	fsg_events_list(events, 0, 1, false, &list);
	assert_int_equal(list.rows->len, 1); /* one at the least */
	fsg_event_list_clear(&list);
	fsg_events_free(events);
}

static bool is_awake(const FsgEvents *events)
{
	struct pollfd p = { .fd = fsg_events_wake_fd(events), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void who_waits_is_woken_once(void **state)
{
	FsgEvents *events = fsg_events_new();
	FsgEventList list;
	eventfd_t count;

	(void)state;
	change(events, "/nobody/waits");
	assert_false(is_awake(events));
	fsg_events_list(events, 0, ALL_BYTES, true, &list);
	assert_int_equal(list.rows->len, 1); /* there is one: no wait */
	fsg_event_list_clear(&list);
	change(events, "/nobody/waits");
	assert_false(is_awake(events));
	fsg_events_list(events, 2, ALL_BYTES, true, &list);
	assert_int_equal(list.rows->len, 0);
	fsg_event_list_clear(&list);
	change(events, "/a");
	change(events, "/b");
	assert_true(is_awake(events));
	assert_int_equal(eventfd_read(fsg_events_wake_fd(events), &count), 0);
	assert_int_equal(count, 1);
	fsg_events_free(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_kept_of_both_kinds),
		cmocka_unit_test(a_slow_listener_loses_and_is_told),
		cmocka_unit_test(long_ones_come_in_several_answers),
		cmocka_unit_test(who_waits_is_woken_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
