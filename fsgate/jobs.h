/* Requests that are being worked on: how many each mount may have at once, which of them are waited for by a
 * process that is being killed, and what waits for its turn.
 *
 * A host source can hang (a network file system, a stopped FUSE server). Its requests then hold their threads;
 * so each mount has a lane with room for some threads, beyond which its requests are queued, and other mounts
 * keep being served. And a process whose request hangs cannot be killed before it has an answer:
 * the watchdog, which does no file I/O, gives it EINTR, and the late result is refused by the kernel, which
 * every reply is prepared for (reply.h). It has a while to end by itself first: what is done after its process
 * is gone surprises whoever waited for that. Requests of living processes are never cut short: a local disk does
 * not do that either.
 *
 * The kernel holds a node, and an open file, for as long as it waits for the request that names them. One that the
 * watchdog has answered it does not wait for any more, while its thread still works on it. So what takes a node
 * or a file away (FORGET, RELEASE) is put off until all older requests that name the node are finished.
 *
 * Locks: one mutex, a leaf. Any thread at once. */
#pragma once

#include "fsgate/device.h"
#include "fsgate/view.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct FsgJobs FsgJobs;

/* One request, as long as it is worked on or queued. */
typedef struct FsgJob FsgJob;
struct FsgJob {
	uint64_t unique;
	uint32_t pid; /* as the kernel gave it; 0: not in our namespace of pids */
	uint32_t lane;
	int64_t since_ms;
	int64_t interrupted_ms; /* when, once it is */
	bool awaited;		/* by a process: not a RELEASE */
	bool interrupted;
	bool answered;	     /* by the watchdog */
	uint64_t round;	     /* in which it looked at it last */
	FsgJob *prev, *next; /* all that there are */
	FsgJob *behind;	     /* in its lane's queue, or in what fsg_jobs_finish() returns */
	uint64_t nodes[2];   /* that it names, 0 for none */
	bool in_lane;	     /* takes a thread's place in it */
	bool put_off;	     /* until older ones that name its nodes are finished */
	void *request;	     /* a queued one's own copy; owned */
	size_t size;
};

/* tasks_fd: the procfs in which the kernel's pids are found, or -1 (then a process that is being
 * killed is not recognised, and a request counts as given up some seconds after its INTERRUPT). Taken. */
FsgJobs *fsg_jobs_new(FsgView *view, FsgDevice *device, int take_tasks_fd);
void fsg_jobs_free(FsgJobs *jobs); /* after the watchdog's and all workers' end; NULL is allowed */

/* 0 or -errno. Its thread sleeps while there is nothing to watch. */
int fsg_jobs_start_watchdog(FsgJobs *jobs);
void fsg_jobs_stop_watchdog(FsgJobs *jobs);

/* A request has been read. true: the caller works on it, and job (the caller's storage) is counted until
 * fsg_jobs_finish(). false: its lane is full, or it has to be put off; a copy is kept (or, past all bounds, it was
 * answered EIO). may_work false: the caller cannot be replaced as reader, and takes it only if its lane is idle. */
bool fsg_jobs_begin(FsgJobs *jobs, const void *request, size_t size, bool may_work, FsgJob *job);

/* The same for one that takes nodes away and needs no place in a lane (FORGET). false: it has been put off. */
bool fsg_jobs_may_forget(FsgJobs *jobs, const void *request, size_t size);

/* Work on job has ended. What can be worked on now, one `behind` the other, which the caller has to work on, each
 * one to be finished likewise and then freed with fsg_job_free; or NULL. */
FsgJob *fsg_jobs_finish(FsgJobs *jobs, FsgJob *job);
void fsg_job_free(FsgJob *queued);

/* The kernel says that the process behind a request has got a signal. */
void fsg_jobs_interrupt(FsgJobs *jobs, uint64_t unique);

/* Whether working on it may mean waiting for a server: its mount's host directory is not local (local-fs.h). */
bool fsg_jobs_asks_server(const FsgJobs *jobs, const void *request, size_t size);

/* How many are being worked on that somebody waits for. */
unsigned int fsg_jobs_count(FsgJobs *jobs);
