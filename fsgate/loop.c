/* The threads that serve a view; see loop.h. */
#include "fsgate/loop.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "fsgate/jobs.h"
#include "fsgate/placement.h"
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

/* Threads that stay when there is little to do, and for how long more of them do. The kernel wakes the one
 * that has waited longest, so with many of them every request would find cold caches. */
#define READERS_MOST	  3
#define READERS_WHEN_BUSY 8
#define KEEP_NS		  1000000000ll
#define STACK_BYTES	  (1024 * 1024)

struct FsgLoop {
	FsgLoopConfig config;
	FsgJobs *jobs;
	FsgPlacement *placement;
	int end_fd; /* eventfd */
	pthread_mutex_t lock;
	pthread_cond_t gone;
	/* under the lock */
	unsigned int threads;
	unsigned int readers; /* in read(2), or on the way to it */
	int64_t short_ns;     /* when there was no reader last */
	bool ending;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

FsgLoop *fsg_loop_new(const FsgLoopConfig *config)
{
	FsgLoop *loop = g_new0(FsgLoop, 1);
	pthread_condattr_t attr;

	loop->config = *config;
	loop->end_fd = eventfd(0, EFD_CLOEXEC);
	loop->placement = fsg_placement_new(config->take_tasks_fd);
	loop->jobs = fsg_jobs_new(config->view, config->device, config->take_tasks_fd);
	pthread_mutex_init(&loop->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&loop->gone, &attr);
	pthread_condattr_destroy(&attr);
	return loop;
}

void fsg_loop_free(FsgLoop *loop)
{
	if (!loop)
		return;
	fsg_jobs_stop_watchdog(loop->jobs);
	fsg_jobs_free(loop->jobs);
	fsg_placement_free(loop->placement);
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

/* The caller, who read, works now. true: somebody else reads. */
static bool leave_readers(FsgLoop *loop)
{
	bool needed;

	pthread_mutex_lock(&loop->lock);
	needed = --loop->readers == 0;
	if (needed)
		loop->short_ns = now_ns();
	pthread_mutex_unlock(&loop->lock);
	return !needed || start_thread(loop) == 0;
}

/* false: there are enough, and the caller ends. */
static bool join_readers(FsgLoop *loop)
{
	bool stays;

	pthread_mutex_lock(&loop->lock);
	stays = loop->readers < READERS_MOST ||
		(loop->readers < READERS_WHEN_BUSY && now_ns() - loop->short_ns < KEEP_NS);
	if (stays)
		loop->readers++;
	pthread_mutex_unlock(&loop->lock);
	return stays;
}

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

/* Works on one request and on what had to wait for it. false: the calling thread ends. */
static bool serve(FsgLoop *loop, void *request, size_t size)
{
	const struct fuse_in_header *header = request;
	bool replaced;
	FsgJob job, *queued;

	if (is_quick(header->opcode)) {
		if (header->opcode == FUSE_INTERRUPT && size >= sizeof *header + sizeof(uint64_t))
			fsg_jobs_interrupt(loop->jobs, *(const uint64_t *)(header + 1));
		process(loop, request, size);
		return true;
	}
	/* Nobody waits for a RELEASE: it says nothing about who asks for what. */
	if (header->opcode != FUSE_RELEASE && header->opcode != FUSE_RELEASEDIR)
		fsg_placement_note(loop->placement, header->pid, fsg_jobs_count(loop->jobs));
	replaced = leave_readers(loop);
	if (fsg_jobs_begin(loop->jobs, request, size, replaced, &job)) {
		process(loop, request, size);
		queued = fsg_jobs_finish(loop->jobs, &job);
		while (queued) {
			FsgJob *done = queued;

			process(loop, done->request, done->size);
			queued = fsg_jobs_finish(loop->jobs, done);
			fsg_job_free(done);
		}
	}
	return join_readers(loop);
}

static void note_end(FsgLoop *loop, ssize_t r)
{
	if (r != -ENODEV)
		g_warning("/dev/fuse: %s", errno_text((int)-r));
	pthread_mutex_lock(&loop->lock);
	loop->ending = true;
	pthread_mutex_unlock(&loop->lock);
	(void)eventfd_write(loop->end_fd, 1);
}

/* Until the connection ends or there are enough readers. */
static void read_requests(FsgLoop *loop, void *buffer)
{
	int held = FSG_PLACEMENT_UNKNOWN;

	for (;;) {
		ssize_t got;

		fsg_placement_apply(loop->placement, &held);
		got = fsg_device_read(loop->config.device, buffer, FSG_DEVICE_REQUEST_MOST);
		if (got == -EAGAIN)
			continue;
		if (got < 0) {
			note_end(loop, got);
			return;
		}
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

	return r < 0 ? r : start_thread(loop);
}

bool fsg_loop_wait(FsgLoop *loop, int timeout_ms)
{
	struct timespec until;
	bool gone;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (timeout_ms % 1000) * 1000000l;
	until.tv_sec += timeout_ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&loop->lock);
	while (loop->threads > 0 && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&loop->gone, &loop->lock, &until);
	gone = loop->threads == 0;
	pthread_mutex_unlock(&loop->lock);
	return gone;
}
