/* Private clones of host mounts; see clone-helper.h.
 *
 * The clone is recursive in any case: without root a single one is refused wherever something is mounted
 * below (the kernel would uncover what that mount hides), and with root the verdicts have to be the
 * same. What is mounted below is not entered: the walk answers EXDEV there (resolve.h). */
#include "fsgate/clone-helper.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"

#include <fcntl.h>
#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CLONE_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* One clone. nosymfollow came with Linux 5.14; before, the walk alone refuses links, with the same
 * verdicts. */
static int clone_one(const char *host_path, bool read_only)
{
	uint64_t attrs = CLONE_ATTRS | (read_only ? MOUNT_ATTR_RDONLY : 0);
	FD_AUTO fd = sys_open_tree(AT_FDCWD, host_path,
				   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int r;

	if (fd < 0)
		return fd;
	r = sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, attrs | MOUNT_ATTR_NOSYMFOLLOW,
			      0, MS_PRIVATE);
	if (r == -EINVAL)
		r = sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, attrs, 0, MS_PRIVATE);
	return r < 0 ? r : fd_steal(&fd);
}

static int send_fd(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space,
	};

	memset(&control, 0, sizeof control);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int receive_fd(int socket)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space,
	};
	struct cmsghdr *c;
	ssize_t got;
	int fd;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&message);
	if (got == 0 || !c || c->cmsg_type != SCM_RIGHTS)
		return -EPIPE;
	memcpy(&fd, CMSG_DATA(c), sizeof fd);
	return fd;
}

/* What the child could not do: which request (or -1 for the namespace), and why. */
typedef struct {
	int index;
	int errnum;
} CloneFailure;

static void child_fail(int report, int index, int r)
{
	CloneFailure failure = { .index = index, .errnum = -r };

	(void)io_write_all(report, &failure,
			   sizeof failure); /* the parent sees a broken socket then */
	_exit(1);
}

static G_GNUC_NORETURN void child_main(int socket, int report, const FsgCloneRequest *requests,
				       size_t count)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* an extra: the broken socket ends it too */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		child_fail(report, -1, -errno);
	for (size_t i = 0; i < count; i++) {
		int fd = clone_one(requests[i].host_path, requests[i].read_only);
		int r;

		if (fd < 0)
			child_fail(report, (int)i, fd);
		if ((r = send_fd(socket, fd)) < 0)
			child_fail(report, (int)i, r);
		fd_close(&fd);
	}
	_exit(0);
}

static char *describe(const FsgCloneRequest *requests, int index, int errnum)
{
	g_autofree char *path = NULL;

	if (index < 0)
		return g_strdup_printf("user namespaces are not available to this user: %s (see "
				       "/proc/sys/user/max_user_namespaces, "
				       "/proc/sys/kernel/apparmor_restrict_unprivileged_userns)",
				       errno_text(errnum));
	path = path_escape(requests[index].host_path);
	return g_strdup_printf("mount \"%s\": cannot make a private clone of it: %s", path,
			       errno_text(errnum));
}

static int clone_in_child(FsgCloneRequest *requests, size_t count, char **reterr_message)
{
	int sockets[2], reports[2], r = 0;
	CloneFailure failure;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
		return -errno;
	FD_AUTO socket_ours = sockets[0];
	FD_AUTO socket_theirs = sockets[1];
	if (pipe2(reports, O_CLOEXEC) != 0)
		return -errno;
	FD_AUTO report_ours = reports[0];
	FD_AUTO report_theirs = reports[1];

	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		fd_close(&socket_ours);
		child_main(socket_theirs, report_theirs, requests, count);
	}
	fd_close(&socket_theirs);
	fd_close(&report_theirs);
	for (size_t i = 0; i < count && r >= 0; i++) {
		r = receive_fd(socket_ours);
		if (r >= 0)
			*requests[i].ret_fd = r;
	}
	if (r < 0 && io_read_all(report_ours, &failure, sizeof failure) == sizeof failure) {
		r = -failure.errnum;
		*reterr_message = describe(requests, failure.index, failure.errnum);
	}
	(void)waitpid(pid, NULL, 0); /* ECHILD where SIGCHLD is ignored: it is gone all the same */
	return r < 0 ? r : 0;
}

int fsg_clone_mounts(FsgCloneRequest *requests, size_t count, char **reterr_message)
{
	for (size_t i = 0; i < count; i++) {
		int fd = clone_one(requests[i].host_path, requests[i].read_only);

		if (fd == -EPERM && i == 0) {
			int r = clone_in_child(requests, count, reterr_message);

			if (r < 0 && !*reterr_message)
				*reterr_message = g_strdup_printf(
					"cannot clone the mounts of the view: %s", errno_text(-r));
			return r;
		}
		if (fd < 0) {
			*reterr_message = describe(requests, (int)i, -fd);
			return fd;
		}
		*requests[i].ret_fd = fd;
	}
	return 0;
}
