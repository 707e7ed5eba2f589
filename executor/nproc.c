/* The trial; see nproc.h. */
#include "executor/nproc.h"

#include "common/fd-util.h"
#include "common/syscall-wrap.h"
#include "executor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define TRIAL_MS 5000
/* The trial's process itself and one child. */
#define TRIAL_LIMIT 2

/* It ends with the trial, which is PID 1 of its namespace. */
static pid_t make_child(void)
{
	pid_t pid = sys_clone3(0, SIGCHLD, NULL);

	if (pid == 0)
		for (;;)
			(void)pause();
	return pid;
}

/* In new namespaces of users and pids: one child can be made, however many processes run under this user elsewhere,
 * and a second one cannot. System calls only. */
static _Noreturn void trial(int answer_fd)
{
	struct rlimit limit = { .rlim_cur = TRIAL_LIMIT, .rlim_max = TRIAL_LIMIT };

	sys_clone3_alone();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (setrlimit(RLIMIT_NPROC, &limit) == 0 && make_child() > 0 && make_child() == -EAGAIN)
		(void)!write(answer_fd, "", 1);
	_exit(0);
}

bool exr_nproc_works(const ExrIdentity *identity)
{
	ExrProcess process = EXR_NO_PROCESS;
	FD_AUTO answer = -1;
	FD_AUTO theirs = -1;
	sigset_t mask;
	int fds[2];
	char byte;

	if (exr_identity_is_own(identity))
		return true;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	answer = fds[0];
	theirs = fds[1];
	exr_signals_block_all(&mask);
	process.pid =
		sys_clone3(CLONE_NEWUSER | CLONE_NEWPID | CLONE_PIDFD, SIGCHLD, &process.pidfd);
	if (process.pid == 0)
		trial(theirs);
	exr_signals_restore(&mask);
	if (process.pid < 0)
		return false;
	fd_close(&theirs);
	(void)exr_process_end(&process, TRIAL_MS, TRIAL_MS);
	/* Whoever forked meanwhile may hold a copy of the other end: no waiting for the end of file. */
	return exr_wait_readable(answer, 0) == 0 && read(answer, &byte, 1) == 1;
}
