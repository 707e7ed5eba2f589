/* The byte ranges that one owner has locked, as the kernel keeps them for a local file: sorted, not
 * overlapping, neighbours of one type merged. Plain values, no I/O. */
#pragma once

#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The last byte that can be locked. */
#define FSG_LOCK_END ((uint64_t)INT64_MAX)

typedef struct {
	uint64_t start, end; /* both are in it; end at most FSG_LOCK_END */
	short type;	     /* F_RDLCK, F_WRLCK; as an argument F_UNLCK too */
} FsgLockRange;

/* To be freed with g_array_unref. */
GArray *fsg_lock_ranges_new(void);

/* Makes [start, end] what range says; F_UNLCK takes it out. */
void fsg_lock_ranges_set(GArray *ranges, const FsgLockRange *range);

/* How many entries more than now there can be after that: 0, 1 or 2. */
unsigned int fsg_lock_ranges_growth(const GArray *ranges, const FsgLockRange *range);

/* The first that another owner's range would have to wait for, or NULL. Borrowed. */
const FsgLockRange *fsg_lock_ranges_conflict(const GArray *ranges, const FsgLockRange *range);

/* What [start, end] is made of now, gaps as F_UNLCK, in order. To be freed with g_array_unref. */
GArray *fsg_lock_ranges_cut(const GArray *ranges, uint64_t start, uint64_t end);
