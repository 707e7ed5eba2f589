/* A step in namespaces like a session's; see doctor.h. The child is a raw clone that makes system calls only, as
 * in launcher.c, and dies with its parent; being the first of its pid namespace it takes everything with it. */
#include "executor/doctor.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/syscall-wrap.h"
#include "executor/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the policy's "agent" is; which number it is does not matter. */
#define INSIDE_ID 1000

static _Noreturn void child(int go_fd, int answer_fd, int (*step)(void))
{
	char go;
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* The end of file: the maps could not be written. */
	if (io_read_all(go_fd, &go, 1) != 1)
		_exit(1);
	r = step();
	_exit(io_write_all(answer_fd, &r, sizeof r) < 0 ? 1 : 0);
}

int exr_doctor_in_sandbox(uint64_t more_flags, int (*step)(void), ExrError *reterr_error)
{
	ExrIdentity identity = exr_identity_choose(INSIDE_ID);
	FD_AUTO go_read = -1, go_write = -1, answer_read = -1, answer_write = -1;
	int go[2], answer[2], r, result = -EIO;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) != 0)
		return exr_error_set(reterr_error, "internal", "init", errno, "pipe");
	go_read = go[0];
	go_write = go[1];
	if (pipe2(answer, O_CLOEXEC) != 0)
		return exr_error_set(reterr_error, "internal", "init", errno, "pipe");
	answer_read = answer[0];
	answer_write = answer[1];
	pid = sys_clone3(EXR_LAUNCH_FLAGS | more_flags, SIGCHLD, NULL);
	if (pid == 0) {
		fd_close(&go_write);
		child(go_read, answer_write, step);
	}
	if (pid < 0)
		return exr_error_set(reterr_error, "namespace-failed", "clone", (int)-pid,
				     "cannot make the sandbox's namespaces: %s",
				     errno_text((int)-pid));
	fd_close(&answer_write);
	r = exr_launch_write_maps(pid, &identity, reterr_error);
	if (r == 0 && io_write_all(go_write, "g", 1) == 0)
		(void)io_read_all(answer_read, &result, sizeof result);
	fd_close(&go_write);
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? r : result;
}
