/* On which processors the serving threads run.
 *
 * A request that finds its server on another, idle processor costs two wake-ups across processors, which on
 * a virtual machine is most of a request's time. While one process asks one thing after another (a git, a
 * find, a tar), the threads are therefore held on that process's processor: client and server take turns
 * anyway. As soon as requests overlap, the threads go wherever the scheduler likes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct FsgPlacement FsgPlacement;

/* tasks_fd as in task.h, borrowed; -1 makes all this do nothing. */
FsgPlacement *fsg_placement_new(int tasks_fd);
void fsg_placement_free(FsgPlacement *placement);

/* A request of pid was taken while `others` were being worked on. Any thread. */
void fsg_placement_note(FsgPlacement *placement, uint32_t pid, unsigned int others);

/* Moves the calling thread, if it is not where it should be. *held is the thread's own memory of it,
 * FSG_PLACEMENT_UNKNOWN at first (a thread starts where its maker was held). */
void fsg_placement_apply(FsgPlacement *placement, int *held);
#define FSG_PLACEMENT_NOWHERE (-1)
#define FSG_PLACEMENT_UNKNOWN (-2)
