/* Processes that take locks; see lock-peer.h. */
#include "lib/lock-peer.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Long enough for a loaded machine; only reached by a test that fails. */
#define ANSWER_MS 20000

typedef enum { DO_OPEN, DO_DUP, DO_CLOSE, DO_LOCK, DO_GET, DO_FORK, DO_EXIT } What;

typedef struct {
	What what;
	LockPeerKind kind;
	int fd;
	int flags;
	bool wait;
	struct flock lock;
	char path[512];
} Command;

typedef struct {
	int result;
	struct flock lock;
} Answer;

/* --- in the peer --- */

static int do_lock(const Command *command, struct flock *lock)
{
	static const int record[2][2] = { { F_SETLK, F_SETLKW }, { F_OFD_SETLK, F_OFD_SETLKW } };
	int how;

	switch (command->kind) {
	case LOCK_PEER_POSIX:
	case LOCK_PEER_OFD:
		return fcntl(command->fd, record[command->kind][command->wait], lock);
	case LOCK_PEER_FLOCK:
		how = lock->l_type == F_RDLCK	? LOCK_SH
		      : lock->l_type == F_WRLCK ? LOCK_EX
						: LOCK_UN;
		return flock(command->fd, command->wait ? how : how | LOCK_NB);
	case _LOCK_PEER_N_KINDS:
		break;
	}
	errno = EINVAL;
	return -1;
}

static G_GNUC_NORETURN void serve(int socket);

/* A fork's own socket comes back with its pid. */
static int do_fork(int socket)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -1;
	if ((pid = fork()) == 0) {
		close(socket);
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	if (pid > 0) {
		char control[CMSG_SPACE(sizeof(int))] = "";
		struct iovec iov = { &pid, sizeof pid };
		struct msghdr message = { .msg_iov = &iov,
					  .msg_iovlen = 1,
					  .msg_control = control,
					  .msg_controllen = sizeof control };
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		if (!header)
			_exit(3);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &pair[0], sizeof(int));
		if (sendmsg(socket, &message, 0) < 0)
			_exit(3);
	}
	close(pair[0]);
	return pid;
}

static int perform(int socket, Command *command)
{
	switch (command->what) {
	case DO_OPEN:
		return open(command->path, command->flags | O_CLOEXEC, 0644);
	case DO_DUP:
		return fcntl(command->fd, F_DUPFD_CLOEXEC, 3);
	case DO_CLOSE:
		return close(command->fd);
	case DO_LOCK:
		return do_lock(command, &command->lock);
	case DO_GET:
		return fcntl(command->fd, command->kind == LOCK_PEER_OFD ? F_OFD_GETLK : F_GETLK,
			     &command->lock);
	case DO_FORK:
		return do_fork(socket);
	case DO_EXIT:
		break;
	}
	_exit(0);
}

static void on_signal(int sig)
{
	(void)sig; /* only interrupts */
}

static G_GNUC_NORETURN void serve(int socket)
{
	struct sigaction action = { .sa_handler = on_signal };
	Command command;

	sigaction(SIGUSR1, &action, NULL);
	for (;;) {
		Answer answer;
		ssize_t got = recv(socket, &command, sizeof command, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got != sizeof command)
			_exit(0);
		memset(&answer, 0, sizeof answer);
		answer.result = perform(socket, &command);
		if (answer.result < 0)
			answer.result = -errno;
		answer.lock = command.lock;
		if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) < 0)
			_exit(2);
	}
}

/* --- in the test --- */

static void send_command(LockPeer *peer, const Command *command)
{
	assert_int_equal(send(peer->socket, command, sizeof *command, MSG_NOSIGNAL),
			 sizeof *command);
}

bool lock_peer_answered(const LockPeer *peer, int timeout_ms)
{
	struct pollfd fd = { .fd = peer->socket, .events = POLLIN };

	return poll(&fd, 1, timeout_ms) == 1;
}

static Answer receive(LockPeer *peer)
{
	Answer answer;

	if (!lock_peer_answered(peer, ANSWER_MS))
		fail_msg("a locking process does not answer");
	assert_int_equal(recv(peer->socket, &answer, sizeof answer, 0), sizeof answer);
	return answer;
}

static int call(LockPeer *peer, const Command *command)
{
	send_command(peer, command);
	return receive(peer).result;
}

static int pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	assert_true(fd >= 0);
	return fd;
}

LockPeer lock_peer_new(void)
{
	LockPeer peer;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	peer.pid = fork();
	assert_true(peer.pid >= 0);
	if (peer.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	peer.socket = pair[0];
	peer.pidfd = pidfd(peer.pid);
	return peer;
}

LockPeer lock_peer_fork(LockPeer *peer)
{
	const Command command = { .what = DO_FORK };
	char control[CMSG_SPACE(sizeof(int))];
	LockPeer child = { .socket = -1 };
	struct iovec iov = { &child.pid, sizeof child.pid };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof control };

	const struct cmsghdr *header;

	send_command(peer, &command);
	if (!lock_peer_answered(peer, ANSWER_MS))
		fail_msg("a locking process does not fork");
	assert_int_equal(recvmsg(peer->socket, &message, MSG_CMSG_CLOEXEC), sizeof child.pid);
	if ((header = CMSG_FIRSTHDR(&message)))
		memcpy(&child.socket, CMSG_DATA(header), sizeof(int));
	assert_true(child.socket >= 0);
	assert_int_equal(receive(peer).result, child.pid);
	child.pidfd = pidfd(child.pid);
	return child;
}

/* Whose child it is does not matter. All its files are closed then. */
static void wait_for_end(LockPeer *peer)
{
	struct pollfd end = { .fd = peer->pidfd, .events = POLLIN };

	if (poll(&end, 1, ANSWER_MS) != 1)
		fail_msg("a locking process does not end");
	close(peer->pidfd);
	close(peer->socket);
	(void)waitpid(peer->pid, NULL, 0);
	peer->pid = 0;
}

void lock_peer_end(LockPeer *peer)
{
	const Command command = { .what = DO_EXIT };

	send_command(peer, &command);
	wait_for_end(peer);
}

void lock_peer_kill(LockPeer *peer)
{
	assert_int_equal(kill(peer->pid, SIGKILL), 0);
	wait_for_end(peer);
}

int lock_peer_open(LockPeer *peer, const char *path, int flags)
{
	Command command = { .what = DO_OPEN, .flags = flags };

	assert_true(strlen(path) < sizeof command.path);
	strcpy(command.path, path);
	return call(peer, &command);
}

int lock_peer_dup(LockPeer *peer, int fd)
{
	const Command command = { .what = DO_DUP, .fd = fd };

	return call(peer, &command);
}

int lock_peer_close(LockPeer *peer, int fd)
{
	const Command command = { .what = DO_CLOSE, .fd = fd };

	return call(peer, &command);
}

static Command lock_command(LockPeerKind kind, int fd, short type, off_t start, off_t length)
{
	const Command command = {
		.what = DO_LOCK,
		.kind = kind,
		.fd = fd,
		.lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length },
	};

	return command;
}

int lock_peer_try(LockPeer *peer, LockPeerKind kind, int fd, short type, off_t start, off_t length)
{
	const Command command = lock_command(kind, fd, type, start, length);

	return call(peer, &command);
}

int lock_peer_get(LockPeer *peer, LockPeerKind kind, int fd, short type, off_t start, off_t length,
		  LockPeerFound *ret_found)
{
	Command command = lock_command(kind, fd, type, start, length);
	Answer answer;

	command.what = DO_GET;
	send_command(peer, &command);
	answer = receive(peer);
	*ret_found = (LockPeerFound){ answer.lock.l_type, answer.lock.l_start, answer.lock.l_len,
				      answer.lock.l_pid };
	return answer.result;
}

void lock_peer_send(LockPeer *peer, LockPeerKind kind, int fd, short type, off_t start,
		    off_t length)
{
	Command command = lock_command(kind, fd, type, start, length);

	command.wait = true;
	send_command(peer, &command);
}

int lock_peer_receive(LockPeer *peer)
{
	return receive(peer).result;
}

void lock_peer_interrupt(const LockPeer *peer)
{
	assert_int_equal(kill(peer->pid, SIGUSR1), 0);
}
