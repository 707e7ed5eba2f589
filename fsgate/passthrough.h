/* Passthrough: reads, writes and mappings of an open file go from the kernel straight to the host's file,
 * without a request (Linux 6.9, CAP_SYS_ADMIN in the first user namespace).
 *
 * An inode is open in one way at a time: handed to the kernel under a backing id, which all its open files share, or
 * through us and the kernel's cache. The kernel refuses a mixture with EIO, so the way is decided here, under one
 * lock, before the reply. What may be opened has been decided before: the fd that is handed over was opened
 * below the anchor with the rights that the program asked for. */
#pragma once

#include "fsgate/device.h"
#include "fsgate/inode.h"

#include <stdint.h>

typedef struct FsgPassthrough FsgPassthrough;

/* Whether this process could use it: asked before the mount, so that INIT can agree on it. */
bool fsg_passthrough_is_allowed(void);

/* device may be NULL: then everything goes through us. */
FsgPassthrough *fsg_passthrough_new(FsgDevice *device);
void fsg_passthrough_free(FsgPassthrough *passthrough); /* NULL is allowed */

/* One more open file of the inode's, fd being the host's file, or -1 to go through us if that is still open. Its
 * backing id, > 0, or 0: through us. */
int32_t fsg_passthrough_take(FsgPassthrough *passthrough, FsgInode *inode, int fd);
/* One less; id is what take returned. */
void fsg_passthrough_return(FsgPassthrough *passthrough, FsgInode *inode, int32_t id);

/* "on", or "off: " and why. A fixed text. */
const char *fsg_passthrough_state(FsgPassthrough *passthrough);
