/* Locked byte ranges of one owner; see lock-ranges.h. */
#include "fsgate/lock-ranges.h"

GArray *fsg_lock_ranges_new(void)
{
	return g_array_new(FALSE, FALSE, sizeof(FsgLockRange));
}

static FsgLockRange *range_at(const GArray *ranges, guint i)
{
	return &((FsgLockRange *)(void *)ranges->data)[i];
}

/* The index of the first range that ends at `start` or behind it. */
static guint find_from(const GArray *ranges, uint64_t start)
{
	guint low = 0, high = ranges->len;

	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (range_at(ranges, middle)->end < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Appends, growing the last one instead if the new one continues it. */
static void append(GArray *pieces, uint64_t start, uint64_t end, short type)
{
	FsgLockRange *last = pieces->len > 0 ? range_at(pieces, pieces->len - 1) : NULL;
	const FsgLockRange piece = { .start = start, .end = end, .type = type };

	if (type == F_UNLCK)
		return;
	if (last && last->type == type && last->end + 1 == start)
		last->end = end;
	else
		g_array_append_val(pieces, piece);
}

void fsg_lock_ranges_set(GArray *ranges, const FsgLockRange *range)
{
	g_autoptr(GArray) pieces = fsg_lock_ranges_new();
	/* One byte more on each side finds the neighbours that it may merge with. */
	guint from = find_from(ranges, range->start > 0 ? range->start - 1 : 0), to = from;
	bool done = false;

	for (; to < ranges->len; to++) {
		const FsgLockRange *old = range_at(ranges, to);

		if (old->start > range->end && old->start - range->end > 1)
			break;
		if (old->start < range->start)
			append(pieces, old->start, MIN(old->end, range->start - 1), old->type);
		if (old->end <= range->end)
			continue;
		if (!done)
			append(pieces, range->start, range->end, range->type);
		done = true;
		append(pieces, MAX(old->start, range->end + 1), old->end, old->type);
	}
	if (!done)
		append(pieces, range->start, range->end, range->type);
	if (to > from)
		g_array_remove_range(ranges, from, to - from);
	if (pieces->len > 0)
		g_array_insert_vals(ranges, from, pieces->data, pieces->len);
}

unsigned int fsg_lock_ranges_growth(const GArray *ranges, const FsgLockRange *range)
{
	guint from = find_from(ranges, range->start);
	const FsgLockRange *old = from < ranges->len ? range_at(ranges, from) : NULL;

	if (!old || old->start >= range->start || old->end <= range->end)
		return range->type != F_UNLCK;
	/* In the middle of one: the rest behind it, and itself. */
	if (old->type == range->type)
		return 0;
	return range->type == F_UNLCK ? 1 : 2;
}

const FsgLockRange *fsg_lock_ranges_conflict(const GArray *ranges, const FsgLockRange *range)
{
	if (range->type == F_UNLCK)
		return NULL;
	for (guint i = find_from(ranges, range->start); i < ranges->len; i++) {
		const FsgLockRange *old = range_at(ranges, i);

		if (old->start > range->end)
			break;
		if (old->type == F_WRLCK || range->type == F_WRLCK)
			return old;
	}
	return NULL;
}

GArray *fsg_lock_ranges_cut(const GArray *ranges, uint64_t start, uint64_t end)
{
	GArray *pieces = fsg_lock_ranges_new();
	uint64_t at = start;

	for (guint i = find_from(ranges, start); i < ranges->len && at <= end; i++) {
		const FsgLockRange *old = range_at(ranges, i);
		FsgLockRange piece = { .start = at, .type = F_UNLCK };

		if (old->start > end)
			break;
		if (old->start > at) {
			piece.end = old->start - 1;
			g_array_append_val(pieces, piece);
		}
		piece = (FsgLockRange){ MAX(old->start, at), MIN(old->end, end), old->type };
		g_array_append_val(pieces, piece);
		at = piece.end + 1;
	}
	if (at <= end) {
		const FsgLockRange piece = { .start = at, .end = end, .type = F_UNLCK };

		g_array_append_val(pieces, piece);
	}
	return pieces;
}
