/* What the kernel believes, and taking it back; see invalidate.h. */
#include "fsgate/invalidate.h"

#include "common/cond-util.h"

#include "fsgate/notify.h"

#include <errno.h>

/* Beliefs that are kept in mind: beyond these nothing more is believed for a moment. */
#define RECENT_MOST  16384
#define LASTING_MOST 32768

FsgInvalidate *fsg_invalidate_new(FsgView *view)
{
	FsgInvalidate *invalidate = g_new0(FsgInvalidate, 1);
	PolicyCache mode = view->plan->policy->cache;

	invalidate->told = fsg_told_new(RECENT_MOST, LASTING_MOST);
	pthread_mutex_init(&invalidate->lock, NULL);
	cond_init(&invalidate->changed);
	/* Where one directory is mounted twice, `exclusive` has to be told of the view's own changes. */
	if (mode == POLICY_CACHE_AUTO || (mode == POLICY_CACHE_EXCLUSIVE && view->has_twins))
		invalidate->watch = fsg_watch_new(view);
	return invalidate;
}

void fsg_invalidate_free(FsgInvalidate *invalidate)
{
	if (!invalidate)
		return;
	fsg_watch_free(invalidate->watch);
	fsg_told_free(invalidate->told);
	pthread_mutex_destroy(&invalidate->lock);
	pthread_cond_destroy(&invalidate->changed);
	g_free(invalidate);
}

/* A directory's name that the kernel cannot expire without breaking the path of who is in it is waited for. */
static void take_back_item(FsgInvalidate *invalidate, const FsgToldItem *item, int64_t *wait_us)
{
	if (item->name[0] && !fsg_notify_expire(invalidate->fuse, item->dir, item->name)) {
		if (item->is_dir)
			*wait_us = MAX(*wait_us, item->until_us);
		else
			fsg_notify_name(invalidate->fuse, item->dir, item->name);
	}
	if (item->object)
		fsg_notify_object(invalidate->fuse, item->object, false);
}

static void take_back_recent(FsgInvalidate *invalidate)
{
	g_autoptr(GPtrArray) items = fsg_told_take_recent(invalidate->told);
	int64_t wait_us = 0, left_us;

	for (guint i = 0; i < items->len; i++)
		take_back_item(invalidate, g_ptr_array_index(items, i), &wait_us);
	if ((left_us = wait_us - g_get_monotonic_time()) > 0)
		g_usleep((gulong)left_us);
}

static void take_back_links(FsgInvalidate *invalidate)
{
	g_autoptr(GArray) links = fsg_told_take_links(invalidate->told);

	for (guint i = 0; i < links->len; i++)
		fsg_notify_object(invalidate->fuse, g_array_index(links, uint64_t, i), true);
}

/* Under the lock. */
static void show_work(FsgInvalidate *invalidate)
{
	if (invalidate->board)
		atomic_store(&invalidate->board->taking_back,
			     invalidate->asked != invalidate->done);
}

static gpointer run(gpointer data)
{
	FsgInvalidate *invalidate = data;

	pthread_mutex_lock(&invalidate->lock);
	for (;;) {
		uint64_t asked;

		while (invalidate->asked == invalidate->done && !invalidate->stopping)
			pthread_cond_wait(&invalidate->changed, &invalidate->lock);
		if (invalidate->stopping)
			break;
		asked = invalidate->asked;
		pthread_mutex_unlock(&invalidate->lock);
		take_back_recent(invalidate);
		take_back_links(invalidate);
		pthread_mutex_lock(&invalidate->lock);
		invalidate->done = asked;
		show_work(invalidate);
		pthread_cond_broadcast(&invalidate->changed);
	}
	invalidate->ended = true;
	pthread_cond_broadcast(&invalidate->changed);
	pthread_mutex_unlock(&invalidate->lock);
	return NULL;
}

int fsg_invalidate_start(FsgView *view, struct fuse_session *fuse)
{
	FsgInvalidate *invalidate = view->invalidate;

	invalidate->fuse = fuse;
	if (view->plan->policy->cache == POLICY_CACHE_AUTO)
		invalidate->board = fsg_boundary_board(view->boundary);
	if (invalidate->board)
		fsg_told_show(invalidate->told, &invalidate->board->believed_us);
	if (view->is_for_one_exec)
		invalidate->watches_from_us = g_get_monotonic_time() + FSG_WATCH_AFTER_US;
	invalidate->thread = g_thread_try_new("fsgate-expire", run, invalidate, NULL);
	if (!invalidate->thread)
		return -EAGAIN;
	return invalidate->watch ? fsg_watch_start(invalidate->watch, fuse) : 0;
}

bool fsg_invalidate_stop(FsgView *view, int timeout_ms)
{
	FsgInvalidate *invalidate = view->invalidate;
	int64_t until_us = g_get_monotonic_time() + (int64_t)timeout_ms * 1000;
	bool in_time = true, ended;

	if (invalidate->watch && !fsg_watch_stop(invalidate->watch, timeout_ms))
		return false;
	if (!invalidate->thread)
		return true;
	pthread_mutex_lock(&invalidate->lock);
	invalidate->stopping = true;
	pthread_cond_broadcast(&invalidate->changed);
	while (!invalidate->ended && in_time)
		in_time = cond_wait_until(&invalidate->changed, &invalidate->lock, until_us);
	ended = invalidate->ended;
	pthread_mutex_unlock(&invalidate->lock);
	if (ended)
		g_thread_join(g_steal_pointer(&invalidate->thread));
	return ended;
}

void fsg_invalidate_link(FsgView *view, uint64_t link)
{
	FsgInvalidate *invalidate = view->invalidate;

	if (!view->caches_links)
		return;
	/* Asked for as soon as it is noted, for whoever sees neither. */
	pthread_mutex_lock(&invalidate->lock);
	fsg_told_add_link(invalidate->told, link);
	invalidate->asked++;
	show_work(invalidate);
	pthread_cond_broadcast(&invalidate->changed);
	pthread_mutex_unlock(&invalidate->lock);
}

/* Asks the thread to take back what is recent. The number to wait for; 0: there is nothing, and nobody is at it. */
static uint64_t ask_for_recent(FsgInvalidate *invalidate)
{
	uint64_t mine = 0;

	pthread_mutex_lock(&invalidate->lock);
	/* In that order: what the thread has taken off the lists it is not done with. */
	if (invalidate->asked != invalidate->done || !fsg_told_is_clear(invalidate->told)) {
		mine = ++invalidate->asked;
		show_work(invalidate);
		pthread_cond_broadcast(&invalidate->changed);
	}
	pthread_mutex_unlock(&invalidate->lock);
	return mine;
}

static int wait_for_recent(FsgInvalidate *invalidate, uint64_t mine, int64_t deadline_us)
{
	bool in_time = true;

	pthread_mutex_lock(&invalidate->lock);
	while (invalidate->done < mine && in_time)
		in_time = cond_wait_until(&invalidate->changed, &invalidate->lock, deadline_us);
	in_time = invalidate->done >= mine;
	pthread_mutex_unlock(&invalidate->lock);
	return in_time ? 0 : -ETIMEDOUT;
}

int fsg_invalidate_queue_fd(FsgView *view)
{
	const FsgInvalidate *invalidate = view->invalidate;

	return view->plan->policy->cache == POLICY_CACHE_AUTO && invalidate->watch
		       ? fsg_watch_queue_fd(invalidate->watch)
		       : -1;
}

int fsg_invalidate_catch_up(FsgView *view, int timeout_ms)
{
	FsgInvalidate *invalidate = view->invalidate;
	int64_t deadline_us = g_get_monotonic_time() + (int64_t)timeout_ms * 1000;
	uint64_t mine;
	int drained = 0, r;

	if (view->plan->policy->cache != POLICY_CACHE_AUTO)
		return 0;
	mine = ask_for_recent(invalidate);
	if (invalidate->watch)
		drained = fsg_watch_drain(invalidate->watch, deadline_us);
	r = mine == 0 ? 0 : wait_for_recent(invalidate, mine, deadline_us);
	return drained < 0 ? drained : r;
}
