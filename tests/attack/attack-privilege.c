/* What a command has: no privilege in any of its threads, none to be had by programs with set-id bits or capabilities,
 * no fd of anybody's. Arguments: programs with such bits to run (this one, copied). */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
	char text[4096];
} Status;

/* Of the calling thread, not of the process. */
static void read_status(Status *status)
{
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, status->text, sizeof status->text - 1);

	status->text[got > 0 ? got : 0] = '\0';
	close(fd);
}

static bool has(const Status *status, const char *line)
{
	const char *at = strstr(status->text, line);

	return at && (at == status->text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

/* The number of the first line that is not as it should be. */
static int look_at_oneself(void *data)
{
	static const char *const lines[] = {
		"\nCapInh:\t0000000000000000",
		"\nCapPrm:\t0000000000000000",
		"\nCapEff:\t0000000000000000",
		"\nCapBnd:\t0000000000000000",
		"\nCapAmb:\t0000000000000000",
		"\nNoNewPrivs:\t1",
		"\nSeccomp:\t2",
	};
	Status status;

	(void)data;
	read_status(&status);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		if (!has(&status, lines[i] + 1))
			return (int)i + 200;
	return getuid() == geteuid() && getgid() == getegid() ? 0 : 210;
}

static int run_oneself(void *data)
{
	char *const argv[] = { data, (char *)(unsigned long)"--look", NULL };

	execv(data, argv);
	return errno;
}

static int become_root(void *data)
{
	(void)data;
	return PROBE_CALL(setresuid(0, 0, 0));
}

static int take_groups(void *data)
{
	gid_t groups[] = { 0 };

	(void)data;
	return PROBE_CALL(setgroups(1, groups));
}

static int take_cap(void *data)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	caps[0].effective = caps[0].permitted = 1u << *(int *)data;
	return PROBE_CALL(syscall(SYS_capset, &head, caps));
}

static int forget_no_new_privs(void *data)
{
	(void)data;
	return PROBE_CALL(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static int leave_filter(void *data)
{
	(void)data;
	return PROBE_CALL(prctl(PR_SET_SECCOMP, 0, 0, 0, 0));
}

static int change_personality(void *data)
{
	return PROBE_CALL(syscall(SYS_personality, *(unsigned long *)data));
}

static int set_bit(void *data)
{
	const char *path = data;
	struct stat st;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	if (fd < 0)
		return errno;
	(void)fchmod(fd, 06755);
	close(fd);
	if (stat(path, &st) != 0)
		return errno;
	(void)unlink(path);
	/* 0: the bit is there, but the mount gives it no meaning; what matters is what run_oneself finds */
	return 0;
}

static void try_personalities(Probe *probe)
{
	char name[64];

	for (unsigned int bit = 0; bit < 32; bit++) {
		unsigned long value = 1ul << bit;
		bool harmless = value == PER_LINUX32 || value == UNAME26;

		snprintf(name, sizeof name, "personality 0x%lx", value);
		probe_check(probe, name, harmless ? ALLOWED : (Expected){ "EPERM", "*" },
			    probe_in_child(change_personality, &value));
		value |= 1ul << 40;
		snprintf(name, sizeof name, "personality 0x%lx", value);
		probe_check(probe, name, harmless ? ALLOWED : (Expected){ "EPERM", "*" },
			    probe_in_child(change_personality, &value));
	}
}

static void try_fds(Probe *probe)
{
	DIR *dir = opendir("/proc/self/fd");
	int open_fds = 0, own = dir ? dirfd(dir) : -1;

	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		int fd = atoi(entry->d_name);
		struct stat st;

		if (entry->d_name[0] == '.' || fd == own)
			continue;
		open_fds++;
		if (fd > 2 || fstat(fd, &st) != 0 ||
		    (!S_ISFIFO(st.st_mode) && !(fd == 0 && S_ISCHR(st.st_mode))))
			printf("open: %d\n", open_fds += 100);
	}
	if (dir)
		closedir(dir);
	probe_check(probe, "three fds, which are pipes", (Expected){ "0", "*" },
		    open_fds == 3 ? 0 : EBADF);
}

int main(int argc, char **argv)
{
	Probe probe;
	int admin = CAP_SYS_ADMIN, raw = CAP_NET_RAW;
	char set_id[] = "/tmp/made-set-id";

	if (argc == 2 && strcmp(argv[1], "--look") == 0)
		return look_at_oneself(NULL);
	probe = probe_begin(argc, argv);
	if (!probe.outside)
		try_fds(&probe);
	probe_check(&probe, "main thread", (Expected){ "0", "!0" }, look_at_oneself(NULL));
	probe_check(&probe, "second thread", (Expected){ "0", "!0" },
		    probe_in_thread(look_at_oneself, NULL));
	probe_check(&probe, "child", (Expected){ "0", "!0" },
		    probe_in_child(look_at_oneself, NULL));
	for (int i = 0; i < probe.argc; i++)
		probe_check(&probe, probe.argv[i], (Expected){ "0", "!0" },
			    probe_in_child(run_oneself, probe.argv[i]));
	probe_check(&probe, "set-id bits", (Expected){ "0", "*" }, probe_in_child(set_bit, set_id));
	/* user 0 is nobody inside, or itself where the policy says so */
	probe_check(&probe, "user 0", (Expected){ "EINVAL|EPERM", "0" },
		    getuid() == 0 && !probe.outside ? EPERM : probe_in_child(become_root, NULL));
	probe_check(&probe, "groups", REFUSED("EPERM"), probe_in_child(take_groups, NULL));
	probe_check(&probe, "CAP_SYS_ADMIN", REFUSED("EPERM"), probe_in_child(take_cap, &admin));
	probe_check(&probe, "CAP_NET_RAW", REFUSED("EPERM"), probe_in_child(take_cap, &raw));
	probe_check(&probe, "no_new_privs off", (Expected){ "EINVAL", "EINVAL" },
		    probe_in_child(forget_no_new_privs, NULL));
	probe_check(&probe, "no filter", (Expected){ "EINVAL", "EINVAL" },
		    probe_in_child(leave_filter, NULL));
	try_personalities(&probe);
	return probe_end(&probe);
}
