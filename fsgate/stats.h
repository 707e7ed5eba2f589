/* Counters of one view: what `stella-fsgate status` shows beside the tables' own numbers. Atomic and relaxed, for
 * nothing is decided by them. Any thread at once. */
#pragma once

#include "fsgate/gate.h"

#include <stdint.h>

typedef struct {
	uint64_t requests[_FSG_OP_N];
	int64_t start_us;	     /* since the epoch; constant */
	const char *passthrough_off; /* why not; NULL: on */
} FsgStats;

void fsg_stats_init(FsgStats *stats);

static inline void fsg_stats_count(FsgStats *stats, FsgOp op)
{
	__atomic_add_fetch(&stats->requests[op], 1, __ATOMIC_RELAXED);
}

uint64_t fsg_stats_requests(const FsgStats *stats, FsgOp op);

/* Whether reads and writes go straight to the host's files: why_off is NULL, or one line in static storage that
 * says why they do not. "not supported by this version" until this is called. */
void fsg_stats_set_passthrough(FsgStats *stats, const char *why_off);
const char *fsg_stats_passthrough_off(const FsgStats *stats);
