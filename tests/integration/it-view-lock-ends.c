/* What ends a lock, of two processes in the view or beside it: as on the local file system, which every case runs on
 * too. */
#include "lib/preflight.h"
#include "lock-pair.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void closing_any_fd_of_the_file_ends_the_record_locks_of_a_process_only(void **state)
{
	(void)state;
	FOR_SIDES(sides) FOR_KINDS(kind)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);
		int other = lock_peer_open(&pair.peer[0], pair.path[0], O_RDWR);

		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_peer_close(&pair.peer[0], other), 0);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 0),
				 kind == LOCK_PEER_POSIX ? 0 : -EAGAIN);
		lock_pair_free(&pair);
	}
}

/* One that was opened for reading closes without a word (ops-file.c): what was locked through another stays, until that
 * is closed or the process ends. What was locked through the fd itself ends with it. */
static void closing_an_fd_for_reading_ends_its_own_locks_only(void **state)
{
	LockPair pair = lock_pair_new(3, O_RDWR);
	LockPeer *peer = &pair.peer[0];
	int other = lock_peer_open(peer, pair.path[0], O_RDONLY);

	(void)state;
	assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, F_WRLCK, 0, 0), 0);
	assert_int_equal(lock_peer_close(peer, other), 0);
	assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_POSIX, F_WRLCK, 0, 0), -EAGAIN);
	assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, F_UNLCK, 0, 0), 0);

	other = lock_peer_open(peer, pair.path[0], O_RDONLY);
	assert_int_equal(lock_peer_try(peer, LOCK_PEER_POSIX, other, F_RDLCK, 0, 0), 0);
	assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_POSIX, F_WRLCK, 0, 0), -EAGAIN);
	assert_int_equal(lock_peer_close(peer, other), 0);
	assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_POSIX, F_WRLCK, 0, 0), 0);
	lock_pair_free(&pair);
}

/* The owner locks again before the RELEASE of what it closed may have come: that lock is never lost. */
static void a_lock_taken_right_after_a_silent_close_stays(void **state)
{
	LockPair pair = lock_pair_new(3, O_RDWR);
	LockPeer *peer = &pair.peer[0];

	(void)state;
	for (int i = 0; i < 300; i++) {
		int other = lock_peer_open(peer, pair.path[0], O_RDONLY);

		assert_int_equal(lock_peer_try(peer, LOCK_PEER_POSIX, other, F_RDLCK, 0, 0), 0);
		assert_int_equal(lock_peer_close(peer, other), 0);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_POSIX, F_WRLCK, 0, 0), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, F_UNLCK, 0, 0), 0);
	}
	lock_pair_free(&pair);
}

static void closing_the_last_fd_ends_every_lock(void **state)
{
	(void)state;
	FOR_SIDES(sides) FOR_KINDS(kind)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);
		int dup = lock_peer_dup(&pair.peer[0], pair.fd[0]);

		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 0), 0);
		if (kind != LOCK_PEER_POSIX) {
			assert_int_equal(lock_peer_close(&pair.peer[0], dup), 0);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 0), -EAGAIN);
		}
		assert_int_equal(lock_peer_close(&pair.peer[0], pair.fd[0]), 0);
		assert_int_equal(lock_pair_try_soon(&pair, 1, kind, F_WRLCK), 0);
		lock_pair_free(&pair);
	}
}

/* A close does not wait for the RELEASE it causes. Who tries then must not see the lock any more. */
static void a_lock_is_gone_right_after_the_close(void **state)
{
	(void)state;
	FOR_KINDS(kind)
	{
		LockPair pair = lock_pair_new(3, O_RDWR);

		for (int i = 0; i < 300; i++) {
			int fd = lock_peer_open(&pair.peer[0], pair.path[0], O_RDWR);

			assert_int_equal(lock_peer_try(&pair.peer[0], kind, fd, F_WRLCK, 0, 0), 0);
			assert_int_equal(lock_peer_close(&pair.peer[0], fd), 0);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 0), 0);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_UNLCK, 0, 0), 0);
		}
		lock_pair_free(&pair);
	}
}

static void a_child_inherits_the_locks_of_descriptions(void **state)
{
	(void)state;
	FOR_SIDES(sides) FOR_KINDS(kind)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);
		LockPeer child;

		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 0), 0);
		child = lock_peer_fork(&pair.peer[0]);
		if (kind == LOCK_PEER_POSIX) {
			/* Another process: it is excluded, and its end ends nothing of the parent's. */
			assert_int_equal(lock_peer_try(&child, kind, pair.fd[0], F_RDLCK, 0, 1),
					 -EAGAIN);
			assert_int_equal(lock_pair_try(&pair, 0, kind, F_UNLCK, 0, 2), 0);
			assert_int_equal(lock_peer_try(&child, kind, pair.fd[0], F_WRLCK, 0, 1), 0);
			assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 0), -EAGAIN);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_RDLCK, 0, 1), -EAGAIN);
			lock_peer_end(&child);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 1), 0);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 2, 1), -EAGAIN);
		} else {
			lock_peer_end(&pair.peer[0]);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 0), -EAGAIN);
			assert_int_equal(lock_peer_try(&child, kind, pair.fd[0], F_RDLCK, 0, 0), 0);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 0), -EAGAIN);
			lock_peer_end(&child);
			assert_int_equal(lock_pair_try_soon(&pair, 1, kind, F_WRLCK), 0);
		}
		lock_pair_free(&pair);
	}
}

static void a_process_that_ends_or_is_killed_leaves_no_lock(void **state)
{
	(void)state;
	FOR_SIDES(sides) FOR_KINDS(kind) for (int how = 0; how < 2; how++)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);

		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 0), -EAGAIN);
		if (how == 0)
			lock_peer_end(&pair.peer[0]);
		else
			lock_peer_kill(&pair.peer[0]);
		assert_int_equal(lock_pair_try_soon(&pair, 1, kind, F_WRLCK), 0);
		lock_pair_free(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			closing_any_fd_of_the_file_ends_the_record_locks_of_a_process_only),
		cmocka_unit_test(closing_an_fd_for_reading_ends_its_own_locks_only),
		cmocka_unit_test(a_lock_taken_right_after_a_silent_close_stays),
		cmocka_unit_test(closing_the_last_fd_ends_every_lock),
		cmocka_unit_test(a_lock_is_gone_right_after_the_close),
		cmocka_unit_test(a_child_inherits_the_locks_of_descriptions),
		cmocka_unit_test(a_process_that_ends_or_is_killed_leaves_no_lock),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, lock_pair_set_up, lock_pair_tear_down);
}
