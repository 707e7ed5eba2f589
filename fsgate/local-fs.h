/* Which host file systems answer by themselves: no server behind them can hang, and closing a file tells nothing
 * that a write did not. Others (network file systems, FUSE) are asked by the gateway's own threads only, which
 * may wait; there the kernel is handed no files and every close is passed on. */
#pragma once

#include <stdbool.h>

/* fd may be O_PATH. What is not known is not local. */
bool fsg_is_local_fs(int fd);
