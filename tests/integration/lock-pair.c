/* See lock-pair.h. */
#include "lock-pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>

#include <cmocka.h>

ViewFixture *lock_view;
char *lock_dirs[2];
static unsigned int files;

LockFile lock_file_new(void)
{
	LockFile file;

	files++;
	for (int i = 0; i < 2; i++)
		file.path[i] = g_strdup_printf("%s/f%u", lock_dirs[i], files);
	assert_true(g_file_set_contents(file.path[0], "0123456789", -1, NULL));
	return file;
}

void lock_file_free(LockFile *file)
{
	g_free(file->path[0]);
	g_free(file->path[1]);
}

LockPair lock_pair_new(int sides, int flags)
{
	LockPair pair = { .file = lock_file_new() };

	for (int i = 0; i < 2; i++) {
		pair.in_view[i] = sides >> i & 1;
		pair.path[i] = pair.file.path[pair.in_view[i]];
		pair.peer[i] = lock_peer_new();
		pair.fd[i] = lock_peer_open(&pair.peer[i], pair.path[i], flags);
		assert_true(pair.fd[i] >= 0);
	}
	return pair;
}

void lock_pair_free(LockPair *pair)
{
	for (int i = 0; i < 2; i++)
		if (pair->peer[i].pid)
			lock_peer_end(&pair->peer[i]);
	lock_file_free(&pair->file);
}

int lock_pair_try(LockPair *pair, int who, LockPeerKind kind, short type, off_t start, off_t length)
{
	return lock_peer_try(&pair->peer[who], kind, pair->fd[who], type, start, length);
}

int lock_pair_try_soon(LockPair *pair, int who, LockPeerKind kind, short type)
{
	int r;

	for (int i = 0; i < 2000; i++) {
		r = lock_pair_try(pair, who, kind, type, 0, 0);
		if (r != -EAGAIN || pair->in_view[who])
			break;
		g_usleep(1000);
	}
	return r;
}

int lock_pair_set_up(void **state)
{
	g_autofree char *ro = NULL, *ro_mount = NULL, *again = NULL, *covered = NULL;

	(void)state;
	lock_view = view_fixture_new();
	lock_dirs[0] = view_fixture_path(lock_view, "ws");
	lock_dirs[1] = g_build_filename(lock_view->mountpoint, "workspace", NULL);
	view_fixture_mkdir(lock_view, "ws");
	view_fixture_mkdir(lock_view, "ro");
	view_fixture_write(lock_view, "ro/f", "read only");
	view_fixture_write(lock_view, "ws/covered", "");
	ro = view_fixture_path(lock_view, "ro");
	ro_mount = g_strdup_printf("%s:/ro", ro);
	again = g_strdup_printf("%s:/again", lock_dirs[0]);
	covered = view_fixture_path(lock_view, "ws/covered");
	assert_int_equal(mount("/dev/null", covered, NULL, MS_BIND, NULL), 0);
	view_fixture_mount(lock_view, (const char *const[]){ "--workspace", lock_dirs[0], "--ro",
							     ro_mount, "--ro", again, NULL });
	return 0;
}

int lock_pair_tear_down(void **state)
{
	g_autofree char *covered = view_fixture_path(lock_view, "ws/covered");

	(void)state;
	view_fixture_unmount(lock_view);
	umount2(covered, MNT_DETACH);
	view_fixture_free(lock_view);
	g_free(lock_dirs[0]);
	g_free(lock_dirs[1]);
	return 0;
}
