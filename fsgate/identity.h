/* Whom a serving thread acts as on the host, and with which capabilities. */
#pragma once

#include "fsgate/anchor.h"
#include "fsgate/fuse-api.h"

/* Takes down whose request the calling thread works on from here. */
void fsg_identity_note(const struct fuse_ctx *caller);

/* Makes the calling thread act as whom the anchor says (no-op for a gateway that is not root). To be
 * called at the start of every handler's work, for the same thread serves one mount after another. 0 or
 * -EPERM. */
int fsg_view_act_as(const FsgAnchor *anchor);

/* The mode to make something new with, so that it comes out as on a local file system: the caller's umask is
 * this thread's own from here, for the host leaves it out where the directory has a default ACL. After
 * fsg_view_act_as. */
mode_t fsg_identity_new_mode(mode_t mode);

/* To be called by each serving thread at its start: leaves it only the capabilities that switch between the owners of
 * mounts, and passthrough's. Everything that lets root pass over permission bits is gone, so that the host's own
 * checks decide. 0 or -errno. */
int fsg_identity_start_serving(void);
