/* Who keeps a view busy. */
#pragma once

#include "fsgate/mountinfo.h"

/* The processes that hold the view, as far as the caller may look at them: "123 vim (open file /workspace/a), 45 sh
 * (working directory)", printable, the first eight and how many more there are; "" when none is found. Looks at
 * /proc only, at texts and numbers, never into the view; by a child, for at most 2 s, because even /proc can
 * make one wait for a process that is stuck in the view. */
char *fsg_view_holders(const FsgViewMount *mount);

/* What the calling process itself holds, as above ("working directory /workspace"), or NULL. */
char *fsg_view_held_by_self(const FsgViewMount *mount);
