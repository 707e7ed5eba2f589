/* Which mounts of a view show the same host directories. */
#pragma once

#include "fsgate/view.h"

/* Sets has_twin of the anchors, and the view's has_twins and has_near. Before any other thread exists. */
void fsg_view_find_twins(FsgView *view);
