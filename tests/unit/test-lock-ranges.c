/* lock-ranges: against a plain array of bytes, and against the kernel's own idea. */
#include "fsgate/lock-ranges.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES 24

typedef struct {
	short type[BYTES];
} Model;

static void model_set(Model *model, const FsgLockRange *range)
{
	for (uint64_t i = range->start; i <= range->end && i < BYTES; i++)
		model->type[i] = range->type;
}

/* Sorted, apart, merged, and byte by byte the same. */
static void assert_same(const GArray *ranges, const Model *model)
{
	Model seen;

	for (int i = 0; i < BYTES; i++)
		seen.type[i] = F_UNLCK;
	for (guint i = 0; i < ranges->len; i++) {
		const FsgLockRange *range = &g_array_index(ranges, FsgLockRange, i);

		assert_true(range->start <= range->end);
		assert_int_not_equal(range->type, F_UNLCK);
		if (i > 0) {
			const FsgLockRange *before = &g_array_index(ranges, FsgLockRange, i - 1);

			assert_true(before->end < range->start);
			assert_true(before->end + 1 < range->start || before->type != range->type);
		}
		model_set(&seen, range);
	}
	assert_memory_equal(seen.type, model->type, sizeof seen.type);
}

static FsgLockRange random_range(void)
{
	static const short types[] = { F_RDLCK, F_WRLCK, F_UNLCK };
	FsgLockRange range = { .start = (uint64_t)g_random_int_range(0, BYTES),
			       .type = types[g_random_int_range(0, 3)] };

	range.end = g_random_int_range(0, 5) == 0
			    ? FSG_LOCK_END
			    : range.start + (uint64_t)g_random_int_range(0, 8);
	return range;
}

static bool model_conflicts(const Model *model, const FsgLockRange *range)
{
	for (uint64_t i = range->start; i <= range->end && i < BYTES; i++)
		if (range->type != F_UNLCK && model->type[i] != F_UNLCK &&
		    (model->type[i] == F_WRLCK || range->type == F_WRLCK))
			return true;
	return false;
}

static void every_sequence_is_what_bytes_would_be(void **state)
{
	(void)state;
	g_random_set_seed(1);
	for (int round = 0; round < 2000; round++) {
		g_autoptr(GArray) ranges = fsg_lock_ranges_new();
		Model model;

		for (int i = 0; i < BYTES; i++)
			model.type[i] = F_UNLCK;
		for (int step = 0; step < 20; step++) {
			FsgLockRange range = random_range();
			unsigned int growth;
			guint before = ranges->len;

			/* The model's last byte is all that follow it too. */
			if (range.end >= BYTES - 1)
				range.end = FSG_LOCK_END;
			growth = fsg_lock_ranges_growth(ranges, &range);
			assert_int_equal(fsg_lock_ranges_conflict(ranges, &range) != NULL,
					 model_conflicts(&model, &range));
			fsg_lock_ranges_set(ranges, &range);
			model_set(&model, &range);
			assert_same(ranges, &model);
			assert_true(ranges->len <= before + growth);
		}
	}
}

static void what_was_cut_can_be_put_back(void **state)
{
	(void)state;
	g_random_set_seed(2);
	for (int round = 0; round < 2000; round++) {
		g_autoptr(GArray) ranges = fsg_lock_ranges_new();
		g_autoptr(GArray) cut = NULL;
		g_autofree FsgLockRange *before = NULL;
		FsgLockRange range;
		guint length;

		for (int step = 0; step < 6; step++) {
			range = random_range();
			fsg_lock_ranges_set(ranges, &range);
		}
		length = ranges->len;
		before = g_memdup2(ranges->data, length * sizeof *before + 1);
		range = random_range();
		cut = fsg_lock_ranges_cut(ranges, range.start, range.end);
		assert_int_equal(g_array_index(cut, FsgLockRange, 0).start, range.start);
		assert_int_equal(g_array_index(cut, FsgLockRange, cut->len - 1).end, range.end);
		fsg_lock_ranges_set(ranges, &range);
		for (guint i = 0; i < cut->len; i++)
			fsg_lock_ranges_set(ranges, &g_array_index(cut, FsgLockRange, i));
		assert_int_equal(ranges->len, length);
		for (guint i = 0; i < length; i++) {
			const FsgLockRange *now = &g_array_index(ranges, FsgLockRange, i);

			assert_int_equal(now->start, before[i].start);
			assert_int_equal(now->end, before[i].end);
			assert_int_equal(now->type, before[i].type);
		}
	}
}

static void the_last_byte_is_a_byte(void **state)
{
	g_autoptr(GArray) ranges = fsg_lock_ranges_new();
	const FsgLockRange last = { FSG_LOCK_END, FSG_LOCK_END, F_WRLCK };
	const FsgLockRange all = { 0, FSG_LOCK_END, F_UNLCK };
	const FsgLockRange others = { 0, FSG_LOCK_END - 1, F_WRLCK };

	(void)state;
	fsg_lock_ranges_set(ranges, &last);
	assert_null(fsg_lock_ranges_conflict(ranges, &others));
	assert_non_null(fsg_lock_ranges_conflict(ranges, &last));
	fsg_lock_ranges_set(ranges, &others);
	assert_int_equal(ranges->len, 1);
	assert_int_equal(g_array_index(ranges, FsgLockRange, 0).end, FSG_LOCK_END);
	fsg_lock_ranges_set(ranges, &all);
	assert_int_equal(ranges->len, 0);
}

static int kernel_set(int fd, const FsgLockRange *range, int cmd, struct flock *ret_lock)
{
	*ret_lock = (struct flock){
		.l_type = range->type,
		.l_start = (off_t)range->start,
		.l_len = range->end == FSG_LOCK_END ? 0 : (off_t)(range->end - range->start + 1),
	};
	return fcntl(fd, cmd, ret_lock);
}

/* One description does as it is told, another asks the kernel for each first conflict. */
static void the_kernel_keeps_the_same_ranges(void **state)
{
	char name[] = "/tmp/stella-lock-ranges-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC), other = open(name, O_RDWR | O_CLOEXEC);
	g_autoptr(GArray) ranges = fsg_lock_ranges_new();
	struct flock lock;

	(void)state;
	assert_true(fd >= 0 && other >= 0);
	unlink(name);
	g_random_set_seed(3);
	for (int step = 0; step < 2000; step++) {
		const FsgLockRange range = random_range();
		FsgLockRange ask = random_range();
		const FsgLockRange *found;

		ask.type = step % 2 ? F_RDLCK : F_WRLCK;
		assert_int_equal(kernel_set(fd, &range, F_OFD_SETLK, &lock), 0);
		fsg_lock_ranges_set(ranges, &range);
		assert_int_equal(kernel_set(other, &ask, F_OFD_GETLK, &lock), 0);
		found = fsg_lock_ranges_conflict(ranges, &ask);
		assert_int_equal(lock.l_type, found ? found->type : F_UNLCK);
		if (!found)
			continue;
		assert_int_equal(lock.l_start, found->start);
		assert_int_equal(lock.l_len,
				 found->end == FSG_LOCK_END ? 0 : found->end - found->start + 1);
	}
	close(fd);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sequence_is_what_bytes_would_be),
		cmocka_unit_test(what_was_cut_can_be_put_back),
		cmocka_unit_test(the_last_byte_is_a_byte),
		cmocka_unit_test(the_kernel_keeps_the_same_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
