/* See recent.h. A name that is taken back is asked for again at its next use, which brings the attributes and, when
 * those have changed, drops the pages. There is a message that takes back all names at once (Linux 6.16), but it
 * breaks off what is mounted on them (tried), and a sandbox mounts on the view. */
#include "fsgate/recent.h"

#include "common/limits.h"
#include "fsgate/fuse-api.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

typedef struct {
	uint64_t dir_id;
	gint64 until_us; /* then the kernel asks again by itself */
	bool is_dir;
	char name[];
} Told;

struct FsgRecent {
	GMutex lock;
	GQueue told;		  /* Told, the oldest first */
	gint64 keep_us;		  /* how long the kernel believes it, and some time for the reply */
	gint64 overflow_until_us; /* one that was not kept is believed until then */
};

FsgRecent *fsg_recent_new(double cache_s)
{
	FsgRecent *recent = g_new0(FsgRecent, 1);

	g_mutex_init(&recent->lock);
	g_queue_init(&recent->told);
	recent->keep_us = (gint64)((cache_s + 0.5) * G_TIME_SPAN_SECOND);
	return recent;
}

void fsg_recent_free(FsgRecent *recent)
{
	if (!recent)
		return;
	g_queue_clear_full(&recent->told, g_free);
	g_mutex_clear(&recent->lock);
	g_free(recent);
}

void fsg_recent_note(FsgRecent *recent, uint64_t dir_id, const char *name, bool is_dir)
{
	Told *told, *oldest;
	gint64 now_us;
	size_t size;

	if (!recent)
		return;
	now_us = g_get_monotonic_time();
	size = strlen(name) + 1;
	told = g_malloc(sizeof *told + size);
	told->dir_id = dir_id;
	told->until_us = now_us + recent->keep_us;
	told->is_dir = is_dir;
	memcpy(told->name, name, size);
	g_mutex_lock(&recent->lock);
	while ((oldest = g_queue_peek_head(&recent->told)) && oldest->until_us < now_us)
		g_free(g_queue_pop_head(&recent->told));
	g_queue_push_tail(&recent->told, told);
	if (recent->told.length > LIMIT_RECENT_NAMES) {
		oldest = g_queue_pop_head(&recent->told);
		recent->overflow_until_us = oldest->until_us;
		g_free(oldest);
	}
	g_mutex_unlock(&recent->lock);
}

/* ENOENT is what the kernel has dropped by itself. Before Linux 6.2 a name can only be dropped, which takes the
 * path from whoever works in a directory: those stay for their second. */
static void take_back(struct fuse_session *fuse, const Told *told)
{
	size_t length = strlen(told->name);

	if (fuse_lowlevel_notify_expire_entry(fuse, told->dir_id, told->name, length,
					      FUSE_LL_EXPIRE_ONLY) != -ENOSYS)
		return;
	if (!told->is_dir)
		(void)fuse_lowlevel_notify_inval_entry(fuse, told->dir_id, told->name, length);
}

/* What was not kept is waited for. */
static int wait_for_rest(gint64 until_us, gint64 deadline_us)
{
	gint64 now_us = g_get_monotonic_time();

	if (until_us > now_us)
		g_usleep((gulong)(MIN(until_us, deadline_us) - now_us));
	return until_us > deadline_us ? -ETIMEDOUT : 0;
}

int fsg_cache_catch_up(FsgView *view, struct fuse_session *fuse, int timeout_ms)
{
	FsgRecent *recent = view->recent;
	gint64 now_us = g_get_monotonic_time(), overflow_until_us;
	gint64 deadline_us = now_us + (gint64)timeout_ms * 1000;
	GQueue all = G_QUEUE_INIT;
	Told *told;

	if (!recent)
		return 0;
	g_mutex_lock(&recent->lock);
	all = recent->told;
	g_queue_init(&recent->told);
	overflow_until_us = recent->overflow_until_us;
	g_mutex_unlock(&recent->lock);
	while ((told = g_queue_pop_head(&all))) {
		if (told->until_us > now_us)
			take_back(fuse, told);
		g_free(told);
		if (g_get_monotonic_time() > deadline_us) {
			g_queue_clear_full(&all, g_free);
			return -ETIMEDOUT;
		}
	}
	return overflow_until_us > now_us ? wait_for_rest(overflow_until_us, deadline_us) : 0;
}
