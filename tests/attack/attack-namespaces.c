/* New namespaces by every call that makes or enters one. With one of its own a command would be root of mounts, of
 * networks and of what the kernel trusts such a root with. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	uint64_t flag;
	const char *name;
	const char *file; /* below /proc/PID/ns */
} kinds[] = {
	{ CLONE_NEWUSER, "user", "user" },	 { CLONE_NEWNS, "mount", "mnt" },
	{ CLONE_NEWPID, "pid", "pid" },		 { CLONE_NEWNET, "net", "net" },
	{ CLONE_NEWIPC, "ipc", "ipc" },		 { CLONE_NEWUTS, "uts", "uts" },
	{ CLONE_NEWCGROUP, "cgroup", "cgroup" }, { CLONE_NEWTIME, "time", "time" },
};

#define KINDS (sizeof kinds / sizeof kinds[0])

/* The child of a clone that went through. */
static int finish(long pid)
{
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(0);
	(void)waitpid((pid_t)pid, NULL, 0);
	return 0;
}

static int by_clone(void *data)
{
	return finish(syscall(SYS_clone, *(uint64_t *)data | SIGCHLD, 0L, 0L, 0L, 0L));
}

static int by_clone3(void *data)
{
	struct clone_args args = { .flags = *(uint64_t *)data, .exit_signal = SIGCHLD };

	return finish(syscall(SYS_clone3, &args, sizeof args));
}

static int by_unshare(void *data)
{
	return PROBE_CALL(syscall(SYS_unshare, *(uint64_t *)data));
}

/* Its own namespace, which only needs the right and changes nothing. */
static int by_setns(void *data)
{
	size_t kind = *(size_t *)data;
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[kind].file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? errno : PROBE_CALL(syscall(SYS_setns, fd, (int)kinds[kind].flag));
}

static int by_setns_of_a_process(void *data)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return fd < 0 ? errno : PROBE_CALL(syscall(SYS_setns, fd, *(int *)data));
}

static int write_limit(void *data)
{
	int fd = open(data, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? errno : PROBE_CALL(write(fd, "10000", 5));
}

static int nothing(void *data)
{
	(void)data;
	return 0;
}

int main(int argc, char **argv)
{
	Probe probe = probe_begin(argc, argv);
	uint64_t none = 0, mixed = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET;
	int mount_kind = CLONE_NEWNS;
	char limit[] = "/proc/sys/user/max_user_namespaces";
	char name[64];

	for (size_t i = 0; i < KINDS; i++) {
		uint64_t flag = kinds[i].flag;

		/* The bit of a time namespace is the exit signal's in clone, which knows no such namespace. */
		if (flag != CLONE_NEWTIME) {
			snprintf(name, sizeof name, "clone %s", kinds[i].name);
			probe_check(&probe, name, REFUSED("EPERM"),
				    probe_in_child(by_clone, &flag));
		}
		snprintf(name, sizeof name, "clone3 %s", kinds[i].name);
		probe_check(&probe, name, REFUSED("ENOSYS"), probe_in_child(by_clone3, &flag));
		snprintf(name, sizeof name, "unshare %s", kinds[i].name);
		probe_check(&probe, name, REFUSED("EPERM"), probe_in_child(by_unshare, &flag));
		flag |= UINT64_C(1) << 40; /* a bit that means nothing hides nothing */
		snprintf(name, sizeof name, "unshare %s with a high bit", kinds[i].name);
		probe_check(&probe, name, (Expected){ "EPERM", "0|EINVAL" },
			    probe_in_child(by_unshare, &flag));
		snprintf(name, sizeof name, "setns %s", kinds[i].name);
		/* one's own user namespace can be entered by nobody; a time namespace has its conditions */
		probe_check(&probe, name, (Expected){ "EPERM", "0|EINVAL|EUSERS" },
			    probe_in_child(by_setns, &i));
	}
	probe_check(&probe, "clone of several", REFUSED("EPERM"), probe_in_child(by_clone, &mixed));
	probe_check(&probe, "setns by a pidfd", REFUSED("EPERM"),
		    probe_in_child(by_setns_of_a_process, &mount_kind));
	if (!probe.outside) /* where it is the machine's */
		probe_check(&probe, "more user namespaces by sysctl", REFUSED("EROFS|EACCES"),
			    probe_in_child(write_limit, limit));

	/* The same calls without a namespace. */
	probe_check(&probe, "clone", ALLOWED, probe_in_child(by_clone, &none));
	probe_check(&probe, "clone3 of a plain child", REFUSED("ENOSYS"),
		    probe_in_child(by_clone3, &none));
	none = CLONE_FS | CLONE_FILES;
	probe_check(&probe, "unshare of files", ALLOWED, probe_in_child(by_unshare, &none));
	probe_check(&probe, "a thread", ALLOWED, probe_in_thread(nothing, NULL));
	return probe_end(&probe);
}
