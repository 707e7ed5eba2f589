/* denial: the reasons' names, and the bounded record of refusals. */
#include "fsgate/denial.h"

#include "common/limits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Execs that have begun. */
static uint64_t epoch;

static void add_of(FsgDenials *denials, uint64_t pid_namespace, const char *op, const char *path,
		   DenialReason reason, int errnum)
{
	FsgDenial denial = {
		.op = op,
		.path = (char *)(uintptr_t)path,
		.mount = (char *)(uintptr_t) "/workspace",
		.reason = reason,
		.errnum = errnum,
		.pid = 7,
		.pid_namespace = pid_namespace,
		.epoch = epoch,
		.time_us = 1000,
	};

	fsg_denials_add(denials, &denial);
}

static void add(FsgDenials *denials, const char *op, const char *path, DenialReason reason,
		int errnum)
{
	add_of(denials, 0, op, path, reason, errnum);
}

static const FsgDenial *row_of(const FsgDenialList *list, guint i)
{
	assert_true(i < list->rows->len);
	return g_ptr_array_index(list->rows, i);
}

static void every_reason_has_its_own_name(void **state)
{
	(void)state;
	for (int i = 0; i < _DENIAL_N; i++) {
		const char *name = denial_reason_name((DenialReason)i);

		assert_true(strlen(name) > 0);
		assert_int_equal(denial_reason_from_name(name), i);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name));
	}
	assert_string_equal(denial_reason_name(_DENIAL_N), "unknown");
	assert_int_equal(denial_reason_from_name("unknown"), -EINVAL);
}

static void equal_ones_are_counted_together(void **state)
{
	FsgDenials *denials = fsg_denials_new();
	FsgDenialList list;

	(void)state;
	add(denials, "open", "/a", DENIAL_READ_ONLY_MOUNT, EROFS);
	add(denials, "open", "/b", DENIAL_READ_ONLY_MOUNT, EROFS);
	add(denials, "open", "/a", DENIAL_READ_ONLY_MOUNT, EROFS);
	/* each of these differs in one thing */
	add(denials, "unlink", "/a", DENIAL_READ_ONLY_MOUNT, EROFS);
	add(denials, "open", "/a", DENIAL_STAND_IN, EROFS);
	add(denials, "open", "/a", DENIAL_READ_ONLY_MOUNT, EACCES);
	fsg_denials_list(denials, 0, &list);
	assert_int_equal(list.rows->len, 5);
	assert_string_equal(row_of(&list, 0)->path, "/b");
	assert_string_equal(row_of(&list, 1)->path, "/a");
	assert_int_equal(row_of(&list, 1)->count, 2);
	assert_int_equal(row_of(&list, 1)->seq, 3);
	assert_int_equal(row_of(&list, 1)->pid, 7);
	assert_string_equal(row_of(&list, 1)->mount, "/workspace");
	assert_int_equal(list.total, 6);
	assert_int_equal(list.dropped, 0);
	assert_int_equal(list.by_reason[DENIAL_READ_ONLY_MOUNT], 5);
	assert_int_equal(list.by_reason[DENIAL_STAND_IN], 1);
	fsg_denial_list_clear(&list);
	fsg_denials_free(denials);
}

static void asking_from_a_number_gives_what_came_after(void **state)
{
	FsgDenials *denials = fsg_denials_new();
	FsgDenialList list;
	uint64_t mark;

	(void)state;
	add(denials, "open", "/a", DENIAL_HIDDEN, ENOENT);
	epoch++;
	fsg_denials_list(denials, 0, &list);
	mark = list.last;
	fsg_denial_list_clear(&list);
	fsg_denials_list(denials, mark, &list);
	assert_int_equal(list.rows->len, 0);
	fsg_denial_list_clear(&list);
	add(denials, "open", "/a", DENIAL_HIDDEN, ENOENT);
	fsg_denials_list(denials, mark, &list);
	assert_int_equal(list.rows->len, 1);
	/* not two: what was counted before that exec is another row */
	assert_int_equal(row_of(&list, 0)->count, 1);
	assert_int_equal(list.last, mark + 1);
	fsg_denial_list_clear(&list);
	fsg_denials_list(denials, 0, &list);
	assert_int_equal(list.rows->len, 2);
	fsg_denial_list_clear(&list);
	fsg_denials_free(denials);
}

/* A million different ones: the rows are the newest, and nothing is lost from the counts. */
static void a_flood_stays_bounded(void **state)
{
	enum { FLOOD = 1000000 };
	FsgDenials *denials = fsg_denials_new();
	FsgDenialList list;

	(void)state;
	add(denials, "mkdir", "/often", DENIAL_CROSS_MOUNT, EXDEV);
	for (int i = 0; i < FLOOD; i++) {
		char path[32];

		g_snprintf(path, sizeof path, "/f%d", i);
		add(denials, "open", path, DENIAL_READ_ONLY_MOUNT, EROFS);
		if (i % 100 == 0)
			add(denials, "mkdir", "/often", DENIAL_CROSS_MOUNT, EXDEV);
	}
	fsg_denials_list(denials, 0, &list);
	assert_int_equal(list.rows->len, LIMIT_DENIALS);
	assert_string_equal(row_of(&list, LIMIT_DENIALS - 1)->path, "/f999999");
	assert_int_equal(list.total, 1 + FLOOD + FLOOD / 100);
	assert_int_equal(list.by_reason[DENIAL_READ_ONLY_MOUNT], FLOOD);
	/* what keeps coming keeps its row */
	for (guint i = 0; i < list.rows->len; i++)
		if (strcmp(row_of(&list, i)->path, "/often") == 0)
			assert_int_equal(row_of(&list, i)->count, 1 + FLOOD / 100);
	assert_int_equal(list.dropped, list.total - (LIMIT_DENIALS - 1) - (1 + FLOOD / 100));
	fsg_denial_list_clear(&list);
	fsg_denials_free(denials);
}

static void long_texts_are_cut_and_still_counted_together(void **state)
{
	FsgDenials *denials = fsg_denials_new();
	g_autofree char *path = g_strnfill(100000, 'p');
	FsgDenialList list;

	(void)state;
	add(denials, "open", path, DENIAL_READ_ONLY_MOUNT, EROFS);
	add(denials, "open", path, DENIAL_READ_ONLY_MOUNT, EROFS);
	add(denials, "open", "/short", DENIAL_READ_ONLY_MOUNT, EROFS);
	fsg_denials_list(denials, 0, &list);
	assert_int_equal(list.rows->len, 2);
	assert_int_equal(strlen(row_of(&list, 0)->path), LIMIT_DENIAL_PATH_BYTES - 1);
	assert_true(row_of(&list, 0)->cut);
	assert_int_equal(row_of(&list, 0)->count, 2);
	assert_false(row_of(&list, 1)->cut);
	fsg_denial_list_clear(&list);
	fsg_denials_free(denials);
}

static void open_of(FsgDenials *denials, uint64_t pid_namespace, const char *path)
{
	add_of(denials, pid_namespace, "open", path, DENIAL_READ_ONLY_MOUNT, EROFS);
}

/* "path*count ...", in the list's order. */
static void expect_taken(FsgDenials *denials, uint64_t pid_namespace, uint64_t exec,
			 const char *expected, uint64_t dropped)
{
	GString *text = g_string_new(NULL);
	FsgDenialList list;

	fsg_denials_take(denials, pid_namespace, exec, &list);
	for (guint i = 0; i < list.rows->len; i++)
		g_string_append_printf(text, "%s%s*%u", i > 0 ? " " : "", row_of(&list, i)->path,
				       (unsigned int)row_of(&list, i)->count);
	assert_string_equal(text->str, expected);
	assert_int_equal(list.dropped, dropped);
	g_string_free(text, TRUE);
	fsg_denial_list_clear(&list);
}

static void each_exec_has_its_own(void **state)
{
	FsgDenials *denials = fsg_denials_new();
	FsgDenialList list;

	(void)state;
	epoch = 1;
	open_of(denials, 11, "/a");
	open_of(denials, 0, "/a");
	epoch++;
	open_of(denials, 22, "/a");
	open_of(denials, 11, "/b");
	open_of(denials, 11, "/a");
	epoch++;
	open_of(denials, 11, "/a");
	/* in how many rows it stands is nobody's business */
	expect_taken(denials, 11, 1, "/b*1 /a*3", 0);
	expect_taken(denials, 11, 1, "", 0);
	expect_taken(denials, 22, 2, "/a*1", 0);
	expect_taken(denials, 33, 3, "", 0);
	/* they stay in the record, where nothing is added to them */
	open_of(denials, 0, "/a");
	fsg_denials_list(denials, 0, &list);
	assert_int_equal(list.rows->len, 7);
	assert_int_equal(list.total, 7);
	fsg_denial_list_clear(&list);
	fsg_denials_free(denials);
}

/* The kernel gives a namespace's number again. */
static void a_number_that_is_used_again_begins_anew(void **state)
{
	FsgDenials *denials = fsg_denials_new();

	(void)state;
	epoch = 1;
	open_of(denials, 11, "/a");
	expect_taken(denials, 11, 1, "/a*1", 0);
	epoch++;
	open_of(denials, 11, "/a");
	/* whoever ran that one has not asked */
	epoch++;
	open_of(denials, 11, "/a");
	open_of(denials, 11, "/b");
	expect_taken(denials, 11, 3, "/a*1 /b*1", 0);
	fsg_denials_free(denials);
}

/* A flood of one exec's pushes out no other's, and what it loses is told to itself. */
static void a_flood_pushes_out_its_own(void **state)
{
	FsgDenials *denials = fsg_denials_new();
	FsgDenialList list;
	uint64_t kept = 0;

	(void)state;
	epoch = 1;
	open_of(denials, 0, "/before");
	for (int i = 0; i < 50; i++) {
		g_autofree char *path = g_strdup_printf("/quiet%d", i);

		open_of(denials, 22, path);
	}
	for (int i = 0; i < 10000; i++) {
		g_autofree char *path = g_strdup_printf("/loud%d", i);

		open_of(denials, 11, path);
	}
	fsg_denials_take(denials, 22, 1, &list);
	assert_int_equal(list.rows->len, 50);
	assert_int_equal(list.dropped, 0);
	fsg_denial_list_clear(&list);
	fsg_denials_take(denials, 11, 1, &list);
	for (guint i = 0; i < list.rows->len; i++)
		kept += row_of(&list, i)->count;
	assert_true(list.rows->len >= LIMIT_DENIALS - 51);
	assert_int_equal(kept + list.dropped, 10000);
	fsg_denial_list_clear(&list);
	/* what has been told goes first */
	for (int i = 0; i < 100; i++) {
		g_autofree char *path = g_strdup_printf("/next%d", i);

		open_of(denials, 33, path);
	}
	fsg_denials_take(denials, 33, 1, &list);
	assert_int_equal(list.rows->len, 100);
	fsg_denial_list_clear(&list);
	fsg_denials_free(denials);
}

/* Whoever ran them never asks: nothing grows without bound, and who asks is answered. */
static void many_execs_that_never_end_are_bounded(void **state)
{
	FsgDenials *denials = fsg_denials_new();
	FsgDenialList list;

	(void)state;
	epoch = 1;
	for (uint64_t i = 1; i <= 100000; i++)
		open_of(denials, i, "/a");
	expect_taken(denials, 100000, 1, "/a*1", 0);
	/* what is lost is told as long as there is room for that */
	expect_taken(denials, 1, 1, "", 1);
	expect_taken(denials, 50000, 1, "", 0);
	fsg_denials_list(denials, 0, &list);
	assert_int_equal(list.rows->len, LIMIT_DENIALS);
	assert_int_equal(list.dropped, 100000 - LIMIT_DENIALS);
	fsg_denial_list_clear(&list);
	fsg_denials_free(denials);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_has_its_own_name),
		cmocka_unit_test(equal_ones_are_counted_together),
		cmocka_unit_test(asking_from_a_number_gives_what_came_after),
		cmocka_unit_test(a_flood_stays_bounded),
		cmocka_unit_test(long_texts_are_cut_and_still_counted_together),
		cmocka_unit_test(each_exec_has_its_own),
		cmocka_unit_test(a_number_that_is_used_again_begins_anew),
		cmocka_unit_test(a_flood_pushes_out_its_own),
		cmocka_unit_test(many_execs_that_never_end_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
