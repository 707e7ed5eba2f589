/* On which processors the serving threads run; see placement.h. The counters are hints that threads update
 * without a lock: a lost update costs a few microseconds. */
#include "fsgate/placement.h"

#include "fsgate/task.h"

#include <glib.h>
#include <sched.h>
#include <time.h>

/* Requests one after another before the threads follow their client, and how often it is looked where it
 * is: procfs costs some microseconds. */
#define FOLLOW_AFTER  24
#define LOOK_EVERY_NS 2000000ll
/* Overlaps before they are let go: one does not make a crowd. */
#define LET_GO_AFTER 3

struct FsgPlacement {
	int tasks_fd;
	cpu_set_t allowed; /* where the gateway may run at all */
	int home;	   /* the processor to be on, or NOWHERE */
	unsigned int in_turn;
	unsigned int overlaps;
	int64_t looked_ns;
};

FsgPlacement *fsg_placement_new(int tasks_fd)
{
	FsgPlacement *placement = g_new0(FsgPlacement, 1);

	placement->tasks_fd = tasks_fd;
	placement->home = FSG_PLACEMENT_NOWHERE;
	if (sched_getaffinity(0, sizeof placement->allowed, &placement->allowed) != 0 ||
	    CPU_COUNT(&placement->allowed) < 2)
		placement->tasks_fd = -1;
	return placement;
}

void fsg_placement_free(FsgPlacement *placement)
{
	g_free(placement);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#define GET(field)	  __atomic_load_n(&placement->field, __ATOMIC_RELAXED)
#define SET(field, value) __atomic_store_n(&placement->field, value, __ATOMIC_RELAXED)

static void look(FsgPlacement *placement, uint32_t pid)
{
	int64_t now = now_ns();
	int cpu;

	if (now - GET(looked_ns) < LOOK_EVERY_NS)
		return;
	SET(looked_ns, now);
	cpu = fsg_task_cpu(placement->tasks_fd, pid);
	SET(home, cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &placement->allowed)
			  ? cpu
			  : FSG_PLACEMENT_NOWHERE);
}

void fsg_placement_note(FsgPlacement *placement, uint32_t pid, unsigned int others)
{
	if (placement->tasks_fd < 0)
		return;
	if (others > 0) {
		SET(in_turn, 0);
		SET(overlaps, GET(overlaps) + 1);
		if (GET(overlaps) >= LET_GO_AFTER)
			SET(home, FSG_PLACEMENT_NOWHERE);
		return;
	}
	SET(in_turn, GET(in_turn) + 1);
	if (GET(in_turn) < FOLLOW_AFTER || pid == 0)
		return;
	SET(overlaps, 0);
	look(placement, pid);
}

void fsg_placement_apply(FsgPlacement *placement, int *held)
{
	int home = GET(home);
	cpu_set_t one;

	if (home == *held)
		return;
	*held = home;
	if (home == FSG_PLACEMENT_NOWHERE) {
		(void)sched_setaffinity(0, sizeof placement->allowed, &placement->allowed);
		return;
	}
	CPU_ZERO(&one);
	CPU_SET(home, &one);
	/* Refused, or a processor that went away: then it stays where it is. */
	(void)sched_setaffinity(0, sizeof one, &one);
}
