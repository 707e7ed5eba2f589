/* What sessions may leave behind, as text: one line a thing. For tests that have a pid and a mount namespace of
 * their own (sh-lib.sh), where all processes and mounts are the test's. */
#pragma once

#include <stdbool.h>

/* Mounts, processes, our open fds, entries of the state directory (STELLA_STATE_DIR) and of TMPDIR; with whole_machine
 * also the FUSE connections and cgroups of sandboxes, which are not only ours to make. Free with g_free(). */
char *leaks_list(bool whole_machine);

/* The lines of now that before has not, waiting up to seconds for there to be none. NULL, or free with g_free(). */
char *leaks_find_new(const char *before, bool whole_machine, double seconds);
