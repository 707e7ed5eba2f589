/* Messages with fds; see packet.h. */
#include "executor/packet.h"

#include "common/fd-util.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

typedef union {
	struct cmsghdr header; /* for alignment */
	char space[CMSG_SPACE(WIRE_MAX_FDS * sizeof(int))];
} Ancillary;

int packet_send(int fd, const WireMessage *message, const int *fds, size_t fd_count)
{
	WireMessage stamped = *message;
	Ancillary control;
	struct iovec iov = { .iov_base = &stamped, .iov_len = sizeof stamped };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

	stamped.magic = WIRE_MAGIC;
	if (fd_count > WIRE_MAX_FDS)
		return -EINVAL;
	if (fd_count > 0) {
		memset(&control, 0, sizeof control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
		header.msg_control = control.space;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	for (;;) {
		if (sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == ECONNRESET)
			return -EPIPE;
		if (errno != EINTR)
			return -errno;
	}
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int wait_readable(int fd, int timeout_ms)
{
	int64_t deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = deadline < 0 ? -1 : deadline - now_ms();
		int r = poll(&p, 1, deadline < 0 ? -1 : left < 0 ? 0 : (int)left);

		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* Takes every fd out of the message; what does not fit is closed. */
static size_t take_fds(struct msghdr *header, int fds[static WIRE_MAX_FDS])
{
	size_t taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (taken < WIRE_MAX_FDS)
				fds[taken++] = fd;
			else
				fd_close(&fd);
		}
	}
	return taken;
}

int packet_receive(int fd, int timeout_ms, WireMessage *ret_message, int *ret_fds,
		   size_t *ret_fd_count)
{
	WireMessage message;
	Ancillary control;
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof message };
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space,
	};
	int fds[WIRE_MAX_FDS];
	size_t fd_count;
	bool reset = false;
	ssize_t size;
	int r;

	/* What has come is taken without asking for it first. An end that is closed with messages unread in it is told
	 * once, before what it has sent itself: that may be why it closed. */
	while ((size = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)) < 0) {
		if (errno == EAGAIN && (r = wait_readable(fd, timeout_ms)) < 0)
			return r;
		if (errno != EINTR && errno != EAGAIN && (errno != ECONNRESET || reset))
			break;
		reset |= errno == ECONNRESET;
	}
	if (size < 0)
		return -errno;
	fd_count = take_fds(&header, fds);
	r = size > 0 ? 0 : reset ? -ECONNRESET : -EPIPE;
	if (size > 0 && (size != sizeof message || message.magic != WIRE_MAGIC ||
			 (header.msg_flags & MSG_TRUNC)))
		r = -EBADMSG;
	else if (size > 0 && (header.msg_flags & MSG_CTRUNC))
		r = -EMFILE; /* we have room for all that fit a message, so that the kernel had none for one */
	if (r < 0 || !ret_fds) {
		for (size_t i = 0; i < fd_count; i++)
			fd_close(&fds[i]);
		fd_count = 0;
	}
	if (r < 0)
		return r;
	*ret_message = message;
	if (ret_fds) {
		memcpy(ret_fds, fds, fd_count * sizeof fds[0]);
		*ret_fd_count = fd_count;
	}
	return 0;
}
