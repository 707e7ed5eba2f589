/* The mode of what is made in a place; see path-resolver.h. The kernel takes from it what this process's umask says, which is
 * not the agent's; but where the directory has a default ACL that is the agent's, and what it says stands. */
#include "common/path-resolver.h"

#include "common/fd-util.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>

bool path_resolver_has_default_acl(const PathPlace *place)
{
	char dir[FD_PROC_PATH_SIZE];

	fd_proc_path(place->parent_fd, dir);
	return getxattr(dir, "system.posix_acl_default", NULL, 0) > 0;
}

int path_resolver_give_mode(const PathPlace *place, int fd, mode_t mode)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if ((st.st_mode & 07777) == mode || path_resolver_has_default_acl(place))
		return 0;
	return fchmod(fd, mode) == 0 ? 0 : -errno;
}
