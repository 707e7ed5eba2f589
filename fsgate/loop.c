/* The threads that serve a view; see loop.h. */
#include "fsgate/loop.h"

#include "common/cond-util.h"
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "fsgate/jobs.h"
#include "fsgate/request.h"

#include <errno.h>
#include <glib.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>

/* Readers at the most when requests come faster than one thread takes them, and how many of its requests one after
 * another have to be there already for that. */
#define READERS_MOST 8
#define BACKLOG	     4
/* A read that returns sooner has not waited. */
#define IMMEDIATE_NS 3000
/* A read that waits longer says that fewer readers would do. */
#define QUIET_NS 1000000
/* How long a reader looks for the next request before it sleeps; what has come soon, a client's and our waking
 * included; and what a reader may make of that. */
#define LOOK_NS	   30000
#define SOON_NS	   60000
#define HOPES_MOST 8
/* How long a thread that is not needed stays. */
#define PARKED_MS 5000
/* How often the sentinel looks, and after how many looks without a request it sleeps. */
#define LOOK_MS	   2
#define IDLE_LOOKS 4

#define STACK_BYTES (1024 * 1024)

struct FsgLoop {
	FsgLoopConfig config;
	FsgJobs *jobs;
	int end_fd; /* eventfd */
	pthread_t sentinel;
	bool has_sentinel;
	bool may_look; /* there is a processor for the client meanwhile */
	pthread_mutex_t lock;
	pthread_cond_t gone;
	pthread_cond_t called; /* the parked */
	pthread_cond_t wake;   /* the sentinel */
	/* under the lock */
	unsigned int threads;
	unsigned int readers; /* in read(2), or on the way to it */
	unsigned int parked;
	unsigned int calls; /* for parked ones to read again */
	unsigned int width; /* readers that there should be */
	uint64_t taken;	    /* requests so far */
	bool asleep;	    /* the sentinel */
	bool ending;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

FsgLoop *fsg_loop_new(const FsgLoopConfig *config)
{
	FsgLoop *loop = g_new0(FsgLoop, 1);

	loop->config = *config;
	loop->end_fd = eventfd(0, EFD_CLOEXEC);
	loop->jobs = fsg_jobs_new(config->view, config->device, config->take_tasks_fd);
	pthread_mutex_init(&loop->lock, NULL);
	cond_init(&loop->gone);
	cond_init(&loop->called);
	cond_init(&loop->wake);
	loop->width = 1;
	loop->may_look = g_get_num_processors() > 1;
	return loop;
}

static void stop_sentinel(FsgLoop *loop);

void fsg_loop_free(FsgLoop *loop)
{
	if (!loop)
		return;
	stop_sentinel(loop);
	fsg_jobs_stop_watchdog(loop->jobs);
	fsg_jobs_free(loop->jobs);
	pthread_cond_destroy(&loop->wake);
	pthread_cond_destroy(&loop->called);
	pthread_cond_destroy(&loop->gone);
	pthread_mutex_destroy(&loop->lock);
	fd_close(&loop->end_fd);
	g_free(loop);
}

int fsg_loop_end_fd(const FsgLoop *loop)
{
	return loop->end_fd;
}

static int start_thread(FsgLoop *loop);

/* Under the lock: one more reader, a parked thread if there is one. true: a thread has to be started. */
static bool call_reader(FsgLoop *loop)
{
	if (loop->calls >= loop->parked)
		return true;
	loop->calls++;
	pthread_cond_signal(&loop->called);
	return false;
}

/* Somebody reads, or soon does. false: that cannot be. */
static bool ensure_reader(FsgLoop *loop)
{
	bool start;

	pthread_mutex_lock(&loop->lock);
	start = loop->readers + loop->calls == 0 && call_reader(loop);
	pthread_mutex_unlock(&loop->lock);
	return !start || start_thread(loop) == 0;
}

/* The caller, who read, works now. */
static void leave_readers(FsgLoop *loop)
{
	bool wake;

	pthread_mutex_lock(&loop->lock);
	loop->readers--;
	loop->taken++;
	wake = loop->asleep;
	loop->asleep = false;
	pthread_mutex_unlock(&loop->lock);
	if (wake)
		pthread_cond_signal(&loop->wake);
}

/* Reads again, at once or when it is needed. false: it is not, and the caller ends. */
static bool join_readers(FsgLoop *loop)
{
	bool reads;

	pthread_mutex_lock(&loop->lock);
	reads = loop->readers < loop->width && !loop->ending;
	if (!reads && !loop->ending) {
		loop->parked++;
		if (loop->calls == 0)
			(void)cond_wait_ms(&loop->called, &loop->lock, PARKED_MS);
		loop->parked--;
		if ((reads = loop->calls > 0))
			loop->calls--;
	}
	if (reads)
		loop->readers++;
	pthread_mutex_unlock(&loop->lock);
	return reads;
}

/* --- the sentinel ---
 *
 * The kernel wakes the reader that has waited longest, so with several of them every request would find cold
 * caches, and usually another processor. So there is one, as long as it keeps up; who takes its place when a
 * request takes long is not called for each request but when the sentinel sees that nobody has read for a while. */

static void *keep_watch(void *data)
{
	FsgLoop *loop = data;
	uint64_t seen = 0;
	int idle = 0;

	pthread_mutex_lock(&loop->lock);
	while (!loop->ending) {
		if (idle >= IDLE_LOOKS) {
			loop->asleep = true;
			while (loop->asleep && !loop->ending)
				pthread_cond_wait(&loop->wake, &loop->lock);
			idle = 0;
		}
		if (!loop->ending)
			(void)cond_wait_ms(&loop->wake, &loop->lock, LOOK_MS);
		idle = loop->taken == seen ? idle + 1 : 0;
		if (loop->taken == seen && loop->readers + loop->calls == 0 && !loop->ending) {
			bool start = call_reader(loop);

			pthread_mutex_unlock(&loop->lock);
			if (start)
				(void)start_thread(loop); /* else it is tried again */
			pthread_mutex_lock(&loop->lock);
			idle = 0;
		}
		seen = loop->taken;
	}
	pthread_mutex_unlock(&loop->lock);
	return NULL;
}

static void stop_sentinel(FsgLoop *loop)
{
	if (!loop->has_sentinel)
		return;
	pthread_mutex_lock(&loop->lock);
	loop->ending = true;
	pthread_cond_broadcast(&loop->called);
	pthread_cond_signal(&loop->wake);
	pthread_mutex_unlock(&loop->lock);
	pthread_join(loop->sentinel, NULL);
	loop->has_sentinel = false;
}

/* Under the lock; read without it. */
static void set_width(FsgLoop *loop, unsigned int width)
{
	__atomic_store_n(&loop->width, width, __ATOMIC_RELAXED);
}

/* A request is there, or the connection has ended. */
static bool is_pending(const FsgLoop *loop)
{
	struct pollfd p = { .fd = fsg_device_fd(loop->config.device), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* One client that is quick has its next request there by the time its last one's thread reads again. Only
 * when there is another one behind that, more come than one thread takes. */
static bool has_backlog(const FsgLoop *loop, int64_t waited_ns)
{
	return waited_ns < IMMEDIATE_NS && is_pending(loop);
}

/* How long the last read waited tells how many readers there should be. */
static void adjust_width(FsgLoop *loop, int64_t waited_ns, unsigned int *backlog)
{
	bool start = false, more;

	*backlog = has_backlog(loop, waited_ns) ? *backlog + 1 : 0;
	more = *backlog >= BACKLOG;
	if (!more && (waited_ns < QUIET_NS || __atomic_load_n(&loop->width, __ATOMIC_RELAXED) == 1))
		return;
	pthread_mutex_lock(&loop->lock);
	if (!more)
		set_width(loop, MAX(loop->width, 2) - 1);
	else if (loop->width < READERS_MOST)
		set_width(loop, loop->width + 1);
	if (more && loop->readers + loop->calls < loop->width)
		start = call_reader(loop);
	pthread_mutex_unlock(&loop->lock);
	if (more)
		*backlog = 0;
	if (start)
		(void)start_thread(loop); /* else there are enough of them already */
}

/* --- serving --- */

static void process(FsgLoop *loop, void *request, size_t size)
{
	struct fuse_buf buf = { .mem = request, .size = size };

	fsg_request_enter(request);
	fuse_session_process_buf(loop->config.fuse, &buf);
	fsg_request_leave();
}

/* Requests that wait for no host: they are answered by whoever has read them. */
static bool is_quick(uint32_t opcode)
{
	return opcode == FUSE_INIT || opcode == FUSE_DESTROY || opcode == FUSE_FORGET ||
	       opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT;
}

/* Requests that may take long although the host's file system is local. */
static bool is_long(const struct fuse_in_header *header)
{
	switch (header->opcode) {
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
	case FUSE_FALLOCATE:
	case FUSE_COPY_FILE_RANGE:
	case FUSE_READ:
	case FUSE_WRITE:
		return true;
	default:
		return false;
	}
}

/* Copies that had to wait, and what waited for them. */
static void work_off(FsgLoop *loop, FsgJob *first)
{
	while (first) {
		FsgJob *job = first, *more, **end;

		first = job->behind;
		process(loop, job->request, job->size);
		more = fsg_jobs_finish(loop->jobs, job);
		fsg_job_free(job);
		for (end = &first; *end; end = &(*end)->behind)
			;
		*end = more;
	}
}

/* Works on one request and on what had to wait for it. false: the calling thread ends. */
static bool serve(FsgLoop *loop, void *request, size_t size)
{
	const struct fuse_in_header *header = request;
	bool slow, replaced;
	FsgJob job;

	if ((header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET) &&
	    !fsg_jobs_may_forget(loop->jobs, request, size))
		return true;
	if (is_quick(header->opcode)) {
		if (header->opcode == FUSE_INTERRUPT && size >= sizeof *header + sizeof(uint64_t))
			fsg_jobs_interrupt(loop->jobs, *(const uint64_t *)(header + 1));
		process(loop, request, size);
		return true;
	}
	leave_readers(loop);
	slow = is_long(header) || fsg_jobs_asks_server(loop->jobs, request, size);
	replaced = !slow || ensure_reader(loop);
	if (fsg_jobs_begin(loop->jobs, request, size, replaced, &job)) {
		process(loop, request, size);
		work_off(loop, fsg_jobs_finish(loop->jobs, &job));
	}
	return join_readers(loop);
}

static void note_end(FsgLoop *loop, ssize_t r)
{
	if (r != -ENODEV)
		g_warning("/dev/fuse: %s", errno_text((int)-r));
	pthread_mutex_lock(&loop->lock);
	loop->ending = true;
	pthread_cond_broadcast(&loop->called);
	pthread_cond_signal(&loop->wake);
	pthread_mutex_unlock(&loop->lock);
	(void)eventfd_write(loop->end_fd, 1);
}

/* Whoever sleeps has to be woken, which is half of what a small request costs its client. So a lone reader looks for the
 * next request for a moment before it sleeps, as long as that pays: `hopes` grows with each request that comes soon
 * after the last one, and falls by as much as many of these are worth with a moment that was for nothing (false). */
static bool look_for_next(const FsgLoop *loop, int64_t since_ns, int hopes)
{
	if (!loop->may_look || hopes <= 0 || __atomic_load_n(&loop->width, __ATOMIC_RELAXED) > 1)
		return true;
	while (!is_pending(loop))
		if (now_ns() - since_ns > LOOK_NS)
			return false;
	return true;
}

static int adjust_hopes(int hopes, bool was_for_nothing, int64_t waited_ns)
{
	int change = was_for_nothing ? -HOPES_MOST : waited_ns <= SOON_NS ? 1 : -1;

	return CLAMP(hopes + change, -HOPES_MOST, HOPES_MOST);
}

/* Until the connection ends or there are enough readers. */
static void read_requests(FsgLoop *loop, void *buffer)
{
	unsigned int backlog = 0;
	int hopes = 0;

	for (;;) {
		int64_t before = now_ns(), waited;
		bool pays = look_for_next(loop, before, hopes);
		ssize_t got;

		got = fsg_device_read(loop->config.device, buffer, FSG_DEVICE_REQUEST_MOST);
		if (got == -EAGAIN)
			continue;
		if (got < 0) {
			note_end(loop, got);
			return;
		}
		waited = now_ns() - before;
		hopes = adjust_hopes(hopes, !pays, waited);
		adjust_width(loop, waited, &backlog);
		if (!serve(loop, buffer, (size_t)got))
			return;
	}
}

static void *run(void *data)
{
	FsgLoop *loop = data;
	void *buffer = mmap(NULL, FSG_DEVICE_REQUEST_MOST, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r = buffer == MAP_FAILED ? -errno : loop->config.prepare();

	if (r < 0)
		note_end(loop, r);
	else
		read_requests(loop, buffer);
	if (buffer != MAP_FAILED)
		(void)munmap(buffer, FSG_DEVICE_REQUEST_MOST);
	pthread_mutex_lock(&loop->lock);
	loop->threads--;
	pthread_cond_broadcast(&loop->gone);
	pthread_mutex_unlock(&loop->lock);
	return NULL;
}

/* One more reader. Signals are the main thread's. */
static int start_thread(FsgLoop *loop)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int r;

	pthread_mutex_lock(&loop->lock);
	loop->threads++;
	loop->readers++;
	pthread_mutex_unlock(&loop->lock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, run, loop);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r == 0)
		return 0;
	pthread_mutex_lock(&loop->lock);
	loop->threads--;
	loop->readers--;
	pthread_mutex_unlock(&loop->lock);
	return -r;
}

int fsg_loop_start(FsgLoop *loop)
{
	int r = loop->end_fd < 0 ? -EMFILE : fsg_jobs_start_watchdog(loop->jobs);

	if (r == 0)
		r = -pthread_create(&loop->sentinel, NULL, keep_watch, loop);
	loop->has_sentinel = r == 0;
	return r < 0 ? r : start_thread(loop);
}

bool fsg_loop_wait(FsgLoop *loop, int timeout_ms)
{
	int64_t until_us = g_get_monotonic_time() + (int64_t)timeout_ms * 1000;
	bool gone, in_time = true;

	pthread_mutex_lock(&loop->lock);
	while (loop->threads > 0 && in_time)
		in_time = cond_wait_until(&loop->gone, &loop->lock, until_us);
	gone = loop->threads == 0;
	pthread_mutex_unlock(&loop->lock);
	return gone;
}
