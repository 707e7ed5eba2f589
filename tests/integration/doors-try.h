/* One try of a path, and what can be said of the object behind it: what every door of it-doors.c answers with. For the
 * tests and, without any library, for doors-probe.c, which tries inside a sandbox; the two talk by these structs. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define DOOR_CONTENT_BYTES 512
/* Longer than what any kernel takes. */
#define DOOR_PATH_BYTES 70000

/* What is written through every fd that can be written to: the host has to have it afterwards. */
#define DOOR_TEXT "written by a door"

/* Before each path: its length without a NUL. */
typedef struct {
	int32_t flags; /* of open(2) */
	uint32_t length;
} DoorRequest;

typedef struct {
	int32_t errnum; /* 0: it was opened, and the rest says what it is */
	uint32_t mode;
	int64_t size;
	int64_t mtime; /* in nanoseconds, before anything was written */
	uint64_t dev, ino;
	int32_t content_size; /* -1: not readable, or no regular file */
	int32_t write_errnum; /* of writing DOOR_TEXT, if it was opened for writing */
	char content[DOOR_CONTENT_BYTES];
} DoorAnswer;

/* Looks at an fd that open(2) gave for these flags, writes to it if it can, and closes it. fd: -errno is an answer. */
void door_look(int take_fd, int flags, DoorAnswer *ret_answer);
/* Opens path below dirfd, and looks. */
void door_try(int dirfd, const char *path, int flags, DoorAnswer *ret_answer);
