/* The processes of a procfs, for those that look for what a command has left. */
#include "executor/init.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static bool parse(const char *text, InitStat *ret_stat)
{
	/* The name in parentheses is the process's own choice: the rest is behind the last one. */
	const char *rest = strrchr(text, ')');
	long threads;
	char state;

	/* state ppid pgrp, then 14 others, num_threads */
	if (!rest || sscanf(rest + 1,
			    " %c %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
			    &state, &ret_stat->parent, &ret_stat->group, &threads) != 4)
		return false;
	ret_stat->lives = (state != 'Z' && state != 'X') || threads > 1;
	return true;
}

/* false: it is gone. */
static bool read_stat(int proc_fd, const char *name, InitStat *ret_stat)
{
	char path[32], text[512];
	ssize_t size;
	FD_AUTO fd = -1;

	snprintf(path, sizeof path, "%.16s/stat", name);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (size <= 0)
		return false;
	text[size] = '\0';
	ret_stat->pid = atoi(name);
	return parse(text, ret_stat);
}

int init_stat_each(int proc_fd, InitVisit *visit, void *data)
{
	struct {
		uint64_t ino;
		int64_t off;
		uint16_t size;
		uint8_t type;
		char name[];
	} * entry;
	_Alignas(8) char buffer[8192];
	FD_AUTO dir = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long got = -1;

	while (dir >= 0 && (got = syscall(SYS_getdents64, dir, buffer, sizeof buffer)) > 0) {
		for (long at = 0; at < got; at += entry->size) {
			InitStat stat;

			entry = (void *)(buffer + at);
			if (entry->name[0] >= '1' && entry->name[0] <= '9' &&
			    read_stat(dir, entry->name, &stat))
				visit(&stat, data);
		}
	}
	return got < 0 ? -errno : 0;
}
