/* What the files that build a view plan share; for them only. */
#pragma once

#include "common/view-plan.h"

/* Appends an entry; paths are copied, host_path may be NULL. The order is made at the end. */
ViewEntry *view_plan_add(ViewPlan *plan, ViewEntryKind kind, ViewOrigin origin,
			 const char *view_path, const char *host_path);

/* Whether a mount that is in the plan so far serves view_path, at it or from above. Runtime directories
 * do not count: they give way. */
bool view_plan_covers(const ViewPlan *plan, const char *view_path);

/* Writes one line, `subject "path": what`, and returns r. */
int view_plan_refuse(int r, char **reterr_message, const char *subject, const char *path,
		     const char *what);

/* Looks at what an entry's host path leads to and fills in kind, identity and owner. -errno, without a
 * message, when it cannot be opened: *ret_opened is then false. Otherwise a message has been made.
 * Kernel file systems are let in only when from_kernel. */
int view_plan_look(ViewEntry *entry, const char *subject, bool from_kernel, bool *ret_opened,
		   char **reterr_message);

/* Rows of runtime "host": directories of programs, and the links between them. */
int view_plan_add_runtime(ViewPlan *plan, char **reterr_message);

/* /etc with the files that are made for the view instead of the host's. */
int view_plan_add_etc(ViewPlan *plan, char **reterr_message);

/* Turns a complete plan into one AS_HOST. */
void view_plan_use_host_paths(ViewPlan *plan);

/* Places that a sandbox makes by itself: /proc, /dev, /run, /tmp, /var/tmp. */
void view_plan_add_sandbox_points(ViewPlan *plan);
