/* Whom a serving thread acts as on the host, and with which capabilities.
 *
 * Two kinds of views. In one of ownership "owner" it acts, mount by mount, as the owner of the mounted directory, with no
 * capability that passes over permissions: the host's own checks decide. In one of ownership "host" it acts
 * as who asks, and two have a say. The kernel decides by the modes and ACLs shown (default_permissions), so
 * permission bits are not asked about again: CAP_DAC_OVERRIDE. But it decides by what it was told up to a second
 * ago, and whatever rests on who owns a thing is asked of the host once more, which knows: sticky directories,
 * chmod, chown, times, set-id bits. So only root has CAP_FOWNER, CAP_CHOWN and CAP_FSETID here. */
#pragma once

#include "fsgate/anchor.h"
#include "fsgate/fuse-api.h"

/* Takes down whose request the calling thread works on from here. */
void fsg_identity_note(const struct fuse_ctx *caller);

/* That caller, for a thread that goes on with the request later; and the user id. */
struct fuse_ctx fsg_identity_noted(void);
uid_t fsg_identity_caller(void);

/* Makes the calling thread act as whom the anchor says (no-op for a gateway that is not root). To be
 * called at the start of every handler's work, for the same thread serves one mount after another. 0 or
 * -EPERM. */
int fsg_view_act_as(const FsgAnchor *anchor);

/* In addition, until the next call of fsg_view_act_as: the caller's supplementary groups, where the anchor is served
 * as the caller. Reading them costs as much as half a request, so only what turns on them asks: a set-group-ID bit, a
 * new group, an ACL. proc_fd is the view's. A caller that is not seen from here has none: refused, not granted. 0 or
 * -errno. */
int fsg_identity_add_groups(const FsgAnchor *anchor, int proc_fd);

/* Takes the capabilities out of effect that acting for a caller has, until the next call of fsg_view_act_as: for what outlives
 * the request and then serves others. 0 or -errno. */
int fsg_identity_lower(void);

/* In place of fsg_view_act_as, where the kernel decides for many callers (default_permissions) and has not been asked: to
 * search a directory as the caller, with the caller's groups and no capability. shown_uid is the view's, for whom the
 * gateway acts as the owner; so it does for all when it is not root and cannot switch. */
int fsg_identity_search(const FsgAnchor *anchor, int proc_fd, uid_t shown_uid);

/* The mode that chmod may give. Set-id bits have no effect in the view, so they are not put on the host either, unless what
 * is done is done as the caller, who may do the same beside the view. A directory's set-group-ID bit only inherits
 * a group and stays. type is S_IFMT. */
mode_t fsg_identity_mode(const FsgAnchor *anchor, mode_t type, mode_t mode);

/* The same for making something new, so that it comes out as on a local file system: the caller's umask is this
 * thread's own from here, for the host leaves it out where the directory has a default ACL. Adds the groups
 * where the mode asks for it. After fsg_view_act_as. */
mode_t fsg_identity_new_mode(const FsgAnchor *anchor, int proc_fd, mode_t type, mode_t mode);

/* The capability that a gateway of ownership "host" needs and this process has not, by its name; or NULL. */
const char *fsg_identity_missing_capability(void);

/* To be called by each serving thread at its start: leaves it only the capabilities that switch between the owners of
 * mounts, and passthrough's. Everything that lets root pass over permission bits is gone, so that the host's own
 * checks decide. 0 or -errno. */
int fsg_identity_start_serving(void);

/* The same of ownership "host": in addition those named at the top, of which none is in effect until a caller is acted
 * for. */
int fsg_identity_start_serving_callers(void);
