/* Counters; see stats.h. */
#include "fsgate/stats.h"

#include <glib.h>
#include <string.h>

void fsg_stats_init(FsgStats *stats)
{
	memset(stats, 0, sizeof *stats);
	stats->start_us = g_get_real_time();
	stats->passthrough_off = "not supported by this version";
}

uint64_t fsg_stats_requests(const FsgStats *stats, FsgOp op)
{
	return __atomic_load_n(&stats->requests[op], __ATOMIC_RELAXED);
}

void fsg_stats_set_passthrough(FsgStats *stats, const char *why_off)
{
	__atomic_store_n(&stats->passthrough_off, why_off, __ATOMIC_RELAXED);
}

const char *fsg_stats_passthrough_off(const FsgStats *stats)
{
	return __atomic_load_n(&stats->passthrough_off, __ATOMIC_RELAXED);
}
