/* What procfs says of a process that asks something of the view. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* /proc, in which the pids are those of this process's namespace. -errno. The caller closes it. */
int fsg_tasks_open(void);

/* Whether the task is being killed or is ending, so that it will not use an answer. false when nothing can be found
 * out, as of a task that is not there (one that waits cannot be gone, but it may be hidden: hidepid). */
bool fsg_task_is_dying(int tasks_fd, uint32_t tid);
