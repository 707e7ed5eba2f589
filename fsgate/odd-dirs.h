/* Which host directories have names that the view shows as something else than the host's listing says. */
#pragma once

#include "fsgate/view.h"

/* Those that hold a mount point of the host's below a mount of the view. Before any other thread exists. */
void fsg_view_find_odd_dirs(FsgView *view);

/* The one that holds this path. */
void fsg_view_find_odd_parent(FsgView *view, const char *path);
