/* Mounting through fusermount3, as libfuse does it for users who may not mount by themselves. */
#pragma once

#include "fsgate/fuse-api.h"

/* 0; -EPERM with *reterr_why, one printable line: what fusermount3 or libfuse said on stderr, where such lines go
 * otherwise, beside the one that a caller makes of an error. What they say of a mount that works out still goes
 * there. To be called before there are other threads, for which stderr is a file meanwhile. */
int fsg_fusermount(struct fuse_session *fuse, const char *mountpoint, char **reterr_why);
