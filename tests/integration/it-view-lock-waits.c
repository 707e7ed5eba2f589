/* Waiting for locks: granted when the other lets go, on whichever side of the view it is; left by a signal; and in
 * nobody else's way. Cases that the local file system answers too run with both beside the view as well. */
#include "lib/lock-peer.h"
#include "lib/preflight.h"
#include "lib/view-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Long enough that a lock which is granted by mistake has been granted. */
#define SHORT_MS 60

typedef struct {
	ViewFixture *view;
	char *path[2]; /* one file: beside the view, in it */
} Fixture;

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);
	g_autofree char *ws = NULL;

	f->view = view_fixture_new();
	view_fixture_mkdir(f->view, "ws");
	view_fixture_write(f->view, "ws/f", "0");
	ws = view_fixture_path(f->view, "ws");
	f->path[0] = view_fixture_path(f->view, "ws/f");
	f->path[1] = g_build_filename(f->view->mountpoint, "workspace", "f", NULL);
	view_fixture_mount(f->view, (const char *const[]){ "--workspace", ws, NULL });
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	view_fixture_free(f->view);
	g_free(f->path[0]);
	g_free(f->path[1]);
	g_free(f);
	return 0;
}

typedef struct {
	LockPeer peer[2];
	int fd[2];
} Pair;

static Pair pair_new(const Fixture *f, int sides)
{
	Pair pair;

	for (int i = 0; i < 2; i++) {
		pair.peer[i] = lock_peer_new();
		pair.fd[i] = lock_peer_open(&pair.peer[i], f->path[sides >> i & 1], O_RDWR);
		assert_true(pair.fd[i] >= 0);
	}
	return pair;
}

static void pair_free(Pair *pair)
{
	for (int i = 0; i < 2; i++)
		if (pair->peer[i].pid)
			lock_peer_end(&pair->peer[i]);
}

static int try(Pair *pair, int who, LockPeerKind kind, short type, off_t start, off_t length)
{
	return lock_peer_try(&pair->peer[who], kind, pair->fd[who], type, start, length);
}

#define FOR_SIDES(sides) for (int sides = 0; sides < 4; sides++)
#define FOR_KINDS(kind)	 for (LockPeerKind kind = 0; kind < _LOCK_PEER_N_KINDS; kind++)

static void waiting_ends_when_the_other_lets_go(void **state)
{
	enum { UNLOCKS, CLOSES, ENDS, IS_KILLED, _N_WAYS };

	FOR_SIDES(sides) FOR_KINDS(kind) for (int way = 0; way < _N_WAYS; way++)
	{
		Pair pair = pair_new(*state, sides);

		assert_int_equal(try(&pair, 0, kind, F_WRLCK, 0, 0), 0);
		lock_peer_send(&pair.peer[1], kind, pair.fd[1], F_RDLCK, 0, 0);
		assert_false(lock_peer_answered(&pair.peer[1], SHORT_MS));
		if (way == UNLOCKS)
			assert_int_equal(try(&pair, 0, kind, F_UNLCK, 0, 0), 0);
		else if (way == CLOSES)
			assert_int_equal(lock_peer_close(&pair.peer[0], pair.fd[0]), 0);
		else if (way == ENDS)
			lock_peer_end(&pair.peer[0]);
		else
			lock_peer_kill(&pair.peer[0]);
		assert_int_equal(lock_peer_receive(&pair.peer[1]), 0);
		if (way == UNLOCKS)
			assert_int_equal(try(&pair, 0, kind, F_WRLCK, 0, 0), -EAGAIN);
		pair_free(&pair);
	}
}

static void a_downgrade_lets_readers_in(void **state)
{
	FOR_SIDES(sides) FOR_KINDS(kind)
	{
		Pair pair = pair_new(*state, sides);

		assert_int_equal(try(&pair, 0, kind, F_WRLCK, 0, 0), 0);
		lock_peer_send(&pair.peer[1], kind, pair.fd[1], F_RDLCK, 0, 0);
		assert_false(lock_peer_answered(&pair.peer[1], SHORT_MS));
		assert_int_equal(try(&pair, 0, kind, F_RDLCK, 0, 0), 0);
		assert_int_equal(lock_peer_receive(&pair.peer[1]), 0);
		pair_free(&pair);
	}
}

static void a_signal_ends_waiting_and_leaves_nothing(void **state)
{
	const Fixture *f = *state;

	FOR_SIDES(sides) FOR_KINDS(kind)
	{
		Pair pair = pair_new(f, sides);
		LockPeer third = lock_peer_new();
		int fd = lock_peer_open(&third, f->path[sides & 1], O_RDWR);

		assert_int_equal(try(&pair, 0, kind, F_WRLCK, 0, 0), 0);
		lock_peer_send(&pair.peer[1], kind, pair.fd[1], F_WRLCK, 0, 0);
		assert_false(lock_peer_answered(&pair.peer[1], SHORT_MS));
		lock_peer_interrupt(&pair.peer[1]);
		assert_int_equal(lock_peer_receive(&pair.peer[1]), -EINTR);
		assert_int_equal(try(&pair, 0, kind, F_UNLCK, 0, 0), 0);
		assert_int_equal(lock_peer_try(&third, kind, fd, F_WRLCK, 0, 0), 0);
		lock_peer_end(&third);
		pair_free(&pair);
	}
}

static void who_waits_can_be_killed_and_leaves_nothing(void **state)
{
	const Fixture *f = *state;

	FOR_SIDES(sides) FOR_KINDS(kind)
	{
		Pair pair = pair_new(f, sides);
		LockPeer third = lock_peer_new();
		int fd = lock_peer_open(&third, f->path[sides & 1], O_RDWR);

		assert_int_equal(try(&pair, 0, kind, F_WRLCK, 0, 0), 0);
		lock_peer_send(&pair.peer[1], kind, pair.fd[1], F_WRLCK, 0, 0);
		assert_false(lock_peer_answered(&pair.peer[1], SHORT_MS));
		lock_peer_kill(&pair.peer[1]); /* while the other still holds it */
		assert_int_equal(try(&pair, 0, kind, F_UNLCK, 0, 0), 0);
		assert_int_equal(lock_peer_try(&third, kind, fd, F_WRLCK, 0, 0), 0);
		lock_peer_end(&third);
		pair_free(&pair);
	}
}

/* An interrupted upgrade keeps what was held before. */
static void an_interrupted_upgrade_keeps_the_read_lock(void **state)
{
	FOR_SIDES(sides) for (LockPeerKind kind = LOCK_PEER_POSIX; kind <= LOCK_PEER_OFD; kind++)
	{
		Pair pair = pair_new(*state, sides);

		assert_int_equal(try(&pair, 0, kind, F_RDLCK, 0, 0), 0);
		assert_int_equal(try(&pair, 1, kind, F_RDLCK, 0, 4), 0);
		lock_peer_send(&pair.peer[1], kind, pair.fd[1], F_WRLCK, 0, 8);
		assert_false(lock_peer_answered(&pair.peer[1], SHORT_MS));
		lock_peer_interrupt(&pair.peer[1]);
		assert_int_equal(lock_peer_receive(&pair.peer[1]), -EINTR);
		assert_int_equal(try(&pair, 0, kind, F_WRLCK, 0, 1), -EAGAIN);
		assert_int_equal(try(&pair, 0, kind, F_WRLCK, 4, 1), 0);
		pair_free(&pair);
	}
}

/* Each of n processes holds its byte and waits for the next one's; who closes the circle is told. */
static void a_circle_of_processes_is_no_endless_wait(void **state)
{
	const Fixture *f = *state;

	for (int side = 0; side < 2; side++)
		for (int n = 2; n <= 5; n++) {
			LockPeer peers[5];
			int fd[5];

			for (int i = 0; i < n; i++) {
				peers[i] = lock_peer_new();
				fd[i] = lock_peer_open(&peers[i], f->path[side], O_RDWR);
				assert_int_equal(lock_peer_try(&peers[i], LOCK_PEER_POSIX, fd[i],
							       F_WRLCK, i, 1),
						 0);
			}
			for (int i = 0; i < n - 1; i++) {
				lock_peer_send(&peers[i], LOCK_PEER_POSIX, fd[i], F_WRLCK, i + 1,
					       1);
				assert_false(lock_peer_answered(&peers[i], SHORT_MS));
			}
			lock_peer_send(&peers[n - 1], LOCK_PEER_POSIX, fd[n - 1], F_WRLCK, 0, 1);
			assert_int_equal(lock_peer_receive(&peers[n - 1]), -EDEADLK);
			assert_false(lock_peer_answered(&peers[0], SHORT_MS));
			/* It has kept its own; when that goes, the others get theirs one by one. */
			for (int i = n - 1; i > 0; i--) {
				lock_peer_end(&peers[i]);
				assert_int_equal(lock_peer_receive(&peers[i - 1]), 0);
			}
			lock_peer_end(&peers[0]);
		}
}

/* The same with two files. */
static void a_circle_through_two_files_is_found(void **state)
{
	const Fixture *f = *state;

	for (int side = 0; side < 2; side++) {
		g_autofree char *other = g_strconcat(f->path[side], "2", NULL);
		Pair pair = pair_new(f, side * 3);
		int fd[2];

		for (int i = 0; i < 2; i++)
			fd[i] = lock_peer_open(&pair.peer[i], other, O_RDWR | O_CREAT);
		assert_int_equal(try(&pair, 0, LOCK_PEER_POSIX, F_WRLCK, 0, 0), 0);
		assert_int_equal(
			lock_peer_try(&pair.peer[1], LOCK_PEER_POSIX, fd[1], F_WRLCK, 0, 0), 0);
		lock_peer_send(&pair.peer[0], LOCK_PEER_POSIX, fd[0], F_RDLCK, 5, 1);
		assert_false(lock_peer_answered(&pair.peer[0], SHORT_MS));
		lock_peer_send(&pair.peer[1], LOCK_PEER_POSIX, pair.fd[1], F_RDLCK, 5, 1);
		assert_int_equal(lock_peer_receive(&pair.peer[1]), -EDEADLK);
		assert_int_equal(lock_peer_close(&pair.peer[1], fd[1]), 0);
		assert_int_equal(lock_peer_receive(&pair.peer[0]), 0);
		pair_free(&pair);
	}
}

/* 200 who wait need no threads, and nothing else waits with them. */
static void many_who_wait_hold_nobody_up(void **state)
{
	enum { MANY = 200 };
	const Fixture *f = *state;
	g_autofree char *other = g_strconcat(f->path[1], "-other", NULL);

	for (int side = 0; side < 2; side++) {
		LockPeer holder = lock_peer_new(), peers[MANY];
		int held = lock_peer_open(&holder, f->path[side], O_RDWR), fd[MANY], left = MANY;
		gint64 until;

		assert_int_equal(lock_peer_try(&holder, LOCK_PEER_POSIX, held, F_WRLCK, 0, 0), 0);
		assert_int_equal(lock_peer_try(&holder, LOCK_PEER_FLOCK, held, F_WRLCK, 0, 0), 0);
		for (int i = 0; i < MANY; i++) {
			peers[i] = lock_peer_new();
			fd[i] = lock_peer_open(&peers[i], f->path[1], O_RDWR);
			lock_peer_send(&peers[i], i % 2 ? LOCK_PEER_POSIX : LOCK_PEER_FLOCK, fd[i],
				       F_WRLCK, 0, 0);
		}
		alarm(30); /* ends the test if the view does not answer */
		for (int i = 0; i < 200; i++) {
			int now = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

			assert_true(now >= 0);
			assert_int_equal(flock(now, LOCK_EX | LOCK_NB), 0);
			assert_int_equal(write(now, "x", 1), 1);
			close(now);
		}
		alarm(0);
		for (int i = 0; i < MANY; i++)
			assert_false(lock_peer_answered(&peers[i], 0));
		lock_peer_end(&holder);
		/* All get it in their turn, for whoever has it ends. */
		until = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
		while (left > 0 && g_get_monotonic_time() < until)
			for (int i = 0; i < MANY; i++)
				if (peers[i].pid &&
				    lock_peer_answered(&peers[i], left > 20 ? 0 : 1)) {
					assert_int_equal(lock_peer_receive(&peers[i]), 0);
					lock_peer_end(&peers[i]);
					left--;
				}
		assert_int_equal(left, 0);
	}
}

/* Processes on both sides count in one file; a count is lost when two are in there at once. */
static G_GNUC_NORETURN void count(const char *path, LockPeerKind kind, int rounds)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	for (int i = 0; i < rounds; i++) {
		struct flock lock = { .l_type = F_WRLCK };
		char text[16] = "";
		int r = kind == LOCK_PEER_POSIX ? fcntl(fd, F_SETLKW, &lock)
			: kind == LOCK_PEER_OFD ? fcntl(fd, F_OFD_SETLKW, &lock)
						: flock(fd, LOCK_EX);

		if (r != 0)
			_exit(1);
		if (pread(fd, text, sizeof text - 1, 0) <= 0)
			_exit(2);
		g_snprintf(text, sizeof text, "%d", atoi(text) + 1);
		if (pwrite(fd, text, strlen(text), 0) < 0)
			_exit(3);
		lock.l_type = F_UNLCK;
		r = kind == LOCK_PEER_POSIX ? fcntl(fd, F_SETLK, &lock)
		    : kind == LOCK_PEER_OFD ? fcntl(fd, F_OFD_SETLK, &lock)
					    : flock(fd, LOCK_UN);
		if (r != 0)
			_exit(4);
	}
	_exit(0);
}

static void no_count_is_lost_between_both_sides(void **state)
{
	enum { COUNTERS = 4, ROUNDS = 100 };
	const Fixture *f = *state;

	FOR_KINDS(kind)
	{
		char *path[2] = { g_strdup_printf("%s%d", f->path[0], (int)kind),
				  g_strdup_printf("%s%d", f->path[1], (int)kind) };
		g_autofree char *text = NULL;
		pid_t counters[COUNTERS];

		assert_true(g_file_set_contents(path[0], "0", -1, NULL));
		for (int i = 0; i < COUNTERS; i++)
			if ((counters[i] = fork()) == 0)
				count(path[i % 2], kind, ROUNDS);
		for (int i = 0; i < COUNTERS; i++) {
			int status;

			assert_int_equal(waitpid(counters[i], &status, 0), counters[i]);
			assert_int_equal(status, 0);
		}
		assert_true(g_file_get_contents(path[0], &text, NULL, NULL));
		assert_int_equal(atoi(text), COUNTERS * ROUNDS);
		g_free(path[0]);
		g_free(path[1]);
	}
}

/* What is refused at once although it could have waited is no lock that stays. */
static void a_gateway_that_ends_lets_go_of_all(void **state)
{
	Fixture *f = *state;

	FOR_KINDS(kind) for (int killed = 0; killed < 2; killed++)
	{
		g_autofree char *ws = view_fixture_path(f->view, "ws");
		LockPeer holder = lock_peer_new(), waiter = lock_peer_new(),
			 beside = lock_peer_new();
		int held = lock_peer_open(&holder, f->path[1], O_RDWR);
		int wanted = lock_peer_open(&waiter, f->path[1], O_RDWR);
		int host = lock_peer_open(&beside, f->path[0], O_RDWR);

		assert_int_equal(lock_peer_try(&holder, kind, held, F_WRLCK, 0, 0), 0);
		lock_peer_send(&waiter, kind, wanted, F_WRLCK, 0, 0);
		lock_peer_send(&beside, kind, host, F_WRLCK, 0, 0);
		assert_false(lock_peer_answered(&waiter, SHORT_MS));
		assert_false(lock_peer_answered(&beside, 0));
		if (killed) {
			kill(f->view->gateway, SIGKILL);
			waitpid(f->view->gateway, NULL, 0);
			f->view->gateway = 0;
		} else {
			view_fixture_unmount(f->view);
		}
		assert_int_equal(lock_peer_receive(&beside), 0);
		assert_true(lock_peer_receive(&waiter) < 0);
		lock_peer_end(&waiter);
		lock_peer_end(&holder);
		lock_peer_end(&beside);
		view_fixture_mount(f->view, (const char *const[]){ "--workspace", ws, NULL });
	}
}

/* Where threads act as who asks: the one that takes the lock in the end does so too, on a description of its own. */
static void waiting_works_where_callers_are_acted_for(void **state)
{
	static const int flags[] = { O_RDONLY, O_RDWR };
	Fixture *f = *state;
	g_autofree char *ws = view_fixture_path(f->view, "ws");
	g_autofree char *policy = view_fixture_path(f->view, "policy");
	g_autofree char *text =
		g_strdup_printf("{\"version\": 1, \"filesystem\": {\"workspace_root\": \"%s\", "
				"\"working_dir\": \"/workspace\", \"ownership\": \"host\"}}",
				ws);

	view_fixture_unmount(f->view);
	view_fixture_write(f->view, "policy", text);
	view_fixture_mount(f->view,
			   (const char *const[]){ "--policy", policy, "--allow-other", NULL });
	FOR_KINDS(kind) for (size_t i = 0; i < G_N_ELEMENTS(flags); i++)
	{
		LockPeer holder = lock_peer_new(), waiter = lock_peer_new();
		int held = lock_peer_open(&holder, f->path[1], O_RDWR);
		int wanted = lock_peer_open(&waiter, f->path[1], flags[i]);

		assert_int_equal(lock_peer_try(&holder, kind, held, F_WRLCK, 0, 0), 0);
		lock_peer_send(&waiter, kind, wanted, F_RDLCK, 0, 0);
		assert_false(lock_peer_answered(&waiter, SHORT_MS));
		assert_int_equal(lock_peer_try(&holder, kind, held, F_UNLCK, 0, 0), 0);
		assert_int_equal(lock_peer_receive(&waiter), 0);
		assert_int_equal(lock_peer_try(&holder, kind, held, F_WRLCK, 0, 0), -EAGAIN);
		lock_peer_end(&waiter);
		lock_peer_end(&holder);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(waiting_ends_when_the_other_lets_go),
		TEST(a_downgrade_lets_readers_in),
		TEST(a_signal_ends_waiting_and_leaves_nothing),
		TEST(who_waits_can_be_killed_and_leaves_nothing),
		TEST(an_interrupted_upgrade_keeps_the_read_lock),
		TEST(a_circle_of_processes_is_no_endless_wait),
		TEST(a_circle_through_two_files_is_found),
		TEST(many_who_wait_hold_nobody_up),
		TEST(no_count_is_lost_between_both_sides),
		TEST(a_gateway_that_ends_lets_go_of_all),
		TEST(waiting_works_where_callers_are_acted_for),
	};
	const struct rlimit fds = { 1024, 1024 };
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	setrlimit(RLIMIT_NOFILE, &fds);
	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
