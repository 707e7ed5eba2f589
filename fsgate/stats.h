/* Counters of one view: what `stella-fsgate status` shows beside the tables' own numbers. Atomic and relaxed, for
 * nothing is decided by them. Any thread at once. */
#pragma once

#include "fsgate/gate.h"

#include <stdint.h>

typedef struct {
	uint64_t requests[_FSG_OP_N];
	int64_t start_us; /* since the epoch; constant */
} FsgStats;

void fsg_stats_init(FsgStats *stats);

static inline void fsg_stats_count(FsgStats *stats, FsgOp op)
{
	__atomic_add_fetch(&stats->requests[op], 1, __ATOMIC_RELAXED);
}

uint64_t fsg_stats_requests(const FsgStats *stats, FsgOp op);
