/* The needs of tests; see preflight.h. Whatever changes the process is tried in a child, in
 * namespaces of its own: with the child goes what it made. */
#include "lib/preflight.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/syscall-wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_SKIPPED 77
#define STATUS_FAILED  1

/* A step that failed; sent by the child as it is, for it is the same program. */
typedef struct {
	const char *what;
	int errnum;
} Failure;

static int failed(Failure *reterr, const char *what, int errnum)
{
	reterr->what = what;
	reterr->errnum = errnum;
	return -errnum;
}

static int write_file(const char *path, const char *text)
{
	FD_AUTO fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static int enter_user_namespace(Failure *reterr)
{
	char uid_map[64];
	char gid_map[64];
	int r;

	snprintf(uid_map, sizeof uid_map, "0 %u 1", geteuid());
	snprintf(gid_map, sizeof gid_map, "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return failed(reterr, "unshare(CLONE_NEWUSER)", errno);
	r = write_file("/proc/self/setgroups", "deny");
	if (r < 0)
		return failed(reterr, "write /proc/self/setgroups", -r);
	r = write_file("/proc/self/uid_map", uid_map);
	if (r < 0)
		return failed(reterr, "write /proc/self/uid_map", -r);
	r = write_file("/proc/self/gid_map", gid_map);
	if (r < 0)
		return failed(reterr, "write /proc/self/gid_map", -r);
	/* some systems give namespaces without the power that belongs to them */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return failed(reterr, "mount in a user namespace", errno);
	return 0;
}

static int try_root(Failure *reterr)
{
	return geteuid() == 0 ? 0 : failed(reterr, "effective user id 0", EPERM);
}

static int try_fuse(Failure *reterr)
{
	char options[128];
	FD_AUTO fd = -1;

	if (geteuid() != 0) {
		int r = enter_user_namespace(reterr);

		if (r < 0)
			return r;
	} else {
		if (unshare(CLONE_NEWNS) != 0)
			return failed(reterr, "unshare(CLONE_NEWNS)", errno);
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
			return failed(reterr, "make mounts private", errno);
	}
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return failed(reterr, "open /dev/fuse", errno);
	/* the mount is there before anybody answers requests, of which nobody makes one */
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd,
		 geteuid(), getegid());
	if (mount("preflight", "/tmp", "fuse.preflight", MS_NOSUID | MS_NODEV, options) != 0)
		return failed(reterr, "mount a FUSE file system", errno);
	return 0;
}

static int try_userns(Failure *reterr)
{
	return enter_user_namespace(reterr);
}

static int try_seccomp(Failure *reterr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EUCLEAN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof code[0], code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return failed(reterr, "prctl(PR_SET_NO_NEW_PRIVS)", errno);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
		return failed(reterr, "prctl(PR_SET_SECCOMP)", errno);
	if (syscall(SYS_getppid) >= 0 || errno != EUCLEAN)
		return failed(reterr, "a seccomp filter that decides", ENOSYS);
	return 0;
}

static int try_openat2(Failure *reterr)
{
	FD_AUTO dirfd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO inside = -1;
	FD_AUTO outside = -1;

	if (dirfd < 0)
		return failed(reterr, "open /proc/self", errno);
	inside = sys_openat2(dirfd, "fd", O_PATH | O_CLOEXEC, 0, RESOLVE_BENEATH);
	if (inside < 0)
		return failed(reterr, "openat2", -inside);
	outside = sys_openat2(dirfd, "..", O_PATH | O_CLOEXEC, 0, RESOLVE_BENEATH);
	if (outside != -EXDEV)
		return failed(reterr, "openat2(RESOLVE_BENEATH) that keeps inside", ENOSYS);
	return 0;
}

static const struct {
	const char *need;
	int (*try)(Failure *reterr);
} needs_known[] = {
	{ "root", try_root },	    { "fuse", try_fuse },	{ "userns", try_userns },
	{ "seccomp", try_seccomp }, { "openat2", try_openat2 },
};

static int try_in_child(int (*try)(Failure *reterr), Failure *reterr)
{
	FD_AUTO read_end = -1;
	FD_AUTO write_end = -1;
	int ends[2];
	int status;
	pid_t pid;
	ssize_t size;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return failed(reterr, "pipe", errno);
	read_end = ends[0];
	write_end = ends[1];
	/* Not fork(): a sanitizer would start a thread of its own in the child, and none may be there for unshare(). */
	pid = sys_clone3(0, SIGCHLD, NULL);
	if (pid < 0)
		return failed(reterr, "clone3", -pid);
	if (pid == 0) {
		Failure failure = { 0 };
		int r = try(&failure);

		if (r < 0 && write(write_end, &failure, sizeof failure) < 0)
			_exit(2);
		_exit(r < 0 ? 1 : 0);
	}
	fd_close(&write_end);
	size = read(read_end, reterr, sizeof *reterr);
	if (waitpid(pid, &status, 0) != pid)
		return failed(reterr, "waitpid", errno);
	if (size == sizeof *reterr)
		return -reterr->errnum;
	return status == 0 ? 0 : failed(reterr, "the child that tried", EIO);
}

int preflight_try(const char *need, const char **reterr_what)
{
	for (size_t i = 0; i < sizeof needs_known / sizeof needs_known[0]; i++) {
		if (strcmp(needs_known[i].need, need) == 0) {
			Failure failure = { 0 };
			int r = try_in_child(needs_known[i].try, &failure);

			if (r < 0)
				*reterr_what = failure.what;
			return r;
		}
	}
	*reterr_what = "no such need";
	return -EINVAL;
}

bool preflight_must_run(void)
{
	const char *must_run = getenv("STELLA_TESTS_MUST_RUN");

	return must_run && strcmp(must_run, "1") == 0;
}

int preflight_require(const char *const *needs)
{
	bool failure = preflight_must_run();
	int missing = 0;

	for (; *needs; needs++) {
		const char *what = NULL;
		int r = preflight_try(*needs, &what);

		if (r == 0)
			continue;
		missing++;
		/* a misspelt need must not pass for a machine that lacks it */
		failure = failure || r == -EINVAL;
		fprintf(stderr, "preflight: %s: %s: %s\n", *needs, what, errno_text(-r));
	}
	if (missing == 0)
		return 0;
	return failure ? STATUS_FAILED : STATUS_SKIPPED;
}
