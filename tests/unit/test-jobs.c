/* jobs: the lanes of mounts, and the watchdog's answers. The device is not there: what would be answered is
 * noted (--wrap=fsg_device_reply_error). */
#include "fsgate/jobs.h"

#include "common/limits.h"
#include "fsgate/task.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static FsgAnchor first_anchor = { .id = 0 }, second_anchor = { .id = 1 };
static FsgInode first = { .kind = FSG_INODE_HOST, .anchor = &first_anchor };
static FsgInode second = { .kind = FSG_INODE_HOST, .anchor = &second_anchor };
static FsgView view;
static int answer_pipe[2];

typedef struct {
	uint64_t unique;
	int errnum;
} Answer;

int __wrap_fsg_device_reply_error(FsgDevice *device, uint64_t unique, int errnum);
int __wrap_fsg_device_reply_error(FsgDevice *device, uint64_t unique, int errnum)
{
	const Answer answer = { unique, errnum };

	(void)device;
	assert_int_equal(write(answer_pipe[1], &answer, sizeof answer), sizeof answer);
	return 0;
}

static bool next_answer(int timeout_ms, Answer *ret_answer)
{
	struct pollfd end = { .fd = answer_pipe[0], .events = POLLIN };

	return poll(&end, 1, timeout_ms) == 1 &&
	       read(end.fd, ret_answer, sizeof *ret_answer) == sizeof *ret_answer;
}

static struct fuse_in_header request(FsgInode *inode, uint64_t unique, uint32_t pid)
{
	return (struct fuse_in_header){
		.len = sizeof(struct fuse_in_header),
		.opcode = FUSE_GETATTR,
		.unique = unique,
		.nodeid = (uint64_t)(uintptr_t)inode,
		.pid = pid,
	};
}

static bool begin(FsgJobs *jobs, FsgInode *inode, uint64_t unique, bool may_work, FsgJob *job)
{
	const struct fuse_in_header header = request(inode, unique, (uint32_t)getpid());

	return fsg_jobs_begin(jobs, &header, sizeof header, may_work, job);
}

static int set_up(void **state)
{
	assert_int_equal(pipe(answer_pipe), 0);
	view.anchors = g_ptr_array_new();
	g_ptr_array_add(view.anchors, &first_anchor);
	g_ptr_array_add(view.anchors, &second_anchor);
	*state = fsg_jobs_new(&view, NULL, fsg_tasks_open());
	return 0;
}

static int tear_down(void **state)
{
	fsg_jobs_stop_watchdog(*state);
	fsg_jobs_free(*state);
	g_ptr_array_unref(view.anchors);
	close(answer_pipe[0]);
	close(answer_pipe[1]);
	return 0;
}

static void full_lane_queues_in_order_and_others_go_on(void **state)
{
	FsgJobs *jobs = *state;
	FsgJob busy[LIMIT_THREADS_PER_MOUNT], other, unused, *queued;

	for (unsigned int i = 0; i < LIMIT_THREADS_PER_MOUNT; i++)
		assert_true(begin(jobs, &first, i + 1, true, &busy[i]));
	assert_false(begin(jobs, &first, 101, true, &unused));
	assert_false(begin(jobs, &first, 102, true, &unused));
	assert_true(begin(jobs, &second, 103, true, &other));
	assert_int_equal(fsg_jobs_count(jobs), LIMIT_THREADS_PER_MOUNT + 1);

	queued = fsg_jobs_finish(jobs, &busy[0]);
	assert_non_null(queued);
	assert_int_equal(queued->unique, 101);
	assert_int_equal(queued->size, sizeof(struct fuse_in_header));
	assert_int_equal(((struct fuse_in_header *)queued->request)->unique, 101);
	assert_null(fsg_jobs_finish(jobs, &other));
	for (FsgJob *next; queued; queued = next) {
		next = fsg_jobs_finish(jobs, queued);
		if (next)
			assert_int_equal(next->unique, 102);
		fsg_job_free(queued);
	}
	for (unsigned int i = 1; i < LIMIT_THREADS_PER_MOUNT; i++)
		assert_null(fsg_jobs_finish(jobs, &busy[i]));
	assert_int_equal(fsg_jobs_count(jobs), 0);
}

static struct fuse_in_header opcode_of(FsgInode *inode, uint64_t unique, uint32_t opcode)
{
	struct fuse_in_header header = request(inode, unique, 0);

	header.opcode = opcode;
	return header;
}

/* However long they take, and however many there are. */
static void long_ones_leave_the_mount_its_threads(void **state)
{
	static const uint32_t opcodes[] = { FUSE_COPY_FILE_RANGE, FUSE_FALLOCATE, FUSE_FSYNC,
					    FUSE_FSYNCDIR };
	FsgJobs *jobs = *state;
	FsgJob busy[LIMIT_LONG_THREADS_PER_MOUNT], job, unused, *queued;

	for (unsigned int i = 0; i < LIMIT_LONG_THREADS_PER_MOUNT; i++) {
		const struct fuse_in_header header =
			opcode_of(&first, i + 1, opcodes[i % G_N_ELEMENTS(opcodes)]);

		assert_true(fsg_jobs_begin(jobs, &header, sizeof header, true, &busy[i]));
	}
	for (size_t i = 0; i < G_N_ELEMENTS(opcodes); i++) {
		const struct fuse_in_header header = opcode_of(&first, 50, opcodes[i]);

		assert_false(fsg_jobs_begin(jobs, &header, sizeof header, true, &unused));
	}
	assert_true(begin(jobs, &first, 100, true, &job));
	assert_null(fsg_jobs_finish(jobs, &job));
	for (unsigned int i = 0; i < LIMIT_LONG_THREADS_PER_MOUNT; i++)
		while ((queued = fsg_jobs_finish(jobs, &busy[i]))) {
			busy[i] = *queued;
			fsg_job_free(queued);
		}
}

static void last_reader_works_only_in_an_idle_lane(void **state)
{
	FsgJobs *jobs = *state;
	FsgJob job, unused, *queued;

	assert_true(begin(jobs, &first, 1, false, &job));
	assert_false(begin(jobs, &first, 2, false, &unused));
	queued = fsg_jobs_finish(jobs, &job);
	assert_non_null(queued);
	assert_null(fsg_jobs_finish(jobs, queued));
	fsg_job_free(queued);
}

/* Finishes a full lane and all that waits for it. */
static void work_off(FsgJobs *jobs, FsgJob *lane, unsigned int *done)
{
	for (unsigned int i = 0; i < LIMIT_THREADS_PER_MOUNT; i++) {
		(*done)++;
		for (FsgJob *job = fsg_jobs_finish(jobs, &lane[i]), *next; job; job = next) {
			(*done)++;
			next = fsg_jobs_finish(jobs, job);
			fsg_job_free(job);
		}
	}
}

static void queue_has_a_bound(void **state)
{
	FsgJobs *jobs = *state;
	const size_t size = LIMIT_QUEUED_REQUEST_BYTES / 4;
	g_autofree char *big = g_malloc0(size);
	/* of another node, so that nothing older has to be finished first */
	FsgInode closed = { .kind = FSG_INODE_HOST, .anchor = &first_anchor };
	const struct fuse_in_header release = opcode_of(&closed, 8, FUSE_RELEASE);
	FsgJob busy[LIMIT_THREADS_PER_MOUNT], others[LIMIT_THREADS_PER_MOUNT], unused;
	unsigned int done = 0;
	Answer answer;

	*(struct fuse_in_header *)big = request(&first, 7, 1);
	for (unsigned int i = 0; i < LIMIT_THREADS_PER_MOUNT; i++)
		assert_true(begin(jobs, &first, i + 1, true, &busy[i]));
	for (int i = 0; i < 4; i++)
		assert_false(fsg_jobs_begin(jobs, big, size, true, &unused));
	assert_false(next_answer(0, &answer));
	assert_false(fsg_jobs_begin(jobs, big, size, true, &unused));
	assert_true(next_answer(0, &answer));
	assert_int_equal(answer.unique, 7);
	assert_int_equal(answer.errnum, EIO);
	/* What the kernel gives back is taken, and another mount's requests have their own bound. */
	assert_false(fsg_jobs_begin(jobs, &release, sizeof release, true, &unused));
	for (unsigned int i = 0; i < LIMIT_THREADS_PER_MOUNT; i++)
		assert_true(begin(jobs, &second, i + 101, true, &others[i]));
	assert_false(begin(jobs, &second, 201, true, &unused));
	assert_false(next_answer(0, &answer));
	work_off(jobs, others, &done);
	assert_int_equal(done, LIMIT_THREADS_PER_MOUNT + 1);
	done = 0;
	work_off(jobs, busy, &done);
	assert_int_equal(done, LIMIT_THREADS_PER_MOUNT + 5);
}

/* The pid of a process that has ended and is not reaped. */
static pid_t ended_child(void)
{
	pid_t child = fork();
	siginfo_t info;

	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	return child;
}

static void ending_process_is_answered_and_a_living_one_waits(void **state)
{
	FsgJobs *jobs = *state;
	pid_t child = ended_child();
	const struct fuse_in_header dead = request(&first, 1, (uint32_t)child);
	FsgJob job, living;
	Answer answer;

	assert_int_equal(fsg_jobs_start_watchdog(jobs), 0);
	assert_true(begin(jobs, &first, 2, true, &living));
	fsg_jobs_interrupt(jobs, 2); /* a signal that does not kill */
	assert_true(fsg_jobs_begin(jobs, &dead, sizeof dead, true, &job));
	fsg_jobs_interrupt(jobs, 1);
	assert_true(next_answer(5000, &answer));
	assert_int_equal(answer.unique, 1);
	assert_int_equal(answer.errnum, EINTR);
	/* Once, and only that one. */
	assert_false(next_answer(700, &answer));
	assert_null(fsg_jobs_finish(jobs, &job));
	assert_null(fsg_jobs_finish(jobs, &living));
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void ending_process_is_found_without_an_interrupt(void **state)
{
	FsgJobs *jobs = *state;
	pid_t child = ended_child();
	const struct fuse_in_header dead = request(&first, 1, (uint32_t)child);
	FsgJob job;
	Answer answer;

	assert_int_equal(fsg_jobs_start_watchdog(jobs), 0);
	assert_true(fsg_jobs_begin(jobs, &dead, sizeof dead, true, &job));
	assert_true(next_answer(5000, &answer));
	assert_int_equal(answer.unique, 1);
	assert_null(fsg_jobs_finish(jobs, &job));
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* However many living ones wait longer, signalled ones too. */
static void ending_process_is_found_among_many_that_live(void **state)
{
	enum { MANY = 300 };
	FsgJobs *jobs = *state;
	pid_t child = ended_child();
	const struct fuse_in_header dead = request(&first, 9, (uint32_t)child);
	FsgJob busy[LIMIT_THREADS_PER_MOUNT], unused;
	unsigned int done = 0;
	Answer answer;

	for (unsigned int i = 0; i < LIMIT_THREADS_PER_MOUNT; i++)
		assert_true(begin(jobs, &first, i + 1000, true, &busy[i]));
	for (unsigned int i = 0; i < MANY; i++) {
		assert_false(begin(jobs, &first, i + 2000, true, &unused));
		if (i % 2)
			fsg_jobs_interrupt(jobs, i + 2000);
	}
	assert_false(fsg_jobs_begin(jobs, &dead, sizeof dead, true, &unused));
	assert_int_equal(fsg_jobs_start_watchdog(jobs), 0);
	assert_true(next_answer(10000, &answer));
	assert_int_equal(answer.unique, 9);
	work_off(jobs, busy, &done);
	assert_int_equal(done, LIMIT_THREADS_PER_MOUNT + MANY);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void answered_in_the_queue_is_not_worked_on(void **state)
{
	FsgJobs *jobs = *state;
	pid_t child = ended_child();
	const struct fuse_in_header dead = request(&first, 9, (uint32_t)child);
	FsgJob busy[LIMIT_THREADS_PER_MOUNT], unused;
	Answer answer;

	assert_int_equal(fsg_jobs_start_watchdog(jobs), 0);
	for (unsigned int i = 0; i < LIMIT_THREADS_PER_MOUNT; i++)
		assert_true(begin(jobs, &first, i + 100, true, &busy[i]));
	assert_false(fsg_jobs_begin(jobs, &dead, sizeof dead, true, &unused));
	fsg_jobs_interrupt(jobs, 9);
	assert_true(next_answer(5000, &answer));
	assert_int_equal(answer.unique, 9);
	for (unsigned int i = 0; i < LIMIT_THREADS_PER_MOUNT; i++)
		assert_null(fsg_jobs_finish(jobs, &busy[i]));
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* What takes a node away comes after every older request that names it, however those are finished. */
static void what_takes_a_node_away_waits_for_older_ones(void **state)
{
	FsgJobs *jobs = *state;
	const struct fuse_in_header release = opcode_of(&first, 10, FUSE_RELEASE);
	const struct fuse_in_header forget = opcode_of(&first, 11, FUSE_FORGET);
	FsgJob old, newer, other, unused, *ready, *next;

	assert_true(begin(jobs, &first, 1, true, &old));
	assert_true(begin(jobs, &second, 2, true, &other));
	assert_true(begin(jobs, &first, 3, true, &newer));
	assert_false(fsg_jobs_begin(jobs, &release, sizeof release, true, &unused));
	assert_false(fsg_jobs_may_forget(jobs, &forget, sizeof forget));
	assert_null(fsg_jobs_finish(jobs, &newer));
	assert_null(fsg_jobs_finish(jobs, &other));
	/* The last that used it: the RELEASE is next, and only then the FORGET. */
	ready = fsg_jobs_finish(jobs, &old);
	assert_non_null(ready);
	assert_null(ready->behind);
	assert_int_equal(((struct fuse_in_header *)ready->request)->opcode, FUSE_RELEASE);
	next = fsg_jobs_finish(jobs, ready);
	fsg_job_free(ready);
	assert_non_null(next);
	assert_null(next->behind);
	assert_int_equal(((struct fuse_in_header *)next->request)->opcode, FUSE_FORGET);
	assert_null(fsg_jobs_finish(jobs, next));
	fsg_job_free(next);
	/* With nobody there it is done at once. */
	assert_true(fsg_jobs_may_forget(jobs, &forget, sizeof forget));
	assert_true(fsg_jobs_begin(jobs, &release, sizeof release, true, &unused));
	assert_null(fsg_jobs_finish(jobs, &unused));
}

static void a_list_of_nodes_waits_for_each_of_them(void **state)
{
	FsgJobs *jobs = *state;
	struct {
		struct fuse_in_header header;
		struct fuse_batch_forget_in batch;
		struct fuse_forget_one one[2];
	} forget = {
		.header = opcode_of(NULL, 5, FUSE_BATCH_FORGET),
		.batch = { .count = 2 },
		.one = { { .nodeid = 4096 }, { .nodeid = (uint64_t)(uintptr_t)&first } },
	};
	struct {
		struct fuse_in_header header;
		uint64_t second_node;
		char names[4];
	} rename = {
		.header = opcode_of(&second, 6, FUSE_RENAME),
		.second_node = (uint64_t)(uintptr_t)&first,
	};
	FsgJob job, *ready;

	/* The directory that something is renamed into is named too. */
	assert_true(fsg_jobs_begin(jobs, &rename, sizeof rename, true, &job));
	assert_false(fsg_jobs_may_forget(jobs, &forget, sizeof forget));
	ready = fsg_jobs_finish(jobs, &job);
	assert_non_null(ready);
	assert_int_equal(((struct fuse_in_header *)ready->request)->opcode, FUSE_BATCH_FORGET);
	assert_null(fsg_jobs_finish(jobs, ready));
	fsg_job_free(ready);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(full_lane_queues_in_order_and_others_go_on),
		TEST(long_ones_leave_the_mount_its_threads),
		TEST(last_reader_works_only_in_an_idle_lane),
		TEST(queue_has_a_bound),
		TEST(ending_process_is_answered_and_a_living_one_waits),
		TEST(ending_process_is_found_without_an_interrupt),
		TEST(ending_process_is_found_among_many_that_live),
		TEST(answered_in_the_queue_is_not_worked_on),
		TEST(what_takes_a_node_away_waits_for_older_ones),
		TEST(a_list_of_nodes_waits_for_each_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
