/* New mounts; see mount-util.h. */
#include "common/mount-util.h"

#include "common/fd-util.h"
#include "common/syscall-wrap.h"

int mount_new(const char *type, const char *const *options, unsigned int attr)
{
	FD_AUTO fs = sys_fsopen(type, FSOPEN_CLOEXEC);
	int r;

	if (fs < 0)
		return fs;
	for (; *options; options += 2) {
		unsigned int how = options[1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if ((r = sys_fsconfig(fs, how, options[0], options[1], 0)) < 0)
			return r;
	}
	if ((r = sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)) < 0)
		return r;
	return sys_fsmount(fs, FSMOUNT_CLOEXEC, attr);
}

int mount_attach(int mount_fd, int dirfd, const char *path)
{
	unsigned int flags = MOVE_MOUNT_F_EMPTY_PATH;

	if (*path == '\0')
		flags |= MOVE_MOUNT_T_EMPTY_PATH;
	return sys_move_mount(mount_fd, "", dirfd, path, flags);
}
