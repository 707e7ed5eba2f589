/* What the kernel shows as files: /proc, /sys and /dev. For writing every file is tried that is not the command's own
 * process; nothing is written, an open fd would be enough. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PROC_MAGIC   0x9fa0
#define DEVPTS_MAGIC 0x1cd1
#define MAX_DEPTH    12

/* The last asks to be told of load, for oneself, and is open to every user. */
static const char *const skipped[] = { "self", "thread-self", "pressure", NULL };

typedef struct {
	int files;
	int writable;
} Count;

static void walk(int parent, const char *name, const char *shown, int depth, Count *count)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		char path[1024];
		int file;

		if (entry->d_name[0] == '.' ||
		    (depth == 0 && entry->d_name[0] >= '0' && entry->d_name[0] <= '9'))
			continue;
		for (int i = 0; skipped[i]; i++)
			if (depth == 0 && strcmp(entry->d_name, skipped[i]) == 0)
				goto next;
		snprintf(path, sizeof path, "%s/%.255s", shown, entry->d_name);
		if (entry->d_type == DT_DIR && depth < MAX_DEPTH)
			walk(fd, entry->d_name, path, depth + 1, count);
		if (entry->d_type != DT_REG)
			continue;
		count->files++;
		file = openat(fd, entry->d_name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (file < 0)
			continue;
		printf("can be written to: %s\n", path);
		count->writable++;
		close(file);
	next:;
	}
	if (dir)
		closedir(dir);
}

static void try_tree(Probe *probe, const char *path, int least)
{
	Count count = { 0, 0 };
	char name[64];

	walk(AT_FDCWD, path, path, 0, &count);
	snprintf(name, sizeof name, "%s: %d files", path, count.files);
	probe_that(probe, name, count.files >= least);
	snprintf(name, sizeof name, "files below %s for writing", path);
	probe_check(probe, name, (Expected){ "0", "EROFS" }, count.writable ? EROFS : 0);
}

/* 0 when something can be read from it. */
static int content_of(const char *path)
{
	char text[64];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), r;
	ssize_t got;

	if (fd < 0)
		return errno;
	got = read(fd, text, sizeof text);
	r = got < 0 ? errno : got == 0 ? ENODATA : 0;
	close(fd);
	return r;
}

static void try_reading(Probe *probe)
{
	static const char *const hidden[] = { "/proc/kcore",	  "/proc/keys",
					      "/proc/timer_list", "/proc/sched_debug",
					      "/proc/kmsg",	  "/proc/kpageflags",
					      "/proc/slabinfo",	  "/proc/vmallocinfo" };

	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
		probe_check(probe, hidden[i],
			    (Expected){ "ENODATA|EACCES|EPERM|ENOENT", "0|ENOENT|EAGAIN|ENODATA" },
			    content_of(hidden[i]));
	probe_check(probe, "/proc/self/status", ALLOWED, content_of("/proc/self/status"));
	probe_check(probe, "/proc/sys/kernel/osrelease", ALLOWED,
		    content_of("/proc/sys/kernel/osrelease"));
}

/* Of the machine, where a write would be an escape. */
static void try_known_ways(Probe *probe)
{
	static const char *const paths[] = {
		"/proc/sysrq-trigger",
		"/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/modprobe",
		"/proc/sys/kernel/ns_last_pid",
		"/proc/sys/vm/drop_caches",
		"/proc/sys/fs/binfmt_misc/register",
		"/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/user/max_user_namespaces",
		"/proc/irq/default_smp_affinity",
		"/proc/self/uid_map",
		"/proc/self/gid_map",
		"/sys/fs/cgroup/release_agent",
		"/sys/fs/cgroup/cgroup.procs",
		"/sys/kernel/uevent_helper",
		"/sys/devices/system/cpu/cpu0/uevent",
		"/sys/power/state",
	};

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		int fd = open(paths[i], O_WRONLY | O_CLOEXEC);
		/* the maps can be opened by their owner; they are written once */
		int r = fd < 0 ? errno
			       : PROBE_CALL(write(fd, "", 0) < 0 ? -1 : write(fd, "0 0 1", 5));

		close(fd);
		probe_check(probe, paths[i], (Expected){ "EROFS|EACCES|EPERM|ENOENT", "*" }, r);
	}
}

static const struct {
	const char *name;
	unsigned int major, minor;
	mode_t type;
} nodes[] = {
	{ "null", 1, 3, S_IFCHR },   { "zero", 1, 5, S_IFCHR },	   { "full", 1, 7, S_IFCHR },
	{ "random", 1, 8, S_IFCHR }, { "urandom", 1, 9, S_IFCHR }, { "tty", 5, 0, S_IFCHR },
	{ "ptmx", 0, 0, S_IFLNK },   { "pts", 0, 0, S_IFDIR },	   { "shm", 0, 0, S_IFDIR },
	{ "fd", 0, 0, S_IFLNK },     { "stdin", 0, 0, S_IFLNK },   { "stdout", 0, 0, S_IFLNK },
	{ "stderr", 0, 0, S_IFLNK },
};

static bool is_node(const char *name)
{
	char path[300];
	struct stat st;

	for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
		if (strcmp(nodes[i].name, name) != 0)
			continue;
		snprintf(path, sizeof path, "/dev/%s", name);
		if (lstat(path, &st) != 0 || (st.st_mode & S_IFMT) != nodes[i].type)
			return false;
		return nodes[i].type != S_IFCHR ||
		       st.st_rdev == makedev(nodes[i].major, nodes[i].minor);
	}
	return false;
}

static int device_by(const char *path)
{
	return PROBE_CALL(mknod(path, S_IFCHR | 0666, makedev(1, 3)));
}

static int touch(const char *path)
{
	return PROBE_CALL(utimensat(AT_FDCWD, path, NULL, 0));
}

static void try_devices(Probe *probe)
{
	DIR *dev = opendir("/dev");
	size_t seen = 0, wrong = 0;
	struct statfs fs;
	struct stat st;

	for (const struct dirent *entry; dev && (entry = readdir(dev));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		seen++;
		if (!is_node(entry->d_name)) {
			wrong++;
			printf("not what it should be: /dev/%s\n", entry->d_name);
		}
	}
	if (dev)
		closedir(dev);
	probe_that(probe, "exactly the listed nodes",
		   wrong == 0 && seen == sizeof nodes / sizeof nodes[0]);
	probe_that(probe, "pts is a devpts",
		   statfs("/dev/pts", &fs) == 0 && fs.f_type == DEVPTS_MAGIC);
	/* its own: a new one has no terminal but the one that makes them */
	probe_that(probe, "and its own",
		   stat("/dev/pts/0", &st) != 0 && stat("/dev/pts/ptmx", &st) == 0);
	probe_that(probe, "proc is a proc", statfs("/proc", &fs) == 0 && fs.f_type == PROC_MAGIC);
	probe_check(probe, "a terminal that is nobody's", (Expected){ "ENXIO", "*" },
		    PROBE_CALL(open("/dev/tty", O_RDWR | O_NOCTTY)));
	probe_check(probe, "write to /dev/null", ALLOWED, content_of("/dev/zero"));
	/* The node is the host's: what is in it is nobody's, what is said of it the host's. */
	probe_check(probe, "times of /dev/null", (Expected){ "EROFS", "*" }, touch("/dev/null"));
	probe_check(probe, "times of a file", ALLOWED, touch("/dev/shm"));
	probe_check(probe, "a device node in /tmp", (Expected){ "EPERM", "*" },
		    device_by("/tmp/node"));
	probe_check(probe, "a device node in the view", (Expected){ "EPERM", "*" },
		    device_by("/workspace/node"));
	probe_check(probe, "a device node in shm", (Expected){ "EPERM", "*" },
		    device_by("/dev/shm/node"));
}

int main(int argc, char **argv)
{
	Probe probe = probe_begin(argc, argv);

	try_tree(&probe, "/proc", 100);
	try_reading(&probe);
	if (probe.outside)
		return probe_end(&probe);
	try_tree(&probe, "/sys", 1);
	try_known_ways(&probe);
	try_devices(&probe);
	return probe_end(&probe);
}
