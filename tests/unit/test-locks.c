/* locks: owners of a view on one file, without a view; a description of the test's own is the host. */
#include "fsgate/locks.h"

#include "common/fd-util.h"
#include "common/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
	FsgView view;
	FsgAnchor anchor;
	FsgInode inode;
	FsgFile files[4];
	int host;
	pthread_mutex_t lock; /* for what waits have answered */
	pthread_cond_t answered;
} Fixture;

static int set_up(void **state)
{
	static char mountpoint[] = "/";
	char name[] = "/tmp/stella-locks-XXXXXX";
	Fixture *f = g_new0(Fixture, 1);

	f->host = mkostemp(name, O_CLOEXEC);
	assert_true(f->host >= 0);
	f->anchor.act_uid = (uid_t)-1;
	f->inode = (FsgInode){ .kind = FSG_INODE_HOST,
			       .key = { .dev = 7, .ino = 11 },
			       .anchor = &f->anchor,
			       .type = S_IFREG };
	for (size_t i = 0; i < G_N_ELEMENTS(f->files); i++) {
		f->files[i].inode = &f->inode;
		f->files[i].fd = open(name, O_RDWR | O_CLOEXEC);
	}
	unlink(name);
	f->view.locks = fsg_locks_new();
	f->view.handles = fsg_handle_budget_new(8);
	f->view.proc_fd = fd_open_proc();
	f->view.mountpoint = mountpoint;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->answered, NULL);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	assert_true(fsg_locks_stop(f->view.locks, 5000));
	fsg_locks_free(f->view.locks);
	for (size_t i = 0; i < G_N_ELEMENTS(f->files); i++)
		close(f->files[i].fd);
	close(f->host);
	close(f->view.proc_fd);
	fsg_handle_budget_free(f->view.handles);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->answered);
	g_free(f);
	return 0;
}

static FsgLockRequest request(Fixture *f, int file, uint64_t owner, short type, uint64_t start,
			      uint64_t end)
{
	return (FsgLockRequest){ .file = &f->files[file],
				 .key = fsg_lock_key(&f->files[file]),
				 .owner = owner,
				 .pid = (pid_t)owner,
				 .range = { start, end, type } };
}

static int set(Fixture *f, int file, uint64_t owner, short type, uint64_t start, uint64_t end)
{
	const FsgLockRequest r = request(f, file, owner, type, start, end);

	return fsg_locks_set(&f->view, &r, NULL);
}

static void flush(Fixture *f, int file, uint64_t owner)
{
	const FsgLockKey key = fsg_lock_key(&f->files[file]);

	fsg_locks_flush(&f->view, &key, &f->files[file], owner);
}

/* What the host sees of one byte: F_UNLCK, F_RDLCK, F_WRLCK. */
static short host_sees(const Fixture *f, off_t byte)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = byte, .l_len = 1 };

	assert_int_equal(fcntl(f->host, F_OFD_GETLK, &lock), 0);
	return lock.l_type;
}

static void owners_exclude_each_other_and_the_host(void **state)
{
	Fixture *f = *state;
	struct flock lock = { .l_type = F_WRLCK, .l_start = 50, .l_len = 1 };

	assert_int_equal(set(f, 0, 1, F_WRLCK, 0, 9), 0);
	assert_int_equal(set(f, 0, 2, F_WRLCK, 5, 5), -EAGAIN); /* through the same handle */
	assert_int_equal(set(f, 0, 2, F_WRLCK, 10, 19), 0);
	assert_int_equal(host_sees(f, 9), F_WRLCK);
	assert_int_equal(host_sees(f, 10), F_WRLCK);
	assert_int_equal(fcntl(f->host, F_OFD_SETLK, &lock), 0);
	assert_int_equal(set(f, 1, 1, F_RDLCK, 40, 60), -EAGAIN);
	assert_int_equal(set(f, 1, 1, F_RDLCK, 51, 60), 0);
}

static void descriptions_are_the_handles_own_as_long_as_there_is_one(void **state)
{
	Fixture *f = *state;

	assert_int_equal(set(f, 0, 1, F_WRLCK, 0, 0), 0);
	assert_int_equal(set(f, 1, 2, F_WRLCK, 1, 1), 0);
	assert_int_equal(fsg_handle_budget_used(f->view.handles), 0);
	for (uint64_t owner = 3; owner < 11; owner++)
		assert_int_equal(set(f, 0, owner, F_WRLCK, owner, owner), 0);
	assert_int_equal(fsg_handle_budget_used(f->view.handles), 8);
	assert_int_equal(set(f, 0, 11, F_WRLCK, 11, 11), -ENOLCK); /* the budget's end */
	assert_int_equal(host_sees(f, 11), F_UNLCK);
	assert_int_equal(set(f, 0, 3, F_UNLCK, 3, 3), 0);
	assert_int_equal(fsg_handle_budget_used(f->view.handles), 7);
	assert_int_equal(set(f, 0, 11, F_WRLCK, 11, 11), 0);
	for (uint64_t owner = 1; owner < 12; owner++)
		flush(f, 0, owner);
	assert_int_equal(fsg_handle_budget_used(f->view.handles), 0);
	for (off_t i = 0; i < 12; i++)
		assert_int_equal(host_sees(f, i), F_UNLCK);
}

static void a_close_ends_the_owners_locks_and_a_release_the_handles(void **state)
{
	Fixture *f = *state;
	FsgLockRequest whole = request(f, 2, 0, F_WRLCK, 0, FSG_LOCK_END);

	whole.flock = true;
	assert_int_equal(set(f, 0, 1, F_WRLCK, 0, 0), 0);
	assert_int_equal(set(f, 1, 2, F_WRLCK, 1, 1), 0);
	assert_int_equal(set(f, 0, 3, F_WRLCK, 2, 2), 0);
	assert_int_equal(fsg_locks_set(&f->view, &whole, NULL), 0);
	assert_int_equal(flock(f->host, LOCK_SH | LOCK_NB), -1);
	flush(f, 3, 1); /* another handle of the same owner */
	assert_int_equal(host_sees(f, 0), F_UNLCK);
	assert_int_equal(host_sees(f, 1), F_WRLCK);
	fsg_locks_release(&f->view, &f->files[0]);
	assert_int_equal(host_sees(f, 1), F_WRLCK);
	assert_int_equal(host_sees(f, 2), F_UNLCK);
	fsg_locks_release(&f->view, &f->files[2]);
	assert_int_equal(flock(f->host, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(host_sees(f, 1), F_WRLCK);
}

static void what_was_not_delivered_is_as_before(void **state)
{
	Fixture *f = *state;
	FsgLockRequest r = request(f, 0, 1, F_WRLCK, 2, 9);
	FsgLockDetails details;

	assert_int_equal(set(f, 0, 1, F_RDLCK, 0, 3), 0);
	assert_int_equal(set(f, 0, 1, F_WRLCK, 6, 6), 0);
	assert_int_equal(fsg_locks_set(&f->view, &r, &details), 0);
	assert_int_equal(host_sees(f, 3), F_WRLCK);
	assert_int_equal(host_sees(f, 9), F_WRLCK);
	fsg_locks_give_back(&f->view, &r, details.before);
	for (off_t i = 0; i < 10; i++)
		assert_int_equal(host_sees(f, i), i < 4 ? F_RDLCK : i == 6 ? F_WRLCK : F_UNLCK);
	r = request(f, 1, 2, F_WRLCK, 20, 20);
	assert_int_equal(fsg_locks_set(&f->view, &r, &details), 0);
	fsg_locks_give_back(&f->view, &r, details.before);
	assert_int_equal(host_sees(f, 20), F_UNLCK);
}

/* Spread over files, for the kernel gets slow with many on one. */
static void ranges_have_a_bound_and_splitting_counts(void **state)
{
	enum { FILES = 32, EACH = LIMIT_LOCK_RANGES / FILES };
	Fixture *f = *state;
	FsgInode inodes[FILES];
	FsgFile files[FILES];

	for (int k = 0; k < FILES; k++) {
		char name[] = "/tmp/stella-locks-XXXXXX";

		inodes[k] = f->inode;
		inodes[k].key.ino = 100 + (uint64_t)k;
		files[k] = (FsgFile){ .inode = &inodes[k], .fd = mkostemp(name, O_CLOEXEC) };
		assert_true(files[k].fd >= 0);
		unlink(name);
		for (uint64_t i = 0; i < EACH; i++) {
			FsgLockRequest r = request(f, 0, 1, i % 2 ? F_WRLCK : F_RDLCK, i, i);

			r.file = &files[k];
			r.key = fsg_lock_key(r.file);
			if (fsg_locks_set(&f->view, &r, NULL) != 0)
				fail();
		}
	}
	f->files[3].inode = &inodes[0]; /* the other owner's is f->files[1] */
	close(f->files[3].fd);
	f->files[3].fd = fd_dup(files[0].fd);
	assert_int_equal(set(f, 1, 2, F_RDLCK, 0, 0), -ENOLCK);
	assert_int_equal(set(f, 3, 1, F_UNLCK, 4, 4), 0);
	assert_int_equal(set(f, 1, 2, F_RDLCK, 0, 9), 0);
	assert_int_equal(set(f, 1, 2, F_UNLCK, 5, 5), -ENOLCK); /* would be two */
	assert_int_equal(set(f, 1, 2, F_UNLCK, 0, 9), 0);
	for (int k = 0; k < FILES; k++) {
		fsg_locks_release(&f->view, &files[k]);
		close(files[k].fd);
	}
	assert_int_equal(set(f, 1, 2, F_RDLCK, 0, 9), 0);
	assert_int_equal(set(f, 1, 2, F_UNLCK, 5, 5), 0);
}

/* --- waiting --- */

typedef struct {
	Fixture *f;
	int result; /* 1: none yet */
	bool deliver;
} Waiting;

static bool answer(void *data, int r)
{
	Waiting *waiting = data;
	Fixture *f = waiting->f;
	bool deliver;

	/* It may go as soon as the mutex is free. */
	pthread_mutex_lock(&f->lock);
	deliver = waiting->deliver;
	waiting->result = r;
	pthread_cond_broadcast(&f->answered);
	pthread_mutex_unlock(&f->lock);
	return deliver;
}

static FsgLockWait *start(Fixture *f, Waiting *waiting, const FsgLockRequest *r, int timeout_ms)
{
	FsgLockWait *wait;

	*waiting = (Waiting){ .f = f, .result = 1, .deliver = true };
	wait = fsg_lock_wait_new(&f->view, r, answer, waiting);
	fsg_lock_wait_start(wait, timeout_ms);
	return wait;
}

static int result_of(Waiting *waiting)
{
	struct timespec until;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 10;
	pthread_mutex_lock(&waiting->f->lock);
	while (waiting->result == 1 &&
	       pthread_cond_clockwait(&waiting->f->answered, &waiting->f->lock, CLOCK_MONOTONIC,
				      &until) == 0)
		;
	r = waiting->result;
	pthread_mutex_unlock(&waiting->f->lock);
	return r;
}

static bool still_waits(Waiting *waiting)
{
	bool waits;

	g_usleep(5000);
	pthread_mutex_lock(&waiting->f->lock);
	waits = waiting->result == 1;
	pthread_mutex_unlock(&waiting->f->lock);
	return waits;
}

static void a_wait_ends_when_view_and_host_have_let_go(void **state)
{
	Fixture *f = *state;
	const FsgLockRequest r = request(f, 1, 2, F_WRLCK, 0, 99);
	struct flock lock = { .l_type = F_RDLCK, .l_start = 50, .l_len = 1 };
	Waiting waiting;

	assert_int_equal(set(f, 0, 1, F_WRLCK, 0, 0), 0);
	assert_int_equal(fcntl(f->host, F_OFD_SETLK, &lock), 0);
	(void)start(f, &waiting, &r, -1);
	assert_true(still_waits(&waiting));
	assert_int_equal(set(f, 0, 1, F_UNLCK, 0, 0), 0);
	assert_true(still_waits(&waiting));
	lock.l_type = F_UNLCK;
	assert_int_equal(fcntl(f->host, F_OFD_SETLK, &lock), 0);
	assert_int_equal(result_of(&waiting), 0);
	assert_int_equal(host_sees(f, 99), F_WRLCK);
}

static void a_canceled_wait_leaves_nothing(void **state)
{
	Fixture *f = *state;
	const FsgLockRequest r = request(f, 1, 2, F_WRLCK, 0, 99);
	FsgLockWait *wait;
	Waiting waiting;

	assert_int_equal(set(f, 0, 1, F_WRLCK, 0, 0), 0);
	wait = start(f, &waiting, &r, -1);
	assert_true(still_waits(&waiting));
	fsg_lock_wait_cancel(wait);
	assert_int_equal(result_of(&waiting), -EINTR);
	assert_int_equal(set(f, 0, 1, F_UNLCK, 0, 0), 0);
	assert_int_equal(host_sees(f, 0), F_UNLCK);
	/* Canceled before it was started. */
	waiting = (Waiting){ .f = f, .result = 1, .deliver = true };
	wait = fsg_lock_wait_new(&f->view, &r, answer, &waiting);
	fsg_lock_wait_cancel(wait);
	fsg_lock_wait_start(wait, -1);
	assert_int_equal(result_of(&waiting), -EINTR);
	assert_int_equal(host_sees(f, 0), F_UNLCK);
}

static void what_a_wait_got_in_vain_is_given_back(void **state)
{
	Fixture *f = *state;
	const FsgLockRequest r = request(f, 1, 2, F_WRLCK, 0, 99);
	Waiting waiting = { .f = f, .result = 1, .deliver = false };

	assert_int_equal(set(f, 1, 2, F_RDLCK, 0, 9), 0);
	assert_int_equal(set(f, 0, 1, F_RDLCK, 0, 0), 0);
	fsg_lock_wait_start(fsg_lock_wait_new(&f->view, &r, answer, &waiting), -1);
	assert_int_equal(set(f, 0, 1, F_UNLCK, 0, 0), 0);
	assert_int_equal(result_of(&waiting), 0);
	assert_true(fsg_locks_stop(f->view.locks, 5000));
	assert_int_equal(host_sees(f, 0), F_RDLCK);
	assert_int_equal(host_sees(f, 50), F_UNLCK);
}

static void a_release_that_is_on_its_way_is_waited_for(void **state)
{
	Fixture *f = *state;
	FsgLockRequest held = request(f, 0, 0, F_WRLCK, 0, FSG_LOCK_END), r;
	FsgLockDetails details;
	Waiting waiting;

	held.flock = true;
	r = held;
	r.file = &f->files[1];
	assert_int_equal(fsg_locks_set(&f->view, &held, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fsg_locks_set(&f->view, &r, &details), -EAGAIN);
		assert_int_equal(details.is_closing, i == 1); /* once */
		if (i == 0)
			flush(f, 0, 77);
	}
	(void)start(f, &waiting, &r, 20);
	assert_int_equal(result_of(&waiting), -EAGAIN);
	(void)start(f, &waiting, &r, 10000);
	fsg_locks_release(&f->view, &f->files[0]);
	assert_int_equal(result_of(&waiting), 0);
}

static void circles_are_refused_however_they_come_about(void **state)
{
	Fixture *f = *state;
	FsgLockRequest r;
	Waiting first, second, third;

	/* 1 waits for 2, 2 for 3: then 3 may not wait for 1. */
	for (uint64_t owner = 1; owner <= 3; owner++)
		assert_int_equal(set(f, (int)owner, owner, F_WRLCK, owner, owner), 0);
	r = request(f, 1, 1, F_RDLCK, 2, 2);
	(void)start(f, &first, &r, -1);
	r = request(f, 2, 2, F_RDLCK, 3, 3);
	(void)start(f, &second, &r, -1);
	r = request(f, 3, 3, F_RDLCK, 1, 1);
	(void)start(f, &third, &r, -1);
	assert_int_equal(result_of(&third), -EDEADLK);
	assert_true(still_waits(&first));
	/* 4, who waits for nobody, is no circle. */
	r = request(f, 0, 4, F_RDLCK, 1, 1);
	(void)start(f, &third, &r, -1);
	assert_true(still_waits(&third));
	/* 1 gets in the way of 2, who waits already, by what it locks then. */
	flush(f, 3, 3);
	assert_int_equal(result_of(&second), 0);
	r = request(f, 2, 2, F_WRLCK, 1, 1);
	(void)start(f, &second, &r, -1);
	assert_int_equal(result_of(&second), -EDEADLK);
	flush(f, 2, 2);
	assert_int_equal(result_of(&first), 0);
	flush(f, 1, 1);
	assert_int_equal(result_of(&third), 0);
}

static void waits_have_a_bound(void **state)
{
	Fixture *f = *state;
	g_autofree Waiting *waiting = g_new0(Waiting, LIMIT_LOCK_WAITS + 1);

	assert_int_equal(set(f, 0, 1, F_WRLCK, 0, 0), 0);
	for (size_t i = 0; i <= LIMIT_LOCK_WAITS; i++) {
		const FsgLockRequest r = request(f, 1, 2 + i, F_WRLCK, 0, 0);

		(void)start(f, &waiting[i], &r, -1);
	}
	assert_int_equal(result_of(&waiting[LIMIT_LOCK_WAITS]), -ENOLCK);
	assert_true(still_waits(&waiting[LIMIT_LOCK_WAITS - 1]));
	/* The end of the view answers all. */
	assert_true(fsg_locks_stop(f->view.locks, 5000));
	for (size_t i = 0; i < LIMIT_LOCK_WAITS; i++)
		assert_int_equal(result_of(&waiting[i]), -EINTR);
	assert_int_equal(host_sees(f, 0), F_WRLCK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(owners_exclude_each_other_and_the_host),
		TEST(descriptions_are_the_handles_own_as_long_as_there_is_one),
		TEST(a_close_ends_the_owners_locks_and_a_release_the_handles),
		TEST(what_was_not_delivered_is_as_before),
		TEST(ranges_have_a_bound_and_splitting_counts),
		TEST(a_wait_ends_when_view_and_host_have_let_go),
		TEST(a_canceled_wait_leaves_nothing),
		TEST(what_a_wait_got_in_vain_is_given_back),
		TEST(a_release_that_is_on_its_way_is_waited_for),
		TEST(circles_are_refused_however_they_come_about),
		TEST(waits_have_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
