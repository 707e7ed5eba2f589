/* Where the door of a mounted view is: one socket a view, in a directory that only its owner can enter
 * (common/runtime-dir.h), named by the view's device number, which no two mounted views share. */
#pragma once

#include "fsgate/mountinfo.h"

/* Makes the directory if need be: an O_PATH fd, or -errno. *ret_path (may be NULL) is where it is; to be freed. */
int fsg_door_dir_open(char **ret_path);

/* Makes the listening socket of the view that is mounted at an absolute path; one that a killed gateway left under
 * that name goes. dirfd is that of fsg_door_dir_open(). fd, or -errno. *ret_ino tells the socket from others. */
int fsg_door_listen(int dirfd, const FsgViewMount *mount, ino_t *ret_ino);

/* Removes it, unless the next view, which may have got the same number, has its own in that place. */
void fsg_door_remove(int dirfd, const FsgViewMount *mount, ino_t ino);

/* Connects to it. fd; -ENOENT, -ECONNREFUSED when nobody listens, or another -errno. */
int fsg_door_connect(const FsgViewMount *mount);
