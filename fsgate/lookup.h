/* From a directory and a name to an inode, and from an inode to its attributes: what several operations
 * share. Nothing here replies. */
#pragma once

#include "fsgate/fuse-api.h"
#include "fsgate/view.h"

/* The entry `name` of a directory, with one lookup counted for the kernel: the reply gives it, or the
 * caller returns it with fsg_inode_forget. -ENOENT (then entry_timeout says how long that may be believed), -ESTALE for a directory that is not where it was, or what
 * the host says. */
int fsg_lookup(FsgView *view, FsgInode *dir, const char *name, struct fuse_entry_param *ret_entry);

/* The same for several names of one directory: held_dirfd is what fsg_get_dir_fd gave for it, or -1. */
int fsg_lookup_in(FsgView *view, FsgInode *dir, int held_dirfd, const char *name,
		  struct fuse_entry_param *ret_entry);

/* The same for what was just made in dir and is open at fd: whatever has the name by now, the entry is this
 * object. The thread acts for the mount. */
int fsg_entry_of_new(FsgView *view, FsgInode *dir, const char *name, int fd,
		     struct fuse_entry_param *ret_entry);

/* Attributes as the view shows them. file_fd >= 0: of that open file of the inode's. */
int fsg_stat(FsgView *view, FsgInode *inode, int file_fd, struct stat *ret_st);

/* The owner that the view shows. */
uid_t fsg_shown_uid(const FsgView *view, const FsgAnchor *anchor, uid_t uid);

/* The inode number that the view shows. */
uint64_t fsg_shown_ino(const FsgView *view, const FsgInode *inode);

/* An O_PATH fd of any object of the host's, the thread acting for its mount, the object known to be where it
 * was last seen: what the host moved out of the mount is -ESTALE, however long its fd has been held. With
 * `held`, a program that has the file open may go on using it wherever it is, as on any file system. Given
 * back with fsg_inode_put_fd. */
int fsg_get_object_fd(FsgView *view, FsgInode *inode, bool held);

/* Opens the regular file behind that fd for I/O: never anything else, and never blocking on it but for
 * the lease of another process, for which only a few threads wait at a time (-EAGAIN beyond). */
int fsg_reopen(FsgView *view, int fd, int flags);

/* An O_PATH fd of a directory to look up or change something in, the thread acting for its mount, the
 * directory known to be still inside it. Given back with fsg_inode_put_fd. -EBADF for what has no host
 * directory. */
int fsg_get_dir_fd(FsgView *view, FsgInode *dir);
