/* Counters; see stats.h. */
#include "fsgate/stats.h"

#include <glib.h>
#include <string.h>

void fsg_stats_init(FsgStats *stats)
{
	memset(stats, 0, sizeof *stats);
	stats->start_us = g_get_real_time();
}

uint64_t fsg_stats_requests(const FsgStats *stats, FsgOp op)
{
	return __atomic_load_n(&stats->requests[op], __ATOMIC_RELAXED);
}
