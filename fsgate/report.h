/* What the end of an exec tells whoever ran it: what was refused to it and what it changed (common/control.h has the
 * keys). And the same as it happens, for listeners. Bounded: an answer fits a line of the control socket, whatever the
 * names; what has no room is counted as dropped, or comes with the next question. */
#pragma once

#include "common/json.h"
#include "fsgate/view.h"

/* Adds to the answer what the exec in that pid namespace did, which began as the boundary's `exec`; nothing when
 * execs cannot be told apart here. Waits for files that are being closed until until_us. */
void fsg_report_exec(FsgView *view, JsonObject *answer, uint64_t pid_namespace, uint64_t exec,
		     gint64 until_us);

/* Events after `since`; NULL with `wait` when there are none, then fsg_events_wake_fd() tells of the next. */
JsonObject *fsg_report_events(FsgView *view, uint64_t since, bool wait);
