/* Requests that are being worked on; see jobs.h. */
#include "fsgate/jobs.h"

#include "common/cond-util.h"
#include "common/fd-util.h"
#include "common/limits.h"
#include "fsgate/task.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

typedef struct {
	unsigned int busy;
	FsgJob *first, *last; /* queued */
	size_t queued_bytes;  /* of these, and of what is put off */
} Lane;

struct FsgJobs {
	FsgView *view;
	FsgDevice *device;
	int tasks_fd;
	pthread_t watchdog;
	bool has_watchdog;

	pthread_mutex_t lock; /* for all that follows */
	pthread_cond_t wake;  /* the watchdog */
	FsgJob jobs;	      /* head of the ring */
	Lane *lanes;	      /* two for what belongs to no mount, then two for each anchor id */
	unsigned int n_lanes;
	unsigned int count;
	unsigned int put_off;
	uint64_t round; /* of the watchdog's looks */
	bool asleep;	/* the watchdog, until there is something to watch */
	bool interrupts;
	bool ending;
};

/* How old a request is before anyone looks whether its process still lives, and how often. */
#define WATCH_MS     500
#define INTERRUPT_MS 20
/* How long one that is being worked on has from its INTERRUPT: far longer than a local disk takes. */
#define GRACE_MS 200
/* Without a way to look: how long after an INTERRUPT it is given up. */
#define BLIND_MS 10000

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A mount's second lane is for what may take as long as the client likes: so that programs which do nothing but copy
 * have not all of its threads. */
#define LANES_PER_MOUNT 2

static bool is_long(uint32_t opcode)
{
	return opcode == FUSE_COPY_FILE_RANGE || opcode == FUSE_FALLOCATE || opcode == FUSE_FSYNC ||
	       opcode == FUSE_FSYNCDIR;
}

static unsigned int threads_most(unsigned int lane)
{
	return lane % LANES_PER_MOUNT ? LIMIT_LONG_THREADS_PER_MOUNT : LIMIT_THREADS_PER_MOUNT;
}

static unsigned int count_lanes(const FsgView *view)
{
	unsigned int most = 0;

	for (guint i = 0; i < view->anchors->len; i++) {
		const FsgAnchor *anchor = g_ptr_array_index(view->anchors, i);

		most = MAX(most, anchor->id);
		for (guint j = 0; anchor->aliases && j < anchor->aliases->len; j++)
			most = MAX(most, ((FsgAnchor *)anchor->aliases->pdata[j])->id);
	}
	return (most + 2) * LANES_PER_MOUNT;
}

FsgJobs *fsg_jobs_new(FsgView *view, FsgDevice *device, int take_tasks_fd)
{
	FsgJobs *jobs = g_new0(FsgJobs, 1);

	jobs->view = view;
	jobs->device = device;
	jobs->tasks_fd = take_tasks_fd;
	jobs->n_lanes = count_lanes(view);
	jobs->lanes = g_new0(Lane, jobs->n_lanes);
	jobs->jobs.next = jobs->jobs.prev = &jobs->jobs;
	jobs->round = 1; /* no job has had a look yet */
	pthread_mutex_init(&jobs->lock, NULL);
	cond_init(&jobs->wake);
	return jobs;
}

static void link_job(FsgJobs *jobs, FsgJob *job)
{
	job->next = &jobs->jobs;
	job->prev = jobs->jobs.prev;
	job->prev->next = job;
	job->next->prev = job;
}

static void unlink_job(FsgJob *job)
{
	job->prev->next = job->next;
	job->next->prev = job->prev;
}

void fsg_job_free(FsgJob *queued)
{
	if (!queued)
		return;
	g_free(queued->request);
	g_free(queued);
}

void fsg_jobs_free(FsgJobs *jobs)
{
	if (!jobs)
		return;
	while (jobs->jobs.next != &jobs->jobs) {
		FsgJob *job = jobs->jobs.next;

		unlink_job(job);
		if (job->request) /* a copy, not a worker's own */
			fsg_job_free(job);
	}
	pthread_cond_destroy(&jobs->wake);
	pthread_mutex_destroy(&jobs->lock);
	fd_close(&jobs->tasks_fd);
	g_free(jobs->lanes);
	g_free(jobs);
}

/* Which mount's host directory a request will wait for, if it waits; or NULL. A name that a mount hangs on leads to that
 * mount's host directory, whatever directory it is looked up in. The kernel holds the node during the request. */
static const FsgAnchor *anchor_of(const FsgJobs *jobs, const void *request, size_t size)
{
	const struct fuse_in_header *header = request;
	const FsgInode *inode;
	const FsgNode *node;

	if (header->nodeid == 0)
		return NULL;
	inode = fsg_inode_from_id(jobs->view->inodes, header->nodeid);
	node = __atomic_load_n(&inode->node, __ATOMIC_RELAXED);
	if (header->opcode == FUSE_LOOKUP && node && size > sizeof *header) {
		node = fsg_node_find_child(node, (const char *)(header + 1));
		if (node && node->anchor)
			return node->anchor;
	}
	return inode->anchor;
}

static unsigned int lane_of(const FsgJobs *jobs, const void *request, size_t size)
{
	const struct fuse_in_header *header = request;
	const FsgAnchor *anchor = anchor_of(jobs, request, size);
	unsigned int lane = anchor ? (anchor->id + 1) * LANES_PER_MOUNT : 0;

	return (lane < jobs->n_lanes ? lane : 0) + is_long(header->opcode);
}

bool fsg_jobs_asks_server(const FsgJobs *jobs, const void *request, size_t size)
{
	const FsgAnchor *anchor = anchor_of(jobs, request, size);

	return anchor && !anchor->is_local;
}

/* --- order --- */

static bool takes_away(uint32_t opcode)
{
	return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_RELEASE ||
	       opcode == FUSE_RELEASEDIR;
}

/* The second node that a request names, behind its header. */
static uint64_t second_node(const void *request, size_t size)
{
	const struct fuse_in_header *header = request;
	const uint64_t *words = (const void *)(header + 1);
	size_t at;

	switch (header->opcode) {
	case FUSE_RENAME:
	case FUSE_RENAME2:
	case FUSE_LINK:
		at = 0;
		break;
	case FUSE_COPY_FILE_RANGE:
		at = offsetof(struct fuse_copy_file_range_in, nodeid_out) / sizeof *words;
		break;
	default:
		return 0;
	}
	return size >= sizeof *header + (at + 1) * sizeof *words ? words[at] : 0;
}

static bool names(const FsgJob *job, uint64_t node)
{
	return node != 0 && (job->nodes[0] == node || job->nodes[1] == node);
}

/* Whether a request names a node that job names too. A FORGET of many has a list of them. */
static bool meets(const FsgJob *job, const void *request, size_t size)
{
	const struct fuse_in_header *header = request;
	const struct fuse_batch_forget_in *batch = (const void *)(header + 1);
	const struct fuse_forget_one *forgets = (const void *)(batch + 1);

	if (header->opcode != FUSE_BATCH_FORGET)
		return names(job, header->nodeid);
	for (size_t i = 0; i < batch->count; i++) {
		if (size < sizeof *header + sizeof *batch + (i + 1) * sizeof *forgets)
			break;
		if (names(job, forgets[i].nodeid))
			return true;
	}
	return false;
}

/* Whether any request that came before `end` has to be finished first. Under the lock. */
static bool has_to_wait(const FsgJobs *jobs, const void *request, size_t size, const FsgJob *end)
{
	for (const FsgJob *job = jobs->jobs.next; job != end; job = job->next)
		if (meets(job, request, size))
			return true;
	return false;
}

static FsgJob *copy_job(FsgJobs *jobs, const FsgJob *job, const void *request, size_t size)
{
	FsgJob *copy = g_new0(FsgJob, 1);

	*copy = *job;
	copy->request = g_memdup2(request, size);
	copy->size = size;
	jobs->lanes[job->lane].queued_bytes += size;
	link_job(jobs, copy);
	return copy;
}

static void put_off(FsgJobs *jobs, const FsgJob *job, const void *request, size_t size)
{
	copy_job(jobs, job, request, size)->put_off = true;
	jobs->put_off++;
}

/* Those that have waited long enough, in their order. Under the lock. */
static FsgJob *take_ready(FsgJobs *jobs)
{
	FsgJob *first = NULL, **end = &first;

	if (jobs->put_off == 0)
		return NULL;
	for (FsgJob *job = jobs->jobs.next; job != &jobs->jobs; job = job->next) {
		if (!job->put_off || has_to_wait(jobs, job->request, job->size, job))
			continue;
		job->put_off = false;
		jobs->put_off--;
		jobs->lanes[job->lane].queued_bytes -= job->size;
		job->behind = NULL;
		*end = job;
		end = &job->behind;
	}
	return first;
}

/* --- lanes --- */

/* Changed under the lock, read without it. */
static void count_more(FsgJobs *jobs, int n)
{
	__atomic_add_fetch(&jobs->count, (unsigned int)n, __ATOMIC_RELAXED);
}

/* Behind those of its lane that wait already. false: past the bound, which is each mount's own, for one that hangs must
 * not fail another's requests. What the kernel gives back is always taken: it does not come again. */
static bool enqueue(FsgJobs *jobs, Lane *lane, const FsgJob *job, const void *request, size_t size)
{
	FsgJob *copy;

	if (job->awaited && lane->queued_bytes + size > LIMIT_QUEUED_REQUEST_BYTES)
		return false;
	copy = copy_job(jobs, job, request, size);
	if (lane->last)
		lane->last->behind = copy;
	else
		lane->first = copy;
	lane->last = copy;
	return true;
}

/* The next in the lane that somebody still waits for; those that were answered are freed. It has the place of the
 * one that has been finished. Under the lock. */
static FsgJob *take_next(FsgJobs *jobs, Lane *lane)
{
	FsgJob *next;

	while ((next = lane->first)) {
		lane->first = next->behind;
		if (!lane->first)
			lane->last = NULL;
		next->behind = NULL;
		lane->queued_bytes -= next->size;
		if (!next->answered)
			break;
		unlink_job(next);
		fsg_job_free(next);
	}
	if (!next) {
		lane->busy--;
		return NULL;
	}
	next->in_lane = true;
	count_more(jobs, next->awaited);
	return next;
}

static FsgJob describe(const FsgJobs *jobs, const void *request, size_t size)
{
	const struct fuse_in_header *header = request;

	return (FsgJob){
		.unique = header->unique,
		.pid = header->pid,
		.lane = lane_of(jobs, request, size),
		.since_ms = now_ms(),
		.awaited = !takes_away(header->opcode),
		.nodes = { header->nodeid, second_node(request, size) },
	};
}

bool fsg_jobs_may_forget(FsgJobs *jobs, const void *request, size_t size)
{
	const FsgJob job = { .awaited = false, .nodes = { 0 } };
	bool waits;

	pthread_mutex_lock(&jobs->lock);
	waits = has_to_wait(jobs, request, size, &jobs->jobs);
	if (waits)
		put_off(jobs, &job, request, size);
	pthread_mutex_unlock(&jobs->lock);
	return !waits;
}

bool fsg_jobs_begin(FsgJobs *jobs, const void *request, size_t size, bool may_work, FsgJob *job)
{
	const struct fuse_in_header *header = request;
	bool works = false, kept = true, wake;
	Lane *lane;

	*job = describe(jobs, request, size);
	lane = &jobs->lanes[job->lane];
	pthread_mutex_lock(&jobs->lock);
	if (takes_away(header->opcode) && has_to_wait(jobs, request, size, &jobs->jobs)) {
		put_off(jobs, job, request, size);
	} else if (lane->busy < threads_most(job->lane) && (may_work || lane->busy == 0)) {
		works = job->in_lane = true;
		lane->busy++;
		count_more(jobs, job->awaited);
		link_job(jobs, job);
	} else {
		kept = enqueue(jobs, lane, job, request, size);
	}
	wake = jobs->asleep;
	jobs->asleep = false;
	pthread_mutex_unlock(&jobs->lock);
	if (wake)
		pthread_cond_signal(&jobs->wake);
	if (!kept)
		(void)fsg_device_reply_error(jobs->device, header->unique, EIO);
	return works;
}

FsgJob *fsg_jobs_finish(FsgJobs *jobs, FsgJob *job)
{
	FsgJob *ready, **end = &ready;

	pthread_mutex_lock(&jobs->lock);
	unlink_job(job);
	if (job->in_lane)
		count_more(jobs, -(int)job->awaited);
	ready = take_ready(jobs);
	while (*end)
		end = &(*end)->behind;
	if (job->in_lane)
		*end = take_next(jobs, &jobs->lanes[job->lane]);
	pthread_mutex_unlock(&jobs->lock);
	return ready;
}

unsigned int fsg_jobs_count(FsgJobs *jobs)
{
	return __atomic_load_n(&jobs->count, __ATOMIC_RELAXED);
}

void fsg_jobs_interrupt(FsgJobs *jobs, uint64_t unique)
{
	pthread_mutex_lock(&jobs->lock);
	for (FsgJob *job = jobs->jobs.next; job != &jobs->jobs; job = job->next) {
		if (job->unique != unique)
			continue;
		if (!job->interrupted)
			job->interrupted_ms = now_ms();
		job->interrupted = true;
		job->round = 0; /* it is looked at once more */
		jobs->interrupts = true;
		pthread_cond_signal(&jobs->wake);
	}
	pthread_mutex_unlock(&jobs->lock);
}

/* --- the watchdog --- */

/* In its grace. */
static bool is_too_early(const FsgJob *job, int64_t now)
{
	if (job->interrupted)
		return job->in_lane && now - job->interrupted_ms < GRACE_MS;
	return now - job->since_ms < WATCH_MS;
}

static bool is_given_up(const FsgJobs *jobs, const FsgJob *job, int64_t now)
{
	if (job->pid == 0 || jobs->tasks_fd < 0)
		return job->interrupted && now - job->since_ms > BLIND_MS;
	return fsg_task_is_dying(jobs->tasks_fd, job->pid);
}

#define LOOK_AT_ONCE 64

/* Under the lock: those not looked at in this round, as many as there is room for. Gives how many there are then. */
static size_t collect_some(FsgJobs *jobs, int64_t now, bool interrupted, FsgJob *ret_jobs, size_t n)
{
	for (FsgJob *job = jobs->jobs.next; job != &jobs->jobs && n < LOOK_AT_ONCE;
	     job = job->next) {
		if (job->answered || !job->awaited || job->round == jobs->round ||
		    job->interrupted != interrupted)
			continue;
		jobs->interrupts |= interrupted;
		if (is_too_early(job, now))
			continue;
		job->round = jobs->round;
		ret_jobs[n++] = *job;
	}
	return n;
}

/* Copies of the requests to look at: those whose process got a signal, then old ones. Where there are more than can be
 * looked at at once, each gets its turn before any is looked at again. Under the lock. */
static size_t collect(FsgJobs *jobs, int64_t now, FsgJob *ret_jobs)
{
	size_t n;

	jobs->interrupts = false;
	n = collect_some(jobs, now, true, ret_jobs, 0);
	n = collect_some(jobs, now, false, ret_jobs, n);
	jobs->round += n < LOOK_AT_ONCE;
	return n;
}

/* false: it has ended, or its turn has come meanwhile, and with it its grace. */
static bool mark_answered(FsgJobs *jobs, const FsgJob *seen)
{
	bool marked = false;

	pthread_mutex_lock(&jobs->lock);
	for (FsgJob *job = jobs->jobs.next; job != &jobs->jobs; job = job->next)
		if (job->unique == seen->unique && job->in_lane == seen->in_lane)
			marked = job->answered = true;
	pthread_mutex_unlock(&jobs->lock);
	return marked;
}

static void look(FsgJobs *jobs)
{
	FsgJob seen[LOOK_AT_ONCE];
	int64_t now = now_ms();
	size_t n;

	pthread_mutex_lock(&jobs->lock);
	n = collect(jobs, now, seen);
	pthread_mutex_unlock(&jobs->lock);
	for (size_t i = 0; i < n; i++) {
		if (!is_given_up(jobs, &seen[i], now) || !mark_answered(jobs, &seen[i]))
			continue;
		/* If its worker was faster, the kernel knows the number no more. */
		(void)fsg_device_reply_error(jobs->device, seen[i].unique, EINTR);
	}
}

static void *watch(void *data)
{
	FsgJobs *jobs = data;

	pthread_mutex_lock(&jobs->lock);
	while (!jobs->ending) {
		if (jobs->jobs.next == &jobs->jobs) {
			jobs->asleep = true;
			while (jobs->asleep && !jobs->ending)
				pthread_cond_wait(&jobs->wake, &jobs->lock);
		}
		if (!jobs->ending)
			(void)cond_wait_ms(&jobs->wake, &jobs->lock,
					   jobs->interrupts ? INTERRUPT_MS : WATCH_MS);
		if (jobs->ending || jobs->jobs.next == &jobs->jobs)
			continue;
		pthread_mutex_unlock(&jobs->lock);
		look(jobs);
		pthread_mutex_lock(&jobs->lock);
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

int fsg_jobs_start_watchdog(FsgJobs *jobs)
{
	int r = pthread_create(&jobs->watchdog, NULL, watch, jobs);

	jobs->has_watchdog = r == 0;
	return -r;
}

void fsg_jobs_stop_watchdog(FsgJobs *jobs)
{
	if (!jobs->has_watchdog)
		return;
	pthread_mutex_lock(&jobs->lock);
	jobs->ending = true;
	pthread_cond_signal(&jobs->wake);
	pthread_mutex_unlock(&jobs->lock);
	pthread_join(jobs->watchdog, NULL);
	jobs->has_watchdog = false;
}
