/* Who may do what with a file that takes another one's place: nobody more than before. The mode alone does not say it: the
 * new file has the group of who makes it, and where there is an ACL the group's bits are its mask. */
#include "common/files-replace.h"

#include "common/fd-util.h"

#include <errno.h>
#include <sys/xattr.h>

#define ACL	 "system.posix_acl_access"
#define ACL_SIZE 65536 /* the most that the kernel gives */

/* 0: there is none. Its size or -errno. */
static ssize_t read_acl(int fd, char *acl)
{
	char path[FD_PROC_PATH_SIZE];
	ssize_t size;

	fd_proc_path(fd, path);
	size = getxattr(path, ACL, acl, ACL_SIZE);
	if (size < 0 && (errno == ENODATA || errno == EOPNOTSUPP))
		return 0;
	return size < 0 ? -errno : size;
}

static bool keep_group(int fd, gid_t gid)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_gid == gid)
		return true;
	return fchown(fd, (uid_t)-1, gid) == 0;
}

int files_keep_access(const PathPlace *place, int fd, const struct stat *old, mode_t *ret_mode)
{
	g_autofree char *acl = g_malloc(ACL_SIZE);
	ssize_t size = read_acl(place->fd, acl);
	mode_t mode = old->st_mode;

	if (size < 0)
		return (int)size;
	/* What it has by now came from the directory. */
	(void)fremovexattr(fd, ACL);
	*ret_mode = mode;
	if (keep_group(fd, old->st_gid))
		return size > 0 && fsetxattr(fd, ACL, acl, (size_t)size, 0) != 0 ? -errno : 0;
	/* The members of another group were others, or whatever the ACL has said. */
	*ret_mode &= ~(mode_t)(size > 0 ? S_IRWXG | S_IRWXO : S_IRWXG);
	if (size == 0)
		*ret_mode |= mode & (mode & S_IRWXO) << 3;
	return 0;
}
