/* Opening the host's file behind an inode for I/O. */
#pragma once

#include "fsgate/view.h"

/* Opens the regular file with flags (access mode, O_TRUNC, O_SYNC, O_DSYNC; others are ignored), as whom the mount acts, if the
 * object is where it was last seen, or open already. O_APPEND only helps with files that may be appended to
 * and nothing else: appending is done write by write. *ret_stx is of the opened file. The fd or -errno: -ESTALE for
 * what has moved out of the mount, -ENXIO for what is no regular file. */
int fsg_open_file(FsgView *view, FsgInode *inode, int flags, struct statx *ret_stx);
