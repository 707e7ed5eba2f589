/* See cancel-fd.h. Who cancels writes, in its own thread; the descriptor is closed only when nobody is about to any more.
 * GCancellable's lock orders all that; the atomic accesses are there for ThreadSanitizer, which does not see it. */
#include "executor/cancel-fd.h"

#include "common/fd-util.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void on_cancelled(GCancellable *cancellable, void *data)
{
	static const uint64_t one = 1;
	ExrCancelFd *cancel = data;

	(void)cancellable;
	(void)!write(__atomic_load_n(&cancel->fd, __ATOMIC_ACQUIRE), &one, sizeof one);
	__atomic_store_n(&cancel->told, 1, __ATOMIC_RELEASE);
}

int exr_cancel_fd_init(ExrCancelFd *cancel, GCancellable *cancellable)
{
	int fd;

	*cancel = (ExrCancelFd){ .fd = -1 };
	if (!cancellable)
		return 0;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	__atomic_store_n(&cancel->fd, fd, __ATOMIC_RELEASE);
	cancel->handler =
		g_cancellable_connect(cancellable, G_CALLBACK(on_cancelled), cancel, NULL);
	return 0;
}

void exr_cancel_fd_clear(ExrCancelFd *cancel, GCancellable *cancellable)
{
	uint64_t count;

	if (cancel->fd < 0)
		return;
	g_cancellable_disconnect(cancellable, cancel->handler);
	(void)__atomic_load_n(&cancel->told, __ATOMIC_ACQUIRE);
	(void)!read(cancel->fd, &count, sizeof count);
	fd_close(&cancel->fd);
}
