/* PID 1 of the command's own processes, which is ours: looking into it, tracing it, signalling it, changing its share
 * of the machine. Made at once, before anything else, since its first moments are its weakest.
 *
 * Outside, PID 1 is the test's: the same calls are made on a child of our own there. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t target = 1;

/* What user 0 of the sandbox can write to when that is the command: the kernel gives it the files of who is not to be
 * looked into. They only matter to how soon PID 1 dies for want of memory, which a command can have more simply. */
static const char *const of_user_zero[] = { "sched",   "autogroup",	"clear_refs",
					    "oom_adj", "oom_score_adj", "coredump_filter" };

/* Whether something can be read, not only opened: many files ask at the read. */
static int read_of(const char *name)
{
	char path[300], byte;
	int fd, r;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)target, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno;
	/* memory begins at no address */
	r = PROBE_CALL(strstr(name, "mem") ? 0 : read(fd, &byte, 1));
	close(fd);
	return r;
}

static int link_of(const char *name)
{
	char path[300], text[300];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)target, name);
	return PROBE_CALL(readlink(path, text, sizeof text));
}

static int attach(void *data)
{
	long request = *(long *)data;
	int r = PROBE_CALL(ptrace((enum __ptrace_request)request, target, NULL, NULL));

	return r;
}

static int read_memory(void *data)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { data, 1 };

	return PROBE_CALL(process_vm_readv(target, &here, 1, &there, 1, 0));
}

static int write_memory(void *data)
{
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { data, 1 };

	return PROBE_CALL(process_vm_writev(target, &here, 1, &there, 1, 0));
}

static int get_fd(void *data)
{
	int pidfd = (int)syscall(SYS_pidfd_open, target, 0);

	(void)data;
	return pidfd < 0 ? errno : PROBE_CALL(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

static int compare(void *data)
{
	(void)data;
	return PROBE_CALL(syscall(SYS_kcmp, getpid(), target, 1 /* KCMP_VM */, 0, 0));
}

static int robust_list(void *data)
{
	void *head;
	size_t size;

	(void)data;
	return PROBE_CALL(syscall(SYS_get_robust_list, target, &head, &size));
}

static int limit(void *data)
{
	struct rlimit none = { 0, 0 };

	(void)data;
	return PROBE_CALL(prlimit(target, RLIMIT_CPU, NULL, &none));
}

static int affinity(void *data)
{
	cpu_set_t set;

	(void)data;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return PROBE_CALL(sched_setaffinity(target, sizeof set, &set));
}

static int scheduler(void *data)
{
	struct sched_param param = { 0 };

	(void)data;
	return PROBE_CALL(sched_setscheduler(target, SCHED_IDLE, &param));
}

static int nice_process(void *data)
{
	(void)data;
	return PROBE_CALL(setpriority(PRIO_PROCESS, (id_t)target, 10));
}

/* Every process of the user: inside, PID 1 among them. */
static int nice_user(void *data)
{
	return PROBE_CALL(setpriority(PRIO_USER, (id_t)(*(int *)data), 10));
}

static int io_of_user(void *data)
{
	return PROBE_CALL(syscall(SYS_ioprio_set, 3 /* IOPRIO_WHO_USER */, *(int *)data,
				  IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)));
}

static int io_of_process(void *data)
{
	(void)data;
	return PROBE_CALL(syscall(SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, target,
				  IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)));
}

static void try_looking(Probe *probe)
{
	static const char *const readable[] = {
		"environ", "mem",	  "maps",	    "auxv",	 "smaps",
		"pagemap", "fd/0",	  "fdinfo/0",	    "exe",	 "cwd/.",
		"root/.",  "syscall",	  "stack",	    "io",	 "ns/mnt",
		"ns/user", "personality", "task/1/environ", "task/1/mem"
	};
	static const char *const links[] = { "exe", "cwd", "root", "fd/0", "ns/pid" };
	char name[64];

	for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++) {
		snprintf(name, sizeof name, "read %s", readable[i]);
		/* not every kernel has all of them */
		probe_check(probe, name,
			    (Expected){ "EACCES|EPERM|ENOENT", "0|ENOENT|EISDIR|EINVAL|ENXIO" },
			    read_of(readable[i]));
	}
	for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
		snprintf(name, sizeof name, "readlink %s", links[i]);
		probe_check(probe, name, REFUSED("EACCES|EPERM"), link_of(links[i]));
	}
}

static bool is_of_user_zero(const char *name)
{
	for (size_t i = 0; i < sizeof of_user_zero / sizeof of_user_zero[0]; i++)
		if (strcmp(of_user_zero[i], name) == 0)
			return getuid() == 0;
	return false;
}

/* Every file of it, two levels deep, for writing. Mode and owner say it for most, the file itself for some. */
static int count_writable(const char *below, int *ret_seen)
{
	char path[64];
	DIR *dir;
	int writable = 0;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)target, below);
	dir = opendir(path);
	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		char name[400];
		int fd;

		if (entry->d_type != DT_REG || is_of_user_zero(entry->d_name))
			continue;
		(*ret_seen)++;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		fd = open(name, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		/* some are open to all, and ask then */
		if (write(fd, "1", 1) >= 0) {
			printf("can be written to: %s\n", name);
			writable++;
		}
		close(fd);
	}
	if (dir)
		closedir(dir);
	return writable;
}

static void try_writing(Probe *probe)
{
	int seen = 0;
	int writable = count_writable("", &seen) + count_writable("attr", &seen) +
		       count_writable("task/1", &seen) + count_writable("net", &seen);

	probe_that(probe, "there are files to write to", seen > 30);
	probe_check(probe, "files of it that can be written to", (Expected){ "0", "EINVAL" },
		    writable > 0 ? EINVAL : 0);
}

/* A process 1 without handlers ignores what comes from inside its namespace. */
static void try_signals(Probe *probe)
{
	union sigval value = { 0 };
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0), worked = 0, queued = 0;

	if (probe->outside)
		return;
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		worked += kill(1, sig) == 0;
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		worked += syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) == 0;
	for (int i = 0; i < 20000 && sigqueue(1, SIGRTMIN + 5, value) == 0; i++)
		queued++;
	/* Ends of children that are none. */
	for (int i = 0; i < 2000; i++)
		(void)kill(1, SIGCHLD);
	printf("%d signals were taken, %d queued\n", worked, queued);
	probe_that(probe, "it lives on after every signal", kill(1, 0) == 0);
	/* whose children are reaped still */
	probe_that(probe, "and still reaps", probe_in_child(nice_process, NULL) != ECHILD);
}

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	Probe probe = probe_begin(argc, argv);
	static char byte;
	long requests[] = { PTRACE_ATTACH, PTRACE_SEIZE };
	int own = (int)getuid(), zero = 0;

	if (probe.outside && (target = fork()) == 0)
		wait_for_ever();
	probe_check(&probe, "PTRACE_SEIZE", REFUSED("EPERM"), probe_in_child(attach, &requests[1]));
	probe_check(&probe, "PTRACE_ATTACH", REFUSED("EPERM"),
		    probe_in_child(attach, &requests[0]));
	try_looking(&probe);
	probe_check(&probe, "process_vm_readv", REFUSED("EPERM"), read_memory(&byte));
	probe_check(&probe, "process_vm_writev", REFUSED("EPERM"), write_memory(&byte));
	probe_check(&probe, "pidfd_getfd", REFUSED("EPERM"), get_fd(NULL));
	probe_check(&probe, "kcmp", (Expected){ "EPERM", "0|ENOSYS" }, compare(NULL));
	probe_check(&probe, "get_robust_list", REFUSED("EPERM"), robust_list(NULL));
	try_writing(&probe);
	probe_check(&probe, "limits", REFUSED("EPERM"), limit(NULL));
	probe_check(&probe, "processors", REFUSED("EPERM"), affinity(NULL));
	probe_check(&probe, "scheduler", REFUSED("EPERM"), scheduler(NULL));
	probe_check(&probe, "priority", REFUSED("EPERM"), nice_process(NULL));
	probe_check(&probe, "input and output priority", REFUSED("EPERM"), io_of_process(NULL));
	/* In children: outside, where it works, it is for all of the test. */
	if (!probe.outside) {
		probe_check(&probe, "priority of the user", REFUSED("EPERM"),
			    probe_in_child(nice_user, &own));
		probe_check(&probe, "priority of user 0", REFUSED("EPERM"),
			    probe_in_child(nice_user, &zero));
		probe_check(&probe, "input and output priority of the user", REFUSED("EPERM"),
			    probe_in_child(io_of_user, &own));
		probe_check(&probe, "input and output priority of user 0", REFUSED("EPERM"),
			    probe_in_child(io_of_user, &zero));
		errno = 0;
		probe_that(&probe, "its priority is as before",
			   getpriority(PRIO_PROCESS, 1) <= getpriority(PRIO_PROCESS, 0) &&
				   errno == 0);
	}
	try_signals(&probe);
	if (probe.outside) {
		(void)kill(target, SIGKILL);
		(void)waitpid(target, NULL, 0);
	}
	return probe_end(&probe);
}
