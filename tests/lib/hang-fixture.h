/* A hang-fs (see hang-fs.c) for tests in C. It ends with the test, however that ends. */
#pragma once

#include <sys/types.h>

typedef struct {
	pid_t pid;
	int commands; /* its standard input */
	int answers;  /* its standard output */
} HangFs;

/* Mounts one there; returns when it answers. */
HangFs hang_fs_start(const char *mountpoint);

/* From now on nothing in it is answered. */
void hang_fs_hang(const HangFs *fs);
/* All that waits is answered. */
void hang_fs_go_on(const HangFs *fs);

/* Unmounts and ends it; what waits gets an error. */
void hang_fs_stop(HangFs *fs);
