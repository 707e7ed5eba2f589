/* The main thread of a gateway; see serve-until.h. */
#include "fsgate/serve-until.h"

#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* How long the threads may take to end after the unmount. */
#define END_MS 1000

int fsg_signals_open(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* What the executor says is read at the door; here only its end is looked for, which nothing can delay. */
void fsg_serve_until_end(FsgSession *session, int signal_fd, int control_fd, const char *mountpoint)
{
	/* Readable with POLLPRI after each change of the mount table. */
	FD_AUTO mounts = mountpoint ? open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC) : -1;
	struct pollfd fds[] = {
		{ .fd = fsg_session_end_fd(session), .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = control_fd, .events = POLLRDHUP },
		{ .fd = mounts, .events = POLLPRI },
	};

	for (;;) {
		if (poll(fds, G_N_ELEMENTS(fds), -1) < 0) {
			if (errno == EINTR)
				continue;
			return;
		}
		if (fds[0].revents || fds[1].revents || fds[2].revents)
			return;
		if (fds[3].revents && !fsg_session_is_mounted(session))
			return;
	}
}

void fsg_serve_finish(FsgSession *session, FsgViewDoor *door, FsgView *view)
{
	if (session)
		fsg_session_unmount(session);
	if (!fsg_view_door_close(door, END_MS))
		_exit(0);
	if (!fsg_session_free(session, END_MS))
		_exit(0); /* closes the device: the kernel fails what is still waiting */
	fsg_view_free(view);
}
