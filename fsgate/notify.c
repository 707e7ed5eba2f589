/* Telling the kernel; see notify.h. Failures are of no consequence: ENOENT is what it does not know, anything else
 * the end of the connection. */
#include "fsgate/notify.h"

#include "fsgate/fuse-api.h"

#include <errno.h>
#include <string.h>

void fsg_notify_name(struct fuse_session *fuse, uint64_t dir, const char *name)
{
	(void)fuse_lowlevel_notify_inval_entry(fuse, dir, name, strlen(name));
}

void fsg_notify_wait_for_dir(struct fuse_session *fuse, uint64_t dir)
{
	/* The kernel looks with the directory locked, for a name that no entry can have. */
	(void)fuse_lowlevel_notify_inval_entry(fuse, dir, "/", 1);
}

bool fsg_notify_expire(struct fuse_session *fuse, uint64_t dir, const char *name)
{
	return fuse_lowlevel_notify_expire_entry(fuse, dir, name, strlen(name),
						 FUSE_LL_EXPIRE_ONLY) != -ENOSYS;
}

void fsg_notify_object(struct fuse_session *fuse, uint64_t object, bool content)
{
	(void)fuse_lowlevel_notify_inval_inode(fuse, object, content ? 0 : -1, 0);
}
