/* Where an object was last seen: its hint, looked at again. One look by name, in a directory that is known to be inside
 * the mount, says both that the object is in its place and what its attributes are. */
#pragma once

#include "fsgate/view.h"

/* The attributes of the entry `name` of a directory of this anchor, without opening it where that can be. The
 * verdicts are resolve_child's. */
int fsg_stat_child(const FsgAnchor *anchor, int dirfd, const char *name, struct statx *ret_stx);

/* Attributes of an object that is where it was last seen. -ESTALE for what is not there, and for roots of anchors,
 * which are not looked up by name. The thread acts for the mount then. */
int fsg_place_stat(FsgView *view, FsgInode *inode, struct statx *ret_stx);

/* Opens the object (O_PATH) where it was last seen and caches the fd; given back with fsg_inode_put_fd.
 * -ESTALE as above. */
int fsg_place_open(FsgView *view, FsgInode *inode);
