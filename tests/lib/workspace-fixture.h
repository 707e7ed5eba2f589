/* The usual ground of a view's tests: one writable mount, /workspace, with the same directory seen on both sides,
 * and beside it an ordinary directory on the same host file system, to compare with. */
#pragma once

#include "lib/view-fixture.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct {
	ViewFixture *view;
	char *host;   /* dir/ws, on the host */
	char *inside; /* the same directory in the view */
	char *native; /* dir/native, in no mount */
	bool tmpfs;   /* host is a tmpfs of its own */
} Workspace;

/* For cmocka: *state is a Workspace. */
int workspace_set_up(void **state);
/* In a tmpfs, for tests that make many files: some disks' file systems take half a millisecond for each. */
int workspace_set_up_tmpfs(void **state);
int workspace_tear_down(void **state);

/* Paths of a name on each side, to be freed. */
char *workspace_inside(const Workspace *ws, const char *name);
char *workspace_host(const Workspace *ws, const char *name);

/* Opens name in the view (close-on-exec, mode 0644); the fd, or -1 and errno. */
int workspace_open(const Workspace *ws, const char *name, int flags);

/* The whole file on the host is these bytes. Ends the test when it is not. */
void workspace_assert_host(const Workspace *ws, const char *name, const void *data, size_t size);

/* errno after a call that gives -1 for it, else 0. */
int result_of(long result);

/* Whether check(data) comes true within timeout_ms; asked every 10 ms. */
bool wait_until(bool (*check)(void *data), void *data, int timeout_ms);

/* Milliseconds of the monotonic clock. */
long long now_ms(void);

/* fork() of a child that ends with the test, however that ends. */
pid_t fork_helper(void);

/* Waits for a child to end: its wait status, or -1 when it has not within timeout_ms (it goes on). */
int wait_for_child(pid_t pid, int timeout_ms);
