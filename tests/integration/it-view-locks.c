/* Locks without waiting: two processes exclude each other just the same whether both are in the view, or one is and
 * the other is beside it. Every case runs with both beside the view too: what the local file system does
 * is what is expected. What ends a lock is in it-view-lock-ends.c. */
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

static void writers_exclude_all_and_readers_writers(void **state)
{
	static const short types[] = { F_RDLCK, F_WRLCK };

	(void)state;
	FOR_SIDES(sides) FOR_KINDS(kind)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);

		for (int i = 0; i < 4; i++) {
			short held = types[i & 1], asked = types[i >> 1];

			assert_int_equal(lock_pair_try(&pair, 0, kind, held, 0, 0), 0);
			assert_int_equal(lock_pair_try(&pair, 1, kind, asked, 0, 0),
					 held == F_RDLCK && asked == F_RDLCK ? 0 : -EAGAIN);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_UNLCK, 0, 0), 0);
			assert_int_equal(lock_pair_try(&pair, 0, kind, F_UNLCK, 0, 0), 0);
			assert_int_equal(lock_pair_try(&pair, 1, kind, asked, 0, 0), 0);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_UNLCK, 0, 0), 0);
		}
		lock_pair_free(&pair);
	}
}

static void record_locks_of_both_kinds_exclude_each_other_and_no_flock(void **state)
{
	(void)state;
	FOR_SIDES(sides)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);

		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, F_WRLCK, 0, 5), 0);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_OFD, F_RDLCK, 4, 1), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_OFD, F_WRLCK, 4, 1), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_FLOCK, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_FLOCK, F_RDLCK, 0, 0), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, F_UNLCK, 4, 1), 0);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_OFD, F_RDLCK, 4, 1), 0);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, F_WRLCK, 4, 1), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, F_RDLCK, 4, 1), 0);
		lock_pair_free(&pair);
	}
}

/* Which of the first 16 bytes the other cannot write-lock ('w') or not even read-lock ('x'). */
static void assert_locked(LockPair *pair, LockPeerKind kind, const char *expected)
{
	char seen[17] = "................";

	for (int i = 0; i < 16; i++) {
		if (lock_pair_try(pair, 1, kind, F_WRLCK, i, 1) == 0)
			assert_int_equal(lock_pair_try(pair, 1, kind, F_UNLCK, i, 1), 0);
		else if (lock_pair_try(pair, 1, kind, F_RDLCK, i, 1) == 0) {
			assert_int_equal(lock_pair_try(pair, 1, kind, F_UNLCK, i, 1), 0);
			seen[i] = 'w';
		} else
			seen[i] = 'x';
	}
	assert_string_equal(seen, expected);
}

static void ranges_are_split_and_merged(void **state)
{
	(void)state;
	FOR_SIDES(sides) for (LockPeerKind kind = LOCK_PEER_POSIX; kind <= LOCK_PEER_OFD; kind++)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);
		LockPeerFound found;

		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 2, 10), 0);
		assert_locked(&pair, kind, "..xxxxxxxxxx....");
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_UNLCK, 5, 2), 0);
		assert_locked(&pair, kind, "..xxx..xxxxx....");
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_RDLCK, 4, 5), 0);
		assert_locked(&pair, kind, "..xxwwwwwxxx....");
		/* Locking and unlocking the middle of one's own is no conflict with oneself. */
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 6, 1), 0);
		assert_locked(&pair, kind, "..xxwwxwwxxx....");
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 4, 5), 0);
		assert_int_equal(
			lock_peer_get(&pair.peer[1], kind, pair.fd[1], F_RDLCK, 5, 1, &found), 0);
		assert_int_equal(found.type, F_WRLCK);
		assert_int_equal(found.start, 2); /* one again */
		assert_int_equal(found.length, 10);
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_UNLCK, 3, 0), 0); /* to the end */
		assert_locked(&pair, kind, "..x.............");
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_RDLCK, 14, 0), 0);
		assert_locked(&pair, kind, "..x...........ww");
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 1ll << 40, 1), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, INT64_MAX, 1), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_UNLCK, INT64_MAX, 1), 0);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, INT64_MAX, 1), 0);
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_UNLCK, 0, 0), 0);
		assert_locked(&pair, kind, "................");
		lock_pair_free(&pair);
	}
}

static void read_locks_become_write_locks_when_nobody_else_reads(void **state)
{
	(void)state;
	FOR_SIDES(sides) for (LockPeerKind kind = LOCK_PEER_POSIX; kind <= LOCK_PEER_OFD; kind++)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);

		assert_int_equal(lock_pair_try(&pair, 0, kind, F_RDLCK, 0, 4), 0);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_RDLCK, 2, 4), 0);
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 4), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 1),
				 -EAGAIN); /* it has kept it */
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_UNLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 4), 0);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_RDLCK, 0, 1), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_RDLCK, 0, 4), 0);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_RDLCK, 0, 1), 0);
		lock_pair_free(&pair);
	}
}

/* The old lock is given up before the new one is asked for. */
static void a_flock_that_cannot_be_changed_is_lost(void **state)
{
	(void)state;
	FOR_SIDES(sides)
	{
		LockPair pair = lock_pair_new(sides, O_RDONLY);

		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_FLOCK, F_RDLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_FLOCK, F_RDLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_FLOCK, F_WRLCK, 0, 0), -EAGAIN);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_FLOCK, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_FLOCK, F_RDLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_FLOCK, F_RDLCK, 0, 0), 0);
		lock_pair_free(&pair);
	}
}

/* The one difference: an owner in the view is a description for the host, and a description beside the view is
 * nobody for the kernel of the view (0 instead of -1). */
static pid_t expected_pid(const LockPair *pair, LockPeerKind held, LockPeerKind asked)
{
	if (asked == LOCK_PEER_OFD && pair->in_view[1])
		return -1; /* as the kernel answers for whatever a file system tells it */
	if (pair->in_view[0] && !pair->in_view[1])
		return -1;
	if (pair->in_view[0])
		return pair->peer[0].pid;
	if (held == LOCK_PEER_OFD)
		return pair->in_view[1] ? 0 : -1;
	return pair->peer[0].pid;
}

static void who_is_in_the_way_is_told(void **state)
{
	(void)state;
	FOR_SIDES(sides)
	for (LockPeerKind held = LOCK_PEER_POSIX; held <= LOCK_PEER_OFD; held++)
		for (LockPeerKind asked = LOCK_PEER_POSIX; asked <= LOCK_PEER_OFD; asked++) {
			LockPair pair = lock_pair_new(sides, O_RDWR);
			LockPeer *peer = &pair.peer[1];
			LockPeerFound found;

			assert_int_equal(lock_pair_try(&pair, 0, held, F_RDLCK, 3, 4), 0);
			assert_int_equal(
				lock_peer_get(peer, asked, pair.fd[1], F_RDLCK, 0, 0, &found), 0);
			assert_int_equal(found.type, F_UNLCK);
			assert_int_equal(
				lock_peer_get(peer, asked, pair.fd[1], F_WRLCK, 0, 3, &found), 0);
			assert_int_equal(found.type, F_UNLCK);
			assert_int_equal(
				lock_peer_get(peer, asked, pair.fd[1], F_WRLCK, 0, 0, &found), 0);
			assert_int_equal(found.type, F_RDLCK);
			assert_int_equal(found.start, 3);
			assert_int_equal(found.length, 4);
			assert_int_equal(found.pid, expected_pid(&pair, held, asked));
			/* Its own locks are in nobody's way. */
			assert_int_equal(lock_pair_try(&pair, 1, asked, F_RDLCK, 3, 4), 0);
			assert_int_equal(lock_pair_try(&pair, 0, held, F_UNLCK, 0, 0), 0);
			assert_int_equal(
				lock_peer_get(peer, asked, pair.fd[1], F_WRLCK, 0, 0, &found), 0);
			assert_int_equal(found.type, F_UNLCK);
			lock_pair_free(&pair);
		}
}

/* One process that reads through one handle and writes through another is one owner. */
static void an_owner_may_use_several_handles(void **state)
{
	static const int flags[] = { O_RDONLY, O_WRONLY, O_RDWR };

	(void)state;
	FOR_SIDES(sides) for (int i = 0; i < 9; i++)
	{
		LockPair pair = lock_pair_new(sides, flags[i % 3]);
		LockPeer *peer = &pair.peer[0];
		int other = lock_peer_open(peer, pair.path[0], flags[i / 3]);
		int looker = lock_peer_open(&pair.peer[1], pair.path[1], O_RDWR);
		short first = flags[i % 3] == O_WRONLY ? F_WRLCK : F_RDLCK;
		short second = flags[i / 3] == O_RDONLY ? F_RDLCK : F_WRLCK;

		assert_int_equal(lock_pair_try(&pair, 0, LOCK_PEER_POSIX, first, 0, 4), 0);
		assert_int_equal(lock_peer_try(peer, LOCK_PEER_POSIX, other, second, 2, 4), 0);
		lock_peer_close(&pair.peer[1], pair.fd[1]);
		pair.fd[1] = looker;
		assert_locked(&pair, LOCK_PEER_POSIX,
			      first == F_RDLCK && second == F_RDLCK   ? "wwwwww.........."
			      : first == F_RDLCK && second == F_WRLCK ? "wwxxxx.........."
			      : second == F_RDLCK		      ? "xxwwww.........."
								      : "xxxxxx..........");
		assert_int_equal(lock_peer_try(peer, LOCK_PEER_POSIX, other, F_UNLCK, 1, 2), 0);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_POSIX, F_WRLCK, 1, 2), 0);
		assert_int_equal(lock_peer_close(peer, other), 0);
		/* What closes without a word is seen by the host a moment later. */
		assert_int_equal(lock_pair_try_soon(&pair, 1, LOCK_PEER_POSIX, F_WRLCK), 0);
		assert_int_equal(lock_pair_try(&pair, 1, LOCK_PEER_POSIX, F_UNLCK, 0, 0), 0);
		assert_locked(&pair, LOCK_PEER_POSIX, "................");
		lock_pair_free(&pair);
	}
}

static void locks_need_the_access_that_the_handle_has(void **state)
{
	(void)state;
	FOR_SIDES(sides)
	{
		LockPair reads = lock_pair_new(sides, O_RDONLY),
			 writes = lock_pair_new(sides, O_WRONLY);
		int nothing = lock_peer_open(&reads.peer[0], reads.path[0], O_PATH);

		assert_int_equal(lock_pair_try(&reads, 0, LOCK_PEER_POSIX, F_WRLCK, 0, 1), -EBADF);
		assert_int_equal(lock_pair_try(&reads, 0, LOCK_PEER_POSIX, F_RDLCK, 0, 1), 0);
		assert_int_equal(lock_pair_try(&reads, 0, LOCK_PEER_FLOCK, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_pair_try(&reads, 1, LOCK_PEER_FLOCK, F_RDLCK, 0, 0), -EAGAIN);
		assert_int_equal(lock_pair_try(&writes, 0, LOCK_PEER_POSIX, F_RDLCK, 0, 1), -EBADF);
		assert_int_equal(lock_pair_try(&writes, 0, LOCK_PEER_POSIX, F_WRLCK, 0, 1), 0);
		assert_int_equal(lock_pair_try(&writes, 1, LOCK_PEER_POSIX, F_WRLCK, 0, 1),
				 -EAGAIN);
		FOR_KINDS(kind)
		assert_int_equal(lock_peer_try(&reads.peer[0], kind, nothing, F_RDLCK, 0, 1),
				 -EBADF);
		lock_pair_free(&reads);
		lock_pair_free(&writes);
	}
}

static void an_unlinked_file_is_locked_as_any_other(void **state)
{
	(void)state;
	FOR_SIDES(sides) FOR_KINDS(kind)
	{
		LockPair pair = lock_pair_new(sides, O_RDWR);
		LockPeer child;

		assert_int_equal(unlink(pair.path[0]), 0);
		child = lock_peer_fork(&pair.peer[0]);
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 1), 0);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 1), -EAGAIN);
		if (kind == LOCK_PEER_POSIX)
			assert_int_equal(lock_peer_try(&child, kind, pair.fd[0], F_WRLCK, 1, 1), 0);
		lock_peer_end(&child);
		lock_pair_free(&pair);
	}
}

/* Two names of one file, one of them through another mount. */
static void a_file_is_one_through_both_its_mounts(void **state)
{
	g_autofree char *again = g_build_filename(lock_view->mountpoint, "again", NULL);

	(void)state;
	FOR_KINDS(kind)
	{
		LockPair pair = lock_pair_new(3, O_RDWR);
		g_autofree char *name = g_path_get_basename(pair.path[0]);
		g_autofree char *path = g_build_filename(again, name, NULL);
		int reader = lock_peer_open(&pair.peer[0], path, O_RDONLY);
		int other = lock_peer_open(&pair.peer[1], path, O_RDONLY);

		assert_true(reader >= 0 && other >= 0);
		assert_int_equal(lock_peer_open(&pair.peer[0], path, O_RDWR), -EROFS);
		assert_int_equal(lock_pair_try(&pair, 0, kind, F_WRLCK, 0, 1), 0);
		assert_int_equal(lock_peer_try(&pair.peer[1], kind, other, F_RDLCK, 0, 1), -EAGAIN);
		assert_int_equal(lock_peer_try(&pair.peer[0], kind, reader, F_RDLCK, 0, 1),
				 kind == LOCK_PEER_POSIX ? 0 : -EAGAIN);
		assert_int_equal(lock_peer_close(&pair.peer[0], reader), 0);
		assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 1),
				 kind == LOCK_PEER_POSIX ? 0 : -EAGAIN);
		lock_pair_free(&pair);
	}
}

static void a_read_only_mount_is_locked_and_not_changed(void **state)
{
	g_autofree char *host = view_fixture_path(lock_view, "ro");
	g_autofree char *host_file = view_fixture_path(lock_view, "ro/f");
	g_autofree char *file = g_build_filename(lock_view->mountpoint, "ro", "f", NULL);
	g_autofree char *before = tree_snapshot(host);
	g_autofree char *after = NULL;
	LockPeer in_view = lock_peer_new(), beside = lock_peer_new();
	int fd = lock_peer_open(&in_view, file, O_RDONLY);
	int host_fd = lock_peer_open(&beside, host_file, O_RDWR);

	(void)state;
	assert_int_equal(lock_peer_open(&in_view, file, O_RDWR), -EROFS);
	for (LockPeerKind kind = LOCK_PEER_POSIX; kind <= LOCK_PEER_OFD; kind++) {
		assert_int_equal(lock_peer_try(&in_view, kind, fd, F_WRLCK, 0, 1), -EBADF);
		assert_int_equal(lock_peer_try(&beside, kind, host_fd, F_WRLCK, 0, 1), 0);
		assert_int_equal(lock_peer_try(&in_view, kind, fd, F_RDLCK, 0, 1), -EAGAIN);
		assert_int_equal(lock_peer_try(&beside, kind, host_fd, F_UNLCK, 0, 1), 0);
		assert_int_equal(lock_peer_try(&in_view, kind, fd, F_RDLCK, 0, 1), 0);
		assert_int_equal(lock_peer_try(&beside, kind, host_fd, F_WRLCK, 0, 1), -EAGAIN);
		assert_int_equal(lock_peer_try(&in_view, kind, fd, F_UNLCK, 0, 1), 0);
	}
	assert_int_equal(lock_peer_try(&in_view, LOCK_PEER_FLOCK, fd, F_WRLCK, 0, 0), 0);
	assert_int_equal(lock_peer_try(&beside, LOCK_PEER_FLOCK, host_fd, F_RDLCK, 0, 0), -EAGAIN);
	assert_int_equal(lock_peer_try(&in_view, LOCK_PEER_FLOCK, fd, F_UNLCK, 0, 0), 0);
	assert_int_equal(lock_peer_try(&beside, LOCK_PEER_FLOCK, host_fd, F_RDLCK, 0, 0), 0);
	lock_peer_end(&in_view);
	lock_peer_end(&beside);
	after = tree_snapshot(host);
	assert_string_equal(before, after);
}

/* The kernel keeps a directory's flocks itself: they exclude within the lock_view, and no handle of a directory is ever
 * taken for one of a file. */
static void directories_and_fifos_are_locked_within_the_view(void **state)
{
	g_autofree char *fifo = g_build_filename(lock_dirs[1], "fifo", NULL);
	const char *paths[] = { lock_dirs[1], fifo };
	const int flags[] = { O_RDONLY | O_DIRECTORY, O_RDWR };

	(void)state;
	assert_int_equal(mkfifo(fifo, 0644), 0);
	for (int i = 0; i < 2; i++) {
		LockPeer a = lock_peer_new(), b = lock_peer_new();
		int fa = lock_peer_open(&a, paths[i], flags[i]);
		int fb = lock_peer_open(&b, paths[i], flags[i]);

		assert_true(fa >= 0 && fb >= 0);
		assert_int_equal(lock_peer_try(&a, LOCK_PEER_FLOCK, fa, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_peer_try(&b, LOCK_PEER_FLOCK, fb, F_WRLCK, 0, 0), -EAGAIN);
		assert_int_equal(lock_peer_try(&a, LOCK_PEER_FLOCK, fa, F_UNLCK, 0, 0), 0);
		assert_int_equal(lock_peer_try(&b, LOCK_PEER_FLOCK, fb, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_peer_try(&a, LOCK_PEER_POSIX, fa, F_RDLCK, 0, 1), 0);
		lock_peer_end(&a);
		lock_peer_end(&b);
	}
}

/* A program that has the lock reads what the one before it wrote, although the view believes for a second what it
 * has seen of a file. */
static void what_was_written_under_a_lock_is_read_under_the_next(void **state)
{
	(void)state;
	FOR_KINDS(kind)
	{
		LockPair pair = lock_pair_new(
			1, O_RDWR); /* the first in the lock_view, the second beside it */
		int fd = open(pair.path[0], O_RDONLY | O_CLOEXEC);
		int host_fd = open(pair.path[1], O_RDWR | O_CLOEXEC);
		g_autoptr(GString) text = g_string_new(NULL);

		for (int i = 0; i < 50; i++) {
			char seen[128] = "";

			g_string_append_c(text, (char)('A' + i % 26));
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_WRLCK, 0, 0), 0);
			assert_int_equal(ftruncate(host_fd, 0), 0);
			assert_int_equal(pwrite(host_fd, text->str, text->len, 0), text->len);
			assert_int_equal(lock_pair_try(&pair, 1, kind, F_UNLCK, 0, 0), 0);
			assert_int_equal(lock_pair_try(&pair, 0, kind, F_RDLCK, 0, 0), 0);
			assert_int_equal(pread(fd, seen, sizeof seen - 1, 0), text->len);
			assert_string_equal(seen, text->str);
			assert_int_equal(lock_pair_try(&pair, 0, kind, F_UNLCK, 0, 0), 0);
		}
		close(fd);
		close(host_fd);
		lock_pair_free(&pair);
	}
}

/* There is no host file behind it. */
static void a_stand_in_cannot_be_locked(void **state)
{
	g_autofree char *path = g_build_filename(lock_dirs[1], "covered", NULL);
	LockPeer peer = lock_peer_new();
	int fd = lock_peer_open(&peer, path, O_RDONLY);

	(void)state;
	assert_true(fd >= 0);
	FOR_KINDS(kind)
	{
		assert_int_equal(lock_peer_try(&peer, kind, fd, F_RDLCK, 0, 0), -ENOLCK);
		assert_int_equal(lock_peer_try(&peer, kind, fd, F_UNLCK, 0, 0), 0);
	}
	lock_peer_end(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writers_exclude_all_and_readers_writers),
		cmocka_unit_test(record_locks_of_both_kinds_exclude_each_other_and_no_flock),
		cmocka_unit_test(ranges_are_split_and_merged),
		cmocka_unit_test(read_locks_become_write_locks_when_nobody_else_reads),
		cmocka_unit_test(a_flock_that_cannot_be_changed_is_lost),
		cmocka_unit_test(who_is_in_the_way_is_told),
		cmocka_unit_test(an_owner_may_use_several_handles),
		cmocka_unit_test(locks_need_the_access_that_the_handle_has),
		cmocka_unit_test(an_unlinked_file_is_locked_as_any_other),
		cmocka_unit_test(a_file_is_one_through_both_its_mounts),
		cmocka_unit_test(a_read_only_mount_is_locked_and_not_changed),
		cmocka_unit_test(directories_and_fifos_are_locked_within_the_view),
		cmocka_unit_test(what_was_written_under_a_lock_is_read_under_the_next),
		cmocka_unit_test(a_stand_in_cannot_be_locked),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, lock_pair_set_up, lock_pair_tear_down);
}
