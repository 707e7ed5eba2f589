/* Waiting for locks; see locks.h.
 *
 * A thread tries again for whoever waits, without blocking. Who of the view is in the way is known, and then nothing
 * happens until something on that file is unlocked; a program beside the view unlocks without a word, so then the
 * host is asked again after pauses that grow to POLL_MOST_US, or so far that all who wait ask some thousand
 * times a second. The longest waiting is tried first. */
#include "fsgate/locks-internal.h"

#include "common/limits.h"
#include "fsgate/identity.h"

#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#define POLL_LEAST_US 500
#define POLL_MOST_US  20000
#define POLL_EACH_US  250

#define NEVER G_MAXINT64

struct FsgLockWait {
	FsgView *view;
	FsgLockRequest request;
	struct fuse_ctx caller; /* whom its thread acts as, where that is who asks */
	FsgLockAnswer answer;
	void *data;
	FsgLockFile *file; /* a reference */
	/* under the mutex */
	gint64 due;   /* monotonic time of the next try */
	gint64 until; /* and of the end */
	gint64 pause_us;
	bool woken; /* since the try that is under way began */
	bool canceled;
};

/* until: monotonic time in µs. false when it has come. */
static bool wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, gint64 until)
{
	const struct timespec end = { .tv_sec = until / G_USEC_PER_SEC,
				      .tv_nsec = until % G_USEC_PER_SEC * 1000 };

	return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &end) == 0;
}

static FsgLockQueue *queue_of(const FsgLockWait *wait)
{
	return &wait->view->locks->queues[wait->file->key.dev % FSG_LOCK_QUEUES];
}

FsgLockWait *fsg_lock_wait_new(FsgView *view, const FsgLockRequest *request, FsgLockAnswer answer,
			       void *data)
{
	FsgLockWait *wait = g_new0(FsgLockWait, 1);

	wait->view = view;
	wait->request = *request;
	wait->caller = fsg_identity_noted();
	wait->answer = answer;
	wait->data = data;
	wait->file = fsg_lock_file_get(view->locks, &request->key, true);
	wait->pause_us = POLL_LEAST_US;
	return wait;
}

static void finish(FsgLockWait *wait, int r, GArray *take_before)
{
	if (!wait->answer(wait->data, r) && r == 0)
		fsg_locks_give_back(wait->view, &wait->request, take_before);
	else if (take_before)
		g_array_unref(take_before);
	fsg_lock_file_put(wait->view->locks, wait->file);
	g_free(wait);
}

/* --- circles --- */

/* Whom each owner waits for: owner -> GPtrArray of FsgLockWait. Keys are in the waits. */
static GHashTable *index_waits(FsgLocks *locks)
{
	GHashTable *index = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL,
						  (GDestroyNotify)g_ptr_array_unref);

	for (size_t i = 0; i < FSG_LOCK_QUEUES; i++)
		for (GList *l = locks->queues[i].waits.head; l; l = l->next) {
			FsgLockWait *wait = l->data;
			GPtrArray *waits = g_hash_table_lookup(index, &wait->request.owner);

			if (wait->request.flock)
				continue;
			if (!waits) {
				waits = g_ptr_array_new();
				g_hash_table_insert(index, &wait->request.owner, waits);
			}
			g_ptr_array_add(waits, wait);
		}
	return index;
}

/* Whether an owner who would have to unlock for this wait waits, by however many steps, for its owner. Each
 * owner is looked at once. Under the mutex. */
static bool is_circle(FsgLocks *locks, FsgLockWait *wait)
{
	g_autoptr(GHashTable) index = NULL;
	g_autoptr(GPtrArray) todo = NULL;

	if (wait->request.flock || locks->waits == 0)
		return false;
	index = index_waits(locks);
	todo = g_ptr_array_new();
	g_ptr_array_add(todo, wait);
	while (todo->len > 0) {
		FsgLockWait *next = g_ptr_array_steal_index_fast(todo, todo->len - 1);
		const FsgLockOwner *owner;
		guint from = 0;

		while ((owner = fsg_lock_file_find_conflict(next->file, &next->request, &from))) {
			GPtrArray *waits;

			if (owner->id == wait->request.owner)
				return true;
			if (!(waits = g_hash_table_lookup(index, &owner->id)))
				continue;
			g_ptr_array_extend(todo, waits, NULL, NULL);
			g_hash_table_remove(index, &owner->id);
		}
	}
	return false;
}

/* --- the threads --- */

/* The first that has something to do; else how long there is nothing. Under the mutex. */
static FsgLockWait *next_wait(const FsgLockQueue *queue, gint64 now, gint64 *ret_until)
{
	*ret_until = NEVER;
	for (GList *l = queue->waits.head; l; l = l->next) {
		FsgLockWait *wait = l->data;

		if (queue->locks->stopped || wait->canceled || wait->due <= now ||
		    wait->until <= now)
			return wait;
		*ret_until = MIN(*ret_until, MIN(wait->due, wait->until));
	}
	return NULL;
}

/* One try, which lets go of the mutex meanwhile. */
static int try_host(FsgLocks *locks, FsgLockWait *wait, FsgLockDetails *ret_details)
{
	int r;

	wait->woken = false;
	pthread_mutex_unlock(&locks->mutex);
	fsg_identity_note(&wait->caller);
	r = fsg_locks_set(wait->view, &wait->request, ret_details);
	pthread_mutex_lock(&locks->mutex);
	if (r == -EAGAIN) {
		g_clear_pointer(&ret_details->before, g_array_unref);
		wait->due = wait->woken ? 0 : g_get_monotonic_time() + wait->pause_us;
		wait->pause_us = MIN(wait->pause_us * 2,
				     MAX(POLL_MOST_US, (gint64)locks->waits * POLL_EACH_US));
	}
	return r;
}

/* -EAGAIN: waits on. Under the mutex, which it may let go of. */
static int try_wait(FsgLocks *locks, FsgLockWait *wait, gint64 now, FsgLockDetails *ret_details)
{
	guint from = 0;

	if (locks->stopped || wait->canceled)
		return -EINTR;
	if (wait->due > now)
		return -EAGAIN;
	if (!fsg_lock_file_find_conflict(wait->file, &wait->request, &from))
		return try_host(locks, wait, ret_details);
	if (is_circle(locks, wait))
		return -EDEADLK;
	wait->due = NEVER;
	return -EAGAIN;
}

static void serve_wait(FsgLockQueue *queue, FsgLockWait *wait, gint64 now)
{
	FsgLocks *locks = queue->locks;
	FsgLockDetails details = { .before = NULL };
	int r = try_wait(locks, wait, now, &details);

	if (r == -EAGAIN && wait->until > now)
		return;
	g_queue_remove(&queue->waits, wait);
	wait->file->waits--;
	locks->waits--;
	pthread_mutex_unlock(&locks->mutex);
	finish(wait, r, details.before);
	pthread_mutex_lock(&locks->mutex);
}

/* The thread comes from one that serves requests, which may be held on a processor for a while. */
static void go_anywhere(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(getpid(), sizeof cpus, &cpus) == 0)
		(void)sched_setaffinity(0, sizeof cpus, &cpus);
}

static gpointer serve_queue(gpointer data)
{
	FsgLockQueue *queue = data;
	FsgLocks *locks = queue->locks;

	go_anywhere();
	pthread_mutex_lock(&locks->mutex);
	while (!locks->stopped || queue->waits.length > 0) {
		gint64 now = g_get_monotonic_time(), until;
		FsgLockWait *wait = next_wait(queue, now, &until);

		if (wait)
			serve_wait(queue, wait, now);
		else if (until == NEVER)
			pthread_cond_wait(&queue->changed, &locks->mutex);
		else
			(void)wait_until(&queue->changed, &locks->mutex, until);
	}
	queue->ended = true;
	pthread_cond_broadcast(&locks->ended);
	pthread_mutex_unlock(&locks->mutex);
	return NULL;
}

/* The thread comes from one that serves requests, and has no more power than it. */
static int enqueue(FsgLocks *locks, FsgLockQueue *queue, FsgLockWait *wait)
{
	if (locks->stopped || wait->canceled)
		return -EINTR;
	if (locks->waits >= LIMIT_LOCK_WAITS)
		return -ENOLCK;
	if (is_circle(locks, wait))
		return -EDEADLK;
	if (!queue->thread)
		queue->thread = g_thread_try_new("fsgate-locks", serve_queue, queue, NULL);
	if (!queue->thread)
		return -ENOLCK;
	g_queue_push_tail(&queue->waits, wait);
	wait->file->waits++;
	locks->waits++;
	pthread_cond_signal(&queue->changed);
	return 0;
}

void fsg_lock_wait_start(FsgLockWait *take_wait, int timeout_ms)
{
	FsgLocks *locks = take_wait->view->locks;
	int r;

	take_wait->until =
		timeout_ms < 0 ? NEVER : g_get_monotonic_time() + (gint64)timeout_ms * 1000;
	pthread_mutex_lock(&locks->mutex);
	r = enqueue(locks, queue_of(take_wait), take_wait);
	pthread_mutex_unlock(&locks->mutex);
	if (r < 0)
		finish(take_wait, r, NULL);
}

void fsg_lock_wait_cancel(FsgLockWait *wait)
{
	FsgLocks *locks = wait->view->locks;

	pthread_mutex_lock(&locks->mutex);
	wait->canceled = true;
	pthread_cond_signal(&queue_of(wait)->changed);
	pthread_mutex_unlock(&locks->mutex);
}

void fsg_lock_waits_wake(FsgLocks *locks, const FsgLockFile *file)
{
	FsgLockQueue *queue = &locks->queues[file->key.dev % FSG_LOCK_QUEUES];

	if (file->waits == 0)
		return;
	for (GList *l = queue->waits.head; l; l = l->next) {
		FsgLockWait *wait = l->data;

		if (wait->file != file)
			continue;
		wait->due = 0;
		wait->pause_us = POLL_LEAST_US;
		wait->woken = true;
	}
	pthread_cond_signal(&queue->changed);
}

void fsg_lock_queues_init(FsgLocks *locks)
{
	pthread_cond_init(&locks->ended, NULL);
	for (size_t i = 0; i < FSG_LOCK_QUEUES; i++) {
		locks->queues[i].locks = locks;
		pthread_cond_init(&locks->queues[i].changed, NULL);
		g_queue_init(&locks->queues[i].waits);
	}
}

bool fsg_locks_stop(FsgLocks *locks, int timeout_ms)
{
	gint64 until = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
	bool ended = true;

	pthread_mutex_lock(&locks->mutex);
	locks->stopped = true;
	for (size_t i = 0; i < FSG_LOCK_QUEUES; i++)
		pthread_cond_signal(&locks->queues[i].changed);
	for (size_t i = 0; ended && i < FSG_LOCK_QUEUES; i++)
		while (ended && locks->queues[i].thread && !locks->queues[i].ended)
			ended = wait_until(&locks->ended, &locks->mutex, until);
	pthread_mutex_unlock(&locks->mutex);
	for (size_t i = 0; ended && i < FSG_LOCK_QUEUES; i++)
		if (locks->queues[i].thread)
			g_thread_join(g_steal_pointer(&locks->queues[i].thread));
	return ended;
}

void fsg_lock_queues_clear(FsgLocks *locks)
{
	for (size_t i = 0; i < FSG_LOCK_QUEUES; i++)
		pthread_cond_destroy(&locks->queues[i].changed);
	pthread_cond_destroy(&locks->ended);
}
